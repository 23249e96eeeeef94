//! The row of the table of limits about a server that is occupied without using its CPU.

use super::case::Case;
use super::finding::{Finding, Limit};
use super::server_use::ServerUse;
use super::shares::FULL_SHARE;
use crate::measure::words::percent;

/// A server that executes one command after the other was inside commands nearly all of the time.
pub fn occupied(case: &Case<'_>) -> Option<Finding> {
    let inside = |server: &ServerUse| server.in_commands.filter(|share| *share > FULL_SHARE);
    let (server, share) = case.servers.iter().find_map(|server| Some((server, inside(server)?)))?;
    let place = if case.plan.servers.len() > 1 { format!(" {}", server.address) } else { String::new() };
    let cpu = server
        .hottest_at_most()
        .map_or_else(String::new, |cpu| format!(", and used {} of a CPU", percent(cpu)));
    let says = format!(
        "The server{place} was occupied: it was inside commands for {} of the time{cpu}. It executes one command after the other: \
         more connections or depth only wait longer.",
        percent(share),
    );
    Some(Finding::new(Limit::Server, says))
}

#[cfg(test)]
mod tests {
    use crate::measure::limit::Verdict;
    use crate::measure::scenario::{Scenario, closed};
    use crate::time::MILLISECOND;

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
        row(&slow(None).verdict(), "in-flight", &["Try more connections or depth"], &[]);
        let waits = slow(Some(2_000.0)).verdict();
        row(
            &waits,
            "slots",
            &["unless something other than its CPU occupies the server"],
            &["would not have"],
        );
        let one = Scenario { connections: 1, ..closed() }.seen(&[0.2], 1);
        row(&one.verdict(), "in-flight", &["Use more connections or depth"], &[]);
    }
}
