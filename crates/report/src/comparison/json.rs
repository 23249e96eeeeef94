//! A comparison as JSON and as CSV.

use pummel_measure::compare::Design;
use serde_json::{Map, Value, json};

use super::claim::Outcome;
use super::result::{Comparison, Row};
use super::side::Side;
use crate::VERSION;
use crate::csv::{Cell, Csv};
use crate::document::SCHEMA;
use crate::layout::json_value;
use crate::run_figures::{CSV_HEADER, csv_cells, pretty};

/// The comparison as JSON, with both plans and all runs.
pub fn json(comparison: &Comparison) -> Vec<u8> {
    pretty(&value(comparison))
}

/// Comparisons of several sides with the first as JSON: one as it is, several as a list.
pub fn json_of_all(comparisons: &[Comparison]) -> Vec<u8> {
    match comparisons {
        [only] => json(only),
        several => pretty(&json!({
            "schema": SCHEMA,
            "tool": { "name": "pummel", "version": VERSION },
            "command": "compare",
            "comparisons": several.iter().map(value).collect::<Vec<Value>>(),
        })),
    }
}

fn value(comparison: &Comparison) -> Value {
    let figures: Map<String, Value> =
        comparison.rows.iter().map(|row| (row.metric.name().to_owned(), row_json(row))).collect();
    json!({
        "schema": SCHEMA,
        "tool": { "name": "pummel", "version": VERSION },
        "command": comparison.command,
        "status": comparison.status(),
        "reason": comparison.reason,
        "argv": comparison.argv,
        "paired": comparison.design == Design::Paired,
        "order_warning": comparison.order.trap(comparison.names),
        "accept_order": comparison.accept_order,
        "asked_pairs": comparison.asked_pairs,
        "made_again": comparison.made_again,
        "a": side_json(comparison.names.0[0], &comparison.sides[0]),
        "b": side_json(comparison.names.0[1], &comparison.sides[1]),
        "differences": comparison.differences.iter().map(|difference| json!({
            "name": difference.name,
            "a": difference.values[0],
            "b": difference.values[1],
        })).collect::<Vec<Value>>(),
        "figures": figures,
        "doubts": comparison.doubts,
        "claims": comparison.claims.iter().map(|result| json!({
            "claim": result.claim.flag().trim_start_matches('-'),
            "metric": result.claim.metric.name(),
            "limit": result.claim.limit,
            "outcome": result.name(),
            "why": match &result.outcome {
                Outcome::NotJudged(why) => Some(why.as_str()),
                Outcome::Held | Outcome::Violated => None,
            },
            "says": result.words(comparison.names.0[1]),
        })).collect::<Vec<Value>>(),
        "runs": runs_json(&comparison.sides),
    })
}

fn side_json(name: &str, side: &Side) -> Value {
    json!({
        "name": name,
        "generator_limited": side.generator_limited(),
        "label": side.label,
        "plan": side.plan.told(),
        "labels": side.plan.labels,
        "source": side.source,
    })
}

/// The runs of both sides, each with its side and its place among the runs of that side, which is its pair.
fn runs_json(sides: &[Side; 2]) -> Vec<Value> {
    let of_side = |(name, side): (&str, &Side)| {
        let runs = side.runs.iter().enumerate().map(|(pair, run)| {
            let mut value = json_value(run);
            let fields = value.as_object_mut().expect("it is an object");
            fields.insert("side".to_owned(), json!(name));
            fields.insert("pair".to_owned(), json!(pair));
            value
        });
        runs.collect::<Vec<Value>>()
    };
    ["a", "b"].into_iter().zip(sides).flat_map(of_side).collect()
}

fn row_json(row: &Row) -> Value {
    let change = row.change;
    json!({
        "unit": row.metric.unit(),
        "a": row.values[0],
        "b": row.values[1],
        "change": row.relative(),
        "ci": row.relative_interval().map(|(low, high)| [low, high]),
        "p": change.and_then(|change| change.p),
        "p_corrected": row.p,
        "would_have_been_seen": row.seen().map(f64::exp_m1),
        "judged": row.is_judged,
        "word": row.word.name(),
        "below_noise": row.is_below_noise(),
    })
}

/// The runs of both sides as CSV, a line for each.
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut table = Csv::with_header(["side", "pair"].into_iter().chain(CSV_HEADER));
    for (name, side) in ["a", "b"].into_iter().zip(&comparison.sides) {
        for (pair, run) in side.runs.iter().enumerate() {
            table.row([name.into(), Cell::Count(pair as u64)].into_iter().chain(csv_cells(run)));
        }
    }
    table.finish()
}
