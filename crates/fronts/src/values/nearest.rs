//! The known word that is most like one that was typed wrong.

use strsim::osa_distance;

/// Letters of the shortest beginning of a word that stands for the word.
const BEGINNING_MIN: usize = 3;

/// ` (did you mean 'WORD'?)` with the known word that is most like `typed`, or nothing where none is like it, or `typed` is one of
/// them.
pub fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(typed, known).filter(|word| *word != typed);
    near.map_or_else(String::new, |word| format!(" (did you mean '{word}'?)"))
}

/// The known word that differs from `typed` by the fewest letters changed, added, left out or swapped with their neighbour: at most one in words of up to four letters, and two in
/// others that begin with the same letter. Where none does, it is a word that begins with `typed`, if that has at least three letters. Of several the first
/// is taken.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let letters = typed.chars().count();
    // `retries` is two letters from `metrics` and means something else.
    let may_differ_by_two = |word: &str| letters > 4 && word.chars().next() == typed.chars().next();
    let has_near_length = |word: &&&str| word.chars().count().abs_diff(letters) <= 2;
    let distances = known.iter().filter(has_near_length).map(|word| (osa_distance(typed, word), *word));
    let near = distances
        .filter(|(distance, word)| *distance <= 1 || (*distance == 2 && may_differ_by_two(word)))
        .min_by_key(|(distance, _)| *distance);
    near.map(|(_, word)| word).or_else(|| {
        let begun = known.iter().find(|word| letters >= BEGINNING_MIN && word.starts_with(typed));
        begun.copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nearly_known_is_found_and_another_one_is_not() {
        let known = ["get", "set", "delete", "touch"];
        let found = |typed| nearest(typed, known);
        assert_eq!(found("gte"), Some("get"));
        assert_eq!(found("ste"), Some("set"));
        assert_eq!(found("detele"), Some("delete"));
        assert_eq!(found("touhc"), Some("touch"));
        assert_eq!(found("delet"), Some("delete"));
        assert_eq!(found("del"), Some("delete"));
        assert_eq!(found("de"), None);
        assert_eq!(found("put"), None);
        assert_eq!(found("destroy"), None);
        assert_eq!(found("couch"), Some("touch"));
        assert_eq!(found("vouchs"), None, "two letters, one of them the first");
        assert_eq!(found(""), None);
        assert_eq!(found(&"x".repeat(10_000)), None);
        assert_eq!(hint("delet", known), " (did you mean 'delete'?)");
        assert_eq!(hint("delete", known), "", "the word is right, and something else is wrong");
    }
}
