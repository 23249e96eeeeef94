//! The two answers of a run: how far its times may be believed, and what set the rate or the waiting.

use crate::document::Document;
use crate::view::{Line, Text, Tone};

/// The words of a trust that is none.
const UNRELIABLE: &str = "NOT RELIABLE";

/// How far the times may be believed.
pub(super) fn trust(document: &Document) -> Option<Line> {
    let line = document.trust_line()?;
    let text = match line.strip_prefix(UNRELIABLE) {
        Some(rest) => Text::default().and(Tone::Warning, UNRELIABLE).and(Tone::Plain, rest),
        None => Text::plain(line),
    };
    Some(Line::new("Trust", text))
}

/// What set the rate, or the waiting; `None` for a run that failed of errors, which no resource explains.
pub(super) fn limit(document: &Document) -> Option<Line> {
    document.limit_line().map(|words| Line::new("Limit", Text::plain(words)))
}
