//! Requests that are sent again after an error: the errors that allow it, the waits before it, and its counts.

use crate::plan::{Retry, RetryKind};
use crate::protocol::Fault;
use crate::rng::{self, Stream};
use crate::time::{MILLISECOND, Nanos};

/// The first wait before a request is sent again, with its jitter.
const WAIT_FIRST_NS: Nanos = 10 * MILLISECOND;

/// The longest wait before a request is sent again.
const WAIT_MAX_NS: Nanos = 500 * MILLISECOND;

/// The wait before a request is sent again that has waited `waits` times: it doubles up to half a second, and `jitter`, 64 random bits,
/// takes away up to half of it.
pub(crate) fn wait_ns(waits: u16, jitter: u64) -> Nanos {
    let longest = WAIT_MAX_NS.min(WAIT_FIRST_NS << waits.min(10));
    longest - rng::below(jitter, longest / 2 + 1)
}

/// The kind of an error with these words of a server, or without any; `None` for an error after which no request is sent again.
pub fn kind_of(fault: Fault, words: &[u8]) -> Option<RetryKind> {
    match fault {
        Fault::Timeout | Fault::Abandoned => return Some(RetryKind::Timeout),
        fault if fault.unanswered() => return Some(RetryKind::Lost),
        _ => {}
    }
    let end = words.iter().position(|&byte| byte == b' ').unwrap_or(words.len());
    match &words[..end] {
        b"LOADING" => Some(RetryKind::Loading),
        b"BUSY" => Some(RetryKind::Busy),
        b"TRYAGAIN" => Some(RetryKind::TryAgain),
        b"CLUSTERDOWN" => Some(RetryKind::ClusterDown),
        b"MASTERDOWN" => Some(RetryKind::MasterDown),
        b"OOM" => Some(RetryKind::Oom),
        b"READONLY" => Some(RetryKind::ReadOnly),
        b"NOSCRIPT" => Some(RetryKind::NoScript),
        b"SERVER_ERROR" if words[end..].starts_with(b" out of memory") => Some(RetryKind::Oom),
        // The binary protocol has statuses, whose texts have no word of their own: memcached says what it has no memory for.
        b"Out" if words[end..].starts_with(b" of memory") => Some(RetryKind::Oom),
        _ => matches!(words, b"Busy" | b"Temporary failure").then_some(RetryKind::Busy),
    }
}

crate::counters! {
    /// Numbers by the kinds of errors after which requests are sent again.
    #[serde(deny_unknown_fields)]
    pub struct KindCounts {
        /// `LOADING`: the server loads its data.
        pub loading: u64,
        /// `BUSY`: the server runs a script, or has no time.
        pub busy: u64,
        /// `TRYAGAIN`: the keys of the request are on both sides of a migration.
        pub tryagain: u64,
        /// `CLUSTERDOWN`: the cluster serves nothing, or not this slot.
        pub clusterdown: u64,
        /// `MASTERDOWN`: the master of the replica is down.
        pub masterdown: u64,
        /// `OOM`: the server has no memory for what is stored.
        pub oom: u64,
        /// `READONLY`: the server is a replica.
        pub readonly: u64,
        /// `NOSCRIPT`: the server has no longer the script of the plan, which is loaded again.
        #[serde(default)]
        pub noscript: u64,
        /// The connection was lost or refused.
        pub lost: u64,
        /// No reply came in time.
        pub timeout: u64,
    }
}

impl KindCounts {
    /// The number of one kind, to change it.
    fn of_mut(&mut self, kind: RetryKind) -> &mut u64 {
        match kind {
            RetryKind::Loading => &mut self.loading,
            RetryKind::Busy => &mut self.busy,
            RetryKind::TryAgain => &mut self.tryagain,
            RetryKind::ClusterDown => &mut self.clusterdown,
            RetryKind::MasterDown => &mut self.masterdown,
            RetryKind::Oom => &mut self.oom,
            RetryKind::ReadOnly => &mut self.readonly,
            RetryKind::NoScript => &mut self.noscript,
            RetryKind::Lost => &mut self.lost,
            RetryKind::Timeout => &mut self.timeout,
        }
    }

    /// The kinds with a number other than 0, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (RetryKind, u64)> {
        let mut counts = *self;
        RetryKind::ALL
            .into_iter()
            .map(move |kind| (kind, *counts.of_mut(kind)))
            .filter(|(_, count)| *count > 0)
    }

    /// The sum over all kinds.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

crate::counters! {
    /// Fates of requests after errors of the kinds after which they are sent again.
    #[serde(deny_unknown_fields)]
    pub struct RetryCounts {
        /// Times that a request was to be sent again, by the error before that.
        pub retries: KindCounts,
        /// Requests that failed although they might be sent again, since the time for it was over, by their last error.
        pub given_up: KindCounts,
        /// Requests that were sent again and then answered without an error.
        pub recovered: u64,
        /// Requests that failed with their connection or without a reply, and were not sent again since they may have been carried out.
        pub not_repeatable: u64,
    }
}

impl RetryCounts {
    /// Number of replies after which a request was to be sent again.
    pub fn replies(&self) -> u64 {
        let KindCounts { loading, busy, tryagain, clusterdown, masterdown, oom, readonly, noscript, .. } =
            self.retries;
        loading + busy + tryagain + clusterdown + masterdown + oom + readonly + noscript
    }
}

/// The retries of one worker: the errors that allow them, and what was counted of them.
#[derive(Debug)]
pub struct Retries {
    /// Bit n stands for kind n.
    kinds: u16,
    for_ns: Nanos,
    jitter: Stream,
    jitters: u64,
    /// Counts of the phase under way.
    pub counts: RetryCounts,
}

impl Retries {
    /// The retries that a plan asks for; `jitter` shifts their waits.
    pub fn new(retry: &Retry, jitter: Stream) -> Retries {
        let kinds = retry.kinds.iter().fold(0, |kinds, kind| kinds | 1 << *kind as u16);
        Retries { kinds, for_ns: retry.for_ns, jitter, jitters: 0, counts: RetryCounts::default() }
    }

    /// The kind of an error, if requests are sent again after it.
    pub(crate) fn kind_of(&self, fault: Fault, words: &[u8]) -> Option<RetryKind> {
        kind_of(fault, words).filter(|kind| self.kinds >> *kind as u16 & 1 != 0)
    }

    /// Time from due in which a request is sent again, in nanoseconds.
    pub(crate) fn for_ns(&self) -> Nanos {
        self.for_ns
    }

    /// Counts an error of a request that is sent again only if it `may_repeat`, and was sent again `tries` times. Returns the time at
    /// which it is sent again; `None` where it is not. The request was due at `due`, and it is `now`.
    pub(crate) fn after(
        &mut self,
        kind: RetryKind,
        (may_repeat, tries): (bool, u16),
        (due, now): (Nanos, Nanos),
    ) -> Option<Nanos> {
        let until = due.saturating_add(self.for_ns);
        if !may_repeat {
            self.counts.not_repeatable += 1;
            return None;
        }
        if now >= until {
            self.give_up(kind);
            return None;
        }
        *self.counts.retries.of_mut(kind) += 1;
        if kind == RetryKind::NoScript && tries == 0 {
            // The script is loaded before the request on its connection.
            return Some(now);
        }
        self.jitters += 1;
        let wait = wait_ns(tries, self.jitter.draw(self.jitters));
        // The last attempt is made when the time is over.
        Some(now.saturating_add(wait).min(until))
    }

    /// Counts a request that fails with an error of this kind, since its time is over.
    pub(crate) fn give_up(&mut self, kind: RetryKind) {
        *self.counts.given_up.of_mut(kind) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY_FOR_NS: Nanos = 2_000 * MILLISECOND;

    fn retries(kinds: &[RetryKind]) -> Retries {
        let retry = Retry { kinds: kinds.to_vec(), for_ns: RETRY_FOR_NS };
        Retries::new(&retry, Stream::from_seed(7))
    }

    #[test]
    fn an_error_has_its_kind_by_the_whole_first_word() {
        let server = Fault::Server;
        for (fault, words, kind) in [
            (Fault::Down, "LOADING Redis is loading the dataset in memory", Some(RetryKind::Loading)),
            (server, "BUSY Redis is busy running a script.", Some(RetryKind::Busy)),
            (server, "BUSYKEY Target key name already exists.", None),
            (server, "BUSYGROUP Consumer Group name already exists", None),
            (
                Fault::Again,
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Some(RetryKind::TryAgain),
            ),
            (Fault::Down, "CLUSTERDOWN The cluster is down", Some(RetryKind::ClusterDown)),
            (Fault::Down, "MASTERDOWN Link with MASTER is down", Some(RetryKind::MasterDown)),
            (server, "OOM command not allowed when used memory > 'maxmemory'.", Some(RetryKind::Oom)),
            (server, "OOM", Some(RetryKind::Oom)),
            (server, "READONLY You can't write against a read only replica.", Some(RetryKind::ReadOnly)),
            (server, "NOSCRIPT No matching script. Please use EVAL.", Some(RetryKind::NoScript)),
            (server, "SERVER_ERROR out of memory storing object", Some(RetryKind::Oom)),
            (server, "SERVER_ERROR out of memory", Some(RetryKind::Oom)),
            (server, "SERVER_ERROR object too large for cache", None),
            (server, "Out of memory", Some(RetryKind::Oom)),
            (server, "Out of memory allocating item", Some(RetryKind::Oom)),
            (server, "Out of time", None),
            (server, "Busy", Some(RetryKind::Busy)),
            (server, "Temporary failure", Some(RetryKind::Busy)),
            (Fault::Moved, "MOVED 1 a:1", None),
            (Fault::Client, "ERR OOM", None),
            (server, "", None),
            (Fault::Timeout, "", Some(RetryKind::Timeout)),
            (Fault::Abandoned, "", Some(RetryKind::Timeout)),
            (Fault::Reset, "", Some(RetryKind::Lost)),
            (Fault::Closed, "", Some(RetryKind::Lost)),
            (Fault::Refused, "", Some(RetryKind::Lost)),
        ] {
            assert_eq!(kind_of(fault, words.as_bytes()), kind, "{words} {fault:?}");
        }
    }

    #[test]
    fn only_the_kinds_that_are_asked_for_count() {
        let retries = retries(&[RetryKind::Oom, RetryKind::Timeout]);
        assert_eq!(retries.kind_of(Fault::Server, b"OOM x"), Some(RetryKind::Oom));
        assert_eq!(retries.kind_of(Fault::Timeout, b""), Some(RetryKind::Timeout));
        assert_eq!(retries.kind_of(Fault::Down, b"LOADING x"), None);
        assert_eq!(retries.kind_of(Fault::Reset, b""), None);
    }

    #[test]
    fn waits_double_up_to_half_a_second_and_the_last_attempt_is_when_the_time_is_over() {
        let mut retries = retries(&[RetryKind::Loading]);
        let (due, mut now, mut tries) = (70, 70, 0);
        while let Some(at) = retries.after(RetryKind::Loading, (true, tries), (due, now)) {
            let longest = WAIT_MAX_NS.min(WAIT_FIRST_NS << tries);
            let is_last = at == due + RETRY_FOR_NS;
            assert!(at - now <= longest && (is_last || at - now >= longest / 2), "{tries}: {}", at - now);
            (now, tries) = (at, tries + 1);
        }
        assert_eq!(now, due + RETRY_FOR_NS);
        assert_eq!(retries.counts.retries, KindCounts { loading: tries.into(), ..KindCounts::default() });
        assert_eq!(retries.counts.given_up, KindCounts { loading: 1, ..KindCounts::default() });
    }

    #[test]
    fn jitter_is_up_to_half_of_a_wait() {
        let ms = |waits, jitter| wait_ns(waits, jitter) / MILLISECOND;
        assert_eq!((ms(0, 0), ms(0, u64::MAX)), (10, 5));
        assert_eq!((ms(u16::MAX, 0), ms(u16::MAX, u64::MAX)), (500, 250));
        assert_eq!(ms(1, u64::MAX / 2), 15);
    }

    #[test]
    fn what_may_have_been_carried_out_is_not_sent_again_and_counts_apart() {
        let mut retries = retries(&[RetryKind::Lost]);
        assert_eq!(retries.after(RetryKind::Lost, (false, 0), (0, 5)), None);
        assert_eq!(retries.counts, RetryCounts { not_repeatable: 1, ..RetryCounts::default() });
    }

    #[test]
    fn every_kind_has_a_count_of_its_own() {
        let mut counts = KindCounts::default();
        for (count, kind) in (1..).zip(RetryKind::ALL) {
            *counts.of_mut(kind) = count;
        }
        assert!(counts.iter().map(|(kind, _)| kind).eq(RetryKind::ALL));
        assert_eq!(counts.total(), 55);
        let json = serde_json::to_value(counts).expect("it is written");
        for (count, kind) in (1_u64..).zip(RetryKind::ALL) {
            assert_eq!(json[kind.name()], count, "{}", kind.name());
        }
    }
}
