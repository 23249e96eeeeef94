//! Quoted arguments and encoded keys, in the form of servers' logs.

/// The bytes of an argument in double quotes at the beginning of `text`, and what follows it: `\"`, `\\`, `\n`, `\r`, `\t`,
/// `\a`, `\b` and `\xHH` stand for one byte each (`sdscatrepr` of Redis). `None` where no whole argument is there.
pub(super) fn argument<'a>(text: &'a [u8], into: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some(rest),
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                into.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => {
                        let (digits, after) = rest.split_at_checked(2)?;
                        rest = after;
                        byte_of(digits)?
                    }
                    other => other,
                });
            }
            byte => into.push(byte),
        }
    }
}

/// The bytes of a key in which `%HH` stands for a byte, as memcached writes keys; `None` where an escape is cut or wrong.
pub(super) fn percent_decoded(text: &[u8], into: &mut Vec<u8>) -> Option<()> {
    into.clear();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            rest = after;
            into.push(byte_of(digits)?);
        } else {
            into.push(byte);
        }
    }
    Some(())
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}
