//! The JSON result, for scripts: the bytes of the document.

#[cfg(test)]
mod tests;

use crate::report::document::Document;

/// The result as JSON text.
pub fn render(document: &Document) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(document).expect("the result has nothing that JSON has not");
    text.push(b'\n');
    text
}
