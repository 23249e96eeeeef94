//! The JSON result, for scripts: the bytes of the document.

#[cfg(test)]
mod tests;

use crate::report::document::Document;
use crate::report::layout::json_text;

/// The result as JSON text.
pub fn render(document: &Document) -> Vec<u8> {
    json_text(document)
}
