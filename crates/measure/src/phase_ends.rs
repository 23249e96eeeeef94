//! The ends of a run's phases: which workers are through with them, how long they took, and what was left undone in them.

use std::collections::BTreeMap;

use pummel_logic::time::Nanos;

use crate::generator::WorkerTime;

/// Work that was left undone in a phase, on one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseOutcome {
    /// Lanes of clients that were lost and not opened again, at the end of the phase.
    pub dead: u64,
    /// Requests that the phase wanted and that were never due.
    pub missing: u64,
    /// Requests that were sent again because the first attempt was lost.
    pub repeated: u64,
    /// The silence of each server of the worker's connections at the end of the phase.
    pub silent: Vec<PhaseSilence>,
}

/// The silence of a server, as one worker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSilence {
    /// Index of the server in the Plan.
    pub server: u32,
    /// Time for which the server has answered nothing, in nanoseconds.
    pub silent_ns: Nanos,
    /// Whether the server refused or reset the last attempts to connect to it.
    pub turned_away: bool,
}

/// The times of a phase on one worker, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct PhaseSpan {
    /// When the phase was to begin.
    pub begin: Nanos,
    /// When the time of the phase was over; the greatest number where only its requests end it.
    pub end: Nanos,
    /// Length of the phase.
    pub elapsed_ns: Nanos,
    /// The busy time of the worker.
    pub time: WorkerTime,
}

/// The ends of all phases on the workers of one process.
#[derive(Debug)]
pub struct PhaseEnds {
    workers: usize,
    /// Number of workers that have ended each phase.
    through: Vec<usize>,
    /// Connections of each phase that were lost and not replaced.
    dead: Vec<u64>,
    missing: u64,
    /// Nanoseconds by which the last worker was late for the phase under way.
    late_ns: Nanos,
    /// Length of the recorded phase under way.
    elapsed_ns: Nanos,
    /// Lengths of the recorded phases before the one under way, together.
    before_ns: Nanos,
    /// For every server, the last recorded phase with connections to it, and its silence at the end of that phase.
    silent: BTreeMap<u32, (usize, PhaseSilence)>,
    /// The busy time of each worker, by its number, in the recorded phases that it has ended.
    times: BTreeMap<usize, WorkerTime>,
}

impl PhaseEnds {
    /// No end of `phases` phases on `workers` workers.
    pub fn new(phases: usize, workers: usize) -> PhaseEnds {
        PhaseEnds {
            workers,
            through: vec![0; phases],
            dead: vec![0; phases],
            missing: 0,
            late_ns: 0,
            elapsed_ns: 0,
            before_ns: 0,
            silent: BTreeMap::new(),
            times: BTreeMap::new(),
        }
    }

    /// Adds the end of a phase on one worker, which began the phase `late_ns` nanoseconds late. Returns how late the last worker
    /// began it where all workers have ended it.
    pub fn add(&mut self, phase: usize, late_ns: Nanos, outcome: &PhaseOutcome) -> Option<Nanos> {
        self.through[phase] += 1;
        self.late_ns = self.late_ns.max(late_ns);
        self.dead[phase] += outcome.dead;
        self.missing += outcome.missing;
        self.is_over(phase).then(|| std::mem::take(&mut self.late_ns))
    }

    /// Adds the times of a recorded phase on `worker`, and the silence of servers at its end. `stopped_at` is when the run was
    /// ended before its time; the greatest number where it was not. The phase is as long as it was asked to be, or until that moment.
    pub fn add_recorded(
        &mut self,
        (phase, worker): (usize, usize),
        times: &PhaseSpan,
        stopped_at: Nanos,
        silent: &[PhaseSilence],
    ) {
        let time = self.times.entry(worker).or_default();
        time.busy_ns += times.time.busy_ns;
        time.wall_ns += times.time.wall_ns;
        let asked_ns = times.end.min(stopped_at).saturating_sub(times.begin);
        self.elapsed_ns = self.elapsed_ns.max(times.elapsed_ns.min(asked_ns));
        for &silence in silent {
            let known = self.silent.entry(silence.server).or_insert((phase, silence));
            if known.0 != phase {
                *known = (phase, silence);
                continue;
            }
            // A server is silent for as long as it is to every worker, and need not be asked by all of them.
            known.1.silent_ns = known.1.silent_ns.min(silence.silent_ns);
            known.1.turned_away |= silence.turned_away;
        }
    }

    /// Ends the recorded phase under way, behind which the next one follows.
    pub fn end_recorded(&mut self) {
        self.before_ns += std::mem::take(&mut self.elapsed_ns);
    }

    /// Lengths of the recorded phases before the one under way, together, in nanoseconds.
    pub fn before_ns(&self) -> Nanos {
        self.before_ns
    }

    /// Length of all recorded phases so far, in nanoseconds.
    pub fn measured_ns(&self) -> Nanos {
        self.before_ns + self.elapsed_ns
    }

    /// Whether a worker has ended the phase.
    pub fn has_begun_to_end(&self, phase: usize) -> bool {
        self.through[phase] > 0
    }

    /// Whether all workers have ended the phase.
    pub fn is_over(&self, phase: usize) -> bool {
        self.through[phase] == self.workers
    }

    /// Whether all workers have ended all phases.
    pub fn are_all_over(&self) -> bool {
        (0..self.through.len()).all(|phase| self.is_over(phase))
    }

    /// Whether there is a phase that no worker has ended.
    pub fn is_one_outstanding(&self) -> bool {
        self.through.contains(&0)
    }

    /// Most connections that were lost and not replaced in one phase.
    pub fn dead(&self) -> u64 {
        self.dead.iter().max().copied().unwrap_or(0)
    }

    /// Requests that phases were to make and that were never due.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The silence of each server at the end of the last recorded phase with connections to it.
    pub fn silent(&self) -> impl Iterator<Item = &PhaseSilence> {
        self.silent.values().map(|(_, silence)| silence)
    }

    /// The busy time of each worker that has ended a recorded phase, in the order of their numbers.
    pub fn worker_times(&self) -> Vec<WorkerTime> {
        self.times.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::NEVER;

    use super::*;

    /// The times of a phase without an end in time, which began at `begin` and took `elapsed_ns`.
    fn untimed(begin: Nanos, elapsed_ns: Nanos) -> PhaseSpan {
        let time = WorkerTime { busy_ns: elapsed_ns / 2, wall_ns: elapsed_ns };
        PhaseSpan { begin, end: NEVER, elapsed_ns, time }
    }

    #[test]
    fn a_phase_is_over_when_its_last_worker_ends_it() {
        let mut ends = PhaseEnds::new(2, 3);
        let left = |dead, missing| PhaseOutcome { dead, missing, ..PhaseOutcome::default() };
        // Phase, how late it was begun, what was left undone; how late the last worker began, where that is known then.
        let table = [
            (0, 5, left(1, 0), None),
            (0, 90, left(2, 7), None),
            (0, 20, left(0, 0), Some(90)),
            (1, 30, left(1, 1), None),
            (1, 10, left(0, 0), None),
            (1, 0, left(1, 0), Some(30)),
        ];
        for (step, (phase, late_ns, outcome, late)) in table.into_iter().enumerate() {
            assert!(ends.is_one_outstanding() == (step < 4) && !ends.are_all_over(), "step {step}");
            assert_eq!(ends.has_begun_to_end(phase), step % 3 > 0, "step {step}");
            assert_eq!(ends.add(phase, late_ns, &outcome), late, "step {step}");
            assert_eq!(ends.is_over(phase), late.is_some(), "step {step}");
        }
        assert!(ends.are_all_over());
        assert_eq!((ends.dead(), ends.missing()), (3, 8), "dead in one phase, missing in all");
    }

    #[test]
    fn a_recorded_phase_is_as_long_as_asked_or_until_the_run_is_stopped() {
        // When the time of the phase is over, how long a worker took, when the run was stopped; the length.
        for (end, elapsed_ns, stopped_at, length_ns) in [
            (NEVER, 700, NEVER, 700),
            (1_500, 700, NEVER, 500),
            (1_500, 400, NEVER, 400),
            (1_500, 700, 1_200, 200),
            (NEVER, 700, 1_200, 200),
            (NEVER, 700, 900, 0),
        ] {
            let mut ends = PhaseEnds::new(2, 1);
            let times = PhaseSpan { end, ..untimed(1_000, elapsed_ns) };
            ends.add_recorded((0, 0), &times, stopped_at, &[]);
            assert_eq!((ends.before_ns(), ends.measured_ns()), (0, length_ns), "{times:?} {stopped_at}");
            ends.end_recorded();
            ends.add_recorded((1, 0), &untimed(9_000, 11), NEVER, &[]);
            assert_eq!((ends.before_ns(), ends.measured_ns()), (length_ns, length_ns + 11));
        }
    }

    #[test]
    fn the_longest_worker_counts_and_each_has_its_own_busy_time() {
        let mut ends = PhaseEnds::new(2, 2);
        for (phase, worker, elapsed_ns) in [(0, 1, 80), (0, 0, 60), (1, 0, 10)] {
            ends.add_recorded((phase, worker), &untimed(0, elapsed_ns), NEVER, &[]);
        }
        assert_eq!(ends.measured_ns(), 80);
        let times = [(35, 70), (40, 80)].map(|(busy_ns, wall_ns)| WorkerTime { busy_ns, wall_ns });
        assert_eq!(ends.worker_times(), times);
    }

    #[test]
    fn a_server_is_silent_as_long_as_it_is_to_every_worker_in_the_last_phase_that_talked_to_it() {
        let silence = |server, silent_ns, turned_away| PhaseSilence { server, silent_ns, turned_away };
        let mut ends = PhaseEnds::new(2, 2);
        let times = untimed(0, 10);
        for (phase, worker, silent) in [
            (0, 0, vec![silence(0, 900, true), silence(1, 50, false)]),
            (0, 1, vec![silence(1, 20, true)]),
            (1, 0, vec![silence(0, 300, false)]),
            (1, 1, vec![silence(0, 400, false)]),
        ] {
            ends.add_recorded((phase, worker), &times, NEVER, &silent);
        }
        let known: Vec<PhaseSilence> = ends.silent().copied().collect();
        assert_eq!(known, [silence(0, 300, false), silence(1, 20, true)]);
    }
}
