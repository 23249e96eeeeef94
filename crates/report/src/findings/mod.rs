//! Findings: facts by which runs do not measure what their names say, and notes beside them.
//!
//! [`findings`] looks at runs, and at all of them together; each [`Fact`] is data until [`words`](crate::words::findings) make a
//! sentence of it. The table of rules is in `rules.rs`.

mod asked_records;
mod audited;
mod collect;
mod examined;
pub(crate) mod fact;
mod finding;
mod names;
mod rules;
mod together;
mod view;

#[cfg(test)]
mod tests;

pub use self::audited::{AuditCommand, AuditDocument, AuditedResult, examined, named};
pub use self::collect::findings;
pub use self::examined::Examined;
pub use self::fact::{Differing, Fact};
pub use self::finding::{Finding, FoundRuns, Grade, counts};
pub use self::view::{brief, view};
