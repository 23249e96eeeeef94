//! Two sides compared: pure functions from their runs to what may be said of them, and from that to JSON and CSV.

mod claim;
mod csv;
mod difference_words;
mod doubt;
mod order;
mod result;
mod side;
mod stored;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::json::render as json;

pub use self::claim::{Claim, ClaimKind, ClaimResult, Outcome};
pub use self::csv::csv;
pub(crate) use self::difference_words::words_of_all;
pub use self::difference_words::{DifferenceWords, load_difference};
pub use self::doubt::{Doubt, RunsOfSide};
pub use self::order::Order;
pub use self::result::{Comparison, Comparisons, PairCommand, Question, Row, Word, json_of_all};
pub(crate) use self::side::differences;
pub use self::side::{Difference, SIDE_NAMES, ServerSoftware, Side, SideNames, SideSource};
pub use self::stored::{NotASide, StoredFile, side_of, sides_of};
