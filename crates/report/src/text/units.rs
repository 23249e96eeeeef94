//! Numbers and bytes as the report writes them.

use pummel_logic::time::Nanos;
use pummel_measure::summary::time_text;

use crate::numbers::number;

/// A time of a result in microseconds, with the unit that suits it.
pub(super) fn micros_text(us: f64) -> String {
    time_text((us * 1e3).round() as Nanos)
}

/// A time of a result in seconds, with the unit that suits it.
pub(super) fn duration_text(seconds: f64) -> String {
    time_text((seconds * 1e9).round() as Nanos)
}

/// A number as people write it: no zeros at the end of a fraction.
pub(super) fn plain(value: f64) -> String {
    let text = number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number of bytes with three digits, in decimal units.
pub(crate) fn byte_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", number(value)) }
}
