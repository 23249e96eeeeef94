//! Times in which the servers answered nothing while requests were due, from the windows of a run.

use super::case::Case;
use super::cause::{Outpaced, Standstill};
use crate::uncertainty::steadiness::has_constant_load;
use crate::uncertainty::{Window, WindowOp};
use pummel_logic::protocol::Fault;
use pummel_logic::time::seconds;

/// Requests that are due on average in a time without any reply, so that it is none by chance.
const DUE_MIN: f64 = 20.0;
/// Greatest share of error replies, which windows do not count.
const ERRORS_SHARE: f64 = 0.01;
/// Share of the asked rate below which a server answered clearly less.
const OUTPACED_SHARE: f64 = 0.9;

/// The standstills of an open loop at one rate, from the first to the last; empty for others.
pub fn standstills(case: &Case<'_>) -> Vec<Standstill> {
    let counts = &case.all.counts;
    let measured_ns = case.measurement.measured_ns;
    let replied = Fault::ALL.into_iter().filter(|fault| !fault.unanswered());
    let error_replies: u64 = replied.map(|fault| counts.errors(fault)).sum();
    let has_errors = error_replies as f64 > ERRORS_SHARE * counts.requests() as f64;
    let (false, false, true) = (case.is_closed, has_errors, has_constant_load(case.plan)) else {
        return Vec::new();
    };
    let Some(windows) = case.measurement.windows.as_ref().filter(|_| measured_ns > 0) else {
        return Vec::new();
    };
    let (length_ns, rate) = (windows.length_ns(), counts.requests() as f64 / seconds(measured_ns));
    let is_silent = |window: &Window| window.ops().all(|op: &WindowOp| op.completed == 0);
    // The last window may be a short one, and holds what ended in the drain.
    let whole = (measured_ns / length_ns) as usize;
    let mut found: Vec<Standstill> = Vec::new();
    for number in (0..whole).filter(|number| windows.iter().nth(*number).is_none_or(is_silent)) {
        let from_ns = number as u64 * length_ns;
        match found.last_mut() {
            Some(last) if last.to_ns == from_ns => last.to_ns += length_ns,
            _ => found.push(Standstill { from_ns, to_ns: from_ns + length_ns, lasted: false }),
        }
    }
    if let Some(last) = found.last_mut() {
        last.lasted = last.to_ns == whole as u64 * length_ns;
    }
    // The first replies come as late as a service is long.
    found.retain(|stop| stop.from_ns > 0 && seconds(stop.to_ns - stop.from_ns) * rate >= DUE_MIN);
    found
}

/// The rates before the first standstill, where clearly less was answered than asked: such a server did not stand still, but had
/// a queue that was longer than its clients wait.
pub fn outpaced(case: &Case<'_>, standstills: &[Standstill]) -> Option<Outpaced> {
    let asked = case.all.counts.requests() as f64 / seconds(case.measurement.measured_ns);
    let first = standstills.first()?;
    let answered = case.measurement.windows.as_ref()?.rate_until(first.from_ns)?;
    (answered < OUTPACED_SHARE * asked).then_some(Outpaced { asked, answered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Cause;
    use crate::recorder::{OpRecord, Sample};
    use crate::scenario::{Scenario, quiet};
    use crate::uncertainty::{BASE_NS, Windows};
    use pummel_logic::plan::{Mix, Phase, Plan, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MILLISECOND, Nanos, SECOND};

    fn plan_of(run: &Scenario) -> Plan {
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: String::new(), work, stop: Stop::default(), recorded: true };
        Plan { phases: vec![phase], ..run.plan() }
    }

    /// Windows of 100 ms that each completed `answered` requests, but for those of the silent times.
    fn windows(length_ns: Nanos, answered: u64, silent: &[(Nanos, Nanos)]) -> Windows {
        let mut windows = Windows::new(BASE_NS);
        for at_ns in (0..length_ns).step_by(BASE_NS as usize) {
            let mut slice = crate::interval::Interval::new([[Verb::Get]]);
            slice.start_ns = at_ns;
            let is_silent = silent.iter().any(|(from_ns, to_ns)| (*from_ns..*to_ns).contains(&at_ns));
            for _ in 0..if is_silent { 0 } else { answered } {
                slice.groups[0].record(&Sample::hit(at_ns, MILLISECOND));
            }
            windows.add(&mut slice);
        }
        windows
    }

    fn found(silent: &[(Nanos, Nanos)], answered: u64) -> (Vec<Standstill>, Option<Outpaced>) {
        let run = quiet();
        let (plan, mut measurement) = (plan_of(&run), run.measurement());
        measurement.windows = Some(windows(run.length, answered, silent));
        let all: OpRecord = measurement.ops().all();
        let case = Case::of(&measurement, &plan, &all);
        let found = standstills(&case);
        let outpaced = outpaced(&case, &found);
        (found, outpaced)
    }

    #[test]
    fn windows_without_a_reply_are_standstills_where_enough_was_due() {
        let second = |tenths: u64| tenths * SECOND / 10;
        let (stops, outpaced) = found(&[(second(10), second(20)), (second(30), second(31))], 100);
        let stop = |from, to, lasted| Standstill { from_ns: second(from), to_ns: second(to), lasted };
        assert_eq!(stops, [stop(10, 20, false), stop(30, 31, false)]);
        assert_eq!(outpaced, None);
        assert_eq!(found(&[(second(30), second(40))], 100).0, [stop(30, 40, true)]);
        assert_eq!(
            found(&[(0, second(5))], 100).0,
            [],
            "the first replies come as late as a service is long"
        );
        let outpaced = found(&[(second(30), second(40))], 50).1.expect("half was answered");
        assert!((outpaced.answered - 500.0).abs() < 1.0 && outpaced.asked > 900.0, "{outpaced:?}");
    }

    #[test]
    fn a_server_that_froze_once_says_for_how_long() {
        let run = Scenario { frozen: (SECOND, SECOND), ..quiet() };
        let (plan, mut measurement) = (plan_of(&run), run.measurement());
        measurement.windows = Some(windows(run.length, 100, &[(SECOND, 2 * SECOND)]));
        let all = measurement.ops().all();
        let cause = crate::limit::Verdict::of(&Case::of(&measurement, &plan, &all)).cause;
        let Cause::ServerBursts { standstills, .. } = cause else { panic!("{cause:#?}") };
        assert_eq!(standstills.len(), 1);
    }
}
