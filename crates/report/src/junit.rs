//! The result as JUnit XML, for the test pages of CI systems: what a run has to be, and each goal, as a test case.

use pummel_logic::plan::FailOn;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::uncertainty::quantile_name;

use crate::document::{Document, Figure, GoalOutcome, UntilOutcome};
use crate::escaped::{Text, Xml};
use crate::numbers::{grouped, number};
use crate::suite::{ExpectationResult, SuiteDocument, SuiteRun};
use crate::words::fail_on::answer_words;
use crate::words::outcomes::other_outcomes;

/// Characters of foreign words that are shown at most.
const WORDS_MAX: usize = 2_000;

/// What became of a case.
enum Fate {
    Passed,
    Failed(String),
    Skipped(String),
}

/// A group of cases, as a test page shows it.
struct Group {
    name: String,
    /// The class of its cases, by which a test page tells those of equal names apart.
    class: String,
    seconds: f64,
    cases: Vec<(String, Fate)>,
}

/// The cases of a run.
pub fn render(document: &Document) -> Vec<u8> {
    let name = format!("pummel {}", document.plan.servers.join(", "));
    let class = "pummel".to_owned();
    written(vec![Group { name, class, seconds: document.seconds, cases: cases(document) }])
}

/// The cases of a suite: a group for each run, with those of each round, and one for each thing that the run was expected to show.
pub fn render_suite(suite: &SuiteDocument) -> Vec<u8> {
    let group = |run: &SuiteRun| {
        let several = suite.rounds > 1;
        let of_round = |(place, result): (usize, &Document)| {
            let round = if several { format!("round {}: ", place + 1) } else { String::new() };
            cases(result)
                .into_iter()
                .map(move |(name, fate)| (format!("{round}{name}"), fate))
                .collect::<Vec<_>>()
        };
        let made = run.results.iter().enumerate().flat_map(of_round);
        Group {
            name: format!("{}: {}", suite.title, run.name),
            class: run.name.clone(),
            seconds: run.results.iter().map(|result| result.seconds).sum(),
            cases: std::iter::once(all_made(suite, run))
                .chain(made)
                .chain(run.expectations.iter().map(expected))
                .collect(),
        }
    };
    written(suite.runs.iter().map(group).collect())
}

/// The case of the rounds of a run that are missing or failed.
fn all_made(suite: &SuiteDocument, run: &SuiteRun) -> (String, Fate) {
    let why = || match (&run.reason, run.results.is_empty()) {
        (Some(reason), _) => reason.clone(),
        (None, true) => "the run was not made".to_owned(),
        (None, false) => format!("{} of {} rounds were made", run.results.len(), suite.rounds),
    };
    let fate = if run.is_whole(suite.rounds) { Fate::Passed } else { Fate::Failed(why()) };
    ("made".to_owned(), fate)
}

/// The case of something that a run was expected to show. What is not known was not shown.
fn expected(outcome: &ExpectationResult) -> (String, Fate) {
    let name = format!("{} {}", outcome.subject, outcome.expected);
    let fate = if outcome.met == Some(true) { Fate::Passed } else { Fate::Failed(outcome.words()) };
    (name, fate)
}

/// The cases of the result of a run.
fn cases(document: &Document) -> Vec<(String, Fate)> {
    let mut cases = vec![
        ("complete".to_owned(), complete(document)),
        ("answered".to_owned(), answered(document)),
        ("values right".to_owned(), values_right(document)),
        ("generator not the limit".to_owned(), generator(document)),
    ];
    cases.extend(asked(document));
    cases.extend(document.goals.iter().map(goal));
    cases.extend(document.until.iter().map(until));
    cases
}

/// The groups as XML.
fn written(groups: Vec<Group>) -> Vec<u8> {
    let all = groups.iter().flat_map(|group| &group.cases);
    // Readers that check their schema know no skipped cases of all groups together.
    let head = counts(all, groups.iter().map(|group| group.seconds).sum(), false);
    let text = Text::of("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ").and(head).mark("\">\n");
    let text = groups.into_iter().fold(text, |text, group| {
        let head = counts(group.cases.iter(), group.seconds, true);
        let text =
            text.mark("<testsuite name=\"").cut(&group.name, WORDS_MAX).mark("\" ").and(head).mark("\">\n");
        text.each(group.cases.into_iter().map(|own| case(&group.class, own)), "\n").mark("</testsuite>\n")
    });
    text.mark("</testsuites>\n").finish().into_bytes()
}

/// The attributes that count cases, with those that were skipped where `has_skipped` says so.
fn counts<'a>(cases: impl Iterator<Item = &'a (String, Fate)>, seconds: f64, has_skipped: bool) -> Text<Xml> {
    let (mut all, mut failures, mut skipped) = (0, 0, 0);
    for (_, fate) in cases {
        all += 1;
        match fate {
            Fate::Passed => {}
            Fate::Failed(_) => failures += 1,
            Fate::Skipped(_) => skipped += 1,
        }
    }
    let skipped = has_skipped.then(|| ("\" skipped=\"", skipped.to_string()));
    let head = [
        ("tests=\"", all.to_string()),
        ("\" failures=\"", failures.to_string()),
        ("\" errors=\"", "0".to_owned()),
    ];
    let head = head.into_iter().chain(skipped).chain([("\" time=\"", format!("{seconds:.3}"))]);
    head.fold(Text::<Xml>::default(), |text, (mark, words)| text.mark(mark).words(&words))
}

/// A test case. Some readers show the attribute of its message, others the body.
fn case(class: &str, (name, fate): (String, Fate)) -> Text<Xml> {
    let case =
        Text::of("<testcase classname=\"").cut(class, WORDS_MAX).mark("\" name=\"").cut(&name, WORDS_MAX);
    let (begin, why, end) = match fate {
        Fate::Passed => return case.mark("\"/>"),
        Fate::Failed(why) => ("\"><failure message=\"", why, "</failure></testcase>"),
        Fate::Skipped(why) => ("\"><skipped message=\"", why, "</skipped></testcase>"),
    };
    case.mark(begin).cut(&why, WORDS_MAX).mark("\">").cut(&why, WORDS_MAX).mark(end)
}

fn complete(document: &Document) -> Fate {
    match document.status {
        Status::Complete if document.outcome == RunOutcome::Failed => {
            Fate::Failed(document.outcome_says.clone().unwrap_or_default())
        }
        Status::Complete => Fate::Passed,
        Status::Partial | Status::Interrupted => Fate::Failed(
            document.reason.clone().unwrap_or_else(|| "the run ended before its time".to_owned()),
        ),
    }
}

fn answered(document: &Document) -> Fate {
    let totals = &document.totals;
    let silent: u64 = document.ops.iter().map(|(_, op)| op.unanswered()).sum();
    if totals.completed > 0 && silent == 0 && totals.errors == 0 {
        return Fate::Passed;
    }
    Fate::Failed(format!(
        "of {} requests {} were completed, {} failed, and {} got no answer",
        grouped(totals.requests),
        grouped(totals.completed),
        grouped(totals.errors),
        grouped(silent)
    ))
}

fn values_right(document: &Document) -> Fate {
    let verify = &document.verify;
    match (verify.failed + verify.stale, verify.checked) {
        (0, 0) => Fate::Skipped("no value was checked (--verify)".to_owned()),
        (0, _) => Fate::Passed,
        (_, checked) => Fate::Failed(format!(
            "of {} values {} were wrong and {} stale",
            grouped(checked),
            grouped(verify.failed),
            grouped(verify.stale)
        )),
    }
}

fn generator(document: &Document) -> Fate {
    match (answer_words(&document.answer(FailOn::Limited)), document.plan.fail_on.contains(&FailOn::Limited))
    {
        (None, _) => Fate::Passed,
        (Some(why), true) => Fate::Failed(why),
        (Some(why), false) => Fate::Skipped(why),
    }
}

/// The test cases of `--fail-on` for faults that have no case in every run. A case that cannot be determined fails.
fn asked(document: &Document) -> Vec<(String, Fate)> {
    let names = [
        (FailOn::Untrusted, "times may be believed"),
        (FailOn::Unsteady, "steady"),
        (FailOn::Overloaded, "not overloaded"),
        (FailOn::Lost, "no acknowledged write lost"),
    ];
    let failures = document.failures();
    let case = |(on, name): (FailOn, &str)| {
        let failure = failures.iter().find(|failure| failure.0 == on);
        (
            name.to_owned(),
            failure.and_then(|failure| answer_words(&failure.1)).map_or(Fate::Passed, Fate::Failed),
        )
    };
    let outcomes = document.plan.fail_on.iter().filter(|on| matches!(on, FailOn::Outcomes(_)));
    let outcomes = outcomes.map(|on| case((*on, "outcomes"))).map(|(name, fate)| match fate {
        Fate::Failed(why) => (name, Fate::Failed(with_outcomes(document, why))),
        fate => (name, fate),
    });
    let named = names.into_iter().filter(|(on, _)| document.plan.fail_on.contains(on));
    named.map(case).chain(outcomes).collect()
}

/// The words with the operations of which some requests stored or found nothing behind them.
fn with_outcomes(document: &Document, words: String) -> String {
    let others = document.other_outcomes().into_iter().filter(|others| others.all() > 0);
    let each = others.map(|others| other_outcomes(&others.op, &others));
    std::iter::once(words).chain(each).collect::<Vec<_>>().join("; ")
}

fn goal(goal: &GoalOutcome) -> (String, Fate) {
    let name = (goal.quantile * 1e8).round() / 1e6;
    let reached = match goal.reached() {
        Figure::Above(us) => format!("more than {} us", number(us)),
        reached => reached.text("not known", |us| format!("{} us", number(us))),
    };
    let case = format!("goal p{name} within {} us", number(goal.limit_us));
    let fate = match goal.met {
        Some(true) => Fate::Passed,
        Some(false) => Fate::Failed(format!("the response time p{name} is {reached}")),
        None => {
            let why = "the run was not steady, and the goal was met on one side of the change only";
            Fate::Failed(why.to_owned())
        }
    };
    (case, fate)
}

/// The test case of `--until`: the quantile and whether its interval became narrow enough.
fn until(until: &UntilOutcome) -> (String, Fate) {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let name = quantile_name(until.quantile);
    let case = format!("{name} known to {}", percent(until.asked));
    let fate = match (until.reached, until.half_width) {
        (true, _) => Fate::Passed,
        (false, Some(half_width)) => {
            Fate::Failed(format!("{name} is known to {} at the end of the longest time", percent(half_width)))
        }
        (false, None) => Fate::Failed(format!("how sure {name} is, is not known")),
    };
    (case, fate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{TrustResult, VerdictResult};
    use crate::example::Run;
    use pummel_logic::plan::{Goal, Plan};
    use pummel_logic::time::MILLISECOND;
    use pummel_measure::measurement::Keep;
    use pummel_measure::reason::Reason;

    #[test]
    fn a_run_without_goals_has_cases_too() {
        let text = String::from_utf8(Run::new(Keep::Figures).document(render)).unwrap();
        assert!(
            text.contains("<testsuites tests=\"4\" failures=\"0\" errors=\"0\" time=\"2.000\">\n"),
            "{text}"
        );
        assert!(
            text.contains(
                " tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"1\" time=\"2.000\">\n<testcase "
            ),
            "{text}"
        );
        assert!(text.contains("<testcase classname=\"pummel\" name=\"complete\"/>"), "{text}");
        assert!(text.contains("<skipped message=\"no value was checked (--verify)\">no value"), "{text}");
    }

    #[test]
    fn a_limit_of_the_generator_is_skipped_unless_the_run_is_to_fail_on_it() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.verdict = Some(VerdictResult {
            limit: "generator".to_owned(),
            says: "It was me".to_owned(),
            ..VerdictResult::default()
        });
        let text = |document: &Document| String::from_utf8(render(document)).unwrap();
        let name = "name=\"generator not the limit\">";
        assert!(text(&document).contains(&format!("{name}<skipped message=\"It was me\">")));
        document.plan.fail_on = vec![FailOn::Limited, FailOn::Untrusted];
        document.trust =
            Some(TrustResult { ok: false, says: "Not mine".to_owned(), ..TrustResult::default() });
        let failed = text(&document);
        assert!(failed.contains(&format!("{name}<failure message=\"It was me\">")), "{failed}");
        assert!(failed.contains("name=\"times may be believed\"><failure message=\"Not mine\">"), "{failed}");
        assert!(failed.contains("tests=\"5\" failures=\"2\""), "{failed}");
    }

    #[test]
    fn requests_without_effect_are_a_failure_that_names_their_operations() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let mut op = document.ops.get("set").expect("a tenth of the requests").clone();
        op.outcomes = [("stored", 150), ("not_stored", 50)].into_iter().collect();
        document.ops = [("replace", op)].into_iter().collect();
        let with = |parts| {
            let document = Document {
                plan: Plan { fail_on: vec![FailOn::Outcomes(parts)], ..document.plan.clone() },
                ..document.clone()
            };
            String::from_utf8(render(&document)).unwrap()
        };
        assert!(with(250_000).contains("name=\"outcomes\"/>"), "{}", with(250_000));
        let why = "50 of 200 answered requests that may store or find nothing did so; replace: 50 of 200 not stored";
        let failed = format!("name=\"outcomes\"><failure message=\"{why}\">");
        assert!(with(249_999).contains(&failed), "{}", with(249_999));
    }

    #[test]
    fn what_is_not_known_is_skipped_unless_the_run_is_to_fail_on_it() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let says = "Nothing was measured".to_owned();
        document.verdict =
            Some(VerdictResult { limit: "unknown".to_owned(), says, ..VerdictResult::default() });
        document.steady = None;
        let text = |document: &Document| String::from_utf8(render(document)).unwrap();
        let name = "name=\"generator not the limit\">";
        assert!(text(&document).contains(&format!("{name}<skipped message=\"Nothing was measured\">")));
        document.plan.fail_on = vec![FailOn::Limited, FailOn::Unsteady];
        let failed = text(&document);
        assert!(failed.contains(&format!("{name}<failure message=\"Nothing was measured\">")), "{failed}");
        let steady = "name=\"steady\"><failure message=\"whether the run was steady is not judged\">";
        assert!(failed.contains(steady), "{failed}");
    }

    #[test]
    fn a_quantile_that_is_not_known_well_enough_is_a_failure() {
        let outcome = |half_width, reached| UntilOutcome { quantile: 0.99, asked: 0.02, half_width, reached };
        let words = |outcome| match until(&outcome) {
            (case, Fate::Passed) => format!("{case}: passed"),
            (case, Fate::Failed(why) | Fate::Skipped(why)) => format!("{case}: {why}"),
        };
        assert_eq!(words(outcome(Some(0.019), true)), "p99 known to 2.00 %: passed");
        let wide = "p99 known to 2.00 %: p99 is known to 3.10 % at the end of the longest time";
        assert_eq!(words(outcome(Some(0.031), false)), wide);
        assert_eq!(words(outcome(None, false)), "p99 known to 2.00 %: how sure p99 is, is not known");
        let document = Run::new(Keep::Figures).document(|document| {
            let mut document = document.clone();
            document.until = Some(outcome(None, false));
            render(&document)
        });
        let text = String::from_utf8(document).unwrap();
        assert!(
            text.contains("tests=\"5\" failures=\"1\"")
                && text.contains("name=\"p99 known to 2.00 %\"><failure"),
            "{text}"
        );
    }

    #[test]
    fn a_missed_goal_and_a_partial_run_are_failures_with_their_words_in_the_body_too() {
        let mut run = Run::new(Keep::Figures);
        run.plan.goals = vec![
            Goal { quantile: 0.99, limit_ns: MILLISECOND / 100 },
            Goal { quantile: 0.5, limit_ns: MILLISECOND },
        ];
        let what = "</failure> \"gone\"\u{1}".to_owned();
        run.measurement.mark(Status::Partial, Reason::NotBegun { what });
        let text = String::from_utf8(run.document(render)).unwrap();
        assert!(text.contains("failures=\"2\""), "{text}");
        assert!(
            text.contains("name=\"goal p99 within 10.0 us\"><failure message=\"the response time p99 is 92.9 us\">the response"),
            "{text}"
        );
        assert!(
            text.contains("<failure message=\"&lt;/failure&gt; &quot;gone&quot;\u{fffd}\">&lt;/failure"),
            "{text}"
        );
    }
}
