//! The protocol between controllers and agents, as `proto/agent.proto` has it, and its bounds.

use std::fmt;
use std::time::Duration;

use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::NEVER;
use pummel_measure::events::Row;

/// The messages and the service of `proto/agent.proto`, as `cargo xtask proto` makes them.
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
pub mod v2 {
    include!("../../proto/pummel.agent.v2.rs");
}

/// Leaves out the password, and the plan, whose commands may have passwords too.
impl fmt::Debug for v2::Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v2::Order { protocol, build, controller, rows, outstanding, run, .. } = self;
        let mut order = formatter.debug_struct("Order");
        order.field("protocol", protocol).field("build", build).field("controller", controller);
        order.field("rows", rows).field("outstanding", outstanding).field("run", run);
        order.field("has_password", &self.password.is_some()).finish_non_exhaustive()
    }
}

/// The description of the protocol, for reflection.
pub const DESCRIPTION: &[u8] = include_bytes!("../../proto/pummel.agent.v2.bin");

/// The version of the protocol, which both ends must share. It is raised when an end of the previous version could not
/// read the messages, or would store other bytes for the same plan. That includes a new form of a measurement or of a
/// slice, which travel as JSON, since the mismatch would come to light only at the end of a run. Evidence may differ:
/// an end leaves out the parts that it does not know.
pub const PROTOCOL: u32 = 15;

/// Why an end of another protocol or build cannot be spoken to, as the end of a sentence whose subject is that end; `None`
/// where it can. `is_allowed`: the user accepts other builds.
pub fn mismatch(
    ours: &v2::Build,
    protocol: u32,
    theirs: Option<&v2::Build>,
    is_allowed: bool,
) -> Option<String> {
    if protocol == PROTOCOL && (is_allowed || theirs == Some(ours)) {
        return None;
    }
    let theirs = theirs.map_or_else(|| "a pummel that does not say which".to_owned(), build_words);
    let remedy = match protocol == PROTOCOL {
        true => "one build; --allow-version-mismatch of the controller accepts others",
        false => "of one protocol",
    };
    Some(format!(
        "is {theirs} with protocol {protocol}, and this is {} with protocol {PROTOCOL}: both have to be {remedy}",
        build_words(ours)
    ))
}

fn build_words(build: &v2::Build) -> String {
    let word = |text: &str| text.chars().filter(|c| !c.is_control()).take(40).collect::<String>();
    let (version, commit, sources) = (word(&build.version), word(&build.commit), word(&build.sources));
    format!("pummel {version} (commit {commit}, sources {sources})")
}

/// Longest time between two words of a side that say that it is still there.
pub const BEAT: Duration = Duration::from_millis(250);

/// An end that says nothing for so long is gone: short enough that a loss is known, and a job ended, within 3 s.
pub const PATIENCE: Duration = Duration::from_millis(2_000);

/// Most bytes of a message to an agent: a plan with long tables of sizes fits.
pub const COMMAND_BYTES_MAX: usize = 16 << 20;

/// Most bytes of a message to a controller: a measurement with many wrong keys fits.
pub const EVENT_BYTES_MAX: usize = 256 << 20;

/// Numbers of a request in [`v2::Rows`].
const ROW_NUMBERS: usize = 10;

/// Requests in the form of the protocol; their times are already relative.
pub fn pack_rows(rows: &[Row]) -> v2::Rows {
    let mut numbers = Vec::with_capacity(rows.len() * ROW_NUMBERS);
    for row in rows {
        let times = [row.due, row.ready, row.sent, row.arrived, row.read];
        numbers.extend(times.map(|time| if time == NEVER { 0 } else { time.saturating_add(1) }));
        numbers.extend([row.verb as u64, outcome_number(row.outcome), row.key, row.client, row.group.into()]);
    }
    v2::Rows { numbers }
}

/// The requests in a message; `None` where the message is not one of this version.
pub fn unpack_rows(rows: &v2::Rows) -> Option<Vec<Row>> {
    if !rows.numbers.len().is_multiple_of(ROW_NUMBERS) {
        return None;
    }
    rows.numbers.chunks_exact(ROW_NUMBERS).map(unpack_row).collect()
}

fn unpack_row(numbers: &[u64]) -> Option<Row> {
    let &[due, ready, sent, arrived, read, verb, outcome, key, client, group] = numbers else { return None };
    let time = |number: u64| number.checked_sub(1).unwrap_or(NEVER);
    Some(Row {
        due: time(due),
        ready: time(ready),
        sent: time(sent),
        arrived: time(arrived),
        read: time(read),
        verb: *Verb::ALL.get(usize::try_from(verb).ok()?)?,
        outcome: outcome_of(outcome)?,
        key,
        client,
        group: group.try_into().ok()?,
    })
}

/// Outcomes without a fault, by their numbers. What number an answer was is not passed on: no row shows it.
const OUTCOMES: [Outcome; 14] = [
    Outcome::Hit,
    Outcome::Miss,
    Outcome::Stored,
    Outcome::NotStored,
    Outcome::Exists,
    Outcome::NotFound,
    Outcome::Deleted,
    Outcome::Touched,
    Outcome::Number(0),
    Outcome::Ok,
    Outcome::Stale,
    Outcome::Win,
    Outcome::Recaching,
    Outcome::Conflict,
];

/// The number of an outcome: that of its fault behind those without.
fn outcome_number(outcome: Outcome) -> u64 {
    let plain = match outcome {
        // A session makes one of the two of what a command found.
        Outcome::Hit | Outcome::Found { hits: 1.., .. } => 0,
        Outcome::Miss | Outcome::Found { .. } => 1,
        Outcome::Stored => 2,
        Outcome::NotStored => 3,
        Outcome::Exists => 4,
        Outcome::NotFound => 5,
        Outcome::Deleted => 6,
        Outcome::Touched => 7,
        Outcome::Number(_) => 8,
        Outcome::Ok => 9,
        Outcome::Stale => 10,
        Outcome::Win => 11,
        Outcome::Recaching => 12,
        Outcome::Conflict => 13,
        Outcome::Error(fault) | Outcome::Failed { fault, .. } => OUTCOMES.len() + fault as usize,
    };
    plain as u64
}

fn outcome_of(number: u64) -> Option<Outcome> {
    let number = usize::try_from(number).ok()?;
    match number.checked_sub(OUTCOMES.len()) {
        None => Some(OUTCOMES[number]),
        Some(fault) => Fault::ALL.get(fault).copied().map(Outcome::Error),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pummel_logic::plan::Clock;
    use pummel_measure::interval::Interval;
    use pummel_measure::measurement::{Keep, Measurement};
    use pummel_measure::parcel::Parcel;
    use pummel_measure::recorder::Sample;

    use crate::program::Program;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_request_comes_through_as_it_was() {
        let row = |outcome, sent| Row {
            due: 0,
            ready: 5,
            sent,
            arrived: 9,
            read: u64::MAX - 2,
            verb: Verb::ALL[Verb::COUNT - 1],
            outcome,
            key: u64::MAX,
            client: 7,
            group: 2,
        };
        let faults = Fault::ALL.into_iter().map(Outcome::Error);
        let rows: Vec<Row> = OUTCOMES.into_iter().chain(faults).map(|outcome| row(outcome, NEVER)).collect();
        assert_eq!(unpack_rows(&pack_rows(&rows)), Some(rows));
    }

    #[test]
    fn only_the_same_build_is_spoken_to_unless_others_are_allowed() {
        let ours = Program::SILENT.build();
        let commit = v2::Build { commit: "0123456789ab".to_owned(), ..ours.clone() };
        let sources = v2::Build { sources: "0".to_owned(), ..ours.clone() };
        let version = v2::Build { version: "9.9.9".to_owned(), ..ours.clone() };
        // A build whose commit is unknown is known by its sources.
        assert_eq!(mismatch(&ours, PROTOCOL, Some(&ours), false), None);
        for (theirs, part) in [
            (Some(&commit), "0123456789ab"),
            (Some(&sources), "sources 0)"),
            (Some(&version), "9.9.9"),
            (None, "which"),
        ] {
            let why = mismatch(&ours, PROTOCOL, theirs, false).expect("it is another build");
            assert!(why.contains(part) && why.contains("--allow-version-mismatch"), "{why}");
            assert_eq!(mismatch(&ours, PROTOCOL, theirs, true), None);
            let why = mismatch(&ours, PROTOCOL + 1, theirs, true).expect("another protocol is never allowed");
            assert!(!why.contains("--allow"), "{why}");
        }
        assert!(mismatch(&ours, PROTOCOL - 1, Some(&ours), true).is_some());
    }

    /// The paths of all members of a value; those of evidence are left out, which other builds may say otherwise.
    fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, _)| *name != "evidence") {
                    let path = format!("{path}.{name}");
                    paths(member, &path, found);
                    found.insert(path);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|one| paths(one, &format!("{path}[]"), found)),
            _ => {}
        }
    }

    #[test]
    fn what_is_measured_travels_in_the_form_of_this_protocol() {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.groups[0].record(&Sample {
            verb: Verb::Get,
            outcome: Outcome::Hit,
            keys: 1,
            hits: 1,
            due: 1,
            ready: 2,
            sent: 3,
            arrived: 4,
            read: 5,
            noreply: false,
        });
        let parcel = serde_json::to_value(Parcel::of(&mut interval)).expect("JSON");
        let mut measurement = Measurement::new(["one".to_owned()], Clock::Kernel, 1);
        measurement.add(&mut interval, Keep::Figures);
        let measurement = serde_json::to_value(measurement).expect("JSON");
        let mut found = BTreeSet::new();
        paths(&parcel, "slice", &mut found);
        paths(&measurement, "measurement", &mut found);
        let found: String = found.into_iter().map(|path| path + "\n").collect();
        let kept = include_str!("../../proto/measured.txt");
        assert_eq!(found, kept, "raise PROTOCOL, and put this into proto/measured.txt:\n{found}");
    }

    #[test]
    fn an_order_is_formatted_without_its_password_and_its_plan() {
        let plan = br#"{"command": "AUTH hunter2"}"#.to_vec().into();
        let order = v2::Order { controller: "desk".to_owned(), plan, ..v2::Order::default() };
        let order = v2::Order { password: Some("hunter2".to_owned()), ..order };
        let said = format!("{:?}", v2::Command { what: Some(v2::command::What::Order(order)) });
        assert!(said.contains("controller: \"desk\"") && said.contains("has_password: true"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let rows = |numbers: &[u64]| unpack_rows(&v2::Rows { numbers: numbers.to_vec() });
        assert_eq!(rows(&[]), Some(vec![]));
        assert_eq!(rows(&[1; 9]), None);
        assert_eq!(rows(&[1, 1, 1, 1, 1, 99, 0, 0, 0, 0]), None);
        assert_eq!(rows(&[1, 1, 1, 1, 1, 0, 1 << 40, 0, 0, 0]), None);
        assert_eq!(rows(&[1, 1, 1, 1, 1, 0, 0, 0, 0, 1 << 20]), None);
    }
}
