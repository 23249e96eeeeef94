//! Numbers in decimal, all digits at once.

/// Decimal digits that are written at once; the largest index of a record, 5 * 2^40 - 1, has 13, and that of a key that is no
/// record has 16.
pub const DIGITS: usize = 16;

/// Number of digits of a number in decimal.
pub(crate) fn digits_in(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// A number below 10^16 in decimal, with leading zeros.
#[inline]
pub(crate) fn decimal(number: u64) -> [u8; DIGITS] {
    const HALF: u64 = 100_000_000;
    debug_assert!(number < HALF * HALF);
    let mut digits = [0; DIGITS];
    if number < HALF {
        digits[..8].copy_from_slice(b"00000000");
        digits[8..].copy_from_slice(&eight_digits(number));
    } else {
        digits[..8].copy_from_slice(&eight_digits(number / HALF));
        digits[8..].copy_from_slice(&eight_digits(number % HALF));
    }
    digits
}

/// A number below 10^8 in decimal, all digits at once: the word is split into halves of four digits, those into pairs,
/// and the pairs into digits, each time all parts together, with multiplications in place of divisions. The quotients
/// are exact for the parts' ranges (10486 / 2^20 for 1/100 below 10^4, 103 / 2^10 for 1/10 below 100).
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - 10 * tens) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use proptest::prop_assert_eq;

    use super::*;

    #[test]
    fn decimals_are_right_at_every_change_of_length() {
        for power in 0..DIGITS as u32 {
            for number in [10u64.pow(power) - 1, 10u64.pow(power), 10u64.pow(power) + 1, 9 * 10u64.pow(power)]
            {
                assert_eq!(decimal(number)[..], *format!("{number:016}").as_bytes());
            }
        }
        // All quotients of the first two steps, and all of the last.
        for four in 0..10_000 {
            assert_eq!(
                eight_digits(four * 10_000 + (9_999 - four))[..],
                *format!("{four:04}{:04}", 9_999 - four).as_bytes()
            );
        }
    }

    proptest! {
        #[test]
        fn decimals_are_right(number in 0u64..10_000_000_000_000_000) {
            prop_assert_eq!(String::from_utf8(decimal(number).to_vec()).unwrap(), format!("{number:016}"));
        }
    }
}
