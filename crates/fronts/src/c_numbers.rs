//! Numbers as the C library's `strtol` and `strtod` read them, for the fronts of programs that use those.

/// A whole number in the manner of `strtol`: blanks, a sign, and digits in the base that their beginning says (`0x` 16,
/// `0` 8, else 10), or in `base` where that is not 0. Returns it, kept within 64 bits as there, and what follows; a text
/// without a number is 0 with everything following.
pub fn strtol(text: &str, base: u32) -> (i64, &str) {
    let (negative, digits) = sign(text);
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let hex = hex.filter(|rest| rest.starts_with(|digit: char| digit.is_ascii_hexdigit()));
    let (base, digits) = match (base, hex) {
        (0 | 16, Some(rest)) => (16, rest),
        (0, None) if digits.starts_with('0') => (8, digits),
        (0, None) => (10, digits),
        (base, _) => (base, digits),
    };
    let end = digits.find(|digit: char| !digit.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return (0, text);
    }
    let size = digits[..end].chars().fold(0i128, |sum, digit| {
        (sum * i128::from(base) + i128::from(digit.to_digit(base).unwrap_or(0))).min(i128::from(u64::MAX))
    });
    let number = if negative { -size } else { size };
    (number.clamp(i64::MIN.into(), i64::MAX.into()) as i64, &digits[end..])
}

/// A number in the manner of `strtod`: decimal, hexadecimal, infinite or not a number at all. Returns it and what
/// follows; a text without a number is 0 with everything following.
pub fn strtod(text: &str) -> (f64, &str) {
    let (negative, rest) = sign(text);
    let signed = |number: f64| if negative { -number } else { number };
    for (word, number) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)) {
            return (signed(number), &rest[word.len()..]);
        }
    }
    if let Some((number, rest)) = hexadecimal(rest) {
        return (signed(number), rest);
    }
    let end = decimal_end(rest);
    match rest[..end].parse::<f64>() {
        Ok(number) => (signed(number), &rest[end..]),
        Err(_) => (0.0, text),
    }
}

/// Blanks and a sign, and what follows them.
fn sign(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    }
}

/// Where a decimal number ends; 0 where there is none.
fn decimal_end(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') {
        let part = digits(end + 1);
        if whole + part == 0 {
            return 0;
        }
        end += 1 + part;
    }
    if end > 0 && text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

/// A hexadecimal number with its fraction and its power of 2.
fn hexadecimal(text: &str) -> Option<(f64, &str)> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"))?;
    let (mut number, mut scale, mut seen, mut fraction, mut end) = (0.0, 1.0, false, false, 0);
    for letter in digits.chars() {
        match letter.to_digit(16) {
            Some(digit) => {
                seen = true;
                number = number * 16.0 + f64::from(digit);
                scale *= if fraction { 16.0 } else { 1.0 };
            }
            None if letter == '.' && !fraction => fraction = true,
            None => break,
        }
        end += letter.len_utf8();
    }
    if !seen {
        return None;
    }
    let mut rest = &digits[end..];
    if let Some(power) = rest.strip_prefix(['p', 'P']) {
        let (exponent, after) = strtol(power, 10);
        if after.len() < power.len() {
            number *= 2f64.powi(exponent.clamp(-5_000, 5_000) as i32);
            rest = after;
        }
    }
    Some((number / scale, rest))
}

/// A finite number as `printf` writes it for `%g`: six significant digits without zeros at their end, and an exponent
/// where it is below -4 or above 5.
pub fn percent_g(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(5 - exponent).unwrap_or(0);
    without_zeros(&format!("{number:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_the_base_that_they_begin_with() {
        for (text, number, rest) in [
            ("5", 5, ""),
            (" \t-12", -12, ""),
            ("+7x", 7, "x"),
            ("0x10", 16, ""),
            ("-0X1f", -31, ""),
            ("010", 8, ""),
            ("08", 0, "8"),
            ("0x", 0, "x"),
            ("0xg", 0, "xg"),
            ("", 0, ""),
            ("k", 0, "k"),
            ("-", 0, "-"),
            ("1e6", 1, "e6"),
            ("99999999999999999999", i64::MAX, ""),
            ("-99999999999999999999", i64::MIN, ""),
        ] {
            assert_eq!(strtol(text, 0), (number, rest), "{text:?}");
        }
        assert_eq!(strtol("010", 10), (10, ""));
    }

    #[test]
    fn fractions_are_read_as_far_as_they_go() {
        for (text, number, rest) in [
            ("0.5", 0.5, ""),
            (".5", 0.5, ""),
            ("5.", 5.0, ""),
            ("1e-1", 0.1, ""),
            ("1e", 1.0, "e"),
            ("1e+x", 1.0, "e+x"),
            ("-2.5e3z", -2500.0, "z"),
            ("0x1.8p1", 3.0, ""),
            ("0x10", 16.0, ""),
            ("", 0.0, ""),
            (".", 0.0, "."),
            ("abc", 0.0, "abc"),
            ("-INF", f64::NEG_INFINITY, ""),
            ("200abc", 200.0, "abc"),
        ] {
            assert_eq!(strtod(text), (number, rest), "{text:?}");
        }
        assert!(strtod("nan").0.is_nan());
    }

    #[test]
    fn numbers_are_written_with_six_digits() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (5.5, "5.5"),
            (0.1234567, "0.123457"),
            (100.0, "100"),
            (999_999.0, "999999"),
            (999_999.5, "1e+06"),
            (1e10, "1e+10"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (-2.5, "-2.5"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(percent_g(number), text);
        }
    }
}
