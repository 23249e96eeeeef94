//! Background saves of a RESP server, by two of its `INFO` replies.

use super::facts::Pair;
use super::server::{BackgroundSave, SaveKind};
use pummel_logic::time::{MICROSECOND, Nanos, SECOND};

/// The background saves between two readings that are `span_ns` apart, as far as the second one times them: those that
/// are under way, and the last snapshot that was written. Servers report whole seconds.
pub fn saves(pair: &Pair<'_>, span_ns: Nanos) -> Vec<BackgroundSave> {
    if pair.anew {
        return Vec::new();
    }
    let snapshot = under_way(pair, span_ns, "rdb_bgsave_in_progress", "rdb_current_bgsave_time_sec");
    let rewrite = under_way(pair, span_ns, "aof_rewrite_in_progress", "aof_current_rewrite_time_sec");
    let written = written_snapshot(pair, span_ns).map(|times| (SaveKind::Snapshot, times));
    let snapshot = snapshot.map(|from_ns| (SaveKind::Snapshot, (from_ns, None)));
    let rewrite = rewrite.map(|from_ns| (SaveKind::AppendOnlyFile, (from_ns, None)));
    let all = [written, snapshot, rewrite].into_iter().flatten();
    all.map(|(kind, (from_ns, to_ns))| BackgroundSave { kind, from_ns, to_ns }).collect()
}

/// Beginning of the save that is under way at the second reading, `None` inside where that was before the first
/// reading; `None` where there is none.
fn under_way(pair: &Pair<'_>, span_ns: Nanos, is_on: &str, taken_s: &str) -> Option<Option<Nanos>> {
    pair.after.number(is_on).filter(|on| *on > 0)?;
    let taken_ns = pair.after.number(taken_s)?.saturating_mul(SECOND);
    Some(span_ns.checked_sub(taken_ns))
}

/// The beginning and the end of the last snapshot that was written between the readings; `None` where none was, or
/// where the server does not report its time, or wrote one in the foreground.
fn written_snapshot(pair: &Pair<'_>, span_ns: Nanos) -> Option<(Option<Nanos>, Option<Nanos>)> {
    let saved_s = |facts: &super::facts::Facts| facts.number("rdb_last_save_time");
    let (earlier_s, last_s) = (saved_s(pair.before)?, saved_s(pair.after)?);
    let in_foreground = pair.after.text("cmdstat_save") != pair.before.text("cmdstat_save");
    if last_s <= earlier_s || in_foreground {
        return None;
    }
    let now_ns = pair.after.number("server_time_usec")?.checked_mul(MICROSECOND)?;
    // The second in which the save ended had begun at that time.
    let ended_ns = last_s.checked_mul(SECOND)?.checked_add(SECOND / 2)?;
    let to_ns = span_ns.checked_sub(now_ns.saturating_sub(ended_ns))?;
    let taken_ns = pair.after.number("rdb_last_bgsave_time_sec")?.saturating_mul(SECOND);
    Some((to_ns.checked_sub(taken_ns), Some(to_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::facts::Facts;

    fn facts(words: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        words.iter().for_each(|(name, value)| assert!(facts.add(name.as_bytes(), value.as_bytes())));
        facts
    }

    /// The saves of a run of 20 s whose server says this at its end, at 1,020.5 s of its clock.
    fn saves_at_end(words: &[(&str, &str)]) -> Vec<BackgroundSave> {
        let before = facts(&[("rdb_last_save_time", "900"), ("rdb_bgsave_in_progress", "0")]);
        let mut after = facts(&[("rdb_last_save_time", "900"), ("server_time_usec", "1020500000")]);
        after.add_all(&facts(words));
        saves(&Pair { before: &before, after: &after, anew: false }, 20 * SECOND)
    }

    #[test]
    fn a_snapshot_is_placed_by_its_end_and_by_how_long_it_took() {
        let [save] = saves_at_end(&[("rdb_last_save_time", "1011"), ("rdb_last_bgsave_time_sec", "3")])[..]
        else {
            panic!("one save")
        };
        assert_eq!((save.from_ns, save.to_ns), (Some(8 * SECOND), Some(11 * SECOND)));
        assert_eq!(save.words(), "saved in the background from about 8 s to 11 s");
        assert!(save.is_partial());
    }

    #[test]
    fn a_save_that_began_before_or_is_not_over_has_one_end() {
        let [save] = saves_at_end(&[("rdb_last_save_time", "1004"), ("rdb_last_bgsave_time_sec", "9")])[..]
        else {
            panic!("one save")
        };
        assert_eq!((save.from_ns, save.to_ns), (None, Some(4 * SECOND)));
        let on = [("rdb_bgsave_in_progress", "1"), ("rdb_current_bgsave_time_sec", "5")];
        assert_eq!(saves_at_end(&on)[0].words(), "saved in the background from about 15 s to the end");
        let long = [("aof_rewrite_in_progress", "1"), ("aof_current_rewrite_time_sec", "25")];
        let save = saves_at_end(&long)[0];
        assert_eq!(save.words(), "wrote its append-only file anew all the time");
        assert!(!save.is_partial());
    }

    #[test]
    fn what_the_server_does_not_tell_is_not_placed() {
        assert_eq!(saves_at_end(&[]), []);
        assert_eq!(saves_at_end(&[("rdb_last_save_time", "1011")]), [], "it does not say how long it took");
        let foreground =
            [("rdb_last_save_time", "1011"), ("rdb_last_bgsave_time_sec", "3"), ("cmdstat_save", "calls=1")];
        assert_eq!(saves_at_end(&foreground), [], "SAVE stops the server, and is no background save");
        let huge = [("rdb_last_save_time", "18446744073709551615"), ("rdb_last_bgsave_time_sec", "3")];
        assert_eq!(saves_at_end(&huge), []);
    }
}
