//! The verdict on what limited a run: the generator, so that its figures are partly its own, or the server and the
//! connections.
//!
//! Lag and reaction are the generator's, wait and service are not. Four things accuse the generator:
//!
//! * **lag** is a visible part of the response time (above 10 % of it, and above 20 us) at p50 or at p99;
//! * **reaction** is (above 10 % of the response time, and above 200 us: less is what waking up takes, and it does not
//!   go into the response time, since that ends with the kernel's stamp);
//! * a thread was **busy** for more than 90 % of the time, or in closed loop stood still (turns above 1 ms) for more than
//!   1 %, which lowers the rate without showing in the quantiles;
//! * requests **waited for a slot that the generator kept**. A slot is taken from `ready` to `arrived`, that is for
//!   lag + service, and the wait behind taken slots grows with the mean square of that time (the formula of Pollaczek
//!   and Khinchine). So when a wait is visible it is put down to whichever of the two has the larger sum of squares; a
//!   timeout counts on the side of the service. Where connections were lost or could not be opened, and requests waited
//!   ten times longer than that formula explains, they waited for connections, and the generator is not accused of it.
//!
//! Lag and reaction do not accuse where requests spent ten times as long in a wait of the server's making; they are
//! mentioned then, as they are where they show only beyond p99.
//!
//! A visible wait otherwise accuses the server or the number of connections, and so do requests without an answer.

use crate::measure::figures::{Figures, QUANTILES, Quantile, Unanswered, time_text};
use crate::measure::measurement::Measurement;
use crate::measure::recorder::{OpRecord, Span};
use crate::plan::{Arrivals, Clock, Depth, Plan};
use crate::time::{MICROSECOND, Nanos};

/// What limited the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The limit of the run.
    pub limit: Limit,
    /// The evidence against the generator; `None` where it was not the limit.
    pub why: Option<String>,
    /// The verdict in sentences.
    pub says: String,
}

/// The limits that a run can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit: every request was sent when it was due.
    Nobody,
    /// The generator.
    Generator,
    /// The server, or the number of connections to it.
    Server,
    /// Nothing was completed; there is nothing to judge by.
    Unknown,
}

/// What share of the response time is visible.
const VISIBLE_SHARE: f64 = 0.1;
/// Lag or wait below this is not worth a word.
const SLIP_MIN: Nanos = 20 * MICROSECOND;
/// Reaction below this is the time to wake up.
const REACTION_MIN: Nanos = 200 * MICROSECOND;
/// A thread that is busy for a larger share of its time is at its limit.
const BUSY_SHARE: f64 = 0.9;
/// A closed loop that stands still for a larger share of the time is slowed down by it.
const STALLED_SHARE: f64 = 0.01;
/// More requests without an answer than this share are a limit.
const UNANSWERED_SHARE: f64 = 0.01;
/// A wait that is longer than the lag by this factor, over all requests, is what limited the run.
const OUTWEIGHED: f64 = 10.0;
/// The quantiles that decide.
const BODY: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

impl Limit {
    /// The word of the JSON result.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Nobody => "nobody",
            Limit::Generator => "generator",
            Limit::Server => "server_or_connections",
            Limit::Unknown => "unknown",
        }
    }
}

impl Verdict {
    /// Whether the generator was the limit.
    pub fn limited(&self) -> bool {
        self.limit == Limit::Generator
    }

    /// The verdict on a measurement that was made after `plan`; `all` are its requests, all together.
    pub fn of(measurement: &Measurement, plan: &Plan, all: &OpRecord) -> Verdict {
        let closed = plan.groups.iter().all(|group| group.arrivals == Arrivals::Closed);
        let evidence = Evidence { measurement, plan, all, closed };
        if all.counts.completed == 0 {
            let says = "Nothing was completed, so there is nothing to judge the generator or the server by.";
            return Verdict { limit: Limit::Unknown, why: None, says: says.to_owned() };
        }
        let against = evidence.against_generator();
        if !against.is_empty() {
            let why = against.join("; ");
            let says = format!("The generator was the limit: {why}.{}", evidence.meaning());
            return Verdict { limit: Limit::Generator, why: Some(why), says };
        }
        let (limit, mut says) = match evidence.against_server() {
            Some(says) => (Limit::Server, says),
            None => (Limit::Nobody, evidence.nobody()),
        };
        if let Some(note) = evidence.note() {
            says.push(' ');
            says.push_str(&note);
        }
        Verdict { limit, why: None, says }
    }
}

/// What the verdict is made from.
struct Evidence<'a> {
    measurement: &'a Measurement,
    plan: &'a Plan,
    all: &'a OpRecord,
    closed: bool,
}

impl Evidence<'_> {
    fn against_generator(&self) -> Vec<String> {
        let mut against = Vec::new();
        let busy = self.measurement.generator.busy_share_max();
        if busy > BUSY_SHARE {
            against.push(format!("a client thread was busy {:.0} % of the time", busy * 100.0));
        }
        for (span, least) in [(Span::Lag, SLIP_MIN), (Span::Reaction, REACTION_MIN)] {
            if self.wait_outweighs_slip() {
                break;
            }
            if let Some((name, value, response)) = BODY.iter().find_map(|at| self.visible(span, *at, least)) {
                let (value, response) = (time_text(value), time_text(response));
                against
                    .push(format!("{} {name} is {value} beside a response time of {response}", span.name()));
            }
        }
        if let Some((name, wait, _)) = self.visible_wait()
            && self.lag_made_the_wait()
        {
            against.push(format!(
                "requests waited ({name} {}) for others that it sent late (lag up to {}, service {})",
                time_text(wait),
                time_text(self.max(Span::Lag)),
                self.longest_service(),
            ));
        }
        let turns = &self.measurement.generator.turns;
        let wall_ns: Nanos = self.measurement.generator.workers.iter().map(|worker| worker.wall_ns).sum();
        if self.closed && turns.stalled_ns as f64 > STALLED_SHARE * wall_ns as f64 {
            let stalled = time_text(turns.stalled_ns);
            against.push(format!("its threads stood still for {stalled} in {}", turns_above(turns.stalls)));
        }
        against
    }

    /// What it means for the figures that the generator was the limit.
    fn meaning(&self) -> String {
        let threads = self.plan.engine.threads;
        let threads =
            if threads == 1 { "1 client thread".to_owned() } else { format!("{threads} client threads") };
        let service = if self.has_stamps() {
            "Service times are the server's still"
        } else {
            "Service times contain its slowness in reading too, since there are no receive stamps"
        };
        if self.closed {
            format!(
                " In closed loop this means that the rate is what {threads} could ask for: the server may be able to do \
                 more. {service}; response times contain the lag. More threads (-T), --wait spin where threads were not \
                 busy, or a quieter machine show more of the server."
            )
        } else {
            format!(
                " Response times contain this slip and are not the server's alone. {service}. {} did not keep up with the \
                 schedule: try more threads (-T), --wait spin, a lower --rate, or a quieter machine.",
                capitalised(&threads)
            )
        }
    }

    /// Whether the kernel said when replies arrived, so that reading late does not show in the service time.
    fn has_stamps(&self) -> bool {
        self.measurement.clock == Clock::Kernel && !self.measurement.unix_socket
    }

    fn against_server(&self) -> Option<String> {
        let counts = &self.all.counts;
        let connections = self.measurement.connections.asked;
        let lag = time_text(self.at(Span::Lag, 0.99));
        if let Some((name, wait, response)) = self.visible_wait() {
            // The figures here are those that are known; with unanswered requests a report's table has others.
            let of_answered = if counts.unanswered() > 0 { " of the answered requests" } else { "" };
            let gone = match &self.measurement.connections {
                gone if self.connections_made_the_wait() => {
                    format!(
                        " ({} connections were lost, {} attempts to open one failed)",
                        gone.lost, gone.failed
                    )
                }
                _ => String::new(),
            };
            return Some(format!(
                "The server or the number of connections ({connections}) was the limit, not the generator: of a response \
                 time of {} at {name}{of_answered}, requests waited {} before they could be sent{gone}, and one request \
                 took the server {} (service p50 {}). The generator's own lag is {lag} at p99{of_answered}.",
                time_text(response),
                time_text(wait),
                self.longest_service(),
                time_text(self.at(Span::Service, 0.5)),
            ));
        }
        let share = counts.unanswered() as f64 / counts.requests() as f64;
        if share > UNANSWERED_SHARE {
            return Some(format!(
                "The server or the way there was the limit, not the generator: {:.1} % of the requests got no answer. The \
                 generator's own lag is {lag} at p99.",
                share * 100.0
            ));
        }
        self.closed.then(|| {
            format!(
                "Closed loop: the server and the number of connections ({connections}) set the rate, not the generator \
                 (its busiest thread was busy {:.0} % of the time, lag p99 {lag}).",
                self.measurement.generator.busy_share_max() * 100.0
            )
        })
    }

    fn nobody(&self) -> String {
        let reading = if self.has_stamps() {
            ""
        } else {
            " and, since there are no receive stamps, the time to read it"
        };
        format!(
            "Nothing stood in the way: requests were sent when they were due (wait p99 {}, lag p99 {}), and the response \
             time is the server's service time{reading}.",
            time_text(self.at(Span::Wait, 0.99)),
            time_text(self.at(Span::Lag, 0.99)),
        )
    }

    /// A word on the first quantile where the generator is visible although it was not the limit.
    fn note(&self) -> Option<String> {
        let all = QUANTILES.into_iter().chain([("max", 1.0)]);
        let visible = all.into_iter().find(|at| {
            let lag = self.visible(Span::Lag, *at, SLIP_MIN);
            lag.or_else(|| self.visible(Span::Reaction, *at, REACTION_MIN)).is_some()
        });
        visible.map(|(name, quantile)| {
            let lag = self.at(Span::Lag, quantile);
            format!(
                "From {name} on, however, times are partly the generator's own (lag {name} {}, up to {}; reaction up to {}; \
                 {}).",
                time_text(lag),
                time_text(self.max(Span::Lag)),
                time_text(self.max(Span::Reaction)),
                turns_above(self.measurement.generator.turns.stalls)
            )
        })
    }

    fn visible_wait(&self) -> Option<(&'static str, Nanos, Nanos)> {
        BODY.iter().rev().find_map(|at| self.visible(Span::Wait, *at, SLIP_MIN))
    }

    /// The name of the quantile, its value and the response time there, when `span` is a visible part of that.
    fn visible(
        &self,
        span: Span,
        (name, quantile): (&'static str, f64),
        least: Nanos,
    ) -> Option<(&'static str, Nanos, Nanos)> {
        let value = self.at(span, quantile);
        let whole = match self.all.times.of(Span::Response).quantile(quantile) {
            Some(response) => response,
            // Requests without reply have no response time; what they have is wait and lag.
            None => self.at(Span::Wait, quantile) + self.at(Span::Lag, quantile),
        };
        (value > least && value as f64 > VISIBLE_SHARE * whole as f64).then_some((name, value, whole))
    }

    /// Whether requests spent so much more time in a wait of the server's making than in lag that the lag, visible as it
    /// may be at some quantile, did not limit the run.
    fn wait_outweighs_slip(&self) -> bool {
        let sum = |span| self.all.times.of(span).moments().sum as f64;
        self.visible_wait().is_some()
            && !self.lag_made_the_wait()
            && sum(Span::Wait) > OUTWEIGHED * sum(Span::Lag)
    }

    /// The requests that the service times miss.
    fn unanswered(&self) -> Unanswered {
        let times = self.all.times.of(Span::Service);
        Unanswered::of(&self.all.counts, Span::Service, times, self.measurement.timeout_ns)
    }

    fn lag_made_the_wait(&self) -> bool {
        let (lag, service) = self.squares();
        lag > service && !self.connections_made_the_wait()
    }

    /// The sums of squares of the times for which slots were taken: lag, and service with the timeouts.
    fn squares(&self) -> (f64, f64) {
        let unanswered = self.unanswered();
        let timeout = unanswered.timeout_ns as f64;
        let squares = |span| self.all.times.of(span).moments().sum_squares as f64;
        (squares(Span::Lag), squares(Span::Service) + unanswered.timeouts as f64 * timeout * timeout)
    }

    /// Whether requests waited for connections that were not there: some were lost or could not be opened, and the wait
    /// is much more than slots make that are taken. At a load of rho and r arrivals per second, those make all requests
    /// of a slot wait for r * sum((lag + service)^2) / (2 * (1 - rho)) together.
    fn connections_made_the_wait(&self) -> bool {
        let connections = &self.measurement.connections;
        if connections.lost == 0 && connections.failed == 0 {
            return false;
        }
        let slots: f64 = self
            .plan
            .groups
            .iter()
            .map(|group| match group.depth {
                Depth::Limit(depth) => f64::from(depth) * f64::from(group.clients),
                Depth::Unlimited => f64::INFINITY,
            })
            .sum();
        let slots_ns = slots * self.measurement.measured_ns as f64;
        let moments = |span| self.all.times.of(span).moments();
        let unanswered = self.unanswered();
        let timeouts_ns = unanswered.timeouts as f64 * unanswered.timeout_ns as f64;
        let load =
            (moments(Span::Lag).sum as f64 + moments(Span::Service).sum as f64 + timeouts_ns) / slots_ns;
        let rate = moments(Span::Lag).count as f64 / slots_ns;
        let (lag, service) = self.squares();
        // The square of a sum of two is at most twice the sum of their squares.
        let explained = rate * 2.0 * (lag + service) / (2.0 * (1.0 - load));
        load < 1.0 && moments(Span::Wait).sum as f64 > OUTWEIGHED * explained
    }

    /// The longest service time as words, as far as it is known.
    fn longest_service(&self) -> String {
        match Figures::of(Span::Service, self.all.times.of(Span::Service), &self.unanswered()).max {
            Quantile::Known(longest) => format!("up to {}", time_text(longest)),
            Quantile::Above(bound) => format!("more than {}", time_text(bound)),
            Quantile::Absent => "an unknown time".to_owned(),
        }
    }

    fn at(&self, span: Span, quantile: f64) -> Nanos {
        self.all.times.of(span).quantile(quantile).unwrap_or(0)
    }

    fn max(&self, span: Span) -> Nanos {
        self.all.times.of(span).moments().max
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Turns that took too long, counted.
fn turns_above(stalls: u64) -> String {
    format!("{stalls} turn{} above 1 ms", if stalls == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::interval::Interval;
    use crate::measure::measurement::{Keep, WorkerTime};
    use crate::measure::recorder::Sample;
    use crate::plan::Group;
    use crate::protocol::{Fault, Outcome, Verb};
    use crate::rng::{Stream, unit};
    use crate::time::{MILLISECOND, SECOND};

    /// A run in miniature: clients with one slot each, a server and a generator that each may stand still for a while.
    struct Story {
        connections: u32,
        /// Requests per second of all clients; `None` for closed loop.
        rate: Option<f64>,
        length: Nanos,
        service: Nanos,
        lag: Nanos,
        reaction: Nanos,
        /// When the server stands still, and how long.
        frozen: (Nanos, Nanos),
        /// When the generator does.
        paused: (Nanos, Nanos),
        /// When no connection is there.
        shut: (Nanos, Nanos),
        timeout: Nanos,
        busy_share: f64,
    }

    const QUIET: Story = Story {
        connections: 10,
        rate: Some(1_000.0),
        length: 4 * SECOND,
        service: 40 * MICROSECOND,
        lag: 3 * MICROSECOND,
        reaction: 30 * MICROSECOND,
        frozen: (0, 0),
        paused: (0, 0),
        shut: (0, 0),
        timeout: 5 * SECOND,
        busy_share: 0.1,
    };

    /// `at`, or the end of a stand-still that `at` falls into.
    fn after(at: Nanos, (start, length): (Nanos, Nanos)) -> Nanos {
        if (start..start + length).contains(&at) { start + length } else { at }
    }

    impl Story {
        fn tell(&self) -> Verdict {
            let measurement = self.measurement();
            Verdict::of(&measurement, &self.plan(), &measurement.ops().all())
        }

        fn measurement(&self) -> Measurement {
            let mut interval = Interval::new([[Verb::Get]]);
            for client in 0..self.connections {
                self.client(client, &mut interval);
            }
            let mut measurement = Measurement::new(["all".to_owned()], Clock::Kernel, self.timeout);
            if self.paused.1 > 0 {
                interval.turns.stalls = 1;
                interval.turns.stalled_ns = self.paused.1;
            }
            measurement.add(&mut interval, Keep::Figures);
            measurement.connections.asked = u64::from(self.connections);
            if self.shut.1 > 0 {
                measurement.connections.lost = u64::from(self.connections);
            }
            measurement.measured_ns = self.length;
            let busy_ns = (self.busy_share * self.length as f64) as Nanos;
            measurement.generator.workers.push(WorkerTime { busy_ns, wall_ns: self.length });
            measurement
        }

        fn client(&self, client: u32, interval: &mut Interval) {
            let gaps = Stream::from_seed(u64::from(client));
            let (mut due, mut free) = (0, 0);
            for i in 0.. {
                due = match self.rate {
                    Some(rate) => {
                        let mean = f64::from(self.connections) * SECOND as f64 / rate;
                        due + (-libm::log(unit(gaps.draw(i))) * mean) as Nanos
                    }
                    None => free,
                };
                if due >= self.length {
                    return;
                }
                let ready = after(due.max(free), self.shut);
                let sent = after(ready, self.paused) + self.lag;
                let arrived = after(sent, self.frozen) + self.service;
                let mut sample = Sample {
                    verb: Verb::Get,
                    outcome: Outcome::Hit,
                    keys: 1,
                    hits: 1,
                    due,
                    ready,
                    sent,
                    arrived,
                    read: after(arrived, self.paused) + self.reaction,
                    noreply: false,
                };
                free = arrived;
                if arrived - ready > self.timeout {
                    sample.outcome = Outcome::Error(Fault::Timeout);
                    free = ready + self.timeout;
                }
                interval.groups[0].record(&sample);
            }
        }

        fn plan(&self) -> Plan {
            Plan {
                timeout_ns: self.timeout,
                groups: vec![Group {
                    clients: self.connections,
                    arrivals: if self.rate.is_some() { Arrivals::Poisson } else { Arrivals::Closed },
                    rate: self.rate,
                    ..Group::default()
                }],
                ..Plan::default()
            }
        }
    }

    #[track_caller]
    fn says(verdict: &Verdict, limit: Limit, words: &[&str]) {
        assert_eq!(verdict.limit, limit, "{verdict:?}");
        assert_eq!(verdict.limited(), verdict.why.is_some());
        for word in words {
            assert!(verdict.says.contains(word), "{word:?} is missing: {}", verdict.says);
        }
    }

    #[test]
    fn a_quiet_open_loop_accuses_nobody() {
        let verdict = QUIET.tell();
        says(&verdict, Limit::Nobody, &["Nothing stood in the way"]);
        assert!(!verdict.says.contains("however"), "{}", verdict.says);
    }

    #[test]
    fn a_server_that_froze_is_accused_and_the_generator_is_not() {
        let verdict = Story { frozen: (SECOND, SECOND), ..QUIET }.tell();
        says(
            &verdict,
            Limit::Server,
            &["server or the number of connections (10)", "took the server up to 99", "not the generator"],
        );
    }

    #[test]
    fn a_server_that_froze_is_accused_also_where_its_requests_timed_out() {
        let verdict = Story { frozen: (SECOND, SECOND), timeout: 200 * MILLISECOND, ..QUIET }.tell();
        let words = ["not the generator", "took the server more than 200 ms", "p99 of the answered requests"];
        says(&verdict, Limit::Server, &words);
    }

    #[test]
    fn a_server_that_froze_is_the_limit_even_beside_a_generator_that_wakes_up_late() {
        let verdict = Story { frozen: (SECOND, SECOND), lag: 60 * MICROSECOND, ..QUIET }.tell();
        says(&verdict, Limit::Server, &["From p50 on, however", "lag p50 60.0 us"]);
    }

    #[test]
    fn a_generator_that_was_paused_is_accused_whatever_the_number_of_connections() {
        for connections in [1, 10, 100, 1_000] {
            let verdict = Story { connections, paused: (SECOND, SECOND / 2), ..QUIET }.tell();
            says(&verdict, Limit::Generator, &["The generator was the limit", "lag"]);
        }
    }

    #[test]
    fn connections_that_were_not_there_are_not_the_generators_fault_even_where_it_lags() {
        // The lag is larger than the service, so that of the two it would have made the wait.
        let story = Story { shut: (SECOND, SECOND), lag: 60 * MICROSECOND, ..QUIET };
        says(
            &story.tell(),
            Limit::Server,
            &["not the generator", "(10 connections were lost, 0 attempts to open one failed)"],
        );
    }

    #[test]
    fn a_generator_that_was_paused_is_accused_also_where_connections_were_lost() {
        for connections in [1, 10, 100, 1_000] {
            let shut = (3 * SECOND, MICROSECOND);
            let verdict = Story { connections, paused: (SECOND, SECOND / 2), shut, ..QUIET }.tell();
            says(&verdict, Limit::Generator, &["The generator was the limit", "lag"]);
        }
    }

    #[test]
    fn a_closed_loop_that_stood_still_accuses_the_generator() {
        let verdict = Story { rate: None, length: SECOND, paused: (SECOND / 4, SECOND / 4), ..QUIET }.tell();
        says(&verdict, Limit::Generator, &["stood still for 250 ms"]);
    }

    #[test]
    fn too_few_connections_are_not_the_generators_fault() {
        let verdict = Story { connections: 2, service: 5 * MILLISECOND, ..QUIET }.tell();
        says(&verdict, Limit::Server, &["number of connections (2)"]);
    }

    #[test]
    fn a_closed_loop_with_time_to_spare_is_limited_by_the_server() {
        let verdict = Story { rate: None, length: SECOND / 10, busy_share: 0.4, ..QUIET }.tell();
        says(&verdict, Limit::Server, &["Closed loop", "busy 40 %"]);
    }

    #[test]
    fn a_busy_thread_is_the_limit_and_in_closed_loop_it_is_said_what_that_means() {
        let open = Story { busy_share: 0.97, ..QUIET }.tell();
        says(&open, Limit::Generator, &["busy 97 %", "schedule"]);
        let closed = Story { rate: None, length: SECOND / 10, busy_share: 0.97, ..QUIET }.tell();
        says(&closed, Limit::Generator, &["busy 97 %", "what 1 client thread could ask for"]);
    }

    #[test]
    fn waking_up_is_no_limit_in_open_loop_but_a_reply_that_lay_long_is() {
        says(&Story { reaction: 90 * MICROSECOND, ..QUIET }.tell(), Limit::Nobody, &[]);
        says(
            &Story { reaction: MILLISECOND, ..QUIET }.tell(),
            Limit::Generator,
            &["reaction p50 is 1.00 ms"],
        );
    }

    #[test]
    fn lag_that_is_a_visible_part_of_the_response_time_is_the_generators() {
        says(&Story { lag: 30 * MICROSECOND, ..QUIET }.tell(), Limit::Generator, &["lag p50 is 30.0 us"]);
        let slow = Story { lag: 30 * MICROSECOND, service: MILLISECOND, ..QUIET }.tell();
        assert_ne!(slow.limit, Limit::Generator, "30 us of 1 ms are not visible");
    }

    #[test]
    fn without_receive_stamps_service_times_are_not_called_the_servers() {
        let stamped = Story { busy_share: 0.97, ..QUIET };
        says(&stamped.tell(), Limit::Generator, &["Service times are the server's still"]);
        for (clock, unix_socket) in [(Clock::User, false), (Clock::Kernel, true)] {
            let told = |story: &Story| {
                let mut measurement = story.measurement();
                (measurement.clock, measurement.unix_socket) = (clock, unix_socket);
                Verdict::of(&measurement, &story.plan(), &measurement.ops().all())
            };
            says(&told(&stamped), Limit::Generator, &["Service times contain its slowness in reading too"]);
            says(&told(&QUIET), Limit::Nobody, &["the time to read it"]);
        }
    }

    #[test]
    fn a_short_slip_is_a_word_about_the_tail_and_no_limit() {
        let verdict = Story { connections: 100, paused: (SECOND, 10 * MILLISECOND), ..QUIET }.tell();
        says(&verdict, Limit::Nobody, &["From p99.9 on, however, times are partly the generator's own"]);
    }

    #[test]
    fn without_a_completed_request_there_is_no_judgement() {
        says(&Story { length: 0, ..QUIET }.tell(), Limit::Unknown, &["Nothing was completed"]);
    }
}
