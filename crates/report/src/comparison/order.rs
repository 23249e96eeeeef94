//! How the runs of the two sides of a comparison followed each other.

use serde::{Deserialize, Serialize};

use super::side::SideNames;

/// How the runs of the two sides followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The runs alternated in mixed order, pair by pair.
    Mixed,
    /// Side A was measured before side B.
    FirstBeforeSecond,
    /// Side B was measured before side A.
    SecondBeforeFirst,
    /// Another order, or one that is not known.
    Other,
}

impl Order {
    /// The reason why runs in this order may look different although the sides, which have these names, are equal;
    /// `None` for runs in mixed order.
    pub fn trap(self, names: SideNames) -> Option<String> {
        let SideNames([first, second]) = names;
        let words = match self {
            Order::Mixed => return None,
            Order::FirstBeforeSecond => {
                format!("{first} was measured before {second}: a slower hour would look the same")
            }
            Order::SecondBeforeFirst => {
                format!("{second} was measured before {first}: a slower hour would look the same")
            }
            Order::Other => format!(
                "{first} and {second} did not alternate in mixed order: a slower hour may look the same"
            ),
        };
        Some(words)
    }
}
