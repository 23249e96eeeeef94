//! The JSON schemas of results, made from the types of their documents.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::comparison::{Comparison, Comparisons};
use crate::document::{CurveDocument, Document, Named};
use crate::repetition::Repetition;
use crate::run_figures::Figures;

/// The words that every schema has, behind those that say what it describes.
const READERS: &str = "docs/RESULTS.md explains it. Later versions add fields: readers leave out those that they do not know, and refuse \
                       a greater schema.";

/// The schemas of results by their names.
pub fn schemas() -> [(&'static str, Value); 4] {
    [
        ("result", of::<Document>("result", "Result of a run", "What run, load and merge write")),
        ("curve", of::<CurveDocument>("curve", "Result of a series", "What search, scan and curve write")),
        (
            "repeat",
            of::<Repetition>(
                "repeat",
                "Result of repeated runs",
                "What run --repeat and merge --as-runs write",
            ),
        ),
        (
            "comparison",
            of::<PairOrSeveral>(
                "comparison",
                "Comparison of two sides, or of several with the first",
                "What ab and compare write",
            ),
        ),
    ]
}

/// Result of `ab` and `compare`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is made")]
enum PairOrSeveral {
    Pair(Box<Comparison>),
    Several(Box<Comparisons>),
}

fn of<T: JsonSchema>(name: &str, title: &str, what: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    without_formats(&mut schema);
    schema["$id"] = format!("https://pummel.invalid/{name}.schema.json").into();
    schema["title"] = title.into();
    schema["description"] = format!("{what}; {READERS}").into();
    schema
}

/// Takes away the formats of numbers, which no reader of JSON knows.
fn without_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.remove("format");
            }
            members.values_mut().for_each(without_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(without_formats),
        _ => {}
    }
}

/// A plan in a result, which has a schema of its own.
pub struct AnyPlan;

impl JsonSchema for AnyPlan {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Plan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "A plan; plan.schema.json describes it." })
    }
}

/// The schema of an object whose members are data.
macro_rules! members {
    ($($name:ident: $words:literal),*) => {$(
        impl<T: JsonSchema> JsonSchema for $name<T> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                format!(concat!($words, "_{}"), T::schema_name()).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
            }
        }
    )*};
}

members!(Named: "Named", Figures: "Figures");
