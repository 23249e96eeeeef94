//! The two answers of a run: how far its times may be believed, and what set the rate or the waiting.

use crate::document::Document;
use crate::view::{Line, Text, Tone};
use crate::words::trust::UNRELIABLE;

/// How far the times may be believed.
pub(super) fn trust(document: &Document) -> Option<Line> {
    let line = document.trust_line()?;
    let text = match line.is_unreliable {
        true => Text::default().and(Tone::Warning, UNRELIABLE).and(Tone::Plain, line.rest),
        false => Text::plain(line.rest),
    };
    Some(Line::new("Trust", text))
}

/// What set the rate, or the waiting; `None` for a run that failed of errors, which no resource explains.
pub(super) fn limit(document: &Document) -> Option<Line> {
    document.limit_line().map(|words| Line::new("Limit", Text::plain(words)))
}
