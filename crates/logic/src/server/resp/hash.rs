//! A hash as the bytes of a value: each field and what it holds, with their lengths before them.

/// Looks a field up.
pub(super) fn get<'a>(bytes: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    pairs(bytes).find(|(name, _)| *name == field).map(|(_, value)| value)
}

/// All fields, in the order in which they were first set.
pub(super) fn pairs(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || Some((take(&mut rest)?, take(&mut rest)?)))
}

/// The hash with a field set; whether the field is new.
pub(super) fn with(bytes: &[u8], field: &[u8], value: &[u8]) -> (Vec<u8>, bool) {
    let mut hash = Vec::with_capacity(bytes.len() + field.len() + value.len() + 8);
    let mut found = false;
    for (name, old) in pairs(bytes) {
        let same = name == field;
        found |= same;
        push(&mut hash, name);
        push(&mut hash, if same { value } else { old });
    }
    if !found {
        push(&mut hash, field);
        push(&mut hash, value);
    }
    (hash, !found)
}

/// The hash without a field.
pub(super) fn without(bytes: &[u8], field: &[u8]) -> Vec<u8> {
    let mut hash = Vec::with_capacity(bytes.len());
    for (name, value) in pairs(bytes).filter(|(name, _)| *name != field) {
        push(&mut hash, name);
        push(&mut hash, value);
    }
    hash
}

fn push(hash: &mut Vec<u8>, part: &[u8]) {
    hash.extend_from_slice(&(part.len() as u32).to_be_bytes());
    hash.extend_from_slice(part);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk::<4>()?;
    let (part, tail) = tail.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    *rest = tail;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_replaced_and_taken_away() {
        let (hash, new) = with(&[], b"one", b"1");
        assert!(new);
        let (hash, new) = with(&hash, b"", b"nothing");
        assert!(new);
        let (hash, new) = with(&hash, b"one", b"");
        assert!(!new);
        assert_eq!(pairs(&hash).collect::<Vec<_>>(), [(&b"one"[..], &b""[..]), (b"", b"nothing")]);
        assert_eq!((get(&hash, b""), get(&hash, b"two")), (Some(&b"nothing"[..]), None));
        assert_eq!(pairs(&without(&hash, b"one")).count(), 1);
    }

    #[test]
    fn bytes_that_are_no_hash_end_where_they_stop_to_make_sense() {
        for bytes in [&b"x"[..], b"\xff\xff\xff\xff", b"\0\0\0\x01a", b"\0\0\0\x01a\0\0\0\x02b"] {
            assert_eq!(pairs(bytes).count(), 0, "{bytes:?}");
        }
    }
}
