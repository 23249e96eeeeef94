//! The slab class of memcached that lost most, in words: a class can be full while others have room.

use std::collections::BTreeMap;

use pummel_measure::evidence::SlabClass;
use pummel_measure::words::grouped;

use super::units::byte_text;

/// The class that lost the most records and stores, with all its losses; classes may come several times, once for each
/// interval. `None` if no class lost any.
pub fn worst_class<'a>(classes: impl IntoIterator<Item = &'a SlabClass>) -> Option<SlabClass> {
    let mut sums: BTreeMap<u32, SlabClass> = BTreeMap::new();
    for class in classes {
        let sum = sums.entry(class.class).or_default();
        let (evictions, out_of_memory) = (sum.evictions, sum.out_of_memory);
        *sum = SlabClass {
            evictions: evictions.saturating_add(class.evictions),
            out_of_memory: out_of_memory.saturating_add(class.out_of_memory),
            ..*class
        };
    }
    sums.into_values().filter(|class| class.lost() > 0).max_by_key(|class| (class.lost(), class.class))
}

/// Words such as `class 5 of its sizes (up to 240 B) lost most: 1,234 evicted`.
pub fn class_words(class: &SlabClass) -> String {
    let size = class.chunk_bytes.map_or_else(String::new, |bytes| format!(" (up to {})", byte_text(bytes)));
    let lost = [(class.evictions, "evicted"), (class.out_of_memory, "not stored")];
    let lost = lost.iter().filter(|(count, _)| *count > 0);
    let lost: Vec<String> = lost.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    format!("class {} of its sizes{size} lost most: {}", class.class, lost.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(class: u32, evictions: u64, out_of_memory: u64) -> SlabClass {
        SlabClass { class, evictions, out_of_memory, records: 1, ..SlabClass::default() }
    }

    #[test]
    fn the_class_that_lost_most_is_named_with_the_sum_of_its_losses() {
        let of = [class(3, 10, 0), class(5, 6, 0), class(5, 6, 2)];
        let worst = worst_class(&of).expect("two lost some");
        assert_eq!(class_words(&worst), "class 5 of its sizes lost most: 12 evicted, 2 not stored");
        let sized = SlabClass { chunk_bytes: Some(240), ..class(3, 1_234, 0) };
        assert_eq!(class_words(&sized), "class 3 of its sizes (up to 240 B) lost most: 1,234 evicted");
        assert_eq!(worst_class(&[class(3, 0, 0)]), None);
    }
}
