//! The CPU that a server used, from its threads where they were seen, else from its own account.

use super::cpu_time::DelayCause;
use super::shares::{FULL_SHARE, Judged, RUN_DELAY_SHARE, SPARE_SHARE, WANTED_SHARE, share_of};
use crate::evidence::{Evidence, ServerEvidence, ThreadUse};
use pummel_logic::time::Nanos;

/// The greatest share of its time that a server can have spent inside commands that it executes one after the other; more than
/// that is the sum of several threads.
const ONE_AT_A_TIME_MAX: f64 = 1.05;

/// The CPU that a server used in the measured phase. Shares are of one CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerUse {
    /// Address of the server, as in the Plan.
    pub address: String,
    /// Number of threads that answer requests, where the server says it.
    pub serving_threads: Option<u32>,
    /// The counted threads, the busiest first: as many as answer requests, or all where that number is not known. Empty
    /// where the threads were not seen.
    pub threads: Vec<ThreadShare>,
    /// CPUs that the process used, by its own account.
    pub process: Option<f64>,
    /// Share that the main thread used, by the server's own account.
    pub main_thread: Option<f64>,
    /// Share of its time that the server spent inside commands, which it executes one after the other; absent where that is not
    /// known. Sleeps, disks and locks occupy a server without using its CPU.
    pub in_commands: Option<f64>,
    /// User of the CPU while the thread that waited longest wanted it; `None` where that is not known.
    pub delay_cause: Option<DelayCause>,
    /// The reason why the use is not known; absent if it is known, or if no reason is known.
    pub unread: Option<String>,
}

/// The use of one thread, as shares of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadShare {
    /// Share of the time with a CPU.
    pub cpu: f64,
    /// Share of the time in which the thread could have run and had no CPU; 0 where that is not counted.
    pub run_delay: f64,
}

impl ThreadShare {
    fn of(thread: &ThreadUse, span_ns: Nanos) -> ThreadShare {
        ThreadShare {
            cpu: share_of(thread.cpu_ns, span_ns),
            run_delay: share_of(thread.run_delay_ns.unwrap_or(0), span_ns),
        }
    }

    /// Share of the time in which the thread wanted a CPU, whether or not it had one.
    pub fn wanted(&self) -> f64 {
        self.cpu + self.run_delay
    }
}

impl ServerUse {
    /// The use of the server that `evidence` is about.
    pub fn of(all: &Evidence, evidence: &ServerEvidence) -> ServerUse {
        let reading = evidence.reading.as_ref();
        let serving_threads = reading.and_then(|reading| reading.serving_threads).filter(|count| *count > 0);
        let seen = evidence.threads.iter().flatten();
        let mut threads: Vec<ThreadShare> =
            seen.map(|thread| ThreadShare::of(thread, evidence.threads_span_ns)).collect();
        threads.sort_by(|one, other| other.cpu.total_cmp(&one.cpu));
        // memcached -t 1 has seven threads, of which one answers requests: the others must not look like idle ones.
        threads.truncate(serving_threads.map_or(usize::MAX, |count| count as usize));
        let reported = reading.filter(|reading| !reading.restarted && reading.span_ns > 0);
        let share = |part: Option<Nanos>| Some(share_of(part?, reported?.span_ns));
        let unread = evidence.unread.clone().or_else(|| evidence.threads_unread.clone());
        ServerUse {
            address: evidence.address.clone(),
            serving_threads,
            process: share(reported.and_then(|reading| reading.cpu_ns)),
            in_commands: share(reported.and_then(|reading| reading.in_commands_ns))
                .filter(|share| *share <= ONE_AT_A_TIME_MAX),
            main_thread: share(reported.and_then(|reading| reading.main_thread_cpu_ns)),
            threads,
            delay_cause: DelayCause::of(all, evidence),
            unread,
        }
    }

    /// Share of a CPU that the hottest serving thread used at least; absent where nothing is known.
    pub fn hottest_at_least(&self) -> Option<f64> {
        if let Some(hottest) = self.threads.first() {
            return Some(hottest.cpu);
        }
        [self.main_thread, self.process_mean()]
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0))
    }

    /// The mean share of the serving threads by the server's own account; absent where that or their number is not known.
    fn process_mean(&self) -> Option<f64> {
        Some(self.process? / f64::from(self.serving_threads?))
    }

    /// Share of a CPU that the hottest serving thread used at most; absent where nothing is known.
    pub fn hottest_at_most(&self) -> Option<f64> {
        if let Some(hottest) = self.threads.first() {
            return Some(hottest.cpu);
        }
        match (self.serving_threads, self.main_thread) {
            (Some(1), Some(main)) => Some(main),
            _ => self.process.map(|all| all.min(1.0)),
        }
    }

    /// Whether the hottest serving thread is known to have been full: it used its CPU for nearly all of its time, or for so
    /// much of it that the little it had to wait for that CPU left it no time to spare.
    pub fn is_full(&self) -> bool {
        let delayed = self.threads.first();
        let delayed =
            delayed.is_some_and(|hottest| hottest.cpu > SPARE_SHARE && hottest.wanted() > WANTED_SHARE);
        delayed || self.hottest_at_least().is_some_and(|share| share > FULL_SHARE)
    }

    /// The greatest share for which a serving thread was occupied: it wanted a CPU, whether or not it had one, or was inside a
    /// command.
    pub fn occupied_at_most(&self) -> Option<f64> {
        let wanted = self.threads.iter().map(ThreadShare::wanted).reduce(f64::max);
        wanted.or_else(|| self.hottest_at_most()).map(|share| share.max(self.in_commands.unwrap_or(0.0)))
    }

    /// The mean share of the counted threads but for the hottest; absent where there are none, or where they are not
    /// seen.
    pub fn others_mean(&self) -> Option<f64> {
        let others = self.threads.get(1..).filter(|others| !others.is_empty())?;
        Some(others.iter().map(|thread| thread.cpu).sum::<f64>() / others.len() as f64)
    }

    /// The greatest share of its time for which a serving thread waited for a CPU; 0 where that is not known.
    pub fn run_delay(&self) -> f64 {
        self.threads.iter().map(|thread| thread.run_delay).fold(0.0, f64::max)
    }

    /// The greatest share of its time for which a serving thread waited for a CPU, as evidence.
    pub fn delayed(&self) -> Judged {
        Judged { value: self.run_delay(), bound: RUN_DELAY_SHARE }
    }

    /// Share of the CPU of all serving threads that was used; absent where it is not known.
    pub fn mean_use(&self) -> Option<f64> {
        if self.threads.is_empty() {
            return self.process_mean();
        }
        // Which of the threads serve is not known of a server that said nothing.
        self.serving_threads?;
        let used: f64 = self.threads.iter().map(|thread| thread.cpu).sum();
        Some(used / self.threads.len() as f64)
    }
}
