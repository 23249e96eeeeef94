//! The data of the pictures of a run, from its document.

use pummel_logic::plan::Work;
use pummel_logic::protocol::Fault;
use pummel_measure::histogram::{Histogram, Sketch, rank};
use pummel_measure::measurement::SliceSketch;
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;

use super::anatomy::Band;
use super::curve::{CurveLine, CurvePicture, GoalMark, Whisker};
use super::heat::HeatColumn;
use super::rate::RateColumn;
use crate::document::{Document, OpResult, reads};
use crate::view::run::has_intervals;

/// Points of a percentile curve for each nine.
const STEPS: u32 = 24;

/// Operations that have a panel of their own at most.
const OPS_DRAWN: usize = 8;

/// A quantile, from 0 to 1, as nines: -log10(1 - quantile).
pub fn nines_of(quantile: f64) -> f64 {
    -(1.0 - quantile.clamp(0.0, 1.0 - 1e-12)).log10()
}

/// The histograms of one time of all operations together; `None` where the result lacks one of them.
pub fn histogram_of(document: &Document, span: Span) -> Option<Histogram> {
    let mut all = Histogram::new();
    for (_, op) in document.ops.iter() {
        all.merge(&op.histogram(span)?.ok()?);
    }
    Some(all)
}

/// Requests of the measured phase that got no answer.
pub fn unanswered(document: &Document) -> u64 {
    document.ops.iter().map(|(_, op)| op.unanswered()).sum()
}

/// Keys that reads found, and those that they looked for.
pub fn looked_up(document: &Document) -> (u64, u64) {
    let reading = document.ops.iter().filter(|(name, op)| reads(name, op));
    reading.fold((0, 0), |(found, keys), (_, op)| (found + op.hits, keys + op.hits + op.misses))
}

/// The line of a histogram and of requests that took longer than all in it.
pub fn line_of(name: &str, class: &'static str, histogram: &Histogram, unanswered: u64) -> CurveLine {
    let count = histogram.count().saturating_add(unanswered);
    let last = (count.max(1) as f64).log10().max(0.3);
    let steps = (last * f64::from(STEPS)).ceil() as u32;
    // Quantiles that tables name have points of their own, so that a picture and its numbers are those of the tables.
    let named = QUANTILES.iter().map(|(_, quantile)| nines_of(*quantile));
    let mut places: Vec<f64> =
        (0..=steps).map(|step| f64::from(step) / f64::from(STEPS)).chain(named).collect();
    places.retain(|nines| *nines < last);
    places.push(last);
    places.sort_by(f64::total_cmp);
    places.dedup_by(|one, other| (*one - *other).abs() < 1e-6);
    let points = places.into_iter().filter_map(|nines| {
        let quantile = 1.0 - 10_f64.powf(-nines);
        let ns = histogram.at_rank(rank(quantile, count).max(1))?;
        (ns > 0).then_some((nines, ns as f64 / 1e3))
    });
    CurveLine {
        name: name.to_owned(),
        class,
        points: points.collect(),
        count: count as f64,
        is_open: unanswered > 0,
        band: Vec::new(),
    }
}

/// Picture 1: response, service, wait and lag of all requests.
pub fn curve_of(document: &Document) -> CurvePicture {
    let unanswered = unanswered(document);
    let mut lines = Vec::new();
    let requests: u64 = document.ops.iter().map(|(_, op)| op.requests).sum();
    for span in [Span::Response, Span::Service, Span::Wait, Span::Lag] {
        if let Some(histogram) = histogram_of(document, span).filter(|histogram| histogram.count() > 0) {
            // Wait and lag are known of everything that was sent.
            let beyond = match span {
                Span::Wait | Span::Lag => requests.saturating_sub(histogram.count()),
                _ => unanswered,
            };
            lines.push(line_of(span.name(), span.name(), &histogram, beyond));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    let goals = document.goals.iter().map(|goal| GoalMark {
        nines: nines_of(goal.quantile),
        limit_us: goal.limit_us,
        is_met: goal.met == Some(true),
    });
    let whiskers = QUANTILES.iter().filter_map(|(name, quantile)| {
        let [low, high] = interval_of(document, name)?;
        Some(Whisker { nines: nines_of(*quantile), low_us: low?, high_us: high })
    });
    if let Some(first) = lines.first_mut() {
        first.band = band_of(document);
    }
    CurvePicture {
        lines,
        goals: goals.collect(),
        whiskers: whiskers.collect(),
        is_doubtful: !document.is_trusted(),
    }
}

/// The response of all requests, and of each operation where there are several; empty where a result lacks histograms.
pub fn op_curves_of(document: &Document) -> Vec<CurveLine> {
    let Some(all) = histogram_of(document, Span::Response).filter(|_| document.ops.iter().count() > 1) else {
        return Vec::new();
    };
    let each = document.ops.iter().take(OPS_DRAWN).filter_map(|(name, op)| {
        let histogram = op.histogram(Span::Response)?.ok()?;
        Some(line_of(name, "response", &histogram, op.unanswered()))
    });
    let all = line_of("all", "response", &all, unanswered(document));
    std::iter::once(all).chain(each).filter(|line| !line.points.is_empty()).collect()
}

/// The 95 % interval of a quantile of the response, in microseconds: the ends, each where it is known. `None` where the screen has
/// none either.
pub fn interval_of(document: &Document, quantile: &str) -> Option<[Option<f64>; 2]> {
    let response = document.totals.times.of_span(Span::Response);
    response.ci.as_ref()?.get(quantile).copied().filter(|_| has_intervals(document))
}

/// How sure the response times of all requests are: nines, and the ends in microseconds where both are known.
pub fn band_of(document: &Document) -> Vec<(f64, f64, f64)> {
    let certainty = document.certainty.as_ref().filter(|_| has_intervals(document));
    let bands = certainty.iter().flat_map(|certainty| &certainty.bands);
    bands.filter_map(|(quantile, low, high)| Some((nines_of(*quantile), (*low)?, (*high)?))).collect()
}

/// Picture 2: the slices that keep their times.
pub fn heat_of(document: &Document) -> Vec<HeatColumn> {
    heat_by(document, |sketch| &sketch.response)
}

/// Picture 2 of the service times.
pub fn service_heat_of(document: &Document) -> Vec<HeatColumn> {
    heat_by(document, |sketch| &sketch.service)
}

fn heat_by(document: &Document, of: fn(&SliceSketch) -> &Sketch) -> Vec<HeatColumn> {
    let columns = document.intervals.iter().filter_map(|interval| {
        let sketch = interval.sketch.as_ref()?;
        Some(HeatColumn {
            at_s: interval.at_s,
            seconds: interval.seconds,
            sketch: of(sketch).clone(),
            unanswered: sketch.unanswered,
        })
    });
    columns.collect()
}

/// Picture 3: what became of the requests of each slice.
pub fn rates_of(document: &Document) -> Vec<RateColumn> {
    let columns = document.intervals.iter().map(|interval| {
        let sum = |of: fn(&OpResult) -> u64| interval.ops.iter().map(|(_, op)| of(op)).sum::<u64>();
        let errors = Fault::ALL.into_iter().map(|fault| {
            let count = interval.ops.iter().filter_map(|(_, op)| op.errors.get(fault.name())).sum::<u64>();
            (fault.name().to_owned(), count)
        });
        let silent = [("unfinished", sum(|op| op.unfinished)), ("unsent", sum(|op| op.unsent))];
        let silent = silent.into_iter().map(|(name, count)| (name.to_owned(), count));
        RateColumn {
            at_s: interval.at_s,
            seconds: interval.seconds,
            asked: interval.asked,
            completed: sum(|op| op.completed),
            requests: sum(|op| op.completed.saturating_add(op.failed())),
            wrong: errors.chain(silent).collect(),
            hits: (sum(|op| op.hits), sum(|op| op.hits + op.misses)),
        }
    });
    columns.collect()
}

/// Whether the measured phase stores keys that its reads missed, beside the requests that it was asked for.
pub fn fills_misses(document: &Document) -> bool {
    let recorded = document.plan.phases.iter().filter(|phase| phase.recorded);
    recorded.into_iter().any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.read_through_ns.is_some()))
}

/// How long the measured phase was to be, in seconds; `None` where no time ended it.
pub fn planned_s(document: &Document) -> Option<f64> {
    let recorded = document.plan.phases.iter().filter(|phase| phase.recorded);
    let timed =
        recorded.filter(|phase| matches!(phase.work, Work::Mix(_))).filter_map(|phase| phase.stop.time_ns);
    timed.map(|ns| ns as f64 / 1e9).reduce(f64::max)
}

/// The bands of picture 4, from the fastest requests to the slowest.
const BANDS: [(&str, f64); 5] = [
    ("up to p50", 0.5),
    ("p50 to p90", 0.9),
    ("p90 to p99", 0.99),
    ("p99 to p99.9", 0.999),
    ("above p99.9", 1.0),
];

/// Picture 4: whole cells are put into the band in which their middle request lies.
pub fn bands_of(document: &Document) -> Vec<Band> {
    let all: u64 = document.anatomy.iter().map(|cell| cell.count).sum();
    let mut bands: Vec<Band> =
        BANDS.iter().map(|(name, _)| Band { name: (*name).to_owned(), ..Band::default() }).collect();
    let mut before = 0;
    for cell in &document.anatomy {
        let middle = (before as f64 + cell.count as f64 / 2.0) / all.max(1) as f64;
        before += cell.count;
        let band = BANDS.iter().position(|(_, end)| middle <= *end).unwrap_or(BANDS.len() - 1);
        let band = &mut bands[band];
        band.count += cell.count;
        band.wait_us += cell.wait_us;
        band.lag_us += cell.lag_us;
        band.service_us += cell.service_us;
    }
    for band in bands.iter_mut().filter(|band| band.count > 0) {
        let count = band.count as f64;
        (band.wait_us, band.lag_us, band.service_us) =
            (band.wait_us / count, band.lag_us / count, band.service_us / count);
    }
    bands
}
