//! The result as Markdown, for the page of a job or a comment: a headline, goals, a table, the verdict, details folded.

use pummel_measure::completion::has_nothing_to_report;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::counted;

use crate::document::{Document, Figure, UntilOutcome};
use crate::numbers::{grouped, number};

/// The most bytes of a summary.
const BYTES_MAX: usize = 8 * 1024;

/// Messages of servers that are shown at most.
const MESSAGES_MAX: usize = 5;

/// Characters of foreign words that are shown at most: messages, reasons, names.
const FOREIGN_CHARS_MAX: usize = 200;

/// Characters of a sentence of pummel's own that are shown at most.
const OWN_CHARS_MAX: usize = 2_000;

/// Steps of a sparkline.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a sparkline at most.
const COLUMNS_MAX: usize = 40;

/// The summary, at most 8 KB.
pub fn render(document: &Document) -> Vec<u8> {
    let mut text = nothing(document).unwrap_or_else(|| whole(document));
    shorten(&mut text, BYTES_MAX);
    text.into_bytes()
}

/// The summary of a run that measured and stored nothing: its reason, without a table; `None` for all other runs.
fn nothing(document: &Document) -> Option<String> {
    let stored = document.load.as_ref().map_or(0, |load| load.stored);
    let is_empty = has_nothing_to_report(&document.plan, stored, document.totals.requests);
    let reason = document.reason.as_ref().filter(|_| document.status == Status::Partial && is_empty)?;
    let servers = foreign(&document.plan.servers.join(", "));
    Some(format!(
        "### pummel: PARTIAL, nothing was measured against {servers}\n\nReason: {}\n\n{}",
        plain(reason),
        origin(document)
    ))
}

/// The seed and the version that made a result.
fn origin(document: &Document) -> String {
    format!("<sub>seed {}, pummel {}</sub>\n", document.plan.seed, foreign(&document.tool.version))
}

/// The summary of a run with figures.
fn whole(document: &Document) -> String {
    let mut text = headline(document);
    text += &goals(document);
    text += &table(document);
    text += &keys(document);
    text += &outcomes(document);
    text += &misses(document);
    text += &sparkline(document);
    text += &answers(document);
    let details = details(document);
    if text.len() + details.len() <= BYTES_MAX {
        text += &details;
    }
    text
}

/// A text report as it is, below a headline, at most 8 KB: for results without a summary of their own.
pub fn of_text(headline: &str, report: &str) -> Vec<u8> {
    const FENCE: &str = "\n```\n";
    // A fence in the words of others would end this one.
    let report = report.replace("```", "'''");
    let is_shown = |letter: &char| !letter.is_control() || *letter == '\n';
    let report: String = report.chars().filter(is_shown).collect();
    let mut text = format!("### {}\n{FENCE}{}", plain(headline), report.trim_end());
    shorten(&mut text, BYTES_MAX - FENCE.len());
    text.push_str(FENCE);
    text.into_bytes()
}

/// Cuts text to this many bytes, with a mark where it was cut.
fn shorten(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max - 4).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("…\n");
    }
}

/// Sentences of pummel's own, which may contain foreign names: marks of Markdown and HTML have no meaning in them, and
/// they are one line. Beyond 2,000 characters an ellipsis stands for the rest.
pub fn plain(words: &str) -> String {
    at_most(words, OWN_CHARS_MAX)
}

/// Foreign words as text of Markdown. Beyond 200 characters an ellipsis stands for the rest.
pub fn foreign(words: &str) -> String {
    at_most(words, FOREIGN_CHARS_MAX)
}

fn at_most(words: &str, chars_max: usize) -> String {
    let mut text = String::new();
    for (place, character) in words.chars().enumerate() {
        if place == chars_max {
            text.push('…');
            break;
        }
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '@' => {
                text.push('\\');
                text.push(character);
            }
            control if control.is_control() => text.push(' '),
            other => text.push(other),
        }
    }
    text
}

fn time(figure: Figure) -> String {
    match figure {
        Figure::Known(us) => format!("{} us", number(us)),
        Figure::Above(us) => format!("> {} us", number(us)),
        Figure::Absent => "-".to_owned(),
    }
}

fn headline(document: &Document) -> String {
    let outcome = document.outcome.headline().map(|word| format!("**{word}**"));
    let status = match document.status {
        Status::Complete => outcome.as_deref().unwrap_or("complete"),
        Status::Partial => "**PARTIAL**",
        Status::Interrupted => "**INTERRUPTED**",
    };
    let response = document.totals.times.of_span(Span::Response);
    let mut text = format!(
        "### pummel: {} req/s, p99 {}\n\n{status}, {:.2} s measured against {}\n\n",
        number(document.totals.rate),
        time(response.at("p99")),
        document.seconds,
        foreign(&document.plan.servers.join(", "))
    );
    if let Some(says) = document.outcome_says.as_ref().filter(|_| document.outcome != RunOutcome::Ok) {
        text += &format!("Outcome: {}\n\n", foreign(says));
    }
    if let Some(reason) = &document.reason {
        text += &format!("Reason: {}\n\n", foreign(reason));
    }
    let wrong = document.verify.failed + document.verify.stale;
    if wrong > 0 {
        text += &format!("**WRONG OR STALE VALUES: {}**\n\n", grouped(wrong));
    }
    text
}

fn goals(document: &Document) -> String {
    let each = document.goals.iter().map(|goal| {
        let name = (goal.quantile * 1e8).round() / 1e6;
        let mark = match goal.met {
            Some(true) => "met",
            Some(false) => "**MISSED**",
            None => "**UNDECIDED**",
        };
        let reached = match (goal.reached_us, goal.above_us) {
            (Some(us), _) => format!("{} us", number(us)),
            (None, Some(us)) => format!("> {} us", number(us)),
            (None, None) => "not known".to_owned(),
        };
        let doubt = if goal.trust { "" } else { ", partly added by pummel" };
        format!("- goal p{name} within {} us: {mark} ({reached}{doubt})\n", number(goal.limit_us))
    });
    let failures = document.failures().into_iter().map(|failure| {
        let (name, says) = (failure.on.name(), plain(&failure.says));
        match failure.is_known {
            true => format!("- **FAILED on {name}**: {says}\n"),
            false => format!("- **{name}: not judged**: {says}\n"),
        }
    });
    let until = document.until.as_ref().map(until);
    let text: String = each.chain(until).chain(not_steady(document)).chain(failures).collect();
    if text.is_empty() { text } else { text + "\n" }
}

/// The line of `--until`: the quantile and whether its interval became narrow enough.
fn until(until: &UntilOutcome) -> String {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let mark = if until.reached { "reached" } else { "**NOT REACHED**" };
    let known = until.half_width.map_or("how sure it is, is not known".to_owned(), |half_width| {
        format!("+- {}", percent(half_width))
    });
    format!("- {} known to {}: {mark} ({known})\n", quantile_name(until.quantile), percent(until.asked))
}

/// The change in a run that was not steady; `None` if there was none, and if that was not judged.
fn not_steady(document: &Document) -> Option<String> {
    if document.steady != Some(false) {
        return None;
    }
    let Some(change) = &document.change else {
        let parts = document.merged.iter().filter(|part| part.steady == Some(false));
        let names: Vec<&str> = parts.map(|part| part.file.as_str()).collect();
        let why = match document.merged.is_empty() {
            true => foreign(&document.unsteady_words()),
            false => format!("results of the sum: {}", foreign(&names.join(", "))),
        };
        return Some(format!("- **NOT STEADY**: {why}\n"));
    };
    let text = |value: Option<f64>| match (change.figure.as_str(), value) {
        (_, None) => "not known".to_owned(),
        ("p50", Some(us)) => format!("{} us", number(us)),
        ("rate", Some(rate)) => format!("{}/s", number(rate)),
        (_, Some(share)) => format!("{:.1} %", share * 100.0),
    };
    let (before, after) = (text(change.before), text(change.after));
    let figure = foreign(&change.figure);
    Some(format!("- **NOT STEADY**: {figure} {before} before {:.1} s, {after} after\n", change.at_s))
}

fn table(document: &Document) -> String {
    let mut text = String::from(
        "| | completed | per second | hit % | errors | no answer | p50 | p90 | p99 | p99.9 | max |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, op) in document.ops.iter() {
        let rate = if document.seconds > 0.0 { op.completed as f64 / document.seconds } else { 0.0 };
        let hits = match op.hits + op.misses {
            0 => "-".to_owned(),
            all => format!("{:.1}", 100.0 * op.hits as f64 / all as f64),
        };
        let response = op.times.of_span(Span::Response);
        let times = ["p50", "p90", "p99", "p99.9", "max"].map(|name| time(response.at(name))).join(" | ");
        text += &format!(
            "| {} | {} | {} | {hits} | {} | {} | {times} |\n",
            foreign(name),
            grouped(op.completed),
            number(rate),
            grouped(op.failed()),
            grouped(op.unanswered())
        );
    }
    text + "\n"
}

/// The answered requests that did not do what they are for; empty where there are none.
fn outcomes(document: &Document) -> String {
    document.outcomes_words().map_or_else(String::new, |words| format!("**Outcomes** {}\n\n", plain(&words)))
}

/// The keys of the completed requests; empty where each of them has one.
fn keys(document: &Document) -> String {
    document.totals.keys_words().map_or_else(String::new, |words| format!("Keys {words}\n\n"))
}

/// Why keys were missed; empty where misses are not told apart, and where there were none.
fn misses(document: &Document) -> String {
    document.misses_words().map_or_else(String::new, |words| format!("Misses {words}\n\n"))
}

/// Completed requests over time, as one line of bars.
fn sparkline(document: &Document) -> String {
    let intervals = &document.intervals;
    if intervals.len() < 2 {
        return String::new();
    }
    let each = intervals.len().div_ceil(COLUMNS_MAX);
    let rates: Vec<f64> = intervals
        .chunks(each)
        .map(|chunk| {
            let (sum, length) = chunk
                .iter()
                .fold((0.0, 0.0), |all, one| (all.0 + one.rate * one.seconds, all.1 + one.seconds));
            if length > 0.0 { sum / length } else { 0.0 }
        })
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let step = |rate: &f64| STEPS[((rate / most * 8.0).ceil() as usize).clamp(1, STEPS.len()) - 1];
    let bars: String = rates.iter().map(step).collect();
    format!("Completed per second, 0 to {}: `{bars}`\n\n", number(most))
}

fn answers(document: &Document) -> String {
    let mut text = String::new();
    if let Some(trust) = &document.trust {
        text += &format!("**Trust** {}\n\n", plain(&trust.says));
    }
    if let Some(verdict) = &document.verdict {
        text += &format!("**Limit** {}\n\n", plain(&verdict.says));
    }
    for (message, count) in document.error_messages.iter().take(MESSAGES_MAX) {
        text += &format!("- {} x {}\n", grouped(*count), foreign(message));
    }
    let more = document.error_messages.iter().skip(MESSAGES_MAX).count();
    if more > 0 {
        text += &format!("- … and {}\n", counted(more as u64, "more message"));
    }
    text
}

fn details(document: &Document) -> String {
    let mut text = String::from("\n<details><summary>The five times of all requests</summary>\n\n");
    text += "| | p50 | p90 | p99 | p99.9 | max |\n|---|---:|---:|---:|---:|---:|\n";
    for span in Span::ALL {
        let figures = document.totals.times.of_span(span);
        let times = ["p50", "p90", "p99", "p99.9", "max"].map(|name| time(figures.at(name))).join(" | ");
        text += &format!("| {} | {times} |\n", span.name());
    }
    text + "\n</details>\n\n" + &origin(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::CacheResult;
    use crate::document::{ChangeResult, TrustResult};
    use crate::example::Run;
    use pummel_logic::plan::Goal;
    use pummel_logic::time::MILLISECOND;
    use pummel_logic::workload::cache_counts::CacheCounts;
    use pummel_measure::measurement::Keep;

    fn text(document: &Document) -> String {
        String::from_utf8(render(document)).unwrap()
    }

    #[test]
    fn a_summary_begins_with_rate_and_tail_and_has_a_row_for_each_operation() {
        let mut run = Run::new(Keep::Figures);
        run.plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND / 100 }];
        let text = run.document(text);
        assert!(
            text.starts_with("### pummel: 1,000 req/s, p99 92.9 us\n\ncomplete, 2.00 s measured against "),
            "{text}"
        );
        assert!(text.contains("- goal p99 within 10.0 us: **MISSED** (92.9 us)\n"), "{text}");
        assert!(text.contains("| get | 1,800 | 900 | 94.4 | 0 | 0 | 62.4 us |"), "{text}");
        assert!(text.contains("Completed per second, 0 to 1,000: `██`"), "{text}");
        assert!(text.contains("**Limit** Nobody: requests were answered as they came"), "{text}");
    }

    #[test]
    fn a_run_that_measured_and_stored_nothing_has_its_reason_and_no_table() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.status = Status::Partial;
        document.reason = Some("none of 10 records was stored".to_owned());
        assert!(text(&document).contains("**PARTIAL**, 2.00 s measured"), "it measured something");
        document.totals.requests = 0;
        document.load = None;
        let text = text(&document);
        assert!(text.starts_with("### pummel: PARTIAL, nothing was measured against "), "{text}");
        assert!(text.contains("\n\nReason: none of 10 records was stored\n\n<sub>seed "), "{text}");
        assert!(!text.contains("|---"), "{text}");
    }

    #[test]
    fn a_summary_is_bounded_and_foreign_words_are_text() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.error_messages =
            (0..100).map(|i| (format!("<b>|*{i}\n# x {}", "y".repeat(5_000)), i)).collect();
        document.plan.servers = vec!["s".repeat(90); 500];
        let text = text(&document);
        assert!(text.len() <= BYTES_MAX, "{}", text.len());
        assert!(!text.contains("<b>") && text.contains("&lt;b&gt;\\|\\*0 \\# x"), "{text}");
        assert!(text.contains("yyy…\n") && text.contains("- … and 95 more messages\n"), "{text}");
        assert!(text.contains("sss…\n"), "{text}");
    }

    #[test]
    fn sentences_of_the_tool_are_whole_and_foreign_words_end_with_a_mark_where_they_were_cut() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let says = format!("{}.", "a long sentence ".repeat(50));
        document.trust = Some(TrustResult { ok: false, says: says.clone(), ..TrustResult::default() });
        assert!(text(&document).contains(&format!("**Trust** {says}\n")));
        assert_eq!(plain(&"x".repeat(2_000)), "x".repeat(2_000));
        assert_eq!(plain(&"x".repeat(2_001)), "x".repeat(2_000) + "…");
        assert_eq!(foreign(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(foreign(&"<".repeat(201)), "&lt;".repeat(200) + "…");
    }

    #[test]
    fn a_summary_says_what_is_not_known_as_asked_and_that_a_run_was_not_steady() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let plain = text(&document);
        assert!(!plain.contains("STEADY") && !plain.contains("REACHED"), "{plain}");
        let until = UntilOutcome { quantile: 0.99, asked: 0.05, half_width: Some(0.08), reached: false };
        document.until = Some(until);
        document.steady = Some(false);
        document.change = Some(ChangeResult {
            figure: "p50".to_owned(),
            at_s: 6.2,
            before: Some(180.0),
            after: None,
            ..ChangeResult::default()
        });
        let text = text(&document);
        let said = "- p99 known to 5.00 %: **NOT REACHED** (+- 8.00 %)\n\
                    - **NOT STEADY**: p50 180 us before 6.2 s, not known after\n\n";
        assert!(text.contains(said), "{text}");
        let reached = UntilOutcome { half_width: None, reached: true, ..until };
        assert!(super::until(&reached).contains("reached (how sure it is, is not known)"));
        document.change = None;
        assert!(not_steady(&document).is_some_and(|words| words.contains("the warm-up was over")));
    }

    #[test]
    fn a_summary_tells_misses_apart_where_the_result_does() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.cache = None;
        assert!(!text(&document).contains("Misses"));
        let counts = CacheCounts { first_touch: 1_500, expired: 500, ..CacheCounts::default() };
        document.cache = Some(CacheResult { counts, ..CacheResult::default() });
        let text = text(&document);
        assert!(
            text.contains(
                "|\n\nMisses 2,000: 75.0 % of keys never stored before, 25.0 % expired\n\nCompleted"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_report_for_people_stands_behind_a_fence_that_it_cannot_end() {
        let text = |report: &str| String::from_utf8(of_text("scan: 2 runs", report)).unwrap();
        assert_eq!(text("a | b\n```\n# c\u{1b}\n"), "### scan: 2 runs\n\n```\na | b\n'''\n# c\n```\n");
        let long = text(&"ä".repeat(9_000));
        assert!(long.len() <= BYTES_MAX && long.ends_with("…\n\n```\n"), "{}", long.len());
    }
}
