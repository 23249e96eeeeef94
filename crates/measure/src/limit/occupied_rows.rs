//! The row of the table of limits about a server that is occupied without using its CPU.

use super::case::Case;
use super::cause::{Cause, Occupied};
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, SPARE_SHARE};

/// Factor by which ten requests in flight take longer than one where a server answers at most two at a time.
const QUEUE_GROWTH: f64 = 5.0;

/// Reports an occupied server: by its own account of commands, or by a probe.
pub fn occupied(case: &Case<'_>) -> Option<Cause> {
    inside_commands(case).or_else(|| probed(case))
}

/// Reports a server that answered the operations of the run hardly faster with ten requests in flight than with one,
/// and had requests that waited for each other in the run.
fn probed(case: &Case<'_>) -> Option<Cause> {
    let probe = case.probe()?;
    let is_a_queue = probe.growth().is_some_and(|growth| growth >= QUEUE_GROWTH);
    let queued = case.queues_at_the_server() || case.is_closed;
    if !is_a_queue || !queued || case.busy() > SPARE_SHARE {
        return None;
    }
    // Behind a proxy the CPU is that of other servers.
    let cpu = case.servers_at_most().filter(|_| case.plan.server_stats_at.is_empty());
    let (one_ns, ten_ns) = (probe.one.service_p50_ns, probe.ten.service_p50_ns);
    Some(Cause::ServerOccupied { server: None, by: Occupied::Probed { one_ns, ten_ns }, cpu })
}

/// Reports a server that executes one command after the other and was inside commands nearly all of the time.
fn inside_commands(case: &Case<'_>) -> Option<Cause> {
    let inside = |server: &ServerUse| server.in_commands.filter(|share| *share > FULL_SHARE);
    let (server, share) = case.servers.iter().find_map(|server| Some((server, inside(server)?)))?;
    Some(Cause::ServerOccupied {
        server: case.server_name(&server.address),
        by: Occupied::InCommands(share),
        cpu: server.hottest_at_most(),
    })
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Probe, ProbeHalf};
    use crate::limit::{Cause, MoreInFlight, Occupied, Spare, Verdict};
    use crate::scenario::{Scenario, closed};
    use pummel_logic::time::{MILLISECOND, Nanos, SECOND};

    /// Ten connections at a server whose requests take 10 ms in the run, of which it uses almost no CPU.
    fn slow(rate: Option<f64>) -> Scenario {
        Scenario { rate, service: 10 * MILLISECOND, busy_share: 0.01, ..closed() }.seen(&[0.04], 1)
    }

    /// Asserts which row held. Returns its facts.
    #[track_caller]
    fn row(verdict: &Verdict, row: &str) -> Cause {
        assert_eq!(verdict.row, row, "{:#?}", verdict.cause);
        verdict.cause.clone()
    }

    /// The advice to have more in flight.
    fn more(verdict: &Verdict) -> Option<MoreInFlight> {
        match &verdict.cause {
            Cause::InFlight(flight) | Cause::ClosedLoop(flight) => flight.more,
            Cause::Slots { may_be_occupied: true, .. } => Some(MoreInFlight::UnlessOccupied),
            Cause::Slots { .. } => Some(MoreInFlight::Sure),
            _ => None,
        }
    }

    /// The time of one request at a time that the facts name.
    fn alone_ns(verdict: &Verdict) -> Option<Nanos> {
        match &verdict.cause {
            Cause::InFlight(flight) => flight.alone_ns,
            Cause::Slots { meanwhile: Spare::AsFastAsAlone(alone_ns), .. } => Some(*alone_ns),
            _ => None,
        }
    }

    #[test]
    fn a_server_that_is_inside_commands_all_the_time_is_the_limit_whatever_cpu_it_uses() {
        for rate in [None, Some(2_000.0)] {
            let run = slow(rate);
            let inside = |percent: u64| {
                run.clone().reading(|reading| reading.in_commands_ns = Some(reading.span_ns * percent / 100))
            };
            let cause = row(&inside(97).verdict(), "server-occupied");
            let Cause::ServerOccupied { by: Occupied::InCommands(share), cpu: Some(cpu), .. } = cause else {
                panic!("{cause:#?}");
            };
            assert!((share - 0.97).abs() < 1e-6 && (cpu - 0.04).abs() < 1e-6, "{share} {cpu}");
            // Commands that wait for each other in another thread add up to more than the time.
            assert_ne!(inside(200).verdict().row, "server-occupied");
            let busy = inside(85).verdict();
            assert_ne!(busy.row, "server-occupied");
            assert!(!["slots", "in-flight"].contains(&busy.row), "{}", busy.row);
        }
        let said =
            slow(None).reading(|reading| reading.in_commands_ns = Some(reading.span_ns / 10)).verdict();
        row(&said, "in-flight");
    }

    #[test]
    fn where_more_may_be_under_way_more_connections_are_no_promise() {
        let advice = |run: &Scenario, name| {
            let verdict = run.verdict();
            row(&verdict, name);
            more(&verdict)
        };
        assert_eq!(advice(&slow(None), "in-flight"), Some(MoreInFlight::UnlessOccupied));
        assert_eq!(advice(&slow(Some(2_000.0)), "slots"), Some(MoreInFlight::UnlessOccupied));
        let one = Scenario { connections: 1, ..closed() }.seen(&[0.2], 1);
        assert_eq!(advice(&one, "in-flight"), Some(MoreInFlight::UnlessOccupied));
        let said = slow(None).reading(|reading| reading.in_commands_ns = Some(reading.span_ns / 10));
        assert_eq!(advice(&said, "in-flight"), Some(MoreInFlight::Sure));
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
            let cause = row(&queue, "server-occupied");
            let by = Occupied::Probed { one_ns: MILLISECOND, ten_ns: 10 * MILLISECOND };
            assert!(matches!(cause, Cause::ServerOccupied { by: seen, .. } if seen == by), "{queue:#?}");
            // The server takes as long for each, whatever else is under way.
            let parallel = probed(slow(rate), 10 * MILLISECOND, 11 * MILLISECOND).verdict();
            let expected = if rate.is_some() { "slots" } else { "in-flight" };
            row(&parallel, expected);
            assert_eq!(more(&parallel), Some(MoreInFlight::Sure));
            assert_eq!(alone_ns(&parallel), Some(10 * MILLISECOND));
            let unread = slow(rate).server(|server| (server.reading, server.threads) = (None, None));
            let unread = probed(unread, 10 * MILLISECOND, 11 * MILLISECOND).verdict();
            let cause = row(&unread, expected);
            assert_eq!(more(&unread), Some(MoreInFlight::Sure));
            assert!(!matches!(cause, Cause::InFlight(flight) if flight.server_busy.is_some()));
            // Four at a time: neither occupied by one request, nor a matter of what is in flight alone.
            let four = probed(slow(rate), 4 * MILLISECOND, 10 * MILLISECOND).verdict();
            assert!(!["server-occupied", "slots", "in-flight"].contains(&four.row), "{}", four.row);
            assert_eq!(more(&four), None);
        }
        // The only client of a run waits for no other one at the server; with more clients each would wait.
        let one = Scenario { connections: 1, service: MILLISECOND, ..slow(None) };
        row(&probed(one, MILLISECOND, 10 * MILLISECOND).verdict(), "server-occupied");
        // An open loop of so few requests that none waits for another.
        let rare = Scenario { service: MILLISECOND, ..slow(Some(2_000.0)) };
        assert_ne!(probed(rare, MILLISECOND, 10 * MILLISECOND).verdict().row, "server-occupied");
    }
}
