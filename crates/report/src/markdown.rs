//! The result as Markdown, for the page of a job or a comment: a headline, goals, a table, the verdict, details folded.

use pummel_measure::completion::has_nothing_to_report;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::counted;

use crate::document::{Document, Figure, UntilOutcome};
use crate::escaped::{Markdown, Text};
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

/// Text of Markdown, whose words are escaped.
pub type Md = Text<Markdown>;

/// The summary, at most 8 KB.
pub fn render(document: &Document) -> Vec<u8> {
    let text = nothing(document).unwrap_or_else(|| whole(document));
    text.shorten(BYTES_MAX).finish().into_bytes()
}

/// The summary of a run that measured and stored nothing: its reason, without a table; `None` for all other runs.
fn nothing(document: &Document) -> Option<Md> {
    let stored = document.load.as_ref().map_or(0, |load| load.stored);
    let is_empty = has_nothing_to_report(&document.plan, stored, document.totals.requests);
    let reason = document.reason.as_ref().filter(|_| document.status == Status::Partial && is_empty)?;
    let text = Md::of("### pummel: PARTIAL, nothing was measured against ").and(servers(document));
    Some(text.mark("\n\nReason: ").and(plain(reason)).mark("\n\n").and(origin(document)))
}

fn servers(document: &Document) -> Md {
    foreign(&document.plan.servers.join(", "))
}

/// The seed and the version that made a result.
fn origin(document: &Document) -> Md {
    let text = Md::of("<sub>seed ").words(&document.plan.seed.to_string()).mark(", pummel ");
    text.and(foreign(&document.tool.version)).mark("</sub>\n")
}

/// The summary of a run with figures.
fn whole(document: &Document) -> Md {
    let parts = [headline, goals, table, keys, outcomes, misses, sparkline, answers];
    let text = Md::default().each(parts.map(|part| part(document)), "");
    let details = details(document);
    if text.len() + details.len() <= BYTES_MAX { text.and(details) } else { text }
}

/// A text report as it is, below a headline, at most 8 KB: for results without a summary of their own.
pub fn of_text(headline: &str, report: &str) -> Vec<u8> {
    const FENCE: &str = "\n```\n";
    let heading = Md::of("### ").and(plain(headline)).mark("\n").mark(FENCE);
    let text = heading.fenced(report.trim_end()).shorten(BYTES_MAX - FENCE.len());
    text.mark(FENCE).finish().into_bytes()
}

/// Sentences of pummel's own, which may contain foreign names: marks of Markdown and HTML have no meaning in them, and
/// they are one line. Beyond 2,000 characters an ellipsis stands for the rest.
pub fn plain(words: &str) -> Md {
    Md::default().cut(words, OWN_CHARS_MAX)
}

/// Foreign words as text of Markdown. Beyond 200 characters an ellipsis stands for the rest.
pub fn foreign(words: &str) -> Md {
    Md::default().cut(words, FOREIGN_CHARS_MAX)
}

/// A row of a table.
pub fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> Md {
    Md::of("|").each(cells.into_iter().map(|cell| Md::of(" ").and(foreign(cell))), " |").mark("\n")
}

fn time(figure: Figure) -> String {
    figure.text("-", |us| format!("{} us", number(us)))
}

fn headline(document: &Document) -> Md {
    let outcome = document.outcome.headline();
    let status = match document.status {
        Status::Complete => outcome.map_or(Md::of("complete"), |word| Md::of("**").words(word).mark("**")),
        Status::Partial => Md::of("**PARTIAL**"),
        Status::Interrupted => Md::of("**INTERRUPTED**"),
    };
    let p99 = time(document.totals.times.of_span(Span::Response).at("p99"));
    let text = Md::of("### pummel: ").words(&number(document.totals.rate)).mark(" req/s, p99 ").words(&p99);
    let text = text.mark("\n\n").and(status).mark(", ").words(&format!("{:.2} s", document.seconds));
    let mut text = text.mark(" measured against ").and(servers(document)).mark("\n\n");
    if let Some(says) = document.outcome_says.as_ref().filter(|_| document.outcome != RunOutcome::Ok) {
        text = text.mark("Outcome: ").and(foreign(says)).mark("\n\n");
    }
    if let Some(reason) = &document.reason {
        text = text.mark("Reason: ").and(foreign(reason)).mark("\n\n");
    }
    match document.verify.failed + document.verify.stale {
        0 => text,
        wrong => text.mark("**WRONG OR STALE VALUES: ").words(&grouped(wrong)).mark("**\n\n"),
    }
}

fn goals(document: &Document) -> Md {
    let each = document.goals.iter().map(|goal| {
        let name = (goal.quantile * 1e8).round() / 1e6;
        let mark = match goal.met {
            Some(true) => "met",
            Some(false) => "**MISSED**",
            None => "**UNDECIDED**",
        };
        let reached = goal.reached().text("not known", |us| format!("{} us", number(us)));
        let doubt = if goal.trust { "" } else { ", partly added by pummel" };
        let text = Md::of("goal ").words(&format!("p{name} within {} us", number(goal.limit_us)));
        text.mark(": ").mark(mark).mark(" (").words(&reached).mark(doubt).mark(")")
    });
    let failures = document.failures().into_iter().map(|failure| {
        let (begin, end) = match failure.is_known {
            true => ("**FAILED on ", "**: "),
            false => ("**", ": not judged**: "),
        };
        Md::of(begin).words(failure.on.name()).mark(end).and(plain(&failure.says))
    });
    let until = document.until.as_ref().map(until);
    let items: Vec<Md> = each.chain(until).chain(not_steady(document)).chain(failures).collect();
    match items.is_empty() {
        true => Md::default(),
        false => Md::default().each(items.into_iter().map(|item| Md::of("- ").and(item)), "\n").mark("\n"),
    }
}

/// The line of `--until`: the quantile and whether its interval became narrow enough.
fn until(until: &UntilOutcome) -> Md {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let mark = if until.reached { "reached" } else { "**NOT REACHED**" };
    let known = until.half_width.map_or("how sure it is, is not known".to_owned(), |half_width| {
        format!("+- {}", percent(half_width))
    });
    let text = Md::default().words(&quantile_name(until.quantile)).mark(" known to ");
    text.words(&percent(until.asked)).mark(": ").mark(mark).mark(" (").words(&known).mark(")")
}

/// The change in a run that was not steady; `None` if there was none, and if that was not judged.
fn not_steady(document: &Document) -> Option<Md> {
    Some(Md::of("**NOT STEADY**: ").and(foreign(&document.unsteady_line()?)))
}

fn table(document: &Document) -> Md {
    let text = Md::of(
        "| | completed | per second | hit % | errors | no answer | p50 | p90 | p99 | p99.9 | max |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let rows = document.ops.iter().map(|(name, op)| {
        let rate = if document.seconds > 0.0 { op.completed as f64 / document.seconds } else { 0.0 };
        let hits = op.hit_percent();
        let response = op.times.of_span(Span::Response);
        let mut cells = vec![name.to_owned(), grouped(op.completed), number(rate), hits];
        cells.extend([grouped(op.failed()), grouped(op.unanswered())]);
        cells.extend(["p50", "p90", "p99", "p99.9", "max"].map(|name| time(response.at(name))));
        row(cells.iter().map(String::as_str))
    });
    text.each(rows, "").mark("\n")
}

/// The answered requests that did not do what they are for; empty where there are none.
fn outcomes(document: &Document) -> Md {
    paragraph("**Outcomes** ", document.outcomes_words())
}

/// The keys of the completed requests; empty where each of them has one.
fn keys(document: &Document) -> Md {
    paragraph("Keys ", document.totals.keys_words())
}

/// Why keys were missed; empty where misses are not told apart, and where there were none.
fn misses(document: &Document) -> Md {
    paragraph("Misses ", document.misses_words())
}

/// Words behind a mark; empty where there are none.
fn paragraph(mark: &'static str, words: Option<String>) -> Md {
    words.map_or_else(Md::default, |words| Md::of(mark).and(plain(&words)).mark("\n\n"))
}

/// Completed requests over time, as one line of bars.
fn sparkline(document: &Document) -> Md {
    let intervals = &document.intervals;
    if intervals.len() < 2 {
        return Md::default();
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
        return Md::default();
    }
    let step = |rate: &f64| STEPS[((rate / most * 8.0).ceil() as usize).clamp(1, STEPS.len()) - 1];
    let bars: String = rates.iter().map(step).collect();
    let text = Md::of("Completed per second, 0 to ").words(&number(most));
    text.mark(": `").words(&bars).mark("`\n\n")
}

fn answers(document: &Document) -> Md {
    let text = paragraph("**Trust** ", document.trust.as_ref().map(|trust| trust.says.clone()));
    let text = text.and(paragraph("**Limit** ", document.limit_line()));
    let messages = document.error_messages.iter().take(MESSAGES_MAX);
    let messages =
        messages.map(|(words, count)| Md::of("- ").words(&grouped(*count)).mark(" x ").and(foreign(words)));
    let text = text.each(messages, "\n");
    match document.error_messages.iter().skip(MESSAGES_MAX).count() {
        0 => text,
        more => text.mark("- … and ").words(&counted(more as u64, "more message")).mark("\n"),
    }
}

fn details(document: &Document) -> Md {
    let text = Md::of("\n<details><summary>The five times of all requests</summary>\n\n")
        .mark("| | p50 | p90 | p99 | p99.9 | max |\n|---|---:|---:|---:|---:|---:|\n");
    let rows = Span::ALL.into_iter().map(|span| {
        let figures = document.totals.times.of_span(span);
        let times = ["p50", "p90", "p99", "p99.9", "max"].map(|name| time(figures.at(name)));
        row(std::iter::once(span.name()).chain(times.iter().map(String::as_str)))
    });
    text.each(rows, "").mark("\n</details>\n\n").and(origin(document))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::CacheResult;
    use crate::document::{ChangeResult, ChangedFigure, TrustResult};
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
        assert!(text.contains("**Limit** none reached: every request was answered as it came"), "{text}");
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
        assert_eq!(plain(&"x".repeat(2_000)).finish(), "x".repeat(2_000));
        assert_eq!(plain(&"x".repeat(2_001)).finish(), "x".repeat(2_000) + "…");
        assert_eq!(foreign(&"x".repeat(200)).finish(), "x".repeat(200));
        assert_eq!(foreign(&"<".repeat(201)).finish(), "&lt;".repeat(200) + "…");
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
            figure: ChangedFigure::P50,
            at_s: 6.2,
            before: Some(180.0),
            after: None,
            ..ChangeResult::default()
        });
        let text = text(&document);
        let said = "- p99 known to 5.00 %: **NOT REACHED** (+- 8.00 %)\n\
                    - **NOT STEADY**: p50 was 180 us before 6.2 s and not known after: no intervals\n\n";
        assert!(text.contains(said), "{text}");
        let reached = UntilOutcome { half_width: None, reached: true, ..until };
        assert!(super::until(&reached).finish().contains("reached (how sure it is, is not known)"));
        document.change = None;
        assert!(not_steady(&document).is_some_and(|words| words.finish().contains("the warm-up was over")));
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
        assert_eq!(
            text("a | b\n```\n# c\u{1b}\n"),
            "### scan: 2 runs\n\n```\na | b\n'''\n# c\u{fffd}\n```\n"
        );
        let long = text(&"ä".repeat(9_000));
        assert!(long.len() <= BYTES_MAX && long.ends_with("…\n\n```\n"), "{}", long.len());
    }
}
