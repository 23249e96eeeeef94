//! A check of JSON against the part of JSON Schema 2020-12 that the project's own schemas use.

use serde_json::Value;

/// Faults of a value, by its path; empty where it has the form of the schema.
pub fn wrongs(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

/// Keywords that say nothing of a value.
const WORDS: [&str; 7] = ["$schema", "$id", "$defs", "title", "description", "pattern", "default"];

fn check(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if schema == &Value::Bool(true) {
        return;
    }
    let keywords = schema.as_object().unwrap_or_else(|| panic!("{path}: a schema is an object"));
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let name = wanted
                    .as_str()
                    .and_then(|name| name.strip_prefix('#'))
                    .expect("a reference into the file");
                let target = root.pointer(name).unwrap_or_else(|| panic!("{name} is not in the schema"));
                check(root, target, value, path, found);
            }
            "type" if !is_of_type(wanted, value) => found.push(format!("{path}: {value} is no {wanted}")),
            "const" if value != wanted => found.push(format!("{path}: {value} is not {wanted}")),
            "enum" if !list(wanted).contains(value) => {
                found.push(format!("{path}: {value} is none of {wanted}"))
            }
            "minimum" if value.as_f64() < wanted.as_f64() && value.is_number() => {
                found.push(format!("{path}: {value} is below {wanted}"));
            }
            "maximum" if value.as_f64() > wanted.as_f64() => {
                found.push(format!("{path}: {value} is above {wanted}"))
            }
            "minItems"
                if value.as_array().is_some_and(|all| (all.len() as u64) < wanted.as_u64().unwrap()) =>
            {
                found.push(format!("{path}: fewer than {wanted}"));
            }
            "maxItems"
                if value.as_array().is_some_and(|all| (all.len() as u64) > wanted.as_u64().unwrap()) =>
            {
                found.push(format!("{path}: more than {wanted}"));
            }
            "minLength" if letters(value).is_some_and(|count| count < wanted.as_u64().unwrap()) => {
                found.push(format!("{path}: shorter than {wanted}"));
            }
            "maxLength" if letters(value).is_some_and(|count| count > wanted.as_u64().unwrap()) => {
                found.push(format!("{path}: longer than {wanted}"));
            }
            "required" if value.is_object() => {
                let missing =
                    list(wanted).iter().filter(|name| value.get(name.as_str().expect("a name")).is_none());
                missing.for_each(|name| found.push(format!("{path}: {name} is missing")));
            }
            "items" => {
                for (at, element) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, element, &format!("{path}[{at}]"), found);
                }
            }
            "prefixItems" => {
                for (at, (element, wanted)) in
                    value.as_array().into_iter().flatten().zip(list(wanted)).enumerate()
                {
                    check(root, wanted, element, &format!("{path}[{at}]"), found);
                }
            }
            "properties" | "additionalProperties" => members(root, schema, value, (path, keyword), found),
            "anyOf" | "oneOf" => {
                let fits = |one: &Value| {
                    let mut wrong = Vec::new();
                    check(root, one, value, path, &mut wrong);
                    wrong
                };
                let all: Vec<Vec<String>> = list(wanted).iter().map(fits).collect();
                if all.iter().all(|wrong| !wrong.is_empty()) {
                    found.extend(all.into_iter().flatten());
                }
            }
            "type" | "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" | "minLength"
            | "maxLength" | "required" => {}
            other => assert!(WORDS.contains(&other), "the check does not know the keyword {other}"),
        }
    }
}

/// Number of letters of a text; `None` for another value.
fn letters(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn members(
    root: &Value,
    schema: &Value,
    value: &Value,
    (path, keyword): (&str, &str),
    found: &mut Vec<String>,
) {
    let named = schema.get("properties");
    for (name, member) in value.as_object().into_iter().flatten() {
        let own = named.and_then(|named| named.get(name));
        let wanted =
            if keyword == "properties" { own } else { schema.get(keyword).filter(|_| own.is_none()) };
        if wanted == Some(&Value::Bool(false)) {
            found.push(format!("{path}: {name} is not in the schema"));
        } else if let Some(wanted) = wanted {
            check(root, wanted, member, &format!("{path}.{name}"), found);
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).expect("a list")
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type {other}"),
    };
    match wanted {
        Value::String(name) => is(name),
        names => list(names).iter().any(|name| is(name.as_str().expect("a name"))),
    }
}
