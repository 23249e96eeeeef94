//! Numbers in the forms of traces: whole ones, times with a fraction, dates.

use pummel_logic::time::{Nanos, SECOND};

/// A whole number without a sign; `None` for anything else, and for what does not fit.
#[inline]
pub fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut number = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// A whole number that fits into 32 bits.
#[inline]
pub fn whole_32(text: &[u8]) -> Option<u32> {
    u32::try_from(whole(text)?).ok()
}

/// A number of units of `unit_ns` nanoseconds with or without a fraction, and whether it has one. Digits beyond a nanosecond
/// are cut off.
#[inline]
pub fn decimal(text: &[u8], unit_ns: Nanos) -> Option<(Nanos, bool)> {
    let Some(dot) = text.iter().position(|&byte| byte == b'.') else {
        return Some((whole(text)?.checked_mul(unit_ns)?, false));
    };
    let (before, after) = (&text[..dot], &text[dot + 1..]);
    let before = if before.is_empty() { 0 } else { whole(before)? };
    let (mut fraction, mut place_ns) = (0, unit_ns);
    for &byte in after {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        place_ns /= 10;
        fraction += u64::from(digit) * place_ns;
    }
    (before.checked_mul(unit_ns)?.checked_add(fraction)).map(|time| (time, true))
}

/// A date and time of ISO 8601 as nanoseconds since 1970, such as `2024-05-01T12:00:00.25Z` or with `+02:00` at its end, and
/// whether it has a fraction of a second. Times without a zone are UTC.
pub fn date(text: &[u8]) -> Option<(Nanos, bool)> {
    let part = |range: std::ops::Range<usize>| whole(text.get(range)?);
    let is = |at: usize, marks: &[u8]| text.get(at).is_some_and(|byte| marks.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"T ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = &text[19..];
    let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = match rest.first() {
        Some(b'.') if digits > 0 => rest.split_at(1 + digits),
        _ => (&[][..], rest),
    };
    let (fraction_ns, has_fraction) =
        if fraction.is_empty() { (0, false) } else { decimal(fraction, SECOND)? };
    let seconds = days_from_1970(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
    let offset_s = zone_offset_s(zone)?;
    let seconds = u64::try_from(i64::try_from(seconds).ok()? - offset_s).ok()?;
    Some((seconds.checked_mul(SECOND)?.checked_add(fraction_ns)?, has_fraction))
}

/// Seconds that a zone is ahead of UTC.
fn zone_offset_s(zone: &[u8]) -> Option<i64> {
    let sign = match zone {
        b"" | b"Z" => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let digits: Vec<u8> = zone[1..].iter().copied().filter(|&byte| byte != b':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (whole(&digits)?, 0),
        4 => (whole(&digits[..2])?, whole(&digits[2..])?),
        _ => return None,
    };
    Some(sign * (hours * 3_600 + minutes * 60) as i64)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms", 2013);
/// `None` before 1970.
fn days_from_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

/// A number of seconds as nanoseconds.
pub(super) fn seconds(number: u64) -> Option<Nanos> {
    number.checked_mul(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_digits_only_and_fit() {
        assert_eq!((whole(b"0"), whole(b"1234567890123456789")), (Some(0), Some(1_234_567_890_123_456_789)));
        for bad in [&b""[..], b"-1", b"1.5", b" 1", b"12345678901234567890", b"x"] {
            assert_eq!(whole(bad), None, "{bad:?}");
        }
        assert_eq!((whole_32(b"4294967295"), whole_32(b"4294967296")), (Some(u32::MAX), None));
    }

    #[test]
    fn decimals_are_exact_to_the_nanosecond() {
        assert_eq!(decimal(b"1339518090.420270", SECOND), Some((1_339_518_090_420_270_000, true)));
        assert_eq!(decimal(b"5", SECOND), Some((5 * SECOND, false)));
        assert_eq!(decimal(b".5", 1_000_000), Some((500_000, true)));
        assert_eq!(decimal(b"0.12345678999", SECOND), Some((123_456_789, true)));
        for bad in [&b""[..], b"1.x", b"1.2.3", b"18446744073709551615"] {
            assert_eq!(decimal(bad, SECOND), None, "{bad:?}");
        }
    }

    #[test]
    fn dates_are_times_since_1970() {
        assert_eq!(date(b"1970-01-01T00:00:00Z"), Some((0, false)));
        assert_eq!(date(b"2024-02-29T12:34:56Z"), Some((1_709_210_096 * SECOND, false)));
        assert_eq!(date(b"2024-02-29 14:34:56.25+02:00"), Some((1_709_210_096_250_000_000, true)));
        assert_eq!(date(b"2000-12-31T23:59:59-0100"), Some((978_310_799 * SECOND, false)));
        for bad in
            [&b"2024-13-01T00:00:00Z"[..], b"2024-01-01", b"2024-01-01T00:00:00Q", b"1969-12-31T00:00:00Z"]
        {
            assert_eq!(date(bad), None, "{bad:?}");
        }
    }
}
