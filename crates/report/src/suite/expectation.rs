//! What a run of a suite is expected to show, and what came of it.

use pummel_measure::compare::median;
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;
use serde::{Deserialize, Serialize};

use crate::document::{Document, Figure};
use crate::run_figures::{Metric, RunFigures};
use crate::view::cells::{plain, rate, time};
use crate::view::several::each_once;

/// A condition that the results of a run have to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Subject of the condition.
    pub subject: Subject,
    /// The values that meet the condition.
    pub wanted: Wanted,
    /// The values as they were written, such as `<1ms`.
    pub text: String,
}

/// Subject of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Share of the keys looked up that were found, from 0 to 1.
    Hits,
    /// Share of the keys looked up that were not found, from 0 to 1.
    Misses,
    /// Share of the requests that ended as errors or without a reply, from 0 to 1.
    Errors,
    /// Completed requests per second.
    Rate,
    /// A figure of the response time, in microseconds, by its name: `mean`, `max` or a quantile such as `p99`.
    Response(String),
    /// CPU time of the generator for each request, in microseconds.
    ClientCpu,
    /// CPU time of the servers for each request, in microseconds.
    ServerCpu,
    /// The limit of the run, one of the words of `verdict.limit`.
    Limit,
    /// Whether the run was steady.
    Steady,
    /// Whether the times are reliable.
    Reliable,
}

/// Figures of the response time that an expectation may name.
pub const RESPONSE_FIGURES: [&str; 8] = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "mean", "max"];

impl Subject {
    /// Subjects that have a word of their own.
    const NAMED: [Subject; 9] = [
        Subject::Hits,
        Subject::Misses,
        Subject::Errors,
        Subject::Rate,
        Subject::ClientCpu,
        Subject::ServerCpu,
        Subject::Limit,
        Subject::Steady,
        Subject::Reliable,
    ];

    /// The word in suites and results.
    pub fn name(&self) -> &str {
        match self {
            Subject::Hits => "hits",
            Subject::Misses => "misses",
            Subject::Errors => "errors",
            Subject::Rate => Metric::Rate.name(),
            Subject::Response(figure) => figure,
            Subject::ClientCpu => Metric::ClientCpu.name(),
            Subject::ServerCpu => Metric::ServerCpu.name(),
            Subject::Limit => "limit",
            Subject::Steady => "steady",
            Subject::Reliable => "reliable",
        }
    }

    /// The subject with this word.
    pub fn from_name(name: &str) -> Option<Subject> {
        let named = Subject::NAMED.into_iter().find(|subject| subject.name() == name);
        let of_times = || RESPONSE_FIGURES.contains(&name).then(|| Subject::Response(name.to_owned()));
        named.or_else(of_times)
    }

    /// All words, in the order of documents.
    pub fn names() -> Vec<String> {
        let named = Subject::NAMED.iter().map(|subject| subject.name().to_owned());
        named.chain(RESPONSE_FIGURES.map(str::to_owned)).collect()
    }

    /// The kind of values that the subject has.
    pub fn measure(&self) -> Measure {
        match self {
            Subject::Hits | Subject::Misses | Subject::Errors => Measure::Share,
            Subject::Rate => Measure::Rate,
            Subject::Response(_) | Subject::ClientCpu | Subject::ServerCpu => Measure::Time,
            Subject::Limit => Measure::Word,
            Subject::Steady | Subject::Reliable => Measure::Truth,
        }
    }
}

/// Kind of the values of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A share from 0 to 1, in percent for people.
    Share,
    /// Requests per second.
    Rate,
    /// Microseconds.
    Time,
    /// A word.
    Word,
    /// `true` or `false`.
    Truth,
}

/// The values that meet an expectation.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Figures on one side of a bound.
    Figure(Relation, f64),
    /// One of some words.
    OneOf(Vec<String>),
    /// None of some words.
    NoneOf(Vec<String>),
    /// This truth.
    Is(bool),
}

/// Side of a bound on which a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Less than the bound.
    Below,
    /// The bound or less.
    AtMost,
    /// More than the bound.
    Above,
    /// The bound or more.
    AtLeast,
    /// The bound itself.
    Equal,
}

impl Relation {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::Below => value < bound,
            Relation::AtMost => value <= bound,
            Relation::Above => value > bound,
            Relation::AtLeast => value >= bound,
            Relation::Equal => value == bound,
        }
    }

    /// Whether a figure above the lower bound `above` can still hold.
    fn excludes_above(self, above: f64, bound: f64) -> bool {
        matches!(self, Relation::Below | Relation::AtMost | Relation::Equal) && above >= bound
    }
}

/// What came of an expectation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExpectationResult {
    /// Subject of the expectation: `hits`, `misses`, `errors`, `rate`, `client-cpu`, `server-cpu`, `limit`, `steady`, `reliable`, `mean`,
    /// `max` or a quantile of the response time such as `p99`.
    pub subject: String,
    /// The values that meet the expectation, as the suite has them, such as `<1ms`.
    pub expected: String,
    /// The bound of the figure, in its unit; null for words, and where an older version wrote the result.
    pub bound: Option<f64>,
    /// The figure of the run, and the median of its rounds: a share from 0 to 1, a rate per second or microseconds; null for
    /// words, and where it is not known.
    pub figure: Option<f64>,
    /// What the run showed, in words: `not known` where it is not known.
    pub found: String,
    /// Whether the expectation was met; null where that is not known.
    pub met: Option<bool>,
}

impl ExpectationResult {
    /// The outcome in words, such as `p99 1.42 ms, expected <1ms`.
    pub fn words(&self) -> String {
        format!("{} {}, expected {}", self.subject, self.found, self.expected)
    }

    /// The quantile of the response time and its bound in microseconds, where the expectation is about one.
    pub fn goal(&self) -> Option<(f64, f64)> {
        let (_, quantile) = QUANTILES.into_iter().find(|(name, _)| *name == self.subject)?;
        Some((quantile, self.bound?))
    }
}

/// What is not known, in words.
const NOT_KNOWN: &str = "not known";

impl Expectation {
    /// Judges the rounds of a run: figures by their median, words and truths by more than half of the rounds.
    pub fn judged(&self, results: &[Document]) -> ExpectationResult {
        let result = ExpectationResult {
            subject: self.subject.name().to_owned(),
            expected: self.text.clone(),
            bound: if let Wanted::Figure(_, bound) = self.wanted { Some(bound) } else { None },
            figure: None,
            found: NOT_KNOWN.to_owned(),
            met: None,
        };
        match &self.wanted {
            Wanted::Figure(relation, bound) => self.judged_figure(result, *relation, *bound, results),
            Wanted::OneOf(words) => {
                judged_words(result, results, &|word| words.iter().any(|own| own == word))
            }
            Wanted::NoneOf(words) => {
                judged_words(result, results, &|word| words.iter().all(|own| own != word))
            }
            Wanted::Is(wanted) => {
                let truth = |document: &Document| match self.subject {
                    Subject::Steady => document.steady,
                    _ => document.trust.as_ref().map(|trust| trust.ok),
                };
                let all: Option<Vec<bool>> = results.iter().map(truth).collect();
                let Some(all) = all.filter(|all| !all.is_empty()) else { return result };
                let some = all.iter().filter(|one| **one == *wanted).count();
                let is_met = 2 * some > all.len();
                let found = if is_met { *wanted } else { !*wanted };
                ExpectationResult { found: found.to_string(), met: Some(is_met), ..result }
            }
        }
    }

    fn judged_figure(
        &self,
        result: ExpectationResult,
        relation: Relation,
        bound: f64,
        results: &[Document],
    ) -> ExpectationResult {
        let all: Vec<Figure> = results.iter().map(|document| figure_of(&self.subject, document)).collect();
        let known: Option<Vec<f64>> = all.iter().map(|figure| figure.known()).collect();
        if let Some(value) = known.and_then(|known| median(&known)) {
            let (found, met) = (self.words_of(value), Some(relation.holds(value, bound)));
            return ExpectationResult { figure: Some(value), found, met, ..result };
        }
        // A figure that falls among requests without an answer is more than its bound, which may be enough to know.
        let beyond = |figure: &&Figure| match figure {
            Figure::Above(above) => relation.excludes_above(*above, bound),
            Figure::Known(value) => !relation.holds(*value, bound),
            Figure::Absent => false,
        };
        let least = all.iter().filter_map(|figure| match figure {
            Figure::Above(above) => Some(*above),
            Figure::Known(_) | Figure::Absent => None,
        });
        let least = least.fold(f64::INFINITY, f64::min);
        let is_missed = 2 * all.iter().filter(beyond).count() > all.len();
        match is_missed && least.is_finite() {
            true => {
                let found = format!("more than {}", self.words_of(least));
                ExpectationResult { found, met: Some(false), ..result }
            }
            false => result,
        }
    }

    fn words_of(&self, value: f64) -> String {
        match self.subject.measure() {
            Measure::Share => share_words(value),
            Measure::Rate => format!("{}/s", rate(value)),
            Measure::Time | Measure::Word | Measure::Truth => time(value),
        }
    }
}

/// A share in percent; one that is not whole is never told as 0 or 100 %.
pub fn share_words(value: f64) -> String {
    match value * 100.0 {
        percent if percent > 99.95 && value < 1.0 => "above 99.9 %".to_owned(),
        percent if percent > 0.0 && percent < 0.001 => "below 0.001 %".to_owned(),
        percent => format!("{} %", plain(percent)),
    }
}

/// Judges the limits of some runs: each has to be one that is wanted in more than half of them.
fn judged_words(
    result: ExpectationResult,
    results: &[Document],
    is_wanted: &dyn Fn(&str) -> bool,
) -> ExpectationResult {
    let limits: Vec<&str> = results.iter().filter_map(Document::limit).collect();
    if limits.is_empty() || limits.len() < results.len() {
        return result;
    }
    let found = each_once(limits.iter().copied());
    let some = limits.iter().filter(|limit| is_wanted(limit)).count();
    ExpectationResult { found: found.join(", "), met: Some(2 * some > limits.len()), ..result }
}

/// A figure of a run in the unit of its subject.
fn figure_of(subject: &Subject, document: &Document) -> Figure {
    let run = || RunFigures::of(document, document.seconds);
    let known =
        |value: Option<f64>| value.filter(|value| value.is_finite()).map_or(Figure::Absent, Figure::Known);
    match subject {
        Subject::Hits | Subject::Misses => {
            let lookups = run().lookups.filter(|lookups| lookups.hits + lookups.misses > 0);
            known(lookups.map(|lookups| {
                let all = (lookups.hits + lookups.misses) as f64;
                let some = if *subject == Subject::Hits { lookups.hits } else { lookups.misses };
                some as f64 / all
            }))
        }
        Subject::Errors => {
            let totals = &document.totals;
            // Errors have the requests that timed out or lost their connection.
            let silent = totals.unfinished.saturating_add(totals.unsent);
            let failed = totals.errors.saturating_add(silent);
            known((totals.requests > 0).then(|| failed as f64 / totals.requests as f64))
        }
        Subject::Rate => known(Some(document.totals.rate)),
        Subject::Response(name) => {
            let response = document.totals.times.of_span(Span::Response);
            match name.as_str() {
                "mean" => known(response.mean),
                quantile => response.at(quantile),
            }
        }
        Subject::ClientCpu => known(run().cpu_us_per_request),
        Subject::ServerCpu => known(run().server_cpu_us_per_request),
        Subject::Limit | Subject::Steady | Subject::Reliable => Figure::Absent,
    }
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::document::{TrustResult, VerdictResult};
    use crate::example::Run;

    fn document() -> Document {
        Run::new(Keep::Figures).document(Clone::clone)
    }

    fn judged(subject: &str, wanted: Wanted, results: &[Document]) -> ExpectationResult {
        let subject = Subject::from_name(subject).expect("a subject");
        Expectation { subject, wanted, text: "as written".to_owned() }.judged(results)
    }

    #[test]
    fn a_figure_is_held_against_its_bound() {
        let results = [document()];
        for (subject, relation, bound, met, words) in [
            ("hits", Relation::AtLeast, 0.5, true, "hits 94.4 %, expected as written"),
            ("hits", Relation::Above, 0.999, false, "hits 94.4 %, expected as written"),
            ("misses", Relation::Below, 0.2, true, "misses 5.56 %, expected as written"),
            ("errors", Relation::Equal, 0.0, true, "errors 0 %, expected as written"),
            ("rate", Relation::Above, 1e6, false, "rate 1,000/s, expected as written"),
            ("p99", Relation::Below, 50.0, false, "p99 92.9 us, expected as written"),
            ("p99", Relation::AtMost, 1_000.0, true, "p99 92.9 us, expected as written"),
        ] {
            let result = judged(subject, Wanted::Figure(relation, bound), &results);
            assert_eq!((result.met, result.words().as_str()), (Some(met), words), "{subject}");
        }
    }

    #[test]
    fn a_request_that_timed_out_is_one_error() {
        let mut late = document();
        (late.totals.requests, late.totals.completed, late.totals.errors) = (100, 80, 15);
        (late.totals.unfinished, late.totals.unsent) = (3, 2);
        late.ops.0[0].1.errors = [("timeout", 15)].into_iter().collect();
        let result = judged("errors", Wanted::Figure(Relation::Below, 0.1), &[late]);
        assert_eq!((result.figure, result.met), (Some(0.2), Some(false)));
    }

    #[test]
    fn the_median_of_the_rounds_decides() {
        let rounds = [1.0, 5.0, 2.0].map(|rate| {
            let mut round = document();
            round.totals.rate = rate;
            round
        });
        let result = judged("rate", Wanted::Figure(Relation::AtLeast, 2.0), &rounds);
        assert_eq!((result.figure, result.met), (Some(2.0), Some(true)));
    }

    #[test]
    fn what_is_not_known_is_neither_met_nor_missed() {
        let mut unknown = document();
        unknown.totals.times.response_us = None;
        (unknown.steady, unknown.trust, unknown.verdict) = (None, None, None);
        unknown.generator.cpu_us_per_request = None;
        for (subject, wanted) in [
            ("p99", Wanted::Figure(Relation::Below, 1.0)),
            ("client-cpu", Wanted::Figure(Relation::Below, 1.0)),
            ("steady", Wanted::Is(true)),
            ("reliable", Wanted::Is(true)),
            ("limit", Wanted::OneOf(vec!["server".to_owned()])),
        ] {
            let result = judged(subject, wanted.clone(), &[unknown.clone()]);
            assert_eq!((result.met, result.found.as_str()), (None, "not known"), "{subject}");
            assert_eq!(judged(subject, wanted, &[]).met, None, "without a round nothing is known");
        }
    }

    #[test]
    fn a_quantile_among_requests_without_an_answer_misses_what_is_below_its_bound_only() {
        let mut late = document();
        let times = late.totals.times.response_us.as_mut().expect("times");
        (times.p99, times.above) = (None, [("p99", 5_000.0)].into_iter().collect());
        let with = |bound| judged("p99", Wanted::Figure(Relation::Below, bound), &[late.clone()]);
        assert_eq!((with(1_000.0).met, with(1_000.0).found.as_str()), (Some(false), "more than 5.00 ms"));
        assert_eq!((with(9_000.0).met, with(9_000.0).found.as_str()), (None, "not known"));
    }

    #[test]
    fn words_and_truths_are_those_of_more_than_half_of_the_rounds() {
        let of = |limit: &str, steady| {
            let verdict = VerdictResult { limit: limit.to_owned(), ..VerdictResult::default() };
            let trust = TrustResult { ok: true, ..TrustResult::default() };
            Document { verdict: Some(verdict), steady: Some(steady), trust: Some(trust), ..document() }
        };
        let rounds = [of("server", true), of("generator", false), of("server", true)];
        let server = || vec!["server".to_owned()];
        let limit = judged("limit", Wanted::OneOf(server()), &rounds);
        assert_eq!((limit.met, limit.found.as_str()), (Some(true), "server, generator"));
        assert_eq!(judged("limit", Wanted::NoneOf(server()), &rounds).met, Some(false));
        assert_eq!(judged("steady", Wanted::Is(true), &rounds).met, Some(true));
        assert_eq!(judged("steady", Wanted::Is(true), &rounds[1..]).met, Some(false), "half are too few");
        assert_eq!(judged("reliable", Wanted::Is(false), &rounds).found, "true");
    }

    #[test]
    fn every_word_of_a_subject_leads_back_to_it() {
        for name in Subject::names() {
            assert_eq!(Subject::from_name(&name).expect("a subject").name(), name);
        }
        assert_eq!(Subject::from_name("p98"), None);
    }
}
