//! The baseline of a run: round trips that are made one at a time before the measured phase.

use super::{Mix, Plan, Route, Transport, Work};
use crate::protocol::Verb;
use crate::time::{MILLISECOND, Nanos};

/// Round trips of one kind on one connection.
pub const ROUND_TRIPS: u64 = 100;

/// Round trips of one kind on one connection that come first and are not counted.
pub const ROUND_TRIPS_DROPPED: u64 = 5;

/// The longest time in which round trips of one kind are begun, in nanoseconds.
pub const KIND_MAX_NS: Nanos = 50 * MILLISECOND;

/// The longest time in which round trips are begun, of both kinds, in nanoseconds.
pub const BASELINE_MAX_NS: Nanos = 2 * KIND_MAX_NS;

crate::words! {
    /// The reason why a baseline has none of the run's own requests.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum NoOwnReads {
        /// The requests are not drawn from a mix: they are those of a trace or a recording, or of windows.
        NotDrawn = "not-drawn",
        /// No operation of the mix is a read that changes nothing: get, gets or hget.
        NoReads = "no-reads",
        /// The reads make or renew records on the server, or ask for several records that follow each other or lie on several nodes.
        NotPlain = "not-plain",
        /// The keys of the records change in the course of time.
        KeysChange = "keys-change",
        /// The server would send messages about the keys that are read.
        Tracked = "tracked",
    }
}

/// Whether requests of a verb change nothing on a server, so that they may be made beside those of the run.
fn is_plain_read(verb: Verb) -> bool {
    matches!(verb, Verb::Get | Verb::Gets | Verb::Hget)
}

impl Plan {
    /// The phase before which round trips are made one at a time, which is the first measured one; `None` where none are made.
    pub fn baseline_phase(&self) -> Option<usize> {
        let is_unanswered = self.transport == Transport::Udp && self.measures_no_reply();
        if !self.baseline || is_unanswered || self.window().is_some() || self.sequence().is_some() {
            return None;
        }
        self.phases.iter().position(|phase| phase.recorded)
    }

    /// The longest time that the baseline before phase `number` takes, in nanoseconds; 0 where it has none.
    pub fn baseline_ns(&self, number: usize) -> Nanos {
        if self.baseline_phase() == Some(number) { BASELINE_MAX_NS } else { 0 }
    }

    /// The mix of phase `number` with nothing but its reads that change nothing.
    ///
    /// # Errors
    /// Returns the reason why none of its requests can be made beside those of the run.
    pub fn own_reads(&self, number: usize) -> Result<Mix, NoOwnReads> {
        let Work::Mix(mix) = &self.phases[number].work else { return Err(NoOwnReads::NotDrawn) };
        let mut reads = mix.clone();
        reads.ops.retain(|&(verb, _)| is_plain_read(verb));
        reads.popularity_of.retain(|(verb, _)| is_plain_read(*verb));
        (reads.fresh, reads.absent, reads.in_turns) = (0.0, 0.0, false);
        if reads.ops.is_empty() {
            Err(NoOwnReads::NoReads)
        } else if !mix.meta.is_nothing() || mix.scans || self.route == Route::Cluster && mix.multiget > 1 {
            Err(NoOwnReads::NotPlain)
        } else if self.phases.iter().enumerate().any(|(number, _)| self.churns(number)) {
            Err(NoOwnReads::KeysChange)
        } else if self.tracking.is_some() {
            Err(NoOwnReads::Tracked)
        } else {
            Ok(reads)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, Phase, Popularity, Stop, Tracking};

    fn plan(ops: &[(Verb, f64)]) -> Plan {
        let load = Phase {
            name: "load".to_owned(),
            work: Work::Load(Load::default()),
            stop: Stop::default(),
            recorded: false,
        };
        let mut plan = Plan { baseline: true, ..Plan::measuring(Work::Mix(Mix::of(ops)), Stop::default()) };
        plan.phases.insert(0, load);
        plan
    }

    /// Changes the mix of the measured phase.
    fn with_mix(mut plan: Plan, change: impl Fn(&mut Mix)) -> Plan {
        let Work::Mix(mix) = &mut plan.phases[1].work else { unreachable!("it is a mix") };
        change(mix);
        plan
    }

    #[test]
    fn the_baseline_stands_before_the_first_measured_phase_unless_no_reply_would_come() {
        let reads = || plan(&[(Verb::Get, 1.0)]);
        assert_eq!(reads().baseline_phase(), Some(1));
        assert_eq!((reads().baseline_ns(0), reads().baseline_ns(1)), (0, BASELINE_MAX_NS));
        assert_eq!(Plan { baseline: false, ..reads() }.baseline_phase(), None);
        let stores = with_mix(plan(&[(Verb::Set, 1.0)]), |mix| mix.noreply = true);
        let stores_over_udp = Plan { transport: Transport::Udp, ..stores.clone() };
        assert_eq!((stores.baseline_phase(), stores_over_udp.baseline_phase()), (Some(1), None));
        assert_eq!(Plan { transport: Transport::Udp, ..reads() }.baseline_phase(), Some(1));
    }

    #[test]
    fn only_reads_that_change_nothing_are_made_beside_the_run() {
        let mixed = plan(&[(Verb::Gat, 1.0), (Verb::Get, 3.0), (Verb::Set, 1.0)]);
        let mixed = with_mix(mixed, |mix| (mix.absent, mix.popularity) = (0.5, Popularity::Sequential));
        let reads = mixed.own_reads(1).expect("a get is one");
        assert_eq!(reads.ops, [(Verb::Get, 3.0)]);
        assert_eq!((reads.absent, &reads.popularity), (0.0, &Popularity::Sequential));
        let why = |plan: Plan| plan.own_reads(1).expect_err("there are none");
        assert_eq!(why(plan(&[(Verb::Set, 1.0), (Verb::Gat, 1.0)])), NoOwnReads::NoReads);
        assert_eq!(why(with_mix(mixed.clone(), |mix| mix.meta.vivify_s = Some(30))), NoOwnReads::NotPlain);
        let tracked = Plan { tracking: Some(Tracking::Keys), ..mixed.clone() };
        assert_eq!(why(tracked), NoOwnReads::Tracked);
        assert_eq!(mixed.own_reads(0).expect_err("it loads"), NoOwnReads::NotDrawn);
    }
}
