//! The figures of a fit as JSON.

use std::io;

use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_traffic::fit::{Bound, CLASS_ENDS, Fit, Shares, ValueCounts, Zipf};
use pummel_traffic::trace::reader::Account;
use serde_json::{Map, Value, json};

use super::check::Check;

/// The layout of these figures.
const SCHEMA: u32 = 1;

/// Sizes of a cache at which the curves of misses are given, each half of the next.
pub(super) const CACHE_SIZES: u32 = 16;

/// The figures as JSON with a line end.
///
/// # Errors
/// Returns the error of the writer of JSON.
pub(super) fn json(fit: &Fit, format: &str, account: &Account, check: Option<&Check>) -> io::Result<Vec<u8>> {
    let mut figures = json!({
        "schema": SCHEMA,
        "format": format,
        "rows": account.rows,
        "bad_lines": account.bad,
        "skipped_lines": account.skipped,
        "lost": account.lost,
        "out_of_order": fit.out_of_order,
        "requests": fit.requests,
        "span_s": fit.span_ns as f64 / SECOND as f64,
        "resolution_ns": fit.resolution_ns,
        "mix": mix(&fit.mix()),
        "fills": fills(fit),
        "keys": keys(fit),
        "key_bytes": lengths(&fit.key_bytes),
        "value_bytes": lengths(&fit.value_bytes),
        "value_bytes_by_request": lengths(&fit.request_bytes),
        "value_bytes_by_popularity": classes(fit),
        "ttl_s": lengths(&fit.ttl_s),
        "popularity": popularity(fit),
        "working_set": working_sets(fit),
        "churn": churn(fit),
        "arrivals": arrivals(fit),
        "misses": misses(fit),
    });
    if let Some(Check { comparison, made, wanted }) = check {
        figures["check"] = comparison.rows.iter().map(compared).collect();
        figures["check_requests"] = json!({ "made": made, "wanted": wanted });
    }
    let mut bytes = serde_json::to_vec_pretty(&figures)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn mix(mix: &[(Verb, f64)]) -> Value {
    let shares: Map<String, Value> =
        mix.iter().map(|(verb, share)| (verb.name().to_owned(), json!(share))).collect();
    Value::Object(shares)
}

fn fills(fit: &Fit) -> Value {
    json!({
        "missed": fit.missed,
        "filled": fit.fills(),
        "delay_ns": if fit.fills() > 0 { json!(fit.fill_delay_ns) } else { Value::Null },
        "workload_fills": fit.fills_misses(),
    })
}

fn keys(fit: &Fit) -> Value {
    json!({
        "seen": fit.keys,
        "sampled": fit.sampled,
        "bytes": fit.all_bytes,
        "one_hit": fit.one_hit(),
        "compulsory": fit.compulsory(),
        "records": fit.records(),
        "fresh": fit.fresh(),
        "fresh_most": fit.fresh_most(),
    })
}

fn lengths(counts: &ValueCounts) -> Value {
    if counts.total() <= 0.0 {
        return Value::Null;
    }
    json!({
        "mean": counts.mean(),
        "p50": counts.quantile(0.5),
        "p90": counts.quantile(0.9),
        "p99": counts.quantile(0.99),
        "p999": counts.quantile(0.999),
        "dist": counts.dist().map(|dist| dist.to_string()),
    })
}

fn classes(fit: &Fit) -> Value {
    let class = |(until, counts): (f64, &ValueCounts)| json!({ "until": until, "bytes": lengths(counts) });
    let classes: Vec<Value> = CLASS_ENDS.into_iter().zip(&fit.class_bytes).map(class).collect();
    json!({ "differ": fit.sizes_differ(), "classes": classes })
}

fn popularity(fit: &Fit) -> Value {
    let top = |shares: &Shares| {
        let percent = shares.keys() / 100.0;
        json!({
            "top_1": shares.top(1.0),
            "top_10": shares.top(10.0),
            "top_1000": shares.top(1_000.0),
            "top_1_percent": shares.top(percent),
            "top_10_percent": shares.top(10.0 * percent),
        })
    };
    let zipf = |zipf: Zipf| {
        json!({
            "alpha": zipf.exponent,
            "error": zipf.error,
            "last_rank": zipf.last_rank,
            "distance": zipf.distance,
        })
    };
    let table = fit.spread.records.table(fit.records());
    json!({
        "seen": top(&fit.spread.seen),
        "ranks": table.iter().map(|(rank, share)| json!([rank, share])).collect::<Vec<_>>(),
        "zipf": fit.spread.zipf.map(|(all, _)| zipf(all)),
        "zipf_first_tenth": fit.spread.zipf.and_then(|(_, tenth)| tenth).map(zipf),
    })
}

fn working_sets(fit: &Fit) -> Value {
    let sets = fit.working_sets.iter().filter(|set| set.windows > 0).map(|set| {
        json!({
            "window_s": set.window_s,
            "windows": set.windows,
            "keys": set.keys,
            "bytes": set.bytes,
            "most_keys": set.most_keys,
        })
    });
    sets.collect()
}

fn churn(fit: &Fit) -> Value {
    let survival = fit.churn.survival.iter().map(|one| json!({ "after_s": one.after_s, "share": one.share }));
    json!({
        "survival": survival.collect::<Vec<_>>(),
        "lifetimes_s": fit.churn.lifetimes.as_ref().map(ToString::to_string),
        "half_life_s": fit.churn.half_life_s,
    })
}

fn arrivals(fit: &Fit) -> Value {
    let arrivals = &fit.arrivals;
    let dispersion = arrivals
        .dispersions
        .iter()
        .map(|one| json!({ "window_s": one.window_s, "windows": one.windows, "idc": one.idc }));
    let burst = arrivals.burst.map(|burst| {
        json!({
            "factor": burst.states.factor,
            "on_ns": burst.states.on_ns,
            "off_ns": burst.states.off_ns,
            "idc_limit": burst.limit,
            "off": burst.off,
        })
    });
    json!({
        "rate": arrivals.rate,
        "whole_seconds": arrivals.whole_seconds,
        "peak_1s": arrivals.peak_1s,
        "peak_60s": arrivals.peak_60s,
        "dispersion": dispersion.collect::<Vec<_>>(),
        "hurst": arrivals.hurst,
        "burst": burst,
        "few_bursts": arrivals.few_bursts,
        "step_s": arrivals.step_s,
        "rates": arrivals.rates,
        "hours": arrivals.hours,
    })
}

/// The sizes of a cache at which misses are given, from the smallest: shares of all keys, or of all their bytes.
pub(super) fn cache_sizes(all: f64) -> Vec<f64> {
    let sizes = (0..CACHE_SIZES).rev().map(|halvings| (all / f64::from(1u32 << halvings)).round().max(1.0));
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.dedup();
    sizes
}

fn misses(fit: &Fit) -> Value {
    let by_objects = cache_sizes(fit.keys).into_iter().filter_map(|objects| {
        let (hits, error) = fit.hit_ratio(objects)?;
        Some(json!({ "objects": objects, "miss_ratio": 1.0 - hits, "error": error }))
    });
    let by_bytes = cache_sizes(fit.all_bytes).into_iter().filter_map(|bytes| {
        Some(json!({ "bytes": bytes, "miss_ratio": 1.0 - fit.by_bytes.hit_ratio(bytes)? }))
    });
    json!({ "by_objects": by_objects.collect::<Vec<_>>(), "by_bytes": by_bytes.collect::<Vec<_>>() })
}

fn compared(row: &pummel_traffic::fit::Compared) -> Value {
    let bound = match row.bound {
        Bound::Difference(most) => json!({ "difference": most }),
        Bound::Share(most) => json!({ "share": most }),
        Bound::Factor(most) => json!({ "factor": most }),
        Bound::None => Value::Null,
    };
    json!({
        "what": row.what,
        "trace": row.trace,
        "profile": row.profile,
        "difference": row.difference,
        "bound": bound,
        "is_beyond": row.is_beyond(),
    })
}
