//! A table of percentiles in the layout of the HdrHistogram project, for its plotters.

use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::recorder::Span;

use crate::report::document::{Document, OpResult};

/// Steps of the table for each halving of what is left.
const STEPS: u32 = 5;

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTable {
    /// The result has no operation of the name; these are there.
    Op(Vec<String>),
    /// The result keeps no histogram of these times.
    Histogram,
}

/// The table of one time, of one operation or of all together: values in microseconds.
///
/// # Errors
/// Returns [`NoTable`] when the result has no such operation or no histogram of it.
pub fn render(document: &Document, op: Option<&str>, span: Span) -> Result<Vec<u8>, NoTable> {
    let chosen: Vec<&OpResult> = match op {
        None => document.ops.iter().map(|(_, op)| op).collect(),
        Some(name) => match document.ops.get(name) {
            Some(op) => vec![op],
            None => return Err(NoTable::Op(document.ops.iter().map(|(name, _)| name.to_owned()).collect())),
        },
    };
    let mut all = Histogram::new();
    for op in &chosen {
        match op.histogram(span) {
            Some(Ok(histogram)) => all.merge(&histogram),
            Some(Err(_)) | None => return Err(NoTable::Histogram),
        }
    }
    Ok(table(&all, chosen.iter().map(|op| op.unanswered()).sum()).into_bytes())
}

fn table(histogram: &Histogram, unanswered: u64) -> String {
    let micros = |ns: f64| ns / 1e3;
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let hdr = histogram.to_hdr();
    let mut sum = 0_u64;
    for step in hdr.iter_quantiles(STEPS) {
        sum += step.count_since_last_iteration();
        let (value, quantile) = (micros(step.value_iterated_to() as f64), step.quantile_iterated_to());
        text += &format!("{value:12.3} {quantile:14.12} {sum:10}");
        if quantile < 1.0 {
            text += &format!(" {:14.2}", 1.0 / (1.0 - quantile));
        }
        text.push('\n');
    }
    let exact = histogram.moments();
    let known = |ns: Option<f64>| micros(ns.unwrap_or(0.0));
    text += &format!(
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n",
        known(exact.mean_ns()),
        known(exact.stddev_ns()),
        micros(exact.max as f64),
        histogram.count()
    );
    text += "#[Values are microseconds]\n";
    if unanswered > 0 {
        text += &format!("#[{unanswered} requests without an answer took longer than all of these]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::Run;
    use pummel_logic::measure::measurement::Keep;

    #[test]
    fn the_table_ends_with_the_greatest_value_and_counts_all() {
        let document = Run::new(Keep::Figures).document(Clone::clone);
        let table = |op, span| String::from_utf8(render(&document, op, span).unwrap()).unwrap();
        let gets = table(Some("get"), Span::Response);
        let rows: Vec<Vec<f64>> = gets
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
            .collect();
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]), "{gets}");
        let last = rows.last().unwrap();
        assert_eq!((last[1], last[2]), (1.0, 1_800.0));
        assert!((last[0] - 93.6).abs() < 0.1, "{gets}");
        assert!(table(None, Span::Service).contains("Total count    =         2000]"));
        assert_eq!(
            render(&document, Some("incr"), Span::Lag),
            Err(NoTable::Op(vec!["get".into(), "set".into()]))
        );
    }
}
