//! The data of a page: the result that it was made from, packed, whole or with fewer figures.

use pummel_logic::workload::cache_counts::CacheCounts;

use crate::document::{
    CacheResult, Document, FiveTimes, IntervalResult, Named, OpResult, SliceConnectionsResult, TimeFigures,
};
use crate::json;
use crate::stored::{base64_of, packed};
use crate::suite::SuiteDocument;

/// How much of the data goes into a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Embed {
    /// The whole result.
    Full,
    /// The result, without figures of intervals that no chart shows.
    #[default]
    Reduced,
    /// No data: the page cannot be read as a result.
    None,
}

impl Embed {
    /// Every choice with its word and what it is.
    pub const ALL: [(Embed, &str, &str); 3] = [
        (Embed::Full, "full", "The whole result"),
        (Embed::Reduced, "reduced", "The result, without figures of intervals that no chart shows"),
        (Embed::None, "none", "No data: the page cannot be read as a result"),
    ];
}

/// The packed data of a page with the word for how much of them there is.
pub struct PageData {
    /// In base64.
    pub base64: String,
    /// What is missing; `None` where nothing is.
    pub missing: Option<String>,
}

/// The data of the page of a run; `None` where none are wanted. Reduced data take at most `room_bytes` in base64, or are those
/// of one interval.
pub fn of_run(document: &Document, embed: Embed, room_bytes: usize) -> Option<PageData> {
    let pack = |document: &Document| {
        packed(&serde_json::to_vec(document).expect("the result has nothing that JSON has not"))
    };
    match embed {
        Embed::None => None,
        Embed::Full => Some(PageData { base64: base64_of(&pack(document)), missing: None }),
        Embed::Reduced => {
            let mut less = document.clone();
            less.intervals.iter_mut().for_each(reduce);
            let mut bytes = pack(&less);
            while bytes.len().div_ceil(3) * 4 > room_bytes && less.intervals.len() > 1 {
                let before = less.intervals.len();
                less.intervals = less.intervals.chunks(2).map(merged).collect();
                less.intervals_merged += (before - less.intervals.len()) as u64;
                bytes = pack(&less);
            }
            let missing = match document.intervals.len() == less.intervals.len() {
                true => "intervals have fewer figures".to_owned(),
                false => format!(
                    "{} intervals are merged to {}, and have fewer figures",
                    document.intervals.len(),
                    less.intervals.len()
                ),
            };
            Some(PageData { base64: base64_of(&bytes), missing: Some(missing) })
        }
    }
}

/// The data of the page of a suite; `None` where none are wanted. Reduced data leave out what no picture shows.
pub fn of_suite(suite: &SuiteDocument, embed: Embed) -> Option<PageData> {
    let pack = |suite: &SuiteDocument| base64_of(&packed(&json::render(suite)));
    match embed {
        Embed::None => None,
        Embed::Full => Some(PageData { base64: pack(suite), missing: None }),
        Embed::Reduced => {
            let mut less = suite.clone();
            let results = less.runs.iter_mut().flat_map(|run| &mut run.results);
            results.flat_map(|result| &mut result.intervals).for_each(reduce);
            Some(PageData { base64: pack(&less), missing: Some("intervals have fewer figures".to_owned()) })
        }
    }
}

/// The data of a page whose stored result is `json`; `None` where none are wanted.
pub fn of_json(json: &[u8], embed: Embed) -> Option<PageData> {
    (embed != Embed::None).then(|| PageData { base64: base64_of(&packed(json)), missing: None })
}

/// Takes away what no picture shows: histograms, and of wait, lag and reaction all but p50, p99 and the greatest time.
fn reduce(interval: &mut IntervalResult) {
    for (_, op) in &mut interval.ops.0 {
        op.histograms = Named::default();
        let few = |figures: &Option<TimeFigures>| {
            figures.as_ref().map(|all| TimeFigures {
                p50: all.p50,
                p99: all.p99,
                max: all.max,
                ..TimeFigures::default()
            })
        };
        let times = &op.times;
        op.times = FiveTimes {
            response_us: times.response_us.clone(),
            service_us: times.service_us.clone(),
            wait_us: few(&times.wait_us),
            lag_us: few(&times.lag_us),
            reaction_us: few(&times.reaction_us),
        };
    }
}

/// Neighbours as one: counts and folded times are exact, and quantiles are not known.
pub(super) fn merged(chunk: &[IntervalResult]) -> IntervalResult {
    let mut all = chunk[0].clone();
    if chunk.len() > 1 {
        // Quantiles of members do not merge, and are drawn on the page itself.
        (all.agents, all.servers, all.generator) = (Vec::new(), Vec::new(), None);
    }
    let due = |interval: &IntervalResult| interval.asked.map(|rate| rate * interval.seconds);
    let asked: Option<f64> = chunk.iter().map(due).sum();
    for more in &chunk[1..] {
        all.connections = joined(all.connections, more.connections);
        all.seconds = more.at_s + more.seconds - all.at_s;
        all.bytes.merge(&more.bytes);
        all.stalls += more.stalls;
        for (name, op) in more.ops.iter() {
            match all.ops.0.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => add(own, op),
                None => all.ops.0.push((name.to_owned(), op.clone())),
            }
        }
        all.sketch = all.sketch.take().zip(more.sketch.as_ref()).map(|(mut sketch, more)| {
            sketch.response.merge(&more.response);
            sketch.service.merge(&more.service);
            sketch.unanswered += more.unanswered;
            sketch
        });
    }
    all.cache = CacheResult::of(all.ops.iter().filter_map(|(_, op)| op.cache));
    all.asked = asked.filter(|_| all.seconds > 0.0).map(|due| (due / all.seconds * 1e3).round() / 1e3);
    let completed: u64 = all.ops.iter().map(|(_, op)| op.completed).sum();
    all.rate = if all.seconds > 0.0 { (completed as f64 / all.seconds * 1e3).round() / 1e3 } else { 0.0 };
    all
}

/// The connections of two neighbours: what became of them is added up, and the later one says how many are open.
fn joined(
    first: Option<SliceConnectionsResult>,
    later: Option<SliceConnectionsResult>,
) -> Option<SliceConnectionsResult> {
    let (first, later) = (first?, later?);
    Some(SliceConnectionsResult {
        open: later.open,
        lost: first.lost + later.lost,
        reopened: first.reopened + later.reopened,
        failed: first.failed + later.failed,
        begun: first.begun + later.begun,
        ended: first.ended + later.ended,
    })
}

/// The counts of both; `None` where neither has some.
fn sum_of(own: Option<CacheCounts>, more: Option<CacheCounts>) -> Option<CacheCounts> {
    let (mut sum, more) = (own.or(more)?, own.and(more));
    sum.merge(&more.unwrap_or_default());
    Some(sum)
}

fn add(own: &mut OpResult, more: &OpResult) {
    own.requests += more.requests;
    own.completed += more.completed;
    own.keys += more.keys;
    own.hits += more.hits;
    own.misses += more.misses;
    own.cache = sum_of(own.cache, more.cache);
    own.unfinished += more.unfinished;
    own.unsent += more.unsent;
    own.unsent_estimated += more.unsent_estimated;
    for (counts, more) in [(&mut own.outcomes, &more.outcomes), (&mut own.errors, &more.errors)] {
        for (name, count) in more.iter() {
            match counts.0.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => *own += count,
                None => counts.0.push((name.to_owned(), *count)),
            }
        }
    }
    own.times = FiveTimes::default();
}
