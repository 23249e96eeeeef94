//! The result as JUnit XML, for the test pages of CI systems: what a run has to be, and each goal, as a test case.

use pummel_logic::measure::measurement::Status;

use crate::report::document::{Document, GoalOutcome};
use crate::report::numbers::{grouped, number};

/// Characters of foreign words that are shown at most.
const WORDS_MAX: usize = 2_000;

/// What became of a case.
enum Fate {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The cases of a run.
pub fn render(document: &Document) -> Vec<u8> {
    let mut cases = vec![
        ("complete".to_owned(), complete(document)),
        ("answered".to_owned(), answered(document)),
        ("values right".to_owned(), values_right(document)),
        ("generator not the limit".to_owned(), generator(document)),
    ];
    cases.extend(document.goals.iter().map(goal));
    let failures = cases.iter().filter(|(_, fate)| matches!(fate, Fate::Failed(_))).count();
    let skipped = cases.iter().filter(|(_, fate)| matches!(fate, Fate::Skipped(_))).count();
    let (count, seconds) = (cases.len(), document.seconds);
    let head = format!(
        "tests=\"{count}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {head}>\n<testsuite name=\"pummel {}\" {head}>\n",
        xml(&document.plan.servers.join(", "))
    );
    for (name, fate) in cases {
        let name = xml(&name);
        // Some readers show the attribute, others the body.
        text += &match fate {
            Fate::Passed => format!("<testcase classname=\"pummel\" name=\"{name}\"/>\n"),
            Fate::Failed(why) => {
                let why = xml(&why);
                format!(
                    "<testcase classname=\"pummel\" name=\"{name}\"><failure message=\"{why}\">{why}</failure></testcase>\n"
                )
            }
            Fate::Skipped(why) => {
                let why = xml(&why);
                format!(
                    "<testcase classname=\"pummel\" name=\"{name}\"><skipped message=\"{why}\">{why}</skipped></testcase>\n"
                )
            }
        };
    }
    (text + "</testsuite>\n</testsuites>\n").into_bytes()
}

/// Words as text of XML 1.0, which has no way to write most control characters.
fn xml(words: &str) -> String {
    let mut text = String::new();
    for character in words.chars().take(WORDS_MAX) {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\n' | '\t' => text.push(' '),
            '\u{fffe}' | '\u{ffff}' => text.push('\u{fffd}'),
            control if control.is_control() => text.push('\u{fffd}'),
            other => text.push(other),
        }
    }
    text
}

fn complete(document: &Document) -> Fate {
    match document.status {
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
    match &document.verdict {
        None => Fate::Skipped("the result does not say what the limit was".to_owned()),
        Some(verdict) if verdict.limit == "generator" => Fate::Skipped(verdict.says.clone()),
        Some(_) => Fate::Passed,
    }
}

fn goal(goal: &GoalOutcome) -> (String, Fate) {
    let name = (goal.quantile * 1e8).round() / 1e6;
    let reached = match (goal.reached_us, goal.above_us) {
        (Some(us), _) => format!("{} us", number(us)),
        (None, Some(us)) => format!("more than {} us", number(us)),
        (None, None) => "not known".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::Run;
    use pummel_logic::measure::measurement::Keep;
    use pummel_logic::plan::Goal;
    use pummel_logic::time::MILLISECOND;

    #[test]
    fn a_run_without_goals_has_cases_too() {
        let text = String::from_utf8(Run::new(Keep::Figures).document(render)).unwrap();
        assert!(
            text.contains(
                "<testsuites tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"1\" time=\"2.000\">"
            ),
            "{text}"
        );
        assert!(text.contains("<testcase classname=\"pummel\" name=\"complete\"/>"), "{text}");
        assert!(text.contains("<skipped message=\"no value was checked (--verify)\">no value"), "{text}");
    }

    #[test]
    fn a_missed_goal_and_a_partial_run_are_failures_with_their_words_in_the_body_too() {
        let mut run = Run::new(Keep::Figures);
        run.plan.goals = vec![
            Goal { quantile: 0.99, limit_ns: MILLISECOND / 100 },
            Goal { quantile: 0.5, limit_ns: MILLISECOND },
        ];
        run.measurement.mark(Status::Partial, "</failure> \"gone\"\u{1}");
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
