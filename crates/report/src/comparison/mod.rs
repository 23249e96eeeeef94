//! Two sides compared, or the runs of two suites: pure functions from their runs to what may be said of them, and from that to JSON and CSV.

mod claim;
mod csv;
mod difference_words;
mod doubt;
mod family;
mod order;
mod result;
mod row;
mod side;
mod stored;
mod suites;

#[cfg(test)]
pub(crate) mod suite_tests;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::json::render as json;

pub use self::claim::{Claim, ClaimKind, ClaimResult, Outcome};
pub use self::csv::csv;
pub(crate) use self::difference_words::words_of_all;
pub use self::difference_words::{DifferenceWords, load_difference};
pub use self::doubt::{Doubt, RunsOfSide};
pub use self::order::Order;
pub use self::result::{Comparison, Comparisons, PairCommand, Question, json_of_all};
pub use self::row::{Row, Word};
pub(crate) use self::side::differences;
pub use self::side::{Difference, SIDE_NAMES, ServerSoftware, Side, SideNames, SideSource};
pub use self::stored::{NotASide, StoredFile, side_of, sides_of, suite_sides};
pub use self::suites::{NamedPair, SUITE_RUNS_MAX, SharedShift, SuiteSide, SuitesComparison};
