//! The values of fields that a saved Plan leaves out.

/// Whether a value is the default of its type.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of numbers that are at least 1.
pub(super) fn one() -> u32 {
    1
}

/// Whether a number is 1.
pub(super) fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The default of choices that are made unless a Plan says otherwise.
pub(super) fn yes() -> bool {
    true
}

/// Whether a choice is made.
pub(super) fn is_true(choice: &bool) -> bool {
    *choice
}
