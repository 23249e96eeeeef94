//! The words for values that were wrong.

use pummel_logic::workload::verify::check::Damage;

/// The damage of a value in a few words.
pub fn damage_words(damage: Damage) -> &'static str {
    match damage {
        Damage::Magic => "not a value of this program, or its header was changed",
        Damage::Tag => "header changed, or the value of another key or of another data seed",
        Damage::Length => "longer or shorter than it was written",
        Damage::Bytes => "bytes changed",
        Damage::Prefix => "a short value that was changed, or the rest of a longer one",
        Damage::Counter => "not a number followed by spaces",
    }
}
