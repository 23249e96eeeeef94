//! The report's lines on hits, asked for and found; on misses by cause, bytes, and fills.

use pummel_logic::plan::{Fill, Mix, Work};
use pummel_measure::words::grouped;

use super::page::Page;
use super::units::{byte_text, micros_text};
use crate::document::{CacheResult, Document, OpResult, SampleFigures, reads_records};
use crate::numbers::number;

/// The difference below the requested hit share from which on the report gives a reason.
const SHORT: f64 = 0.01;

pub(super) fn hits(page: &mut Page, document: &Document) {
    let mix = document.plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Mix(mix) if phase.recorded => Some(mix),
        _ => None,
    });
    let Some(mix) = mix else { return };
    if mix.reads_unstored()
        && let Some(words) = share(document, mix)
    {
        page.field("Hits", &words);
    }
    if let Some(words) = document.cache.as_ref().and_then(bytes) {
        page.field("Values", &words);
    }
    if let Some(pairs) = &document.pairs_us {
        page.field("Pairs", &self::pairs(pairs));
    }
    if let Some(words) = fills(document, mix) {
        page.field("Fills", &words);
    }
}

/// The share of hits, and the share that follows from the keys that are not records; `None` if nothing was read.
fn share(document: &Document, mix: &Mix) -> Option<String> {
    let ops = || document.ops.iter().filter(|(name, _)| reads_records(name));
    let sum = |of: fn(&OpResult) -> u64| ops().map(|(_, op)| of(op)).sum::<u64>();
    let (found, missed) = (sum(|op| op.hits), sum(|op| op.misses));
    if found + missed == 0 {
        return None;
    }
    let (asked, got) = (1.0 - mix.absent - mix.fresh, found as f64 / (found + missed) as f64);
    let mut words =
        format!("{} % of the keys read, {} % asked for", number(got * 100.0), number(asked * 100.0));
    let readings = document.evidence.iter().flat_map(|evidence| &evidence.servers);
    let evicted: u64 = readings.filter_map(|server| server.reading.as_ref()?.counts.evictions).sum();
    if got < asked - SHORT && evicted > 0 {
        words += &format!("; the server evicted {}", grouped(evicted));
    }
    Some(words)
}

/// The times of gets with the sets that follow them.
fn pairs(pairs: &SampleFigures) -> String {
    let text = |us: Option<f64>| us.map_or("-".to_owned(), micros_text);
    format!(
        "{} gets with the set of their key: {} at p50, {} at p99, from the get's due time to the set's reply",
        grouped(pairs.count),
        text(pairs.p50),
        text(pairs.p99)
    )
}

/// The values that were found and stored, in bytes; `None` where there were none.
fn bytes(cache: &CacheResult) -> Option<String> {
    let counts = &cache.counts;
    let asked_bytes = counts.hit_bytes.saturating_add(counts.missed_bytes);
    let found = match counts.hit_share_of_bytes() {
        Some(share) => Some(format!(
            "{} % of the bytes asked for were found ({} of {})",
            number(share * 100.0),
            byte_text(counts.hit_bytes),
            byte_text(asked_bytes)
        )),
        // Keys that do not exist have no bytes, so that a share of bytes would look better than what was found.
        None => (asked_bytes > 0).then(|| format!("{} found", byte_text(counts.hit_bytes))),
    };
    let stored = (counts.stored_bytes > 0).then(|| format!("{} stored", byte_text(counts.stored_bytes)));
    let words: Vec<String> = [found, stored].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// The fills of missed keys, in words; `None` without any.
fn fills(document: &Document, mix: &Mix) -> Option<String> {
    mix.read_through_ns?;
    let (fills, duplicates) = match &document.cache {
        Some(cache) => (cache.counts.fills, cache.counts.duplicate_fills),
        None => stores_of_fills(document, mix)?,
    };
    if fills == 0 {
        return None;
    }
    let mut words = format!("{} after misses", grouped(fills));
    if mix.fill == Fill::Add {
        words += &format!(", {} of them of keys that were there by then", grouped(duplicates));
    }
    Some(words)
}

/// The stores after misses of an older result, and those of keys that were there; `None` where the mix stores by the same
/// operation.
fn stores_of_fills(document: &Document, mix: &Mix) -> Option<(u64, u64)> {
    let name = if mix.fill == Fill::Add { "add" } else { "set" };
    let is_asked = mix.ops.iter().any(|(verb, _)| verb.name() == name);
    let op = document.ops.get(name).filter(|_| !is_asked)?;
    Some((op.completed, op.outcomes.get("not_stored").copied().unwrap_or(0)))
}
