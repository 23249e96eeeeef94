//! When the map of a cluster is asked for again, and of which node.

use super::nodes::NodeNumber;
use crate::rng::{self, Stream};
use crate::time::{MILLISECOND, NEVER, Nanos, SECOND};

/// The time from the end of one refresh to the begin of the next one, where the map changes or the refresh failed.
const GAP_MIN_NS: Nanos = 100 * MILLISECOND;

/// The longest time from the end of one refresh to the begin of the next one that is requested.
const GAP_MAX_NS: Nanos = 2 * SECOND;

/// Time for which answers that bring nothing new are followed by others as soon as possible: a failover takes so long at most, and
/// until its end all nodes say what they said before.
const FAILOVER_NS: Nanos = 30 * SECOND;

/// The refreshes of one process. One is in flight at a time. When the answers have brought nothing new for 30 s, the time between two
/// of them doubles.
#[derive(Clone, Debug)]
pub struct RefreshSchedule {
    draws: Stream,
    /// Number of draws that were used.
    drawn: u64,
    /// Whether a refresh is requested that has not begun.
    is_requested: bool,
    /// The node that is not asked, because it is why a refresh is requested.
    blamed: Option<NodeNumber>,
    /// The node that failed to answer the last refresh.
    failed: Option<NodeNumber>,
    in_flight: Option<InFlight>,
    /// Time from which on a requested refresh may begin.
    earliest: Nanos,
    /// The gap after the next refresh, where that brings nothing new.
    gap_ns: Nanos,
    /// Time of the first requested refresh of a series that brought nothing new; [`NEVER`] if there is none.
    in_vain_since: Nanos,
    /// Time from which on a request begins a new series of refreshes, which start with the shortest gap.
    quiet_from: Nanos,
    period_ns: Option<Nanos>,
    /// Time of the next refresh that nothing has to request.
    periodic_at: Nanos,
}

/// A refresh that has begun.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    node: NodeNumber,
    /// Whether the refresh was requested, and not only due by the period.
    was_requested: bool,
}

impl RefreshSchedule {
    /// A schedule without refreshes until one is requested. The seed chooses the nodes that are asked.
    pub fn new(seed: u64) -> RefreshSchedule {
        RefreshSchedule {
            draws: Stream::from_seed(seed),
            drawn: 0,
            is_requested: false,
            blamed: None,
            failed: None,
            in_flight: None,
            earliest: 0,
            gap_ns: GAP_MIN_NS,
            in_vain_since: NEVER,
            quiet_from: 0,
            period_ns: None,
            periodic_at: NEVER,
        }
    }

    /// Refreshes also every `period_ns`, at first one period after `start`, and then after the end of the last one.
    pub fn with_period(self, period_ns: Nanos, start: Nanos) -> RefreshSchedule {
        let period_ns = period_ns.max(GAP_MIN_NS);
        RefreshSchedule { period_ns: Some(period_ns), periodic_at: start.saturating_add(period_ns), ..self }
    }

    /// Requests a refresh, which is not asked of the `blamed` node. A request that comes while a refresh is in flight is for the next one,
    /// since the answer may be older than its cause.
    pub fn request_refresh(&mut self, blamed: Option<NodeNumber>, now: Nanos) {
        if !self.is_requested && self.in_flight.is_none() && now >= self.quiet_from {
            (self.gap_ns, self.in_vain_since) = (GAP_MIN_NS, NEVER);
        }
        self.is_requested = true;
        self.blamed = blamed.or(self.blamed);
    }

    /// Time at which the next refresh begins; [`NEVER`] when none is requested, or one is in flight.
    pub fn next_time(&self) -> Nanos {
        match (self.in_flight, self.is_requested) {
            (Some(_), _) => NEVER,
            (None, true) => self.earliest.min(self.periodic_at),
            (None, false) => self.periodic_at,
        }
    }

    /// Begins the refresh that is due, and returns the node among `candidates` to ask: any but the blamed one, and none that has
    /// just failed, where there are others. `None` when no refresh is due. Without candidates it is put off.
    pub fn begin(&mut self, now: Nanos, candidates: &[NodeNumber]) -> Option<NodeNumber> {
        if now < self.next_time() {
            return None;
        }
        let Some(node) = self.choose(candidates) else {
            self.put_off(now);
            return None;
        };
        self.in_flight = Some(InFlight { node, was_requested: self.is_requested });
        self.is_requested = false;
        Some(node)
    }

    /// Ends the refresh in flight. `changed`: the answer brought another map; `None`: no usable answer came.
    pub fn handle_end(&mut self, now: Nanos, changed: Option<bool>) {
        let Some(InFlight { node, was_requested }) = self.in_flight.take() else { return };
        let Some(changed) = changed else {
            self.failed = Some(node);
            self.put_off(now);
            return;
        };
        self.failed = None;
        if !self.is_requested {
            self.blamed = None;
        }
        let in_vain = was_requested && !changed;
        self.in_vain_since = if in_vain { self.in_vain_since.min(now) } else { NEVER };
        let is_long = in_vain && now >= self.in_vain_since.saturating_add(FAILOVER_NS);
        let gap_ns = if in_vain { self.gap_ns } else { GAP_MIN_NS };
        self.earliest = now.saturating_add(gap_ns);
        self.gap_ns = if is_long { GAP_MAX_NS.min(2 * gap_ns) } else { gap_ns };
        self.quiet_from = now.saturating_add(GAP_MAX_NS);
        self.periodic_at = self.period_ns.map_or(NEVER, |period_ns| now.saturating_add(period_ns));
    }

    /// Requests a refresh again after the shortest gap.
    fn put_off(&mut self, now: Nanos) {
        self.is_requested = true;
        self.earliest = now.saturating_add(GAP_MIN_NS);
        self.periodic_at = self.period_ns.map_or(NEVER, |_| self.earliest);
    }

    fn choose(&mut self, candidates: &[NodeNumber]) -> Option<NodeNumber> {
        let is_other = |node: NodeNumber, avoided: Option<NodeNumber>| avoided != Some(node);
        let unblamed = || candidates.iter().copied().filter(|&node| is_other(node, self.blamed));
        let mut nodes: Vec<NodeNumber> = unblamed().filter(|&node| is_other(node, self.failed)).collect();
        if nodes.is_empty() {
            nodes = unblamed().collect();
        }
        if nodes.is_empty() {
            nodes = candidates.to_vec();
        }
        let draw = self.draws.draw(self.drawn);
        self.drawn += 1;
        nodes.get(rng::below(draw, nodes.len() as u64) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeNumber; 3] = [0, 1, 2];

    /// A time in milliseconds.
    const fn ms(number: u64) -> Nanos {
        number * MILLISECOND
    }

    /// Begins the refresh that is due, at its time, and ends it 1 ms later; returns the node and the time of its begin.
    fn refresh(schedule: &mut RefreshSchedule, now: Nanos, changed: Option<bool>) -> (NodeNumber, Nanos) {
        let begin = schedule.next_time().max(now);
        let node = schedule.begin(begin, &NODES).expect("a refresh is due");
        assert_eq!(
            (schedule.next_time(), schedule.begin(NEVER - 1, &NODES)),
            (NEVER, None),
            "one is in flight"
        );
        schedule.handle_end(begin + ms(1), changed);
        (node, begin)
    }

    #[test]
    fn nothing_begins_before_it_is_requested() {
        let mut schedule = RefreshSchedule::new(1);
        assert_eq!((schedule.next_time(), schedule.begin(ms(5), &NODES)), (NEVER, None));
        schedule.handle_end(ms(5), Some(true));
        assert_eq!(schedule.next_time(), NEVER, "an end without begin is none");
        schedule.request_refresh(None, ms(5));
        assert!(schedule.next_time() <= ms(5), "the first one begins at once");
        assert_eq!(refresh(&mut schedule, ms(5), Some(false)).1, ms(5));
        assert_eq!(schedule.next_time(), NEVER);
    }

    /// Lets a refresh be requested, begin and end again and again for so long from `end` on. Returns the end of the last one.
    fn in_vain(schedule: &mut RefreshSchedule, mut end: Nanos, for_ns: Nanos) -> Nanos {
        let until = end + for_ns;
        while end < until {
            schedule.request_refresh(None, end);
            end = refresh(schedule, end, Some(false)).1 + ms(1);
        }
        end
    }

    #[test]
    fn gaps_are_short_as_long_as_a_failover_takes_and_double_when_nothing_changes_then() {
        let mut schedule = RefreshSchedule::new(1);
        let mut gaps = Vec::new();
        let mut end = in_vain(&mut schedule, ms(1_000), FAILOVER_NS - ms(100));
        for changed in [false, false, false, false, false, false, false, true, false, false] {
            schedule.request_refresh(None, end);
            assert_eq!(schedule.begin(schedule.next_time() - 1, &NODES), None, "too early");
            let (_, begin) = refresh(&mut schedule, end, Some(changed));
            gaps.push(begin.saturating_sub(end) / MILLISECOND);
            end = begin + ms(1);
        }
        assert!(gaps[0] <= 100 && gaps[7] >= 1_999, "{gaps:?}");
        assert!(gaps[1..8].windows(2).all(|pair| pair[1] >= pair[0]), "{gaps:?}");
        assert!(gaps[8..].iter().all(|gap| *gap <= 100), "{gaps:?}");
    }

    #[test]
    fn a_request_after_a_quiet_time_begins_with_the_shortest_gap() {
        let mut schedule = RefreshSchedule::new(1);
        in_vain(&mut schedule, 0, FAILOVER_NS + 60 * SECOND);
        assert_eq!(schedule.gap_ns, GAP_MAX_NS);
        let end = schedule.quiet_from - GAP_MAX_NS;
        let mut soon = schedule.clone();
        soon.request_refresh(None, end + ms(1_999));
        assert_eq!(soon.next_time(), end + GAP_MAX_NS, "the series goes on");
        schedule.request_refresh(None, end + ms(2_000));
        refresh(&mut schedule, end + ms(2_000), Some(false));
        schedule.request_refresh(None, end + ms(2_001));
        assert_eq!(schedule.next_time(), end + ms(2_001 + 100));
    }

    #[test]
    fn a_request_in_flight_is_for_the_next_refresh() {
        let mut schedule = RefreshSchedule::new(1);
        schedule.request_refresh(Some(2), 0);
        assert_ne!(schedule.begin(0, &NODES), Some(2));
        schedule.request_refresh(Some(0), ms(1));
        schedule.request_refresh(None, ms(2));
        schedule.handle_end(ms(3), Some(true));
        assert_eq!(schedule.next_time(), ms(103));
        assert_eq!(schedule.begin(ms(103), &[0, 1]), Some(1), "the node that was blamed last is not asked");
        schedule.handle_end(ms(104), Some(true));
        assert_eq!(schedule.next_time(), NEVER);
    }

    #[test]
    fn the_blamed_node_is_asked_where_it_is_the_only_one() {
        let mut asked = [0; 3];
        for seed in 0..300 {
            let mut schedule = RefreshSchedule::new(seed);
            schedule.request_refresh(Some(1), 0);
            asked[usize::from(refresh(&mut schedule, 0, Some(false)).0)] += 1;
            schedule.request_refresh(Some(1), 0);
            assert_eq!(schedule.begin(NEVER - 1, &[1]), Some(1));
            schedule.handle_end(NEVER - 1, Some(false));
            assert_eq!(schedule.blamed, None, "blame ends with the answer");
        }
        assert!(asked[1] == 0 && asked[0] > 100 && asked[2] > 100, "{asked:?}");
    }

    #[test]
    fn a_failed_refresh_is_asked_again_of_another_node() {
        for seed in 0..100 {
            let mut schedule = RefreshSchedule::new(seed);
            schedule.request_refresh(Some(0), 0);
            let (first, _) = refresh(&mut schedule, 0, None);
            assert_eq!(schedule.next_time(), ms(101));
            let (second, begin) = refresh(&mut schedule, 0, None);
            assert_eq!((begin, first + second), (ms(101), 3), "nodes 1 and 2 in some order");
            assert_eq!(refresh(&mut schedule, 0, None).0, first);
            assert_eq!(
                schedule.begin(schedule.next_time(), &[0, second]),
                Some(second),
                "the blamed one is no choice"
            );
            schedule.handle_end(ms(1_000), None);
            assert_eq!(schedule.begin(schedule.next_time(), &[0]), Some(0));
        }
    }

    #[test]
    fn a_refresh_without_candidates_is_put_off() {
        let mut schedule = RefreshSchedule::new(1).with_period(ms(500), 0);
        schedule.request_refresh(None, 0);
        for now in [ms(10), ms(600)] {
            assert_eq!(schedule.begin(now, &[]), None);
            assert_eq!(schedule.next_time(), now + ms(100));
        }
        assert_eq!(schedule.begin(ms(700), &[2]), Some(2));
    }

    #[test]
    fn a_period_refreshes_without_a_request_and_lengthens_no_gap() {
        let mut schedule = RefreshSchedule::new(1).with_period(ms(500), ms(1_000));
        assert_eq!(refresh(&mut schedule, 0, Some(false)).1, ms(1_500));
        assert_eq!(refresh(&mut schedule, 0, Some(false)).1, ms(2_001));
        schedule.request_refresh(None, ms(2_010));
        assert_eq!(refresh(&mut schedule, 0, Some(false)).1, ms(2_102));
        assert_eq!(refresh(&mut schedule, 0, None).1, ms(2_603), "the period begins anew with every answer");
        assert_eq!(refresh(&mut schedule, 0, Some(true)).1, ms(2_704));
        assert_eq!(schedule.next_time(), ms(3_205));
    }
}
