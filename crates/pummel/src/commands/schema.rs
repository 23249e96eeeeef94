//! `pummel schema`: the JSON schemas of results and plans.

use std::io::ErrorKind;

use clap::{Args, ValueEnum};
use pummel_fronts::exit_status::{Exit, STATUSES_WITHOUT_RUN};

use crate::output::print;
use crate::stderr::say;

/// Options of `pummel schema`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_long_help = STATUSES_WITHOUT_RUN)]
pub struct SchemaArgs {
    /// The kind of result
    #[arg(value_enum, value_name = "NAME", default_value = "result")]
    pub name: SchemaName,
}

/// The kinds of JSON that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// What --json of run and load writes, and `pummel merge`
    #[value(alias = "merge")]
    Result,
    /// What --json of search, scan and curve writes
    Curve,
    /// What --json of run --repeat writes, and `pummel merge --as-runs`
    Repeat,
    /// What --json of ab and compare writes
    #[value(aliases = ["ab", "compare"])]
    Comparison,
    /// What --json of `pummel audit` writes
    Audit,
    /// What --json of suite writes
    Suite,
    /// What `pummel explain --format json` prints and `pummel run --plan` reads
    Plan,
}

impl SchemaName {
    /// The schema, in JSON Schema 2020-12.
    pub fn text(self) -> &'static str {
        match self {
            SchemaName::Result => include_str!("../../../../docs/result.schema.json"),
            SchemaName::Curve => include_str!("../../../../docs/curve.schema.json"),
            SchemaName::Repeat => include_str!("../../../../docs/repeat.schema.json"),
            SchemaName::Comparison => include_str!("../../../../docs/comparison.schema.json"),
            SchemaName::Audit => include_str!("../../../../docs/audit.schema.json"),
            SchemaName::Suite => include_str!("../../../../docs/suite.schema.json"),
            SchemaName::Plan => include_str!("../../../../docs/plan.schema.json"),
        }
    }
}

/// Prints a schema.
pub fn schema(args: SchemaArgs) -> Exit {
    match print(args.name.text().as_bytes()) {
        Ok(()) => Exit::Complete,
        // A reader that has read enough may go.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}
