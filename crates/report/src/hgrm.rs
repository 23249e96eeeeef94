//! A table of percentiles in the layout of the HdrHistogram project, for its plotters.

use pummel_measure::histogram::Histogram;
use pummel_measure::recorder::Span;

use crate::document::{Document, OpResult};

/// Steps of the table for each halving of what is left.
const STEPS: u32 = 5;

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTable {
    /// The result has no operation of the name; these are there.
    Op(Vec<String>),
    /// The result keeps no histogram of these times.
    Histogram,
    /// No request has such a time.
    Empty,
}

/// The table of one time, of one operation or of all together: values in microseconds.
///
/// # Errors
/// Returns [`NoTable`] when the result has no such operation, no histogram of it, or no request with such a time.
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
    if all.count() == 0 {
        return Err(NoTable::Empty);
    }
    Ok((table(&all) + &missing(&chosen, span, all.count())).into_bytes())
}

/// A line about the requests that the table of `count` does not hold; empty where it holds all.
fn missing(ops: &[&OpResult], span: Span, count: u64) -> String {
    let sum = |of: fn(&OpResult) -> u64| ops.iter().map(|op| of(op)).sum::<u64>();
    let (requests, what) = match span {
        Span::Response | Span::Service => {
            (sum(OpResult::unanswered), "without an answer took longer than all of these")
        }
        // What was not sent has no wait and no lag, and what was not answered did not lie unread.
        Span::Wait | Span::Lag | Span::Reaction => {
            (sum(|op| op.requests).saturating_sub(count), "have no such time, and are not among these")
        }
    };
    if requests == 0 { String::new() } else { format!("#[{requests} requests {what}]\n") }
}

fn table(histogram: &Histogram) -> String {
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
    text + "#[Values are microseconds]\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use pummel_measure::measurement::Keep;

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

    #[test]
    fn no_times_are_no_table() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let empty = Histogram::new().to_base64();
        for (_, op) in &mut document.ops.0 {
            op.histograms.0.iter_mut().for_each(|(_, text)| text.clone_from(&empty));
        }
        assert_eq!(render(&document, None, Span::Response), Err(NoTable::Empty));
    }

    #[test]
    fn requests_without_an_answer_are_slow_but_neither_waited_for_it_nor_lay_unread() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let last = |document: &Document, span: Span| {
            let table = String::from_utf8(render(document, Some("get"), span).unwrap()).unwrap();
            table.lines().last().unwrap_or_default().to_owned()
        };
        for span in Span::ALL {
            assert_eq!(last(&document, span), "#[Values are microseconds]", "{}", span.name());
        }
        let get = document.ops.0.iter_mut().find(|(name, _)| name == "get").map(|(_, get)| get).unwrap();
        (get.requests, get.unfinished) = (get.requests + 3, get.unfinished + 3);
        for span in Span::ALL {
            let words = match span {
                Span::Response | Span::Service => "without an answer took longer than all of these",
                Span::Wait | Span::Lag | Span::Reaction => "have no such time, and are not among these",
            };
            assert_eq!(last(&document, span), format!("#[3 requests {words}]"), "{}", span.name());
        }
    }
}
