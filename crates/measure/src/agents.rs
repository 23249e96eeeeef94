//! The processes of a distributed run: the share of each, and how well they were in step.

use serde::{Deserialize, Serialize};

use crate::figures::Figures;
use crate::recorder::{Counts, Span};
use pummel_logic::time::{MILLISECOND, Nanos};

/// The difference of clocks above which reports warn of it, in nanoseconds.
pub const CLOCK_OFFSET_LARGE_NS: Nanos = MILLISECOND;

/// The processes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// Time from the first process that began the measured phase to the last; absent where fewer than two are known to
    /// have begun it.
    pub start_spread_ns: Option<Nanos>,
    /// The processes; the controller is the last where it measures too.
    pub members: Vec<Member>,
}

/// One process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Address of the agent.
    pub name: String,
    /// Clients of the process.
    pub clients: u64,
    /// Threads of the process.
    pub threads: u32,
    /// Difference in nanoseconds by which the wall clock of the process is ahead of the controller's.
    pub clock_offset_ns: i64,
    /// Greatest error of the measured difference of the clocks, in nanoseconds.
    pub clock_error_ns: Nanos,
    /// Time from the agreed moment until the process began the measured phase.
    pub late_ns: Option<Nanos>,
    /// The loss of the process; absent where it stayed to the end.
    pub lost: Option<Lost>,
    /// Requests of the process in the measured phase.
    pub counts: Counts,
    /// The times of the requests, by [`Span`].
    pub figures: [Figures; Span::COUNT],
    /// Difference of the response times from those of all others together; absent where they differ by chance only, and
    /// where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Deviation>,
}

/// Response times of a process that are not those of the others, beyond chance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The name of the quantile.
    pub quantile: String,
    /// The quantile of the process, in nanoseconds.
    pub own_ns: Nanos,
    /// The quantile of all others together, in nanoseconds.
    pub others_ns: Nanos,
}

/// An agent that was not there to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Time of the last message of the process, after the beginning of the measured phase; absent before that.
    pub at_ns: Option<Nanos>,
    /// The reason of the loss.
    pub why: LossReason,
    /// Whether the process itself said that it ends, and sent what it had measured until then.
    #[serde(default)]
    pub left: bool,
}

/// Reason why a process was not there to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The process did not answer the order.
    NoAnswer,
    /// Nothing came from the process for this time in nanoseconds.
    Silent(Nanos),
    /// The process ended the run and did not say why.
    Unexplained,
    /// The connection to the process failed.
    Connection {
        /// Words of the error.
        what: String,
    },
    /// A message of the process could not be read.
    MessageUnread {
        /// The part that could not be read.
        what: String,
    },
    /// The measurement of the process, or a part of it, could not be read or does not fit the run.
    MeasurementUnread,
    /// The process did not come to an end in time.
    Late,
    /// The process said why it ends.
    Said {
        /// Words of the process.
        what: String,
    },
}

impl Agents {
    /// Whether every process sent what it measured at its end. Of one that was lost before only its slices are known.
    pub fn have_all_reported(&self) -> bool {
        self.members.iter().all(|member| member.lost.as_ref().is_none_or(|lost| lost.left))
    }

    /// The agents whose wall clocks are certainly too far from the controller's.
    pub fn with_large_offsets(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| {
            member.clock_offset_ns.unsigned_abs().saturating_sub(member.clock_error_ns)
                > CLOCK_OFFSET_LARGE_NS
        })
    }

    /// The time from the first to the last of these moments; `None` where there are fewer than two.
    pub fn spread(moments: impl IntoIterator<Item = Nanos>) -> Option<Nanos> {
        let mut range: Option<(Nanos, Nanos, u32)> = None;
        for at in moments {
            let (least, greatest, count) = range.unwrap_or((at, at, 0));
            range = Some((least.min(at), greatest.max(at), count + 1));
        }
        range.filter(|range| range.2 > 1).map(|(least, greatest, _)| greatest - least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::OpRecord;

    #[test]
    fn a_spread_needs_two() {
        assert_eq!(Agents::spread([]), None);
        assert_eq!(Agents::spread([5]), None);
        assert_eq!(Agents::spread([5, 9, 2]), Some(7));
    }

    #[test]
    fn only_offsets_that_are_certain_are_large() {
        let member = |offset, error| {
            let idle = OpRecord::default();
            Member {
                name: format!("{offset}"),
                clients: 1,
                threads: 1,
                clock_offset_ns: offset,
                clock_error_ns: error,
                late_ns: None,
                lost: None,
                counts: Counts::default(),
                figures: Figures::of_op(&idle, 0),
                deviation: None,
            }
        };
        let members = vec![member(-1_500_000, 100), member(1_500_000, 600_000), member(900_000, 0)];
        let agents = Agents { start_spread_ns: None, members };
        let large: Vec<&str> = agents.with_large_offsets().map(|member| member.name.as_str()).collect();
        assert_eq!(large, ["-1500000"]);
    }
}
