//! Tables of fields in a document, filled from the schemas between markers.

use std::collections::VecDeque;
use std::io;

use pummel_report::plan_options::OPTIONS;
use serde_json::Value;

/// The beginning of a marker; the name of a schema and the place of an object in it follow, as in `curve.schema.json#/$defs/CurveRun`.
const BEGIN: &str = "<!-- fields: ";

/// The end of what is filled in.
const END: &str = "<!-- end of fields -->";

/// A document whose tables are those of the schemas, by their names. Behind the table of an object come those of the objects in its
/// fields: each is there once in a document, and where a marker names it.
///
/// # Errors
/// Returns an error for a marker without an end, and for one that names no object of the schemas.
pub fn filled(page: &str, schemas: &[(String, Value)]) -> io::Result<String> {
    let named =
        |marker: &str| object_at(marker, schemas).ok_or_else(|| wrong(marker, "names no object of a schema"));
    let mut told = Vec::new();
    for marker in page.lines().filter(|line| line.starts_with(BEGIN)) {
        told.push(named(marker)?.1);
    }
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find(BEGIN) {
        let marker = rest[at..].lines().next().unwrap_or_default();
        let end = rest[at..].find(END).ok_or_else(|| wrong(marker, "has no end"))?;
        let (root, object) = named(marker)?;
        text += &format!("{}{marker}\n", &rest[..at]);
        tables(root, &path_of(root, object), object, &mut told, &mut text);
        rest = &rest[at + end..];
    }
    Ok(text + rest)
}

fn wrong(marker: &str, why: &str) -> io::Error {
    io::Error::other(format!("the marker {marker} {why}"))
}

/// The schema and the object in it that a marker names.
fn object_at<'a>(marker: &str, schemas: &'a [(String, Value)]) -> Option<(&'a Value, &'a Value)> {
    let (name, pointer) = marker.strip_prefix(BEGIN)?.strip_suffix(" -->")?.split_once('#')?;
    let (_, root) = schemas.iter().find(|(own, _)| own == name)?;
    let object = root.pointer(pointer)?;
    has_table(root, object).then_some((root, object))
}

/// Writes the table of an object, and those of the objects in its fields that have not been told.
fn tables<'a>(root: &'a Value, path: &str, object: &'a Value, told: &mut Vec<&'a Value>, text: &mut String) {
    if !path.is_empty() {
        *text += &format!("\n`{path}`:\n\n");
    }
    let of_field =
        |path: &str, name, field| format!("{}{}", meaning(root, field), option_of(root, &joined(path, name)));
    let rows = fields(root, object).into_iter().map(|(name, field)| row(name, &of_field(path, name, field)));
    let rows: String = rows.collect();
    let head = if rows.is_empty() { "" } else { "| field | meaning |\n|---|---|\n" };
    let between = if rows.is_empty() { "" } else { "\n" };
    *text += &format!("{head}{rows}");
    let variants = variants(root, object);
    if let Some(first) = variants.first() {
        let kind = tag(first.schema).map_or("kind", |(name, _)| name);
        *text += &format!("{between}| {kind} | meaning | fields |\n|---|---|---|\n");
    }
    for variant in variants {
        let path = variant.place(path);
        let fields =
            variant.fields.iter().map(|(name, field)| format!("`{name}`: {}", of_field(&path, name, field)));
        let fields = fields.collect::<Vec<_>>().join("; ");
        *text += &row(variant.name, &format!("{} | {fields}", words_of(variant.schema)));
    }
    for (name, part) in parts(root, object) {
        if !told.contains(&part) && has_table(root, part) {
            told.push(part);
            tables(root, &joined(path, &name), part, told, text);
        }
    }
}

/// The path of what stands behind a name in the object at a path.
fn joined(path: &str, name: &str) -> String {
    format!("{path}.{name}").trim_start_matches('.').to_owned()
}

/// The option that decides a field of a plan, as a part of a row; empty for other fields.
fn option_of(root: &Value, path: &str) -> String {
    let is_plan = root["$id"].as_str().is_some_and(|id| id.ends_with("/plan.schema.json"));
    let row = OPTIONS.iter().find(|row| is_plan && row.path == path && !row.flag.is_empty());
    row.map_or_else(String::new, |row| match row.default {
        "" => format!(" (`{}`)", row.flag),
        default => format!(" (`{}`, by default `{default}`)", row.flag),
    })
}

fn row(name: &str, meaning: &str) -> String {
    format!("| `{name}` | {meaning} |\n")
}

/// One of the forms that an object may have.
struct Variant<'a> {
    name: &'a str,
    schema: &'a Value,
    fields: Vec<(&'a str, &'a Value)>,
    /// Whether the fields stand in an object of their own, which has the name of the form.
    is_inside: bool,
}

impl Variant<'_> {
    /// The path of what has the fields of the form, in the object at a path.
    fn place(&self, path: &str) -> String {
        if self.is_inside { joined(path, self.name) } else { path.to_owned() }
    }
}

/// The field that tells the forms of an object apart, and its word in this one.
fn tag(schema: &Value) -> Option<(&str, &str)> {
    let fields = schema["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((name.as_str(), field["const"].as_str()?)))
}

/// The forms of an object, each with a name of its own: a word alone, that of a tag, or the name of its one field.
fn variants<'a>(root: &'a Value, object: &'a Value) -> Vec<Variant<'a>> {
    let variant = |schema: &'a Value| {
        let named = |name, fields| Variant { name, schema, fields, is_inside: false };
        let mut fields = fields(root, schema);
        match (schema["const"].as_str(), tag(schema), &fields[..]) {
            (Some(word), ..) => named(word, Vec::new()),
            (_, Some((tag, word)), _) => {
                fields.retain(|(name, _)| *name != tag);
                named(word, fields)
            }
            (_, _, [(name, content)]) => {
                let fields = self::fields(root, resolved(root, content).0);
                Variant { is_inside: true, ..named(name, fields) }
            }
            _ => named("", fields),
        }
    };
    object["oneOf"].as_array().into_iter().flatten().map(variant).collect()
}

/// The fields of an object, those that are always there first.
fn fields<'a>(root: &'a Value, object: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let own = object["properties"].as_object();
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let others =
        own.into_iter().flatten().map(|(name, _)| name.as_str()).filter(|name| !required.contains(name));
    let names = required.iter().copied().chain(others).filter(|_| own.is_some());
    let mut fields: Vec<_> = names.map(|name| (name, &object["properties"][name])).collect();
    if object["$ref"].is_string() {
        fields.extend(self::fields(root, resolved(root, object).0));
    }
    fields
}

/// The schema that a field refers to, or each of its items, and what stands behind its name in a path.
fn resolved<'a>(root: &'a Value, field: &'a Value) -> (&'a Value, String) {
    let place = field["$ref"].as_str().and_then(|place| root.pointer(place.strip_prefix('#')?));
    let either = || {
        field["anyOf"]
            .as_array()?
            .iter()
            .max_by_key(|part| part["type"] != "null" && part["type"] != "string")
    };
    let of_each = [("items", "[]"), ("additionalProperties", ".*")];
    let each = of_each
        .into_iter()
        .find(|(word, _)| field[word].is_object())
        .map(|(word, mark)| (&field[word], mark));
    match (place.or_else(either), each) {
        (Some(part), _) => resolved(root, part),
        (None, Some((part, mark))) => {
            let (schema, rest) = resolved(root, part);
            (schema, format!("{mark}{rest}"))
        }
        (None, None) => (field, String::new()),
    }
}

/// The schemas of the fields of an object and of its forms, with what leads to each in a path.
fn parts<'a>(root: &'a Value, object: &'a Value) -> Vec<(String, &'a Value)> {
    let part = |place: &str, (name, field): (&str, &'a Value)| {
        let (schema, mark) = resolved(root, field);
        (format!("{}{mark}", joined(place, name)), schema)
    };
    let mut parts: Vec<_> = fields(root, object).into_iter().map(|field| part("", field)).collect();
    for variant in variants(root, object) {
        let place = variant.place("");
        parts.extend(variant.fields.into_iter().map(|field| part(&place, field)));
    }
    parts
}

/// Whether there is more to say of a schema than its words in a row.
fn has_table(root: &Value, schema: &Value) -> bool {
    schema["properties"].is_object()
        || variants(root, schema).iter().any(|variant| !variant.fields.is_empty())
}

/// The shortest path to an object of a result; empty for the result itself.
fn path_of(root: &Value, object: &Value) -> String {
    let mut seen = vec![root];
    let mut waiting = VecDeque::from([(String::new(), root)]);
    while let Some((path, at)) = waiting.pop_front() {
        if at == object {
            return path;
        }
        for (name, part) in parts(root, at) {
            if !seen.contains(&part) && has_table(root, part) {
                seen.push(part);
                waiting.push_back((joined(&path, &name), part));
            }
        }
    }
    String::new()
}

/// The words of a field, with the words that it may be.
fn meaning(root: &Value, field: &Value) -> String {
    let schema = resolved(root, field).0;
    let own = words_of(field);
    let said = if own.is_empty() { words_of(schema) } else { own };
    if has_table(root, schema) {
        return said;
    }
    let word = |variant: Variant| match words_of(variant.schema) {
        words if words.is_empty() => format!("`{}`", variant.name),
        words => format!("`{}` ({words})", variant.name),
    };
    let words: Vec<String> = variants(root, schema).into_iter().map(word).collect();
    if words.is_empty() { said } else { format!("{said}: {}", words.join(", ")) }
}

/// The description of a schema as a part of a row.
fn words_of(schema: &Value) -> String {
    let said = schema["description"].as_str().unwrap_or_default();
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches('.').replace('|', "\\|").replace("`None`", "null");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    // A word of capitals, or of one letter and digits, stays as it is.
    let is_word = letters.clone().next().is_some_and(|second| second.is_lowercase() || second == ' ');
    if is_word { first + letters.as_str() } else { words }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> Vec<(String, Value)> {
        let schema = json!({
            "$defs": {
                "Unit": {"description": "Unit of a value.", "oneOf": [{"const": "us", "description": "Microseconds."}, {"const": "s"}]},
                "Row": {"properties": {"name": {"description": "Its name; `None` where it has none."}, "again": {"$ref": "#/$defs/Row"}}},
                "Why": {"properties": {"at": {"description": "Its time."}}, "oneOf": [
                    {"description": "It is late.", "properties": {"kind": {"const": "late"}, "by": {"description": "Seconds."}}},
                    {"description": "It is off.", "properties": {"off": {"$ref": "#/$defs/Row"}}},
                ]},
            },
            "properties": {
                "a": {"description": "Whether it is\nA | B."}, "p99": {"description": "CPU time."}, "u": {"$ref": "#/$defs/Unit"},
                "rows": {"description": "The rows.", "additionalProperties": {"items": {"$ref": "#/$defs/Row"}}},
                "why": {"anyOf": [{"$ref": "#/$defs/Why"}, {"type": "null"}], "description": "Its reason."},
            },
            "required": ["u", "p99"]
        });
        vec![("x.schema.json".to_owned(), schema)]
    }

    const ROOT: &str = "| field | meaning |\n|---|---|\n\
                        | `u` | unit of a value: `us` (microseconds), `s` |\n| `p99` | CPU time |\n| `a` | whether it is A \\| B |\n\
                        | `rows` | the rows |\n| `why` | its reason |\n";
    const ROWS: &str = "\n`rows.*[]`:\n\n| field | meaning |\n|---|---|\n| `again` |  |\n| `name` | its name; null where it has none |\n";
    const WHY: &str = "\n`why`:\n\n| field | meaning |\n|---|---|\n| `at` | its time |\n\n| kind | meaning | fields |\n|---|---|---|\n\
                       | `late` | it is late | `by`: seconds |\n\
                       | `off` | it is off | `again`: ; `name`: its name; null where it has none |\n";

    #[test]
    fn tables_take_the_place_of_the_old_ones_and_each_is_there_once() {
        let page = format!("x\n\n{BEGIN}x.schema.json# -->\nold\n{END}\ny\n");
        let filled_in = filled(&page, &schemas()).expect("it is filled");
        assert_eq!(filled_in, format!("x\n\n{BEGIN}x.schema.json# -->\n{ROOT}{ROWS}{WHY}{END}\ny\n"));
        assert_eq!(filled(&filled_in, &schemas()).expect("again"), filled_in);
    }

    #[test]
    fn an_object_that_a_marker_names_is_told_there() {
        let marker = format!("{BEGIN}x.schema.json#/$defs/Row -->\n");
        let page = format!("{BEGIN}x.schema.json# -->\n{END}\n{marker}{END}\n");
        let expected = format!("{BEGIN}x.schema.json# -->\n{ROOT}{WHY}{END}\n{marker}{ROWS}{END}\n");
        assert_eq!(filled(&page, &schemas()).expect("it is filled"), expected);
    }

    #[test]
    fn markers_without_an_end_or_an_object_are_refused() {
        for page in
            [format!("{BEGIN}x.schema.json# -->\n"), format!("{BEGIN}x.schema.json#/$defs/Unit -->\n{END}")]
        {
            assert!(filled(&page, &schemas()).is_err(), "{page}");
        }
    }
}
