//! The JSON of results, for scripts: the bytes of a document.

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::json_layout::json_text;

/// A document as JSON text.
pub fn render<T: Serialize>(document: &T) -> Vec<u8> {
    json_text(document)
}
