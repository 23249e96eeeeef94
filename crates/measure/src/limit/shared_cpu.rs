//! The rows of CPUs that client and server share.

use std::collections::BTreeSet;

use super::case::Case;
use super::cpu_time::{DelayCause, cpus_of};
use super::generator_rows::{place_of, taken_loss};
use super::worker_loss::CpuTaker;
use crate::evidence::provenance::list_of;
use crate::figures::time_text;
use crate::words::percent;

/// Reports a server that used the CPU of a client thread, where the load had to wait for it.
pub fn client_waits(case: &Case<'_>) -> Option<String> {
    let loss = taken_loss(case)?;
    let (_, taken_ns) = loss.cause.filter(|(taker, _)| *taker == CpuTaker::Servers)?;
    Some(format!(
        "Client and server share {}: a client thread{} could have run for {} of its time and had no CPU ({}), which the server \
         had. {ADVICE}",
        shared_words(case),
        place_of(loss),
        percent(loss.share),
        time_text(taken_ns),
    ))
}

/// Reports a client thread that used the CPU of a server in closed loop.
pub fn closed_server_waits(case: &Case<'_>) -> Option<String> {
    (case.is_closed && !case.server_is_full()).then(|| server_waits(case))?
}

/// Reports a client thread that used the CPU of a server.
pub fn server_waits(case: &Case<'_>) -> Option<String> {
    let worst = case.servers.iter().max_by(|one, other| one.run_delay().total_cmp(&other.run_delay()))?;
    if !worst.delayed().is_beyond() || worst.delay_cause != Some(DelayCause::Pummel) {
        return None;
    }
    let name = case.server_place(&worst.address);
    Some(format!(
        "Client and server share {}: a thread of the server{name} could have run for {} of its time and had no CPU, which the \
         client had. {ADVICE}",
        shared_words(case),
        percent(worst.run_delay()),
    ))
}

/// Advice for both sides.
const ADVICE: &str = "Give each side CPUs of its own (--cpus), or use another machine for the client.";

/// The CPUs on which client threads and servers may run, as words such as `CPU 0` and `CPUs 0-3`.
fn shared_words(case: &Case<'_>) -> String {
    let clients: BTreeSet<u32> =
        case.machines().filter_map(|machine| cpus_of(machine.worker_cpus.as_deref())).flatten().collect();
    let evidence = case.measurement.evidence.iter();
    let servers: BTreeSet<u32> = evidence
        .flat_map(|seen| &seen.servers)
        .filter_map(|server| cpus_of(server.cpus.as_deref()))
        .flatten()
        .collect();
    let both: Vec<usize> = clients.intersection(&servers).map(|cpu| *cpu as usize).collect();
    match both.as_slice() {
        [] => "CPUs".to_owned(),
        [cpu] => format!("CPU {cpu}"),
        cpus => format!("CPUs {}", list_of(cpus)),
    }
}
