//! Tables of fields in a document, filled from the schemas between markers.

use std::io;

use serde_json::Value;

/// The beginning of a marker; the name of a schema and the place of an object in it follow, as in `curve.schema.json#/$defs/CurveRun`.
const BEGIN: &str = "<!-- fields: ";

/// The end of what is filled in.
const END: &str = "<!-- end of fields -->";

/// A document whose tables are those of the schemas, by their names.
///
/// # Errors
/// Returns an error for a marker without an end, and for one that names no object of the schemas.
pub fn filled(page: &str, schemas: &[(String, Value)]) -> io::Result<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find(BEGIN) {
        let marker = rest[at..].lines().next().unwrap_or_default();
        let end = rest[at..].find(END).ok_or_else(|| wrong(marker, "has no end"))?;
        let place = marker.trim_start_matches(BEGIN).trim_end_matches(" -->");
        let table = table_of(place, schemas).ok_or_else(|| wrong(marker, "names no object of a schema"))?;
        text += &rest[..at];
        text += &format!("{marker}\n{table}");
        rest = &rest[at + end..];
    }
    Ok(text + rest)
}

fn wrong(marker: &str, why: &str) -> io::Error {
    io::Error::other(format!("the marker {marker} {why}"))
}

/// The table of the fields of an object: those that are always there in their order, then the others.
fn table_of(place: &str, schemas: &[(String, Value)]) -> Option<String> {
    let (name, pointer) = place.split_once('#')?;
    let (_, root) = schemas.iter().find(|(own, _)| own == name)?;
    let object = root.pointer(pointer)?;
    let fields = object["properties"].as_object()?;
    let required: Vec<&str> = object["required"].as_array()?.iter().filter_map(Value::as_str).collect();
    let others = fields.keys().map(String::as_str).filter(|name| !required.contains(name));
    let rows = required.iter().copied().chain(others).map(|name| row(name, &fields[name], root));
    Some(format!("| field | meaning |\n|---|---|\n{}", rows.collect::<String>()))
}

fn row(name: &str, field: &Value, root: &Value) -> String {
    let said = field["description"].as_str().or_else(|| {
        let target = root.pointer(field["$ref"].as_str()?.strip_prefix('#')?)?;
        target["description"].as_str()
    });
    let words = said.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches('.').replace('|', "\\|");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    // A word of capitals, or of one letter and digits, stays as it is.
    let is_word = letters.clone().next().is_some_and(|second| second.is_lowercase() || second == ' ');
    let words = if is_word { first + letters.as_str() } else { words };
    format!("| `{name}` | {words} |\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> Vec<(String, Value)> {
        let schema = json!({
            "$defs": {"Unit": {"description": "Unit of a value."}},
            "properties": {
                "a": {"description": "Whether it is\nA | B."}, "p99": {"description": "CPU time."}, "u": {"$ref": "#/$defs/Unit"}
            },
            "required": ["u", "p99"]
        });
        vec![("x.schema.json".to_owned(), schema)]
    }

    #[test]
    fn a_table_has_the_fields_in_their_order_and_takes_the_place_of_the_old_one() {
        let page = format!("x\n\n{BEGIN}x.schema.json# -->\nold\n{END}\ny\n");
        let table = "| field | meaning |\n|---|---|\n| `u` | unit of a value |\n| `p99` | CPU time |\n| `a` | whether it is A \\| B |\n";
        let filled_in = filled(&page, &schemas()).expect("it is filled");
        assert_eq!(filled_in, format!("x\n\n{BEGIN}x.schema.json# -->\n{table}{END}\ny\n"));
        assert_eq!(filled(&filled_in, &schemas()).expect("again"), filled_in);
    }

    #[test]
    fn markers_without_an_end_or_an_object_are_refused() {
        for page in [format!("{BEGIN}x.schema.json# -->\n"), format!("{BEGIN}y.schema.json# -->\n{END}")] {
            assert!(filled(&page, &schemas()).is_err(), "{page}");
        }
    }
}
