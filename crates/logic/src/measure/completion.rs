//! Whether a load came to what the Plan asks for, and why not.

use std::collections::BTreeMap;

use super::measurement::Load;

/// How much of what was to be stored was stored, in one phase that loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Records that were to be stored, counted once for each server that holds them.
    pub records: u64,
    /// Records that were stored, counted in the same way.
    pub stored: u64,
}

impl Loaded {
    /// Whether nothing was stored although something was to be: such a load has failed, and the run ends with it.
    pub fn has_failed(self) -> bool {
        self.records > 0 && self.stored == 0
    }

    /// Adds what other workers or processes stored in the same phase.
    pub fn merge(&mut self, other: Loaded) {
        self.records = self.records.saturating_add(other.records);
        self.stored = self.stored.saturating_add(other.stored);
    }
}

/// Why a run is not complete whose load ended like this, as a sentence without its full stop; `None` where the load takes
/// nothing from it. `allow_partial` is the Plan's `allow_partial_load`, which never excuses a load that stored nothing.
/// `trouble` says what happened to connections, for loads that no server answered with an error.
pub fn load_shortfall(load: &Load, allow_partial: bool, trouble: Option<&str>) -> Option<String> {
    let missing = load.records.saturating_sub(load.stored);
    let what = match load.stored {
        _ if missing == 0 => return None,
        0 => format!("none of {} records was stored", load.records),
        _ if allow_partial => return None,
        _ => format!("{missing} of {} records were not stored", load.records),
    };
    let why = most_said(&load.messages).or(trouble.map(str::to_owned));
    Some(why.map_or(what.clone(), |why| format!("{what}: {why}")))
}

/// What servers said most often with errors, as a part of a sentence; `None` where they said nothing.
pub fn most_said(messages: &BTreeMap<String, u64>) -> Option<String> {
    let (message, count) = messages.iter().max_by_key(|(_, count)| **count)?;
    Some(format!("the server said \"{message}\" ({count} times)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records stored, what servers said, whether a part is allowed, what happened to connections; and the reason.
    type Row<'a> = (u64, &'a [(&'a str, u64)], bool, Option<&'a str>, Option<&'a str>);

    /// A load of ten records, and what servers said while it went on.
    fn load(stored: u64, said: &[(&str, u64)]) -> Load {
        let messages = said.iter().map(|&(words, count)| (words.to_owned(), count)).collect();
        Load { records: 10, stored, errors: 10 - stored, messages, ..Load::default() }
    }

    #[test]
    fn a_load_is_complete_or_partial_by_what_it_stored() {
        let full = [("SERVER_ERROR out of memory", 6), ("SERVER_ERROR too large", 1)];
        let trouble = Some("a:1: the server closed the connection");
        let rows: [Row<'_>; 9] = [
            (10, &[], false, None, None),
            (10, &full, false, trouble, None),
            (0, &[], false, None, Some("none of 10 records was stored")),
            (
                0,
                &full,
                false,
                trouble,
                Some(
                    "none of 10 records was stored: the server said \"SERVER_ERROR out of memory\" (6 times)",
                ),
            ),
            (
                0,
                &[],
                true,
                trouble,
                Some("none of 10 records was stored: a:1: the server closed the connection"),
            ),
            (3, &[], false, None, Some("7 of 10 records were not stored")),
            (
                3,
                &full,
                false,
                None,
                Some(
                    "7 of 10 records were not stored: the server said \"SERVER_ERROR out of memory\" (6 times)",
                ),
            ),
            (3, &full, true, trouble, None),
            (
                9,
                &[],
                false,
                trouble,
                Some("1 of 10 records were not stored: a:1: the server closed the connection"),
            ),
        ];
        for (stored, said, allow_partial, trouble, expected) in rows {
            let reason = load_shortfall(&load(stored, said), allow_partial, trouble);
            assert_eq!(reason.as_deref(), expected, "{stored} stored, {said:?}, {allow_partial}");
        }
        assert_eq!(load_shortfall(&Load::default(), false, trouble), None, "nothing was to be stored");
    }

    #[test]
    fn a_load_has_failed_when_nothing_of_something_was_stored() {
        let failed = |records, stored| Loaded { records, stored }.has_failed();
        assert_eq!([failed(0, 0), failed(10, 0), failed(10, 1), failed(10, 10)], [false, true, false, false]);
        let mut all = Loaded { records: 5, stored: 0 };
        all.merge(Loaded { records: 5, stored: 1 });
        assert!(!all.has_failed(), "another part stored something");
    }
}
