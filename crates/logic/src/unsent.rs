//! Requests that were due and never sent: how many there are, and of which verbs, at a bounded cost.
//!
//! A schedule may ask for more than any machine can send, so that its rest cannot be counted one by one. Numbers are exact
//! as far as arithmetic or a bounded number of draws reaches. Beyond that they follow from the mean rate and from the weights
//! of the mix, and are marked as estimated. The numbers of a client depend on that client alone, so that the sum over all
//! clients does not depend on the number of threads and agents.

use crate::arrival::{Passed, estimated_count};
use crate::protocol::Verb;
use crate::time::Nanos;
use crate::workload::request::RequestMaker;
use crate::workload::sequence::Draws;

/// Draws that the clients of a plan together make at most, at the end of a phase, to count what they did not send: some
/// hundredths of a second.
pub const DRAWS_MAX: u64 = 1 << 18;

/// Requests of one verb that were due and never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// Verb of the requests.
    pub verb: Verb,
    /// Number of requests.
    pub requests: u64,
    /// Number of those requests that follows from the mean rate or from the weights of the mix.
    pub estimated: u64,
}

/// The share of one client in [`DRAWS_MAX`], in a plan of `clients`.
pub fn draws_of_client(clients: u64) -> u64 {
    (DRAWS_MAX / clients.max(1)).max(1)
}

/// Number of gaps between arriving clients that are drawn before the rest is estimated, when `number` were drawn so far. Draws
/// end at the second mark from there. Marks are [`DRAWS_MAX`] gaps apart, so that all workers estimate from one client on,
/// although each of them has drawn another number of gaps.
pub fn draws_to_mark(number: u64) -> u64 {
    2 * DRAWS_MAX - number % DRAWS_MAX
}

/// Hands over the verbs of requests that a schedule passed over. The verb of the n-th request is drawn from `bits(n)`. At most
/// `draws_max` verbs are drawn, and the rest is dealt by the weights of the mix, as all are where verbs take turns.
pub fn report(
    passed: Passed,
    draws_max: u64,
    maker: &RequestMaker,
    bits: impl Fn(u64) -> u64,
    mut each: impl FnMut(Unsent),
) {
    let Passed { requests, estimated } = passed;
    if requests == 0 {
        return;
    }
    if let Some(verb) = maker.task.only_verb() {
        return each(Unsent { verb, requests, estimated });
    }
    let drawn = if maker.task.takes_turns() { 0 } else { (requests - estimated).min(draws_max) };
    let (mut counts, mut dealt) = ([0; Verb::COUNT], [0; Verb::COUNT]);
    for nth in 0..drawn {
        counts[maker.task.verb(bits(nth)) as usize] += 1;
    }
    maker.task.deal(requests - drawn, bits(drawn), |verb, requests| dealt[verb as usize] += requests);
    for verb in Verb::ALL {
        let (counted, estimated) = (counts[verb as usize], dealt[verb as usize]);
        if counted + estimated > 0 {
            each(Unsent { verb, requests: counted + estimated, estimated });
        }
    }
}

/// Number of clients that arrive after the one that is due at `due` and before `until`, each after a gap, and at most
/// `clients_max`. At most `draws_max` gaps are drawn. Equal gaps are counted by arithmetic.
pub fn pass_drawn(gaps: &mut Draws, due: Nanos, until: Nanos, clients_max: u64, draws_max: u64) -> Passed {
    if let Some(gap_ns @ 1..) = gaps.fixed_ns() {
        let clients = until.saturating_sub(due).saturating_sub(1) / gap_ns;
        return Passed::exactly(clients.min(clients_max));
    }
    let mut passed = Passed::default();
    let mut due = due.saturating_add(gaps.draw_ns());
    while passed.requests < clients_max && due < until {
        if passed.requests == draws_max {
            passed.estimated =
                estimated_count(until - due, gaps.mean_ns()).min(clients_max - passed.requests);
            passed.requests += passed.estimated;
            break;
        }
        due = due.saturating_add(gaps.draw_ns());
        passed.requests += 1;
    }
    passed
}

/// Number of requests of one worker's clients that were due to arrive and did not. The worker has client `number` and every
/// `turns`-th of the `after` clients that follow it. Each client makes `calls` requests, and all clients of all workers
/// together make no more than `requests`.
pub fn calls_of_waiting(number: u64, after: Passed, turns: u64, calls: u64, requests: u64) -> Passed {
    let calls_before = |clients: u64| {
        let own = clients.div_ceil(turns);
        let last = number.saturating_add((own - 1).saturating_mul(turns));
        // The last of all clients makes what is left.
        let missing = last.saturating_add(1).saturating_mul(calls).saturating_sub(requests);
        own.saturating_mul(calls).saturating_sub(missing)
    };
    let all = calls_before(after.requests.saturating_add(1));
    let exact = calls_before(after.requests - after.estimated + 1);
    Passed { requests: all, estimated: all - exact }
}
