//! The JSON schemas of results and of plans, made from their types.

use pummel_logic::plan::Plan;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::comparison::{Comparison, Comparisons, SuitesComparison};
use crate::document::{CurveDocument, Document, Named};
use crate::findings::AuditDocument;
use crate::repetition::Repetition;
use crate::run_figures::Figures;
use crate::suite::SuiteDocument;

/// The words that every schema has, behind those that say what it describes.
const READERS: &str = "docs/RESULTS.md explains it. Later versions add fields: readers leave out those that they do not know, and refuse \
                       a greater schema.";

/// The words of the schema of plans.
const PLAN: &str = "What pummel explain --plan writes, what pummel run --plan reads, and the field plan of results; docs/PLAN.md explains \
                    it. Fields that are left out have their defaults; a field that pummel does not know is refused.";

/// The schemas of results and of plans by their names.
pub fn schemas() -> [(&'static str, Value); 7] {
    let written = |what: &str| format!("{what}; {READERS}");
    let result = written("What run, load and merge write");
    let curve = written("What search, scan and curve write");
    let repeat = written("What run --repeat and merge --as-runs write");
    let comparison = written("What ab and compare write");
    let audit = written("What audit writes");
    let several = "Comparison of two sides, of several with the first, or of two suites";
    let suite = written("What suite writes");
    [
        ("result", of::<Document>(Contract::Serialize, "result", "Result of a run", &result)),
        ("curve", of::<CurveDocument>(Contract::Serialize, "curve", "Result of a series", &curve)),
        ("repeat", of::<Repetition>(Contract::Serialize, "repeat", "Result of repeated runs", &repeat)),
        ("comparison", of::<AnyComparison>(Contract::Serialize, "comparison", several, &comparison)),
        ("audit", of::<AuditDocument>(Contract::Serialize, "audit", "Findings of results", &audit)),
        ("suite", of::<SuiteDocument>(Contract::Serialize, "suite", "Result of a suite", &suite)),
        ("plan", of::<Plan>(Contract::Deserialize, "plan", "Plan of a pummel run", PLAN)),
    ]
}

/// Result of `ab` and `compare`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is made")]
enum AnyComparison {
    Pair(Box<Comparison>),
    Several(Box<Comparisons>),
    Suites(Box<SuitesComparison>),
}

fn of<T: JsonSchema>(contract: Contract, name: &str, title: &str, description: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    without_formats(&mut schema);
    schema["$id"] = format!("https://pummel.invalid/{name}.schema.json").into();
    schema["title"] = title.into();
    schema["description"] = description.into();
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

/// Objects that a schema of their own describes: the type that stands for one, its name and that schema.
macro_rules! described_elsewhere {
    ($($(#[$words:meta])* $name:ident: $title:literal, $file:literal;)*) => {$(
        $(#[$words])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $title.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "object", "description": concat!($title, ": ", $file, " describes it.") })
            }
        }
    )*};
}

described_elsewhere! {
    /// A plan in a result.
    AnyPlan: "Plan", "plan.schema.json";
    /// The result of a run in that of a suite.
    AnyResult: "Result", "result.schema.json";
    /// A finding in the result of a suite.
    AnyFinding: "Finding", "audit.schema.json";
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
