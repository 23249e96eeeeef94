//! The ends of phases that are found while a run goes on: slices of all its processes in, ends of phases out.

use super::{Looks, Settling, Windows, tick_ns};
use crate::interval::Interval;
use crate::measurement::Measurement;
use pummel_logic::merge::Merge as _;
use pummel_logic::plan::Plan;
use pummel_logic::time::Nanos;

/// Finds when the warm-up of a plan has settled or a server has evicted a record, and when its measurement knows enough. Each is
/// found once at most.
pub struct EarlyEnds {
    /// The warm-up is over with the first eviction.
    awaits_eviction: bool,
    settling: Option<Settling>,
    has_settled: bool,
    looks: Option<LookedAt>,
}

/// The measurement so far, as far as the tests need it.
struct LookedAt {
    looks: Looks,
    tick_ns: Nanos,
    so_far: Box<Measurement>,
}

impl EarlyEnds {
    /// The search for the ends of a plan's phases, before the first of them.
    pub fn of(plan: &Plan) -> EarlyEnds {
        let looked_at = |looks| {
            let names = plan.groups.iter().map(|group| group.name.clone());
            let so_far = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
            LookedAt { looks, tick_ns: tick_ns(plan.interval_ns), so_far: Box::new(so_far) }
        };
        EarlyEnds {
            awaits_eviction: plan.adaptive.first_eviction,
            settling: Settling::of(plan),
            has_settled: false,
            looks: Looks::of(plan).map(looked_at),
        }
    }

    /// A search that finds no end, since another process searches.
    pub fn none() -> EarlyEnds {
        EarlyEnds { awaits_eviction: false, settling: None, has_settled: false, looks: None }
    }

    /// Takes in a slice of the warm-up, the first slice first. Returns when the warm-up is over, in nanoseconds from its
    /// beginning, at the slice with which its load has settled, or a server has evicted a record.
    pub fn warm_up_slice(&mut self, slice: &mut Interval) -> Option<Nanos> {
        if self.awaits_eviction {
            let is_over = slice.evicted && !self.has_settled;
            self.has_settled |= is_over;
            return is_over.then_some(slice.end_ns);
        }
        let settling = self.settling.as_mut().filter(|_| !self.has_settled)?;
        self.has_settled = settling.add(slice) == Some(true);
        self.has_settled.then_some(slice.end_ns)
    }

    /// Whether the end of the warm-up was found.
    pub fn has_settled(&self) -> bool {
        self.has_settled
    }

    /// Takes in a slice of the measurement, the first slice first. Returns when the measurement is over, in nanoseconds from
    /// its beginning, at the look that decides. Slices after that are not looked at.
    pub fn measured_slice(&mut self, slice: &mut Interval) -> Option<Nanos> {
        let LookedAt { looks, tick_ns, so_far } = self.looks.as_mut()?;
        so_far.windows.get_or_insert_with(|| Windows::new(*tick_ns)).add(slice);
        for (group, recorder) in so_far.groups.iter_mut().zip(&mut slice.groups) {
            group.ops.merge(recorder.ops());
        }
        so_far.measured_ns = so_far.measured_ns.max(slice.end_ns);
        let end_ns = looks.look(so_far)?;
        self.looks = None;
        Some(end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::simulated::{queue, slices};
    use pummel_logic::plan::{Adaptive, Group, Mix, Phase, Settle, Stop, Until, Work};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MICROSECOND, SECOND};

    const SERVICE_NS: f64 = 40.0 * MICROSECOND as f64;

    /// A plan with a warm-up that settles and a measurement that goes on until its 99th percentile is known to 50 %.
    fn plan() -> Plan {
        let until = Until { quantile: 0.99, half_width: 0.5, least_ns: 2 * SECOND };
        let settle = Settle { discard_ns: SECOND, block_ns: 2 * SECOND };
        let phase = |name: &str, recorded: bool| Phase {
            name: name.to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
            stop: Stop { time_ns: Some(30 * SECOND), requests: None },
            recorded,
        };
        Plan {
            adaptive: Adaptive { settle: Some(settle), until: Some(until), ..Adaptive::default() },
            groups: vec![Group::default()],
            phases: vec![phase("warm-up", false), phase("run", true)],
            ..Plan::default()
        }
    }

    #[test]
    fn a_warm_up_until_the_first_eviction_is_over_once() {
        let mut plan = plan();
        plan.adaptive = Adaptive { first_eviction: true, ..Adaptive::default() };
        let mut ends = EarlyEnds::of(&plan);
        let mut slice = Interval::new([[Verb::Get]]);
        for (index, evicted, expected) in [(0, false, None), (1, true, Some(20)), (2, true, None)] {
            slice.restart(index, index * 10);
            (slice.end_ns, slice.evicted) = (index * 10 + 10, evicted);
            assert_eq!(ends.warm_up_slice(&mut slice), expected, "slice {index}");
        }
        assert!(ends.has_settled());
    }

    #[test]
    fn a_measurement_is_looked_at_slice_by_slice_and_its_end_is_found_once() {
        let mut ends = EarlyEnds::of(&plan());
        let mut found = Vec::new();
        slices(8 * SECOND, queue(1, 0.5, SERVICE_NS, 8 * SECOND), |slice| {
            found.extend(ends.measured_slice(slice).map(|end_ns| (slice.end_ns, end_ns)));
        });
        // Looks come at 2 s, and then at the first slices after 2.5 s, 3.125 s and so on, whatever the length of intervals.
        assert_eq!(found.len(), 1);
        let (looked_ns, end_ns) = found[0];
        assert!([2_000, 2_500, 3_200, 4_000].contains(&(looked_ns / 1_000_000)), "{looked_ns}");
        assert_eq!(end_ns, looked_ns * 5 / 4);
    }

    #[test]
    fn a_warm_up_is_over_once_and_nothing_is_found_where_another_process_decides() {
        let mut ends = EarlyEnds::of(&plan());
        let mut none = EarlyEnds::none();
        let mut found = Vec::new();
        slices(30 * SECOND, queue(1, 0.4, SERVICE_NS, 30 * SECOND), |slice| {
            found.extend(ends.warm_up_slice(slice));
            assert_eq!((none.warm_up_slice(slice), none.measured_slice(slice)), (None, None));
        });
        assert_eq!(found.len(), 1);
        assert!(
            found[0] >= 5 * SECOND && (found[0] - SECOND).is_multiple_of(2 * SECOND),
            "at the end of a block: {found:?}"
        );
        assert_eq!((ends.has_settled(), none.has_settled()), (true, false));
    }
}
