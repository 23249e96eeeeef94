//! Two sides compared: pure functions from their runs to what may be said of them, and from that to text, JSON and CSV.

mod claim;
mod difference_words;
mod json;
mod markdown;
mod order;
mod result;
mod side;
mod stored;
mod text;

#[cfg(test)]
mod tests;

pub use self::claim::{Claim, ClaimKind, ClaimResult, Outcome};
pub use self::difference_words::{DifferenceWords, load_difference};
pub use self::json::{csv, json, json_of_all};
pub use self::markdown::{markdown, markdown_of_all};
pub use self::order::Order;
pub use self::result::{Comparison, Conclusion, Question, Row, Word};
pub use self::side::{Difference, SIDE_NAMES, Side, SideNames, SideSource};
pub use self::stored::{
    NotASide, StoredFile, StoredRepetition, is_ab, side_of, sides_of, stored_ab, stored_repetition,
};
pub use self::text::{RowWords, difference_words, headline, label, notes, row_cells, text, text_of_all};
