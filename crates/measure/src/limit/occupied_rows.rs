//! The row of the table of limits about a server that is occupied without using its CPU.

use super::case::Case;
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, SPARE_SHARE};
use crate::figures::time_text;
use crate::words::percent;

/// Factor by which ten requests in flight take longer than one where a server answers at most two at a time.
const QUEUE_GROWTH: f64 = 5.0;

/// Reports an occupied server: by its own account of commands, or by a probe.
pub fn occupied(case: &Case<'_>) -> Option<String> {
    inside_commands(case).or_else(|| probed(case))
}

/// Reports a server that answered the operations of the run hardly faster with ten requests in flight than with one,
/// and had requests that waited for each other in the run.
fn probed(case: &Case<'_>) -> Option<String> {
    let probe = case.probe()?;
    let is_a_queue = probe.growth().is_some_and(|growth| growth >= QUEUE_GROWTH);
    let queued = case.queues_at_the_server() || case.is_closed;
    if !is_a_queue || !queued || case.busy() > SPARE_SHARE {
        return None;
    }
    // Behind a proxy the CPU is that of other servers.
    let own = case.servers_at_most().filter(|_| case.plan.server_stats_at.is_empty());
    let cpu = own.map_or_else(String::new, |cpu| format!(" It used {} of a CPU.", percent(cpu)));
    Some(format!(
        "The server was occupied: one request at a time took {} (p50), and each of ten at a time {}, so that it answers one after the \
         other.{cpu} More connections or depth only wait longer.",
        time_text(probe.one.service_p50_ns),
        time_text(probe.ten.service_p50_ns),
    ))
}

/// Reports a server that executes one command after the other and was inside commands nearly all of the time.
fn inside_commands(case: &Case<'_>) -> Option<String> {
    let inside = |server: &ServerUse| server.in_commands.filter(|share| *share > FULL_SHARE);
    let (server, share) = case.servers.iter().find_map(|server| Some((server, inside(server)?)))?;
    let place = case.server_place(&server.address);
    let cpu = server
        .hottest_at_most()
        .map_or_else(String::new, |cpu| format!(", and used {} of a CPU", percent(cpu)));
    Some(format!(
        "The server{place} was occupied: it was inside commands for {} of the time{cpu}. It executes one command after the other: \
         more connections or depth only wait longer.",
        percent(share),
    ))
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Probe, ProbeHalf};
    use crate::limit::Verdict;
    use crate::scenario::{Scenario, closed};
    use pummel_logic::time::{MILLISECOND, Nanos, SECOND};

    /// Ten connections at a server whose requests take 10 ms in the run, of which it uses almost no CPU.
    fn slow(rate: Option<f64>) -> Scenario {
        Scenario { rate, service: 10 * MILLISECOND, busy_share: 0.01, ..closed() }.seen(&[0.04], 1)
    }

    #[track_caller]
    fn row(verdict: &Verdict, row: &str, words: &[&str], not: &[&str]) {
        assert_eq!(verdict.row, row, "{}", verdict.says);
        assert!(words.iter().all(|word| verdict.says.contains(word)), "{}", verdict.says);
        assert!(not.iter().all(|word| !verdict.says.contains(word)), "{}", verdict.says);
    }

    #[test]
    fn a_server_that_is_inside_commands_all_the_time_is_the_limit_whatever_cpu_it_uses() {
        for rate in [None, Some(2_000.0)] {
            let run = slow(rate);
            let inside = |percent: u64| {
                run.clone().reading(|reading| reading.in_commands_ns = Some(reading.span_ns * percent / 100))
            };
            let words = ["inside commands for 97 % of the time", "used 4 % of a CPU"];
            row(&inside(97).verdict(), "server-occupied", &words, &[]);
            // Commands that wait for each other in another thread add up to more than the time.
            assert_ne!(inside(200).verdict().row, "server-occupied");
            let busy = inside(85).verdict();
            assert_ne!(busy.row, "server-occupied");
            assert!(!["slots", "in-flight"].contains(&busy.row), "{}: {}", busy.row, busy.says);
        }
        let said =
            slow(None).reading(|reading| reading.in_commands_ns = Some(reading.span_ns / 10)).verdict();
        row(&said, "in-flight", &["What is in flight"], &[]);
    }

    #[test]
    fn where_more_may_be_under_way_more_connections_are_no_promise() {
        let unless = "unless something other than its CPU occupies the server";
        row(&slow(None).verdict(), "in-flight", &["Try more connections or depth", unless], &[]);
        let waits = slow(Some(2_000.0)).verdict();
        row(&waits, "slots", &[unless], &["would not have"]);
        let one = Scenario { connections: 1, ..closed() }.seen(&[0.2], 1);
        row(&one.verdict(), "in-flight", &["Try more connections or depth", unless], &[]);
        let said = slow(None).reading(|reading| reading.in_commands_ns = Some(reading.span_ns / 10));
        row(&said.verdict(), "in-flight", &["Try more connections or depth for more load."], &[unless]);
    }

    /// A probe that found these medians with one and with ten requests in flight, in nanoseconds.
    fn probed(run: Scenario, one_ns: Nanos, ten_ns: Nanos) -> Scenario {
        let half = |in_flight, service_p50_ns| ProbeHalf {
            in_flight,
            completed: 1_000,
            span_ns: SECOND,
            service_p50_ns,
        };
        run.probe(Probe { one: half(1, one_ns), ten: half(10, ten_ns) })
    }

    #[test]
    fn a_probe_tells_a_queue_at_the_server_from_a_server_that_has_time() {
        for rate in [None, Some(2_000.0)] {
            let queue = probed(slow(rate), MILLISECOND, 10 * MILLISECOND).verdict();
            row(
                &queue,
                "server-occupied",
                &["1.00 ms (p50), and each of ten at a time 10.0 ms", "only wait longer"],
                &[],
            );
            // The server takes as long for each, whatever else is under way.
            let parallel = probed(slow(rate), 10 * MILLISECOND, 11 * MILLISECOND).verdict();
            let expected = if rate.is_some() { "slots" } else { "in-flight" };
            row(
                &parallel,
                expected,
                &["Try more connections or depth", "one request at a time took 10.0 ms"],
                &["unless"],
            );
            let unread = slow(rate).server(|server| (server.reading, server.threads) = (None, None));
            row(
                &probed(unread, 10 * MILLISECOND, 11 * MILLISECOND).verdict(),
                expected,
                &["Try more"],
                &["CPU"],
            );
            // Four at a time: neither occupied by one request, nor a matter of what is in flight alone.
            let four = probed(slow(rate), 4 * MILLISECOND, 10 * MILLISECOND).verdict();
            assert!(
                !["server-occupied", "slots", "in-flight"].contains(&four.row),
                "{}: {}",
                four.row,
                four.says
            );
            assert!(!four.says.contains("Try more"), "{}", four.says);
        }
        // The only client of a run waits for no other one at the server; with more clients each would wait.
        let one = Scenario { connections: 1, service: MILLISECOND, ..slow(None) };
        row(
            &probed(one, MILLISECOND, 10 * MILLISECOND).verdict(),
            "server-occupied",
            &["only wait longer"],
            &[],
        );
        // An open loop of so few requests that none waits for another.
        let rare = Scenario { service: MILLISECOND, ..slow(Some(2_000.0)) };
        assert_ne!(probed(rare, MILLISECOND, 10 * MILLISECOND).verdict().row, "server-occupied");
    }
}
