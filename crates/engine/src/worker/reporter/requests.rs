//! A worker's reports of each request.

use pummel_logic::arrival::Passed;
use pummel_logic::connection::inflight::{CheckState, Ticket};
use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::retry;
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::unsent::Unsent;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::connections::SERVERS_TIMED_MAX;
use pummel_measure::events::{NO_INDEX, Row};
use pummel_measure::failed_keys::FailedKey;
use pummel_measure::parts::ServerRecord;
use pummel_measure::recorder::{Counts, Sample};

use crate::backend::ConnId;
use crate::worker::reporter::{ROWS, ReportMode, WorkerReporter};
use crate::worker::stamping::Stamping;

impl WorkerReporter {
    /// Counts requests that were handed to a connection one after the other. `outstanding` requests of the client are
    /// outstanding after them.
    #[inline]
    pub fn asked(&mut self, requests: u32, outstanding: u32) {
        self.busy = true;
        if let Some(histogram) = &mut self.interval.side_times.outstanding {
            (0..requests).for_each(|n| histogram.record(outstanding.saturating_sub(n).into()));
        }
    }

    /// Counts requests whose first bytes were sent at `at`, for the integral of requests in flight.
    #[inline]
    pub fn begun(&mut self, requests: u32, at: Nanos) {
        self.flight.handle_sent(requests, at);
    }

    /// Counts requests that were sent and whose replies were read, or that were given up, at `at`.
    #[inline]
    pub fn ended(&mut self, requests: u32, at: Nanos) {
        self.flight.handle_ended(requests, at);
    }

    /// Notes the end of a part of a request that several connections share.
    pub fn part_ended(&mut self, part: &Answer<'_>) {
        self.flight.add_untimed(flight_ns(part));
    }

    /// Notes the end of a request that several connections share, after [`WorkerReporter::answer`].
    pub fn shared_ended(&mut self, whole: &Answer<'_>) {
        self.flight.add_shared(flight_ns(whole));
    }

    /// Notes how long a request was in flight whose times the recorder does not keep.
    #[cold]
    fn untimed(&mut self, answer: Answer<'_>) {
        self.flight.add_untimed(flight_ns(&answer));
    }

    /// Notes that a connection was asked for, which is work of this turn.
    pub fn dialled(&mut self) {
        self.busy = true;
    }

    /// Counts bytes that the kernel took.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        match self.mode {
            ReportMode::Record(_) => self.interval.counters.bytes.sent += bytes as u64,
            ReportMode::Count => self.bytes.sent += bytes as u64,
        }
    }

    /// Counts received bytes, which ended `answered` requests.
    #[inline]
    pub fn received(&mut self, bytes: usize, answered: u32) {
        self.busy = true;
        match self.mode {
            ReportMode::Record(_) => {
                self.interval.counters.bytes.received += bytes as u64;
                if self.stamped {
                    self.interval.counters.turns.stamps.shared += u64::from(answered.saturating_sub(1));
                }
            }
            ReportMode::Count => self.bytes.received += bytes as u64,
        }
    }

    /// Records a request of client number `client` that has ended, on the connection in `slot`; `None` stands for one that
    /// several connections share.
    #[inline(always)]
    pub fn answer(
        &mut self,
        slot: Option<usize>,
        group: usize,
        client: u64,
        answer: &Answer<'_>,
        message: &[u8],
    ) {
        match self.mode {
            ReportMode::Count => return self.count(slot, &{ *answer }, message),
            ReportMode::Record(_) if self.abandoning => self.give_up(group, &{ *answer }),
            ReportMode::Record(_) if self.successes_only[group] && !succeeded(answer.outcome) => {
                self.unsuccessful(group, &{ *answer });
            }
            ReportMode::Record(_) => self.interval.groups[group].record(&sample_of(answer)),
        }
        if answer.stamp != Stamp::Nothing {
            self.answered_at = self.answered_at.max(answer.arrived);
        }
        match answer.stamp {
            Stamp::Kernel => {}
            Stamp::Nothing => self.untimed(*answer),
            Stamp::Missing => self.interval.counters.turns.stamps.missing += u64::from(self.stamped),
            Stamp::Rejected => {
                self.interval.counters.turns.stamps.rejected += 1;
                (self.mend, self.has_stamps) = (true, true);
            }
        }
        if let Outcome::Error(_) = answer.outcome {
            self.message_on(slot, message);
            if answer.stamp != Stamp::Nothing {
                self.untimed(*answer);
            }
        }
        if self.watched {
            self.watch(slot.is_none(), group, client, &{ *answer });
        }
    }

    /// Whether the keys of a request that fails now are kept: not of one that ends since its phase is over.
    pub fn keeps_failed_keys(&self) -> bool {
        self.end.failed_keys.is_some() && !self.abandoning
    }

    /// Keeps the keys of a request of this verb that failed with an error, and with these words of the server or without any.
    pub fn note_failed_keys(&mut self, keys: Vec<Vec<u8>>, verb: Verb, fault: Fault, words: &[u8]) {
        let Some(failed) = &mut self.end.failed_keys else { return };
        let (phase, kind) = (self.phase, retry::kind_of(fault, words));
        for key in keys {
            failed.add(|| FailedKey {
                key: String::from_utf8_lossy(&key).into_owned(),
                verb,
                phase,
                fault,
                kind,
            });
        }
    }

    /// Records the end of a pair whose read was due at `due`: the reply to its store. A store without a good reply ends no
    /// pair.
    #[cold]
    pub fn pair_ended(&mut self, due: Nanos, answer: &Answer<'_>) {
        let is_timed = answer.stamp != Stamp::Nothing && !self.abandoning;
        if !is_timed || matches!(answer.outcome, Outcome::Error(_)) {
            return;
        }
        if let (ReportMode::Record(_), Some(pairs)) = (&self.mode, &mut self.interval.side_times.pairs) {
            pairs.record(answer.arrived.saturating_sub(due));
        }
    }

    /// Records the time from the first sending of a request, at `first_sent`, to that which was answered. A request without a good
    /// reply has none.
    #[cold]
    pub fn hops_ended(&mut self, first_sent: Nanos, answer: &Answer<'_>) {
        if self.abandoning || matches!(answer.outcome, Outcome::Error(_)) {
            return;
        }
        if let (ReportMode::Record(_), Some(hops)) = (&self.mode, &mut self.interval.side_times.hops) {
            hops.record(answer.sent.saturating_sub(first_sent));
        }
    }

    /// Records a request of a group whose successes alone are timed.
    #[cold]
    fn unsuccessful(&mut self, group: usize, answer: &Answer<'_>) {
        self.interval.groups[group].record_slipped(&sample_of(answer));
        // Errors and requests without a reply are noted where those of all groups are.
        if answer.stamp != Stamp::Nothing && !matches!(answer.outcome, Outcome::Error(_)) {
            self.untimed(*answer);
        }
    }

    /// Adds the cache counts of a reply, after [`WorkerReporter::answer`].
    #[inline(never)]
    pub fn note_cache(&mut self, group: usize, ticket: &Ticket, counts: &CacheCounts) {
        if self.abandoning || counts.is_zero() {
            return;
        }
        self.counts(group, ticket.verb).cache.add(counts);
        self.note_cache_in_part(ticket, counts);
    }

    /// Hands a request to the rows and to the account of churning clients.
    #[inline(never)]
    fn watch(&mut self, is_shared: bool, group: usize, client: u64, answer: &Answer<'_>) {
        if answer.mark != 0 {
            self.stamped(answer);
        }
        if self.times_servers {
            self.serve(answer);
            // Each part of a request that several connections share has its own misses.
            if !is_shared {
                self.note_misses(answer);
            }
        }
        if let Some(shards) = self.shards.as_mut().filter(|_| !self.abandoning) {
            shards.note(answer, self.begin);
        }
        self.record_in_part(group, answer);
        self.row(group, client, answer);
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.answer(answer);
        }
    }

    /// Counts a request for the server of the connection that the worker handles.
    fn serve(&mut self, answer: &Answer<'_>) {
        let (server, servers) = (self.server as usize, &mut self.interval.side_times.servers);
        if server >= SERVERS_TIMED_MAX {
            return;
        }
        servers.resize_with(servers.len().max(server + 1), ServerRecord::default);
        let record = &mut servers[server];
        let is_silent = match answer.outcome {
            Outcome::Error(fault) => self.abandoning || fault.unanswered(),
            _ => self.abandoning,
        };
        if is_silent {
            record.record_unanswered();
        } else {
            let service_ns = answer.arrived.saturating_sub(answer.sent);
            let is_timed = answer.stamp != Stamp::Nothing && answer.sent != NEVER;
            record.record(matches!(answer.outcome, Outcome::Error(_)), is_timed.then_some(service_ns));
        }
    }

    /// Counts the keys that an answer, or that to a part of a request, did not have, for the server of the connection that the worker
    /// handles.
    pub fn note_misses(&mut self, answer: &Answer<'_>) {
        let is_read = answer.ticket.verb.reads() && matches!(answer.outcome, Outcome::Hit | Outcome::Miss);
        let misses = u64::from(answer.ticket.keys).saturating_sub(answer.hits.into());
        let is_measured =
            self.times_servers && matches!(self.mode, ReportMode::Record(_)) && !self.abandoning;
        if !is_read || misses == 0 || !is_measured {
            return;
        }
        let (server, servers) = (self.server as usize, &mut self.interval.side_times.servers);
        if server < SERVERS_TIMED_MAX {
            servers.resize_with(servers.len().max(server + 1), ServerRecord::default);
            servers[server].misses += misses;
        }
    }

    /// Notes the server of the connection that the worker handles.
    #[inline]
    pub fn note_server(&mut self, server: u32) {
        self.server = server;
    }

    /// Counts a request that has ended in a phase that is not recorded.
    #[inline(never)]
    fn count(&mut self, slot: Option<usize>, answer: &Answer<'_>, message: &[u8]) {
        let verb = answer.ticket.verb;
        if let (1.., Some(stamping)) = (answer.mark, &mut self.stamping) {
            stamping.release(answer.mark);
        }
        self.ended += 1;
        match (self.abandoning, answer.sent) {
            (false, _) => self.tally.record(&sample_of(answer)),
            (true, NEVER) => self.tally.counts(verb).unsent += 1,
            (true, _) => self.tally.counts(verb).unfinished += 1,
        }
        if let Outcome::Error(_) = answer.outcome {
            self.message_on(slot, message);
        }
    }

    /// Counts a request that ended because its phase is over.
    #[cold]
    fn give_up(&mut self, group: usize, answer: &Answer<'_>) {
        let recorder = &mut self.interval.groups[group];
        match answer.sent {
            NEVER => recorder.counts(answer.ticket.verb).unsent += 1,
            _ => recorder.record_unfinished(&sample_of(answer)),
        }
    }

    /// Takes in the answer to a request that is stamped when it leaves.
    #[cold]
    fn stamped(&mut self, answer: &Answer<'_>) {
        if let Some(stamping) = &mut self.stamping {
            self.has_stamps |= stamping.handle_answer(answer);
        }
    }

    /// Whether requests are stamped when they leave, so that all bytes of their connections are sent by
    /// [`Backend::send_marked`](crate::backend::Backend::send_marked).
    #[inline]
    pub fn is_stamping(&self) -> bool {
        self.stamping.is_some()
    }

    /// Takes back the number of a request that is not stamped after all.
    pub fn release_stamp(&mut self, number: u16) {
        if let Some(stamping) = &mut self.stamping {
            stamping.release(number);
        }
    }

    /// Notes that a stamped request was sent whole on this connection.
    pub fn stamp_sent(&mut self, conn: ConnId) {
        if let Some(stamping) = &mut self.stamping {
            stamping.handle_sent(conn);
        }
    }

    /// The requests that are stamped when they leave; none in phases that are not recorded.
    pub fn stamping(&mut self) -> Option<&mut Stamping> {
        match self.mode {
            ReportMode::Record(_) => self.stamping.as_deref_mut(),
            ReportMode::Count => None,
        }
    }

    #[cold]
    fn row(&mut self, group: usize, client: u64, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let Some(rows) = self.rows.as_mut().filter(|_| self.keeps_rows) else { return };
        rows.push(Row {
            due: ticket.due,
            ready: ticket.ready,
            sent: answer.sent,
            arrived: if self.abandoning { NEVER } else { answer.arrived },
            read: if answer.stamp == Stamp::Nothing { NEVER } else { answer.read },
            verb: ticket.verb,
            outcome: answer.outcome,
            key: if ticket.check_state == CheckState::Row { NO_INDEX } else { ticket.key },
            client,
            group: group as u16,
        });
        if rows.len() == ROWS {
            self.hand_over_rows();
        }
    }

    /// Counts requests that were due and were never sent.
    pub fn unsent(&mut self, group: usize, unsent: Unsent) {
        let Unsent { verb, requests, estimated } = unsent;
        let counts = self.counts(group, verb);
        counts.unsent += requests;
        counts.unsent_estimated += estimated;
    }

    /// The counts of a verb in the phase: those of its group where the phase is measured.
    fn counts(&mut self, group: usize, verb: Verb) -> &mut Counts {
        match self.mode {
            ReportMode::Record(_) => self.interval.groups[group].counts(verb),
            ReportMode::Count => self.tally.counts(verb),
        }
    }

    /// Counts requests that were left out because they would have been late.
    pub fn skipped(&mut self, passed: Passed) {
        self.interval.counters.skipped.add(&passed);
    }

    /// Makes requests that end count as unfinished, or as unsent, while `abandoning` is set.
    pub fn abandon(&mut self, abandoning: bool) {
        self.abandoning = abandoning;
    }
}

/// Time that a request was in flight, in nanoseconds; 0 for one that was never sent.
fn flight_ns(answer: &Answer<'_>) -> Nanos {
    if answer.sent == NEVER { 0 } else { answer.read.saturating_sub(answer.sent) }
}

/// Whether a read found a value, or a store stored one.
pub(super) fn succeeded(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Hit | Outcome::Stored)
}

#[inline]
pub(super) fn sample_of(answer: &Answer<'_>) -> Sample {
    let ticket = answer.ticket;
    Sample {
        verb: ticket.verb,
        outcome: answer.outcome,
        keys: u32::from(ticket.keys),
        hits: answer.hits,
        due: ticket.due,
        ready: ticket.ready,
        sent: answer.sent,
        arrived: answer.arrived,
        read: answer.read,
        noreply: answer.stamp == Stamp::Nothing,
    }
}
