//! Numbers as the native text report writes them: three digits, and commas between thousands.

pub use pummel_measure::words::grouped;

/// A number with at least three significant digits: two digits after the point below 10, one below 100, else none.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value.abs() < 0.0995 {
        format!("{value:.3}")
    } else if value.abs() < 9.995 {
        format!("{value:.2}")
    } else if value.abs() < 99.95 {
        format!("{value:.1}")
    } else {
        grouped(value.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_thousands_are_set_apart() {
        let written = [0.0, 0.0259, 0.5, 9.994, 9.996, 99.94, 99.96, 1_234.5, 1_234_567.0].map(number);
        assert_eq!(written, ["0", "0.026", "0.50", "9.99", "10.0", "99.9", "100", "1,235", "1,234,567"]);
    }
}
