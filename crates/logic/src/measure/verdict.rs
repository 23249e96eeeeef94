//! Who set the limit: the generator, so that its figures are partly its own, or the server and the connections.
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
//!   timeout counts on the side of the service.
//!
//! A visible wait otherwise accuses the server or the number of connections, and so do requests without an answer.

use crate::measure::measurement::Measurement;
use crate::measure::recorder::{Op, Span};
use crate::measure::summary::{QUANTILES, Unanswered, time_text};
use crate::plan::{Arrivals, Plan};
use crate::time::{MICROSECOND, Nanos};

/// What limited the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who.
    pub limit: Limit,
    /// What accuses the generator, where it was the limit.
    pub why: Option<String>,
    /// The verdict in sentences.
    pub says: String,
}

/// Who can limit a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nobody: every request found its way at once.
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
    pub fn of(measurement: &Measurement, plan: &Plan, all: &Op) -> Verdict {
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
        if let Some(note) = evidence.tail() {
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
    all: &'a Op,
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
                "requests waited ({name} {}) for others that it sent late (lag up to {}, service up to {})",
                time_text(wait),
                time_text(self.max(Span::Lag)),
                time_text(self.max(Span::Service)),
            ));
        }
        let turns = &self.measurement.generator.turns;
        let wall_ns: Nanos = self.measurement.generator.workers.iter().map(|worker| worker.wall_ns).sum();
        if self.closed && turns.stalled_ns as f64 > STALLED_SHARE * wall_ns as f64 {
            let stalled = time_text(turns.stalled_ns);
            against
                .push(format!("its threads stood still for {stalled} in {} turns above 1 ms", turns.stalls));
        }
        against
    }

    /// What it means for the figures that the generator was the limit.
    fn meaning(&self) -> String {
        let threads = self.plan.engine.threads;
        let threads =
            if threads == 1 { "1 client thread".to_owned() } else { format!("{threads} client threads") };
        if self.closed {
            format!(
                " In closed loop this means that the rate is what {threads} could ask for: the server may be able to do \
                 more. Service times are the server's still; response times contain the lag. More threads (-T), or \
                 --wait spin where threads were not busy, show more of the server."
            )
        } else {
            format!(
                " Response times contain this slip and are not the server's alone; service times are. {} did not keep up \
                 with the schedule: try more threads (-T), --wait spin, a lower --rate, or a quieter machine.",
                capitalised(&threads)
            )
        }
    }

    fn against_server(&self) -> Option<String> {
        let counts = &self.all.counts;
        let connections = self.measurement.connections.asked;
        let lag = time_text(self.at(Span::Lag, 0.99));
        if let Some((name, wait, response)) = self.visible_wait() {
            return Some(format!(
                "The server or the number of connections ({connections}) was the limit, not the generator: of a response \
                 time of {} at {name}, requests waited {} before they could be sent, and one request took the server up to \
                 {} (service p50 {}). The generator's own lag is {lag} at p99.",
                time_text(response),
                time_text(wait),
                time_text(self.max(Span::Service)),
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
        format!(
            "Nothing stood in the way: requests were sent when they were due (wait p99 {}, lag p99 {}), and the response \
             time is the server's service time.",
            time_text(self.at(Span::Wait, 0.99)),
            time_text(self.at(Span::Lag, 0.99)),
        )
    }

    /// A word on quantiles beyond those that decide, where the generator is visible in them.
    fn tail(&self) -> Option<String> {
        let beyond = QUANTILES.into_iter().filter(|(_, quantile)| *quantile > 0.99).chain([("max", 1.0)]);
        let visible = beyond.into_iter().find_map(|at| {
            self.visible(Span::Lag, at, SLIP_MIN).or_else(|| self.visible(Span::Reaction, at, REACTION_MIN))
        });
        visible.map(|(name, _, _)| {
            format!(
                "From {name} on, however, the tail is partly the generator's own (lag up to {}, reaction up to {}, {} turns \
                 above 1 ms).",
                time_text(self.max(Span::Lag)),
                time_text(self.max(Span::Reaction)),
                self.measurement.generator.turns.stalls
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

    fn lag_made_the_wait(&self) -> bool {
        let unanswered = Unanswered::of(&self.all.counts, self.measurement.timeout_ns);
        let timeout = unanswered.timeout_ns as f64;
        let squares = |span| self.all.times.of(span).moments().sum_squares as f64;
        squares(Span::Lag) > squares(Span::Service) + unanswered.timeouts as f64 * timeout * timeout
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
