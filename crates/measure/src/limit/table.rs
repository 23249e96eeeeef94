//! The table of limits: the first row that holds says what set the rate of a run, or the waiting in it.

use super::case::Case;
use super::cause::Cause;
use super::observations::Observation;
use super::{generator_rows, load_rows, network_rows, occupied_rows, overload_rows, server_rows, shared_cpu};

pummel_logic::words! {
    /// The limits that a run can have.
    pub enum Limit {
        /// No limit: requests were answered as they came.
        None = "none",
        /// The generator: its threads, its CPU, its kernel.
        Generator = "generator",
        /// The server, or its machine.
        Server = "server",
        /// The number of requests that may be in flight: connections times depth.
        Connections = "connections",
        /// The network, or the length of the way.
        Network = "network",
        /// Clients that are not of this run.
        Others = "others",
        /// The requests that were asked for, such as records that the server cannot hold.
        Workload = "workload",
        /// There is nothing to judge by, or the figures contradict each other.
        Unknown = "unknown",
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the row in results.
    pub name: &'static str,
    /// Limit of the runs for which the row holds.
    pub limit: Limit,
    /// Judge of a case: the facts on which the row rests; absent where it does not hold.
    pub judge: fn(&Case<'_>) -> Option<Cause>,
}

/// The rows from the first to the last. Rows that rest on evidence of one resource stand before those that name what is
/// left when the others are excluded; the last one holds for every run.
pub const ROWS: &[Row] = &[
    Row { name: "nothing-completed", limit: Limit::Unknown, judge: load_rows::nothing_completed },
    Row { name: "instrument", limit: Limit::Unknown, judge: load_rows::instrument },
    Row { name: "ports", limit: Limit::Generator, judge: generator_rows::ports },
    Row { name: "server-connections", limit: Limit::Server, judge: server_rows::not_taken },
    Row { name: "generator-cpu-taken", limit: Limit::Generator, judge: generator_rows::cpu_taken },
    Row { name: "shared-cpu", limit: Limit::Generator, judge: shared_cpu::client_waits },
    Row { name: "shared-cpu", limit: Limit::Generator, judge: shared_cpu::closed_server_waits },
    Row { name: "generator-thread-busy", limit: Limit::Generator, judge: generator_rows::thread_busy },
    Row { name: "generator-kept-back", limit: Limit::Generator, judge: generator_rows::kept_back },
    Row { name: "generator-stood-still", limit: Limit::Generator, judge: generator_rows::stood_still },
    Row { name: "generator-out", limit: Limit::Generator, judge: generator_rows::left_late },
    Row { name: "server-restarted", limit: Limit::Server, judge: server_rows::restarted },
    Row { name: "others", limit: Limit::Others, judge: network_rows::others },
    Row { name: "server-connections", limit: Limit::Server, judge: server_rows::refused },
    Row { name: "network-bandwidth", limit: Limit::Network, judge: network_rows::bandwidth },
    Row { name: "network-loss", limit: Limit::Network, judge: network_rows::lost_packets },
    Row { name: "server-receive-window", limit: Limit::Server, judge: server_rows::receive_window },
    Row { name: "generator-send-buffer", limit: Limit::Generator, judge: generator_rows::send_buffer },
    Row { name: "server-one-thread", limit: Limit::Server, judge: server_rows::one_thread },
    Row { name: "server-cpu", limit: Limit::Server, judge: server_rows::cpu },
    Row { name: "server-occupied", limit: Limit::Server, judge: occupied_rows::occupied },
    Row { name: "slots", limit: Limit::Connections, judge: load_rows::slots },
    Row { name: "in-flight", limit: Limit::Connections, judge: load_rows::in_flight },
    Row { name: "service-by-exclusion", limit: Limit::Server, judge: server_rows::service_by_exclusion },
    Row { name: "shared-cpu", limit: Limit::Generator, judge: shared_cpu::server_waits },
    Row { name: "server-run-delay", limit: Limit::Server, judge: server_rows::run_delay },
    Row { name: "overload", limit: Limit::Server, judge: overload_rows::overload },
    Row { name: "lost-records", limit: Limit::Workload, judge: load_rows::lost_records },
    Row { name: "way", limit: Limit::Network, judge: network_rows::way },
    Row { name: "server-bursts", limit: Limit::Server, judge: server_rows::bursts },
    Row { name: "unanswered", limit: Limit::Server, judge: server_rows::unanswered },
    Row { name: "waits-by-exclusion", limit: Limit::Server, judge: server_rows::waits_by_exclusion },
    Row { name: "closed-loop", limit: Limit::Connections, judge: load_rows::rest_of_closed },
    Row { name: "none", limit: Limit::None, judge: load_rows::none },
];

/// Limit of a run, with the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limit of the run.
    pub limit: Limit,
    /// Name of the row of the table that held.
    pub row: &'static str,
    /// Facts on which that row rests.
    pub cause: Cause,
    /// The figures that all rows are judged by.
    pub evidence: Vec<Observation>,
}

impl Verdict {
    /// The verdict on a run.
    pub fn of(case: &Case<'_>) -> Verdict {
        let found = ROWS.iter().find_map(|row| Some((row, (row.judge)(case)?)));
        let (row, cause) = found.expect("the last row holds for every run");
        Verdict { limit: row.limit, row: row.name, cause, evidence: Observation::all_of(case) }
    }

    /// Whether the generator was the limit.
    pub fn is_generator(&self) -> bool {
        self.limit == Limit::Generator
    }
}
