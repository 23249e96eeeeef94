//! The account of a trace that was replayed while it was read.

use pummel_measure::replayed::Replayed;
use serde::{Deserialize, Serialize};

/// The account of a trace that was replayed while it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReplayedResult {
    /// Rows of the trace that were read, some of them ahead of the requests if the run ended first; a row may
    /// stand for several requests.
    pub rows: u64,
    /// Rows that were kept: within the time, in the sample, possible in the protocol.
    pub kept: u64,
    /// Requests of the kept rows that were asked, over all clients and phases.
    pub requests: u64,
    /// Different keys of the requests, to about 1 %.
    pub keys: u64,
    /// Whether the trace was read to its end.
    pub whole: bool,
    /// From the first kept row to the last one that was asked, in seconds of the trace's time.
    pub covered_s: f64,
    /// Requests of the last phase that were sent more than 10 ms after they were due.
    pub late_rows: u64,
    /// The greatest time from when a request was due until it was sent, in the last phase, in microseconds.
    pub latest_us: f64,
    /// The longest time in seconds that one thread had no request left although the trace went on.
    pub starved_s: f64,
    /// Rows that were left out or changed, by reason; only reasons that occurred.
    pub left_out: Vec<LeftOut>,
    /// Why the trace could not be read to its end; absent where it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Sentences about rows that were left out, and about limits of the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Rows that were left out of a replay, or changed in it, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LeftOut {
    /// Name of the reason: `bad_lines`, `skipped_lines`, `lost`, `uncounted`, `unsayable`, `fills`,
    /// `cut_values`, `out_of_order`, `unfit_keys` or `short_ttls`.
    pub what: String,
    /// How often.
    pub count: u64,
}

impl ReplayedResult {
    pub(super) fn of(replayed: &Replayed) -> ReplayedResult {
        let counts = [
            ("bad_lines", replayed.bad_lines),
            ("skipped_lines", replayed.skipped_lines),
            ("lost", replayed.lost),
            ("uncounted", replayed.uncounted),
            ("unsayable", replayed.unsayable),
            ("fills", replayed.fills_left_out),
            ("cut_values", replayed.cut_values),
            ("out_of_order", replayed.out_of_order),
            ("unfit_keys", replayed.unfit_keys),
            ("short_ttls", replayed.short_ttls),
        ];
        let left_out = counts.into_iter().filter(|(_, count)| *count > 0);
        ReplayedResult {
            rows: replayed.rows,
            kept: replayed.kept,
            requests: replayed.requests,
            keys: replayed.keys,
            whole: replayed.is_whole,
            covered_s: replayed.covered_ns as f64 / 1e9,
            late_rows: replayed.late_rows,
            latest_us: replayed.latest_ns as f64 / 1e3,
            starved_s: replayed.starved_ns as f64 / 1e9,
            left_out: left_out.map(|(what, count)| LeftOut { what: what.to_owned(), count }).collect(),
            error: replayed.error.clone(),
            notices: replayed.notices.iter().cloned().chain(replayed.warnings()).collect(),
        }
    }
}
