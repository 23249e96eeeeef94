//! How the runs of the two sides of a comparison followed each other.

/// How the runs of the two sides followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They alternated in mixed order, pair by pair.
    Mixed,
    /// Side A was measured before side B.
    FirstBeforeSecond,
    /// Side B was measured before side A.
    SecondBeforeFirst,
    /// Otherwise, or it is not known.
    Other,
}

impl Order {
    /// Why runs in this order may look different without being so; `None` of runs in mixed order.
    pub fn trap(self) -> Option<&'static str> {
        match self {
            Order::Mixed => None,
            Order::FirstBeforeSecond => Some("A was measured before B: a slower hour would look the same"),
            Order::SecondBeforeFirst => Some("B was measured before A: a slower hour would look the same"),
            Order::Other => Some("A and B did not alternate in mixed order: a slower hour may look the same"),
        }
    }
}
