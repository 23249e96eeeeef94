//! The result as Markdown, for the page of a job or a comment: a headline, goals, a table, the verdict, details folded.

use pummel_logic::measure::measurement::Status;
use pummel_logic::measure::recorder::Span;

use crate::report::document::{Document, Figure};
use crate::report::numbers::{grouped, number};

/// The most bytes of a summary.
const BYTES_MAX: usize = 8 * 1024;

/// Messages of servers that are shown at most.
const MESSAGES_MAX: usize = 5;

/// Characters of foreign words that are shown at most.
const WORDS_MAX: usize = 200;

/// Steps of a sparkline.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a sparkline at most.
const COLUMNS_MAX: usize = 40;

/// The summary, at most 8 KB.
pub fn render(document: &Document) -> Vec<u8> {
    let mut text = headline(document);
    text += &goals(document);
    text += &table(document);
    text += &sparkline(document);
    text += &answers(document);
    let details = details(document);
    if text.len() + details.len() <= BYTES_MAX {
        text += &details;
    }
    if text.len() > BYTES_MAX {
        let end = (0..=BYTES_MAX - 4).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("…\n");
    }
    text.into_bytes()
}

/// Words of others as text: no mark of Markdown or HTML has a meaning in them, and they are one line.
fn plain(words: &str) -> String {
    let mut text = String::new();
    for character in words.chars().take(WORDS_MAX) {
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
    let status = match document.status {
        Status::Complete => "complete",
        Status::Partial => "**PARTIAL**",
        Status::Interrupted => "**INTERRUPTED**",
    };
    let response = document.totals.times.of_span(Span::Response);
    let mut text = format!(
        "### pummel: {} req/s, p99 {}\n\n{status}, {:.2} s measured against {}\n\n",
        number(document.totals.rate),
        time(response.at("p99")),
        document.seconds,
        plain(&document.plan.servers.join(", "))
    );
    if let Some(reason) = &document.reason {
        text += &format!("Reason: {}\n\n", plain(reason));
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
        let doubt = if goal.trust { "" } else { ", partly the generator's own" };
        format!("- goal p{name} within {} us: {mark} ({reached}{doubt})\n", number(goal.limit_us))
    });
    let text: String = each.collect();
    if text.is_empty() { text } else { text + "\n" }
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
            plain(name),
            grouped(op.completed),
            number(rate),
            grouped(op.failed()),
            grouped(op.unanswered())
        );
    }
    text + "\n"
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
        text += &format!("- {} x {}\n", grouped(*count), plain(message));
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
    text += &format!(
        "\n</details>\n\n<sub>seed {}, pummel {}</sub>\n",
        document.plan.seed,
        plain(&document.tool.version)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::Run;
    use pummel_logic::measure::measurement::Keep;
    use pummel_logic::plan::Goal;
    use pummel_logic::time::MILLISECOND;

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
    fn a_summary_is_bounded_and_foreign_words_are_text() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.error_messages =
            (0..100).map(|i| (format!("<b>|*{i}\n# x {}", "y".repeat(5_000)), i)).collect();
        document.plan.servers = vec!["s".repeat(90); 500];
        let text = text(&document);
        assert!(text.len() <= BYTES_MAX, "{}", text.len());
        assert!(!text.contains("<b>") && text.contains("&lt;b&gt;\\|\\*0 \\# x"), "{text}");
    }
}
