//! The records of memcached by classes of sizes, each of which has memory and losses of its own.

use serde::{Deserialize, Serialize};

use super::facts::Pair;

/// Greatest number of a class; memcached has at most 63.
const CLASS_MAX: u32 = 63;

/// Records of one class of sizes, which share pages of memory with no other class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlabClass {
    /// Number of the class.
    pub class: u32,
    /// Most bytes that a record of the class takes, with its header; absent where the server did not say.
    pub chunk_bytes: Option<u64>,
    /// Pages of memory that the class has, mostly of 1 MiB; absent where the server did not say.
    pub pages: Option<u64>,
    /// Records of the class at the second reading.
    pub records: u64,
    /// Records of the class that were removed between the readings to make room.
    pub evictions: u64,
    /// Stores into the class that failed between the readings for lack of memory.
    pub out_of_memory: u64,
}

impl SlabClass {
    /// Records and stores that were lost between the readings.
    pub fn lost(&self) -> u64 {
        self.evictions.saturating_add(self.out_of_memory)
    }
}

/// The classes that have records or lost some between two readings, by their numbers, from `stats items` and `stats
/// slabs` (memcached's doc/protocol.txt). Empty where the server did not report its items.
pub fn classes(pair: &Pair<'_>) -> Vec<SlabClass> {
    let class = |class: u32| {
        let records = pair.after.number(&format!("items:{class}:number"))?;
        // A class that the first reading lacks was empty then, and its counters were zero or are unknown.
        let rise = |name: &str| {
            let name = format!("items:{class}:{name}");
            pair.difference(Some(pair.before.number(&name).unwrap_or(0)), pair.after.number(&name))
        };
        let found = SlabClass {
            class,
            chunk_bytes: pair.after.number(&format!("{class}:chunk_size")),
            pages: pair.after.number(&format!("{class}:total_pages")),
            records,
            evictions: rise("evicted").unwrap_or(0),
            out_of_memory: rise("outofmemory").unwrap_or(0),
        };
        (found.records > 0 || found.lost() > 0).then_some(found)
    };
    (1..=CLASS_MAX).filter_map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::facts::Facts;

    fn facts(of: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        of.iter().for_each(|(name, value)| assert!(facts.add(name.as_bytes(), value.as_bytes())));
        facts
    }

    #[test]
    fn each_class_has_its_records_its_memory_and_what_it_lost() {
        let before =
            facts(&[("items:5:number", "90"), ("items:5:evicted", "10"), ("items:5:outofmemory", "1")]);
        let after = facts(&[
            ("items:5:number", "100"),
            ("items:5:evicted", "17"),
            ("items:5:outofmemory", "3"),
            ("items:9:number", "4"),
            ("items:9:evicted", "2"),
            ("items:11:number", "0"),
            ("5:chunk_size", "240"),
            ("5:total_pages", "2"),
            ("active_slabs", "2"),
        ]);
        let seen = classes(&Pair { before: &before, after: &after, anew: false });
        let five = SlabClass {
            class: 5,
            chunk_bytes: Some(240),
            pages: Some(2),
            records: 100,
            evictions: 7,
            out_of_memory: 2,
        };
        let nine = SlabClass { class: 9, records: 4, evictions: 2, ..SlabClass::default() };
        assert_eq!(seen, [five, nine], "a class without records and losses is left out");
        let anew = classes(&Pair { before: &after, after: &before, anew: true });
        assert_eq!((anew[0].evictions, anew[0].out_of_memory), (10, 1), "counted from the start");
    }

    #[test]
    fn a_server_that_tells_no_items_has_no_classes() {
        let none = facts(&[("5:chunk_size", "240"), ("items:x:number", "4"), ("items:99999:number", "4")]);
        assert!(classes(&Pair { before: &none, after: &none, anew: false }).is_empty());
    }
}
