//! Steps of the number of connections within a run, as they are typed.

use pummel_logic::plan::Part;
use pummel_logic::time::Nanos;
use pummel_measure::words::counted;

use crate::values::{self, ValueError};

/// A step: its connections, and how long it takes; `None` where it lasts until the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStep {
    /// Connections that are open in the step.
    pub connections: u32,
    /// How long the step takes.
    pub time_ns: Option<Nanos>,
}

const STEPS: &str = "expected steps CONNECTIONS:TIME, separated by commas, with 1 connection or more and a time above 0, such as \
                     50:10s,100:10s,200; only the last may have no time";

/// The steps of a list.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no list of steps.
pub fn connection_steps(text: &str) -> Result<Vec<ConnectionStep>, ValueError> {
    let step = |text: &str| {
        let (connections, time) = text.split_once(':').map_or((text, None), |(one, two)| (one, Some(two)));
        let connections = values::count_cut(connections).ok().filter(|connections| *connections > 0)?;
        let time_ns = match time {
            Some(time) => Some(values::time_above_zero(time).ok()?),
            None => None,
        };
        Some(ConnectionStep { connections, time_ns })
    };
    let steps: Option<Vec<ConnectionStep>> = text.split(',').map(step).collect();
    let has_end = |steps: &Vec<ConnectionStep>| {
        steps.split_last().is_some_and(|(_, before)| before.iter().all(|step| step.time_ns.is_some()))
    };
    steps.filter(has_end).ok_or_else(|| ValueError(STEPS.to_owned()))
}

/// The time of all steps together; `None` where the last has none.
pub fn time_of(steps: &[ConnectionStep]) -> Option<Nanos> {
    steps.iter().try_fold(0, |sum: Nanos, step| Some(sum.saturating_add(step.time_ns?)))
}

/// The steps as parts of the measured phase.
pub fn parts_of(steps: &[ConnectionStep]) -> Vec<Part> {
    let mut at_ns: Nanos = 0;
    let part = |(index, step): (usize, &ConnectionStep)| {
        let begin_ns = at_ns;
        at_ns = at_ns.saturating_add(step.time_ns.unwrap_or(0));
        let name = format!("step {}: {}", index + 1, counted(step.connections.into(), "connection"));
        Part { connections: Some(step.connections), ..Part::plain(name, begin_ns) }
    };
    steps.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::time::{MILLISECOND, SECOND};

    fn step(connections: u32, time_ns: Option<Nanos>) -> ConnectionStep {
        ConnectionStep { connections, time_ns }
    }

    #[test]
    fn steps_have_connections_and_a_time_but_for_the_last() {
        let ten = Some(10 * SECOND);
        let rows = [
            ("50:10s,100:10s,200", vec![step(50, ten), step(100, ten), step(200, None)]),
            ("50:10,1k:10s", vec![step(50, ten), step(1_000, ten)]),
            ("2:250ms", vec![step(2, Some(250 * MILLISECOND))]),
            ("7", vec![step(7, None)]),
        ];
        for (text, expected) in rows {
            assert_eq!(connection_steps(text).as_ref(), Ok(&expected), "{text}");
        }
        for text in ["", "0:10s", "50,100:10s", "50:0s,100", "50:10s,", "a:10s", "50:x", "50:10s:3", "-1:5s"]
        {
            assert_eq!(connection_steps(text), Err(ValueError(STEPS.to_owned())), "{text}");
        }
    }

    #[test]
    fn parts_follow_each_other_and_say_how_many_connections_they_have() {
        let steps = connection_steps("1:2s,50:3s,20").expect("they are steps");
        assert_eq!(time_of(&steps), None);
        assert_eq!(time_of(&steps[..2]), Some(5 * SECOND));
        let parts = parts_of(&steps);
        let told: Vec<_> =
            parts.iter().map(|part| (part.name.as_str(), part.at_ns / SECOND, part.connections)).collect();
        let expected = [
            ("step 1: 1 connection", 0, Some(1)),
            ("step 2: 50 connections", 2, Some(50)),
            ("step 3: 20 connections", 5, Some(20)),
        ];
        assert_eq!(told, expected);
    }
}
