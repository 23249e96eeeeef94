//! Two sides compared: pure functions from their runs to what may be said of them, and from that to text, JSON and CSV.

mod claim;
mod json;
mod order;
mod result;
mod side;
mod stored;
mod text;

#[cfg(test)]
mod tests;

pub use self::claim::{Claim, ClaimKind, ClaimResult, Outcome};
pub use self::json::{csv, json};
pub use self::order::Order;
pub use self::result::{Comparison, Conclusion, Question, Row, Word};
pub use self::side::{Difference, Side, SideSource};
pub use self::stored::{NotASide, StoredFile, side_of, sides_of};
pub use self::text::text;
