//! A hash as the bytes of a value: its fields and their values, each with its length before it.

/// Looks a field up.
pub(super) fn get<'a>(bytes: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    pairs(bytes).find(|(name, _)| *name == field).map(|(_, value)| value)
}

/// All fields, in the order in which they were first set.
pub(super) fn pairs(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || Some((take(&mut rest)?, take(&mut rest)?)))
}

/// A field that is set.
struct Change<'a> {
    name: &'a [u8],
    value: &'a [u8],
    /// Place of the field among those that are set.
    place: usize,
    is_new: bool,
}

/// The hash with these fields set, and how many of them are new. The last value counts of a field that is there twice.
pub(super) fn with<'a>(bytes: &[u8], fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> (Vec<u8>, usize) {
    let mut changes: Vec<Change<'a>> = fields
        .enumerate()
        .map(|(place, (name, value))| Change { name, value, place, is_new: true })
        .collect();
    changes.sort_by_key(|change| change.name);
    changes.dedup_by(|later, earlier| {
        let same = later.name == earlier.name;
        if same {
            earlier.value = later.value;
        }
        same
    });
    let mut hash = Vec::with_capacity(bytes.len());
    for (name, old) in pairs(bytes) {
        push(&mut hash, name);
        match changes.binary_search_by(|change| change.name.cmp(name)) {
            Ok(at) => {
                push(&mut hash, changes[at].value);
                changes[at].is_new = false;
            }
            Err(_) => push(&mut hash, old),
        }
    }
    changes.retain(|change| change.is_new);
    changes.sort_unstable_by_key(|change| change.place);
    for change in &changes {
        push(&mut hash, change.name);
        push(&mut hash, change.value);
    }
    (hash, changes.len())
}

/// The hash without these fields, and how many it had of them.
pub(super) fn without<'a>(bytes: &[u8], fields: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, usize) {
    let mut names: Vec<&[u8]> = fields.collect();
    names.sort_unstable();
    let mut hash = Vec::with_capacity(bytes.len());
    let mut removed = 0;
    for (name, value) in pairs(bytes) {
        if names.binary_search(&name).is_ok() {
            removed += 1;
        } else {
            push(&mut hash, name);
            push(&mut hash, value);
        }
    }
    (hash, removed)
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

    /// The hash with fields set that are written as `name=value`, and how many of them are new.
    fn set(hash: &[u8], fields: &[&str]) -> (Vec<u8>, usize) {
        let fields = fields.iter().filter_map(|field| field.split_once('='));
        with(hash, fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn fields_are_set_replaced_and_taken_away() {
        let (hash, new) = set(&[], &["one=1"]);
        assert_eq!(new, 1);
        let (hash, new) = set(&hash, &["=nothing"]);
        assert_eq!(new, 1);
        let (hash, new) = set(&hash, &["one="]);
        assert_eq!(new, 0);
        assert_eq!(pairs(&hash).collect::<Vec<_>>(), [(&b"one"[..], &b""[..]), (b"", b"nothing")]);
        assert_eq!((get(&hash, b""), get(&hash, b"two")), (Some(&b"nothing"[..]), None));
        let (hash, removed) = without(&hash, [&b"one"[..], b"two", b"one"].into_iter());
        assert_eq!((pairs(&hash).count(), removed), (1, 1));
    }

    #[test]
    fn many_fields_at_once_are_set_as_one_after_the_other() {
        let fields = ["b=1", "a=2", "c=3", "b=4", "z=5", "a=6"];
        for count in 0..=fields.len() {
            let (before, _) = set(&[], &["z=0", "b=0"]);
            let (mut one_by_one, mut added) = (before.clone(), 0);
            for field in &fields[..count] {
                let (hash, new) = set(&one_by_one, &[*field]);
                (one_by_one, added) = (hash, added + new);
            }
            assert_eq!(set(&before, &fields[..count]), (one_by_one, added), "{count} fields");
        }
    }

    #[test]
    fn bytes_that_are_no_hash_end_where_they_stop_to_make_sense() {
        for bytes in [&b"x"[..], b"\xff\xff\xff\xff", b"\0\0\0\x01a", b"\0\0\0\x01a\0\0\0\x02b"] {
            assert_eq!(pairs(bytes).count(), 0, "{bytes:?}");
        }
    }
}
