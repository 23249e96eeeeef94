//! What servers said of themselves while the run went on, as a few lines.

use std::collections::BTreeSet;

use pummel_measure::words::{counted, grouped};

use super::classes::{class_words, worst_class};
use super::judgement::used_memory_words;
use super::page::Page;
use crate::document::{Document, ServerIntervalResult, ServerStatsResult};

/// The lines of `--server-stats`; none where that was not wanted.
pub fn server_stats(page: &mut Page, document: &Document) {
    for stats in &document.server_stats {
        let servers = document.evidence.iter().flat_map(|evidence| &evidence.servers);
        let mut readings = servers.filter(|server| server.address == stats.address);
        let software = readings.find_map(|server| Some(server.reading.as_ref()?.software.as_str()));
        page.field(
            "Server stats",
            &format!("{}: {}", stats.address, words_of(stats, software.unwrap_or_default())),
        );
    }
}

fn words_of(stats: &ServerStatsResult, software: &str) -> String {
    let intervals = &stats.intervals;
    let mut parts = vec![counted(intervals.len() as u64, "interval")];
    if stats.missed > 0 {
        parts.push(format!("{} missed", grouped(stats.missed)));
    }
    let range = |figure: fn(&ServerIntervalResult) -> Option<f64>| {
        let known = || intervals.iter().filter_map(figure);
        let least = known().reduce(f64::min)?;
        Some((least, known().fold(least, f64::max)))
    };
    if let Some((least, most)) = range(|interval| interval.hit_ratio) {
        parts.push(format!("hit ratio {:.1} to {:.1} %", 100.0 * least, 100.0 * most));
    }
    if let Some((least, most)) = range(|interval| interval.cpu_us_per_request) {
        parts.push(format!("{least:.1} to {most:.1} us of CPU per request"));
    }
    let sum =
        |count: fn(&ServerIntervalResult) -> Option<u64>| intervals.iter().filter_map(count).sum::<u64>();
    for (count, what) in [
        (sum(|interval| interval.counts.evictions), "eviction"),
        (sum(|interval| interval.counts.out_of_memory), "failed store"),
        (sum(|interval| interval.counts.connections_refused), "refused connection"),
    ] {
        if count > 0 {
            parts.push(counted(count, what));
        }
    }
    let classes = intervals.iter().flat_map(|interval| &interval.classes);
    parts.extend(worst_class(classes).map(|class| class_words(&class)));
    if let Some(bytes) = intervals.iter().filter_map(|interval| interval.memory_bytes).max() {
        parts.push(format!("at most {}", used_memory_words(bytes, software)));
    }
    let disturbances: BTreeSet<&str> =
        intervals.iter().flat_map(|interval| interval.disturbances.iter().map(String::as_str)).collect();
    parts.extend(disturbances.into_iter().map(str::to_owned));
    if intervals.iter().any(|interval| interval.restarted) {
        parts.push("it restarted".to_owned());
    }
    parts.join(", ")
}
