//! The backlog of an open loop while it runs: requests that were due and have not ended, as far as whole intervals tell.
//!
//! No worker counts what is due before it sends it, so that the number of due requests follows from the rate that is asked for.
//! Random arrivals stray from that by the root of their number. What they have strayed is taken off at each interval in which so few
//! requests were outstanding, by their rate times their response (Little's law), that this tells it better.

use std::collections::VecDeque;

use pummel_logic::plan::{Group, Plan};
use pummel_logic::time::{Nanos, SECOND, seconds};

/// The latest intervals that are kept, for pictures of the last minutes.
pub const RECENT_MAX: usize = 240;

/// Standard deviations by which a number of random arrivals may stray from its mean.
const STRAY: f64 = 4.0;

/// The least share of the due requests by which a backlog changes where it grows or shrinks.
const CHANGE_SHARE: f64 = 0.01;

/// Intervals over which a backlog is seen to grow or to shrink.
const TREND_INTERVALS: usize = 4;

/// The least time for which a backlog grows where a load counts as more than what is answered.
const OVERLOAD_NS: Nanos = SECOND;

/// Requests outstanding in the calmest interval, times this, are a backlog where any number may be outstanding.
const UNLIMITED_FACTOR: f64 = 10.0;

/// Share of the slots from which on all of them count as taken.
const FULL_SLOTS: f64 = 0.9;

/// Requests due within an interval from which on it is no chance that none ended.
const SILENT_DUE: f64 = 5.0;

/// The clients of a run whose requests are due at times that no reply changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenLoop {
    /// Connections of all clients.
    pub connections: u64,
    /// Requests that may be outstanding at one time; `None` where there is no limit.
    pub slots: Option<u64>,
    /// Requests of the measured phase, after which nothing more is due; `None` where their number has no limit.
    pub requests_max: Option<u64>,
}

impl OpenLoop {
    /// The clients of a plan; `None` where some ask in a closed loop or come and go, and where several phases are measured.
    pub fn of(plan: &Plan) -> Option<OpenLoop> {
        let has_rate = |group: &Group| group.rate.is_some() && group.churn.is_none();
        let mut recorded = plan.phases.iter().filter(|phase| phase.recorded);
        let (Some(phase), None, true) = (recorded.next(), recorded.next(), plan.groups.iter().all(has_rate))
        else {
            return None;
        };
        let slots = |group: &Group| Some(u64::from(group.depth.limit()?) * u64::from(group.clients));
        Some(OpenLoop {
            connections: plan.groups.iter().map(|group| u64::from(group.clients)).sum(),
            slots: plan.groups.iter().map(slots).sum(),
            requests_max: phase.stop.requests,
        })
    }
}

/// One interval, as far as a backlog depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalEnd {
    /// End of the interval, in nanoseconds since the measured phase began.
    pub end_ns: Nanos,
    /// Requests that were due until then, by the rate that was asked for.
    pub due: f64,
    /// Requests that ended in the interval, or were left out.
    pub ended: u64,
    /// Those of them that were answered, with an error too.
    pub answered: u64,
    /// Mean response of the requests that were answered in it, in nanoseconds; `None` where none was.
    pub response_ns: Option<f64>,
    /// Mean number of slots that its answered requests took.
    pub slots_taken: f64,
}

/// The backlog at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BacklogPoint {
    /// End of the interval, in nanoseconds since the measured phase began.
    pub end_ns: Nanos,
    /// Requests that were due until then, by the rate that was asked for.
    pub due: f64,
    /// Requests that had ended until then.
    pub ended: u64,
    /// Requests that had been answered until then, with an error too.
    pub answered: u64,
    /// Requests that were due and had not ended.
    pub behind: u64,
    /// Whether they are more than what may be outstanding, or than chance makes of it.
    pub is_queue: bool,
}

/// The way that a backlog goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// It becomes larger.
    Growing,
    /// It stays as it is, as far as is known.
    Steady,
    /// It becomes smaller.
    Shrinking,
}

/// A load that is more than what is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Requests per second that are due.
    pub asked: f64,
    /// Requests per second that are answered, with an error too.
    pub answered: f64,
}

/// The backlog of a run under way.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// The latest intervals, the oldest first, at most [`RECENT_MAX`].
    points: VecDeque<BacklogPoint>,
    /// Requests by which the rate says more than what was due, as of the last interval that tells it.
    strayed: f64,
    /// Requests that were due by the rate until that interval.
    strayed_at: f64,
    /// Requests outstanding in the calmest interval.
    calmest: Option<f64>,
    /// The end of the last interval before the present queue; `None` where there is none.
    before_queue: Option<BacklogPoint>,
    /// Number of intervals of the present queue.
    queue_intervals: usize,
    /// The greatest backlog of the run that was a queue.
    most: Option<BacklogPoint>,
    /// End of the last interval in which a request ended, in nanoseconds since the measured phase began.
    heard_ns: Nanos,
    slots_taken: f64,
}

impl Backlog {
    /// Follows the run by one interval.
    pub fn follow(&mut self, open: &OpenLoop, interval: IntervalEnd) {
        let before = self.points.back().copied().unwrap_or_default();
        let ended = before.ended + interval.ended;
        let answered = before.answered + interval.answered;
        let (due, due_within) = (interval.due, interval.due - before.due);
        let length_s = seconds(interval.end_ns.saturating_sub(before.end_ns));
        let rate = if length_s > 0.0 { due_within / length_s } else { 0.0 };
        let outstanding = interval.response_ns.map(|ns| rate * ns / SECOND as f64);
        if let Some(outstanding) = outstanding {
            self.calmest = Some(self.calmest.map_or(outstanding, |calmest| calmest.min(outstanding)));
        }
        let room = match open.slots {
            Some(slots) => slots as f64,
            None => (UNLIMITED_FACTOR * self.calmest.unwrap_or(0.0)).max(open.connections as f64),
        };
        let counted = due - ended as f64 - self.strayed;
        let chance = STRAY * (due - self.strayed_at).max(0.0).sqrt();
        let is_by_chance = counted <= chance + room;
        // Few of few requests are due: that none ended tells nothing.
        let outstanding =
            outstanding.or((is_by_chance && due_within < SILENT_DUE).then_some(counted.max(0.0)));
        let (behind, is_queue) = match outstanding.filter(|few| *few <= chance && is_by_chance) {
            Some(few) => {
                self.strayed += counted - few;
                self.strayed_at = due;
                (few, few > room)
            }
            None => {
                let is_over = outstanding.is_none_or(|outstanding| outstanding > room) || !is_by_chance;
                (counted.max(0.0), counted > room + chance / 2.0 && is_over)
            }
        };
        let point = BacklogPoint {
            end_ns: interval.end_ns,
            due,
            ended,
            answered,
            behind: behind.round() as u64,
            is_queue,
        };
        if interval.ended > 0 || due_within < SILENT_DUE {
            self.heard_ns = interval.end_ns;
        }
        match is_queue {
            true => {
                self.before_queue.get_or_insert(before);
                self.queue_intervals += 1;
                if self.most.is_none_or(|most| most.behind <= point.behind) {
                    self.most = Some(point);
                }
            }
            false => (self.before_queue, self.queue_intervals) = (None, 0),
        }
        self.slots_taken = interval.slots_taken;
        if self.points.len() == RECENT_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// The latest intervals, the oldest first; empty where a run has no backlog.
    pub fn points(&self) -> &VecDeque<BacklogPoint> {
        &self.points
    }

    /// The end of the last interval; `None` before the first one, and where a run has no backlog.
    pub fn now(&self) -> Option<BacklogPoint> {
        self.points.back().copied()
    }

    /// The present backlog, where it is more than what may be outstanding.
    pub fn queue(&self) -> Option<BacklogPoint> {
        self.now().filter(|now| now.is_queue)
    }

    /// The greatest backlog of the run that was more than what may be outstanding.
    pub fn most(&self) -> Option<BacklogPoint> {
        self.most
    }

    /// The way that the present queue goes.
    pub fn trend(&self) -> Option<Trend> {
        let (now, begin) = (self.queue()?, self.before_queue?);
        let early = self.points.len().checked_sub(1 + TREND_INTERVALS.min(self.queue_intervals));
        let early = early.map_or(begin, |at| self.points[at]);
        let due = now.due - early.due;
        let change = now.behind as f64 - early.behind as f64;
        let least = (CHANGE_SHARE * due).max(due.max(0.0).sqrt());
        Some(if change > least {
            Trend::Growing
        } else if change < -least {
            Trend::Shrinking
        } else {
            Trend::Steady
        })
    }

    /// The rates of a load that is more than what is answered: its queue grows, and has done so for more than a moment. `None`
    /// where nothing is answered at all.
    pub fn overload(&self) -> Option<Rates> {
        let (now, begin) = (self.queue()?, self.before_queue?);
        let time_ns = now.end_ns.saturating_sub(begin.end_ns);
        let is_lasting = self.queue_intervals > 1 && time_ns >= OVERLOAD_NS;
        if !is_lasting || self.trend() != Some(Trend::Growing) || self.silent_ns().is_some() {
            return None;
        }
        let per_second = |requests: f64| requests / seconds(time_ns);
        Some(Rates {
            asked: per_second(now.due - begin.due),
            answered: per_second((now.answered - begin.answered) as f64),
        })
    }

    /// The time for which nothing ended although requests were due, in nanoseconds; `None` where it is no whole interval.
    pub fn silent_ns(&self) -> Option<Nanos> {
        self.queue().map(|now| now.end_ns.saturating_sub(self.heard_ns)).filter(|ns| *ns > 0)
    }

    /// Whether all slots of a present queue are taken, so that its requests wait for one.
    pub fn takes_all_slots(&self, open: &OpenLoop) -> bool {
        let is_full = open.slots.is_some_and(|slots| self.slots_taken >= FULL_SLOTS * slots as f64);
        self.queue().is_some() && is_full
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Arrivals, Mix, Phase, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_logic::rng;

    use super::*;

    const OPEN: OpenLoop = OpenLoop { connections: 50, slots: Some(50), requests_max: None };

    /// A server that answers one request after the other, each after `service_ns(now)`, and requests that are due at random at a rate.
    struct Simulated {
        rate: f64,
        seed: u64,
        seconds: u64,
        service_ns: fn(Nanos) -> Nanos,
    }

    impl Simulated {
        /// The backlog after each second, by the rule and in truth.
        fn run(&self) -> (Backlog, Vec<(u64, u64)>) {
            let mut due_at = Vec::new();
            let mut at = 0.0;
            for number in 0.. {
                let draw = (rng::mix(&[self.seed, number]) >> 11) as f64 / (1u64 << 53) as f64;
                at += -(1.0 - draw).ln() / self.rate * SECOND as f64;
                if at >= (self.seconds * SECOND) as f64 {
                    break;
                }
                due_at.push(at as Nanos);
            }
            let mut free = 0;
            let ends: Vec<Nanos> = due_at
                .iter()
                .map(|due| {
                    let begin = free.max(*due);
                    free = begin + (self.service_ns)(begin);
                    free
                })
                .collect();
            let mut backlog = Backlog::default();
            let mut figures = Vec::new();
            for second in 1..=self.seconds {
                let end_ns = second * SECOND;
                let within: Vec<Nanos> = ends
                    .iter()
                    .zip(&due_at)
                    .filter(|(end, _)| (end_ns - SECOND..end_ns).contains(*end))
                    .map(|(end, due)| end - due)
                    .collect();
                let sum: Nanos = within.iter().sum();
                let interval = IntervalEnd {
                    end_ns,
                    due: self.rate * second as f64,
                    ended: within.len() as u64,
                    answered: within.len() as u64,
                    response_ns: (!within.is_empty()).then(|| sum as f64 / within.len() as f64),
                    slots_taken: 50.0,
                };
                backlog.follow(&OPEN, interval);
                let due = due_at.iter().filter(|due| **due < end_ns).count();
                let ended = ends.iter().filter(|end| **end < end_ns).count();
                figures.push((backlog.now().expect("an interval").behind, (due - ended) as u64));
            }
            (backlog, figures)
        }
    }

    #[test]
    fn requests_that_ended_without_an_answer_are_not_told_as_answered() {
        let mut backlog = Backlog::default();
        for second in 1..=6 {
            let (end_ns, due) = (second * SECOND, 2_000.0 * second as f64);
            let response_ns = Some(0.5e9 * second as f64);
            let interval =
                IntervalEnd { end_ns, due, ended: 1_000, answered: 600, response_ns, slots_taken: 50.0 };
            backlog.follow(&OPEN, interval);
        }
        let rates = backlog.overload().expect("the backlog grows");
        assert_eq!((rates.asked.round(), rates.answered.round()), (2_000.0, 600.0));
    }

    #[test]
    fn the_backlog_of_an_overload_is_known_to_what_random_arrivals_stray() {
        for seed in 0..10 {
            let load = Simulated { rate: 2_000.0, seed, seconds: 10, service_ns: |_| SECOND / 1_000 };
            let (backlog, figures) = load.run();
            for (second, (told, truth)) in (1..).zip(&figures) {
                let stray = STRAY * (2_000.0 * f64::from(second)).sqrt();
                assert!(told.abs_diff(*truth) as f64 <= stray, "seed {seed}: {figures:?}");
            }
            assert_eq!(backlog.trend(), Some(Trend::Growing));
            let rates = backlog.overload().expect("it is one");
            assert_eq!((rates.asked.round(), rates.answered.round()), (2_000.0, 1_000.0));
            assert!(backlog.takes_all_slots(&OPEN) && backlog.silent_ns().is_none());
        }
    }

    #[test]
    fn a_load_that_is_carried_is_never_behind_however_its_arrivals_stray() {
        for seed in 0..10 {
            let load = Simulated { rate: 10_000.0, seed, seconds: 30, service_ns: |_| SECOND / 40_000 };
            let (backlog, figures) = load.run();
            assert!(figures.iter().all(|(told, _)| *told <= 1), "seed {seed}: {figures:?}");
            assert!(backlog.most().is_none() && backlog.overload().is_none());
        }
    }

    #[test]
    fn a_server_that_stands_still_leaves_a_backlog_that_goes_and_is_no_overload() {
        // It stands still from 3 s to 5 s.
        let service_ns = |at: Nanos| {
            if (3 * SECOND..5 * SECOND).contains(&at) { 5 * SECOND - at } else { SECOND / 20_000 }
        };
        let (backlog, figures) = Simulated { rate: 5_000.0, seed: 1, seconds: 10, service_ns }.run();
        let most = backlog.most().expect("it was behind");
        assert_eq!(most.end_ns, 5 * SECOND);
        assert!(most.behind.abs_diff(figures[4].1) < 600, "{figures:?}");
        assert!(figures[9].0 <= 1 && backlog.queue().is_none(), "{figures:?}");
        let stopped = Simulated { rate: 5_000.0, seed: 1, seconds: 5, service_ns }.run().0;
        assert_eq!((stopped.silent_ns(), stopped.overload()), (Some(2 * SECOND), None));
        assert_eq!(stopped.trend(), Some(Trend::Growing));
    }

    #[test]
    fn a_queue_that_does_not_grow_any_more_is_no_overload() {
        // Twice as fast as the requests come, after a slow beginning.
        let service_ns = |at: Nanos| if at < 4 * SECOND { SECOND / 500 } else { SECOND / 1_300 };
        let load = |seconds| Simulated { rate: 1_000.0, seed: 2, seconds, service_ns }.run().0;
        assert!(load(4).overload().is_some());
        assert_eq!((load(9).trend(), load(9).overload()), (Some(Trend::Shrinking), None));
    }

    #[test]
    fn many_requests_on_a_long_way_are_no_queue_where_any_number_may_be_outstanding() {
        let open = OpenLoop { slots: None, ..OPEN };
        let mut backlog = Backlog::default();
        for second in 1..=20u64 {
            let due = 20_000.0 * second as f64;
            let ended = if second == 1 { 19_000 } else { 20_000 };
            let response_ns = Some(0.05 * SECOND as f64);
            let interval = IntervalEnd {
                end_ns: second * SECOND,
                due,
                ended,
                answered: ended,
                response_ns,
                slots_taken: 1_000.0,
            };
            backlog.follow(&open, interval);
            assert_eq!(backlog.now().map(|now| (now.behind, now.is_queue)), Some((1_000, false)));
        }
    }

    #[test]
    fn where_requests_wait_for_replies_there_is_no_backlog() {
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(2_000.0), ..Group::default() };
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let stop = Stop { time_ns: Some(SECOND), requests: None };
        let phase = Phase { name: "measure".to_owned(), work, stop, recorded: true };
        let mut plan = Plan { groups: vec![group], phases: vec![phase], ..Plan::default() };
        let open = OpenLoop::of(&plan).expect("an open loop");
        assert_eq!((open.slots, open.requests_max), (Some(u64::from(plan.groups[0].clients)), None));
        plan.groups.push(Group { rate: None, ..plan.groups[0].clone() });
        assert_eq!(OpenLoop::of(&plan), None);
    }
}
