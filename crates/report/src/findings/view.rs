//! The view of findings: each result with what was found of it.

use super::finding::{Finding, Grade, counts};
use crate::view::{Line, Text, Tone, View};
use crate::visible::cut_name;
use crate::words::findings::headline;

/// Characters of the name of a result that are shown at most.
const NAME_CHARS_MAX: usize = 200;

/// Most names of results that are listed.
const NAMES_MAX: usize = 20;

/// What was found of results with these names: each with its findings, those of all together, and the results of which nothing was found.
pub fn view(names: &[String], findings: &[Finding]) -> View {
    let (found, notes) = counts(findings);
    let tone = if found > 0 { Tone::Alarm } else { Tone::Plain };
    let head = Text::default().and(tone, headline(names.len(), found, notes));
    let mut lines = vec![Line::new("Result", head)];
    for own in findings.chunk_by(|one, next| one.run == next.run) {
        lines.extend(of_run(own));
    }
    let clean: Vec<&String> = names.iter().filter(|name| is_clean(name, findings)).collect();
    if !clean.is_empty() && !findings.is_empty() {
        lines.push(Line::new("Clean", Text::plain(listed(&clean))));
    }
    let all = listed(&names.iter().collect::<Vec<_>>());
    View { ran: vec![vec![format!("audit of {all}")]], lines, ..View::default() }
}

/// Names in a list, with the number of those that are left out.
fn listed(names: &[&String]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMES_MAX).map(|name| cut_name(name, NAME_CHARS_MAX)).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &more
}

/// Whether nothing was found of a result and of its sides.
fn is_clean(name: &str, findings: &[Finding]) -> bool {
    let is_of =
        |run: &str| run.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
    !findings.iter().filter_map(|finding| finding.run.as_deref()).any(is_of)
}

/// The line for scripts: the numbers of results, findings and notes.
pub fn brief(results: usize, findings: &[Finding]) -> String {
    let (found, notes) = counts(findings);
    headline(results, found, notes)
}

/// The name of a result with its findings below it.
fn of_run(findings: &[Finding]) -> Vec<Line> {
    let head = match findings.first().and_then(|finding| finding.run.as_deref()) {
        Some(name) => Line::new("Run", Text::default().and(Tone::Figure, cut_name(name, NAME_CHARS_MAX))),
        None => Line::new("Together", Text::default()),
    };
    let own = findings.iter().map(|finding| {
        let (label, tone) = match finding.grade {
            Grade::Finding => ("Finding", Tone::Warning),
            Grade::Note => ("Note", Tone::Dim),
        };
        Line { label, tone, text: Text::plain(finding.says.clone()) }
    });
    std::iter::once(head).chain(own).collect()
}
