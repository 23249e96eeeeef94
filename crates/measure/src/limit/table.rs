//! The table of limits: the first row that holds says what set the rate of a run, or the waiting in it.

use super::case::Case;
use super::finding::{Finding, Limit, Observation};
use super::{generator_rows, load_rows, network_rows, occupied_rows, overload_rows, server_rows, shared_cpu};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the row in results.
    pub name: &'static str,
    /// Judge of a case; its finding is absent where the row does not hold.
    pub judge: fn(&Case<'_>) -> Option<Finding>,
}

/// The rows from the first to the last. Rows that rest on evidence of one resource stand before those that name what is
/// left when the others are excluded; the last one holds for every run.
pub const ROWS: &[Row] = &[
    Row { name: "nothing-completed", judge: load_rows::nothing_completed },
    Row { name: "instrument", judge: load_rows::instrument },
    Row { name: "ports", judge: generator_rows::ports },
    Row { name: "server-connections", judge: server_rows::not_taken },
    Row { name: "generator-cpu-taken", judge: generator_rows::cpu_taken },
    Row { name: "shared-cpu", judge: shared_cpu::client_waits },
    Row { name: "shared-cpu", judge: shared_cpu::closed_server_waits },
    Row { name: "generator-thread-busy", judge: generator_rows::thread_busy },
    Row { name: "generator-kept-back", judge: generator_rows::kept_back },
    Row { name: "generator-stood-still", judge: generator_rows::stood_still },
    Row { name: "generator-out", judge: generator_rows::left_late },
    Row { name: "server-restarted", judge: server_rows::restarted },
    Row { name: "others", judge: network_rows::others },
    Row { name: "server-connections", judge: server_rows::refused },
    Row { name: "network-bandwidth", judge: network_rows::bandwidth },
    Row { name: "network-loss", judge: network_rows::lost_packets },
    Row { name: "server-receive-window", judge: server_rows::receive_window },
    Row { name: "generator-send-buffer", judge: generator_rows::send_buffer },
    Row { name: "server-one-thread", judge: server_rows::one_thread },
    Row { name: "server-cpu", judge: server_rows::cpu },
    Row { name: "server-occupied", judge: occupied_rows::occupied },
    Row { name: "slots", judge: load_rows::slots },
    Row { name: "in-flight", judge: load_rows::in_flight },
    Row { name: "service-by-exclusion", judge: server_rows::service_by_exclusion },
    Row { name: "shared-cpu", judge: shared_cpu::server_waits },
    Row { name: "server-run-delay", judge: server_rows::run_delay },
    Row { name: "overload", judge: overload_rows::overload },
    Row { name: "lost-records", judge: load_rows::lost_records },
    Row { name: "way", judge: network_rows::way },
    Row { name: "server-bursts", judge: server_rows::bursts },
    Row { name: "unanswered", judge: server_rows::unanswered },
    Row { name: "waits-by-exclusion", judge: server_rows::waits_by_exclusion },
    Row { name: "closed-loop", judge: load_rows::rest_of_closed },
    Row { name: "none", judge: load_rows::none },
];

/// Limit of a run, with the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limit of the run.
    pub limit: Limit,
    /// Name of the row of the table that held.
    pub row: &'static str,
    /// Sentences on the limit, one or two, with the numbers that they rest on.
    pub says: String,
    /// The figures that all rows are judged by.
    pub evidence: Vec<Observation>,
}

impl Verdict {
    /// The verdict on a run.
    pub fn of(case: &Case<'_>) -> Verdict {
        let found = ROWS.iter().find_map(|row| Some((row.name, (row.judge)(case)?)));
        let (row, Finding { limit, says }) = found.expect("the last row holds for every run");
        Verdict { limit, row, says, evidence: Observation::all_of(case) }
    }

    /// Whether the generator was the limit.
    pub fn is_generator(&self) -> bool {
        self.limit == Limit::Generator
    }
}
