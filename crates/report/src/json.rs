//! The JSON result, for scripts: the bytes of the document.

#[cfg(test)]
mod tests;

use crate::document::Document;
use crate::layout::json_text;

/// The result as JSON text.
pub fn render(document: &Document) -> Vec<u8> {
    json_text(document)
}
