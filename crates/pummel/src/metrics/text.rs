//! Metrics as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.

use std::fmt::Write;

use pummel_report::snapshot::buckets::{CLASSIC_BOUNDS, TimeBuckets};

use crate::metrics::families::{Family, Sample, Value};
use crate::metrics::table::Kind;

/// Which of the two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus' text format 0.0.4.
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// The text of these metrics.
pub fn render(families: &[Family<'_>], dialect: Dialect) -> String {
    let mut text = String::with_capacity(64 << 10);
    for family in families {
        let (name, kind) = (family.row.name, family.row.kind);
        // A counter of OpenMetrics has its suffix in its samples alone.
        let shown = match dialect {
            Dialect::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
            Dialect::Classic => name,
        };
        let _ = writeln!(text, "# HELP {shown} {}\n# TYPE {shown} {}", family.row.help, kind.name());
        for sample in &family.samples {
            match sample.value {
                Value::Times(times) => histogram(&mut text, name, sample, times, dialect),
                value => line(&mut text, name, &sample.labels, None, &number(value)),
            }
        }
        debug_assert!(kind != Kind::Histogram || !family.samples.is_empty());
    }
    if dialect == Dialect::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn histogram(text: &mut String, name: &str, sample: &Sample<'_>, times: &TimeBuckets, dialect: Dialect) {
    let bucket = format!("{name}_bucket");
    for ((bound, _), count) in CLASSIC_BOUNDS.iter().zip(times.cumulative()) {
        // OpenMetrics writes every bound as a number with a point or an exponent.
        let is_whole = !bound.contains(['.', 'e']) && dialect == Dialect::OpenMetrics;
        let bound = if is_whole { format!("{bound}.0") } else { (*bound).to_owned() };
        line(text, &bucket, &sample.labels, Some(&bound), &count.to_string());
    }
    line(text, &bucket, &sample.labels, Some("+Inf"), &times.count().to_string());
    line(text, &format!("{name}_sum"), &sample.labels, None, &times.sum_s().to_string());
    line(text, &format!("{name}_count"), &sample.labels, None, &times.count().to_string());
}

fn number(value: Value<'_>) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        value => value.as_f64().to_string(),
    }
}

fn line(text: &mut String, name: &str, labels: &[(&'static str, String)], bound: Option<&str>, value: &str) {
    text.push_str(name);
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut separator = '{';
    for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        let _ = write!(text, "{separator}{label}=\"");
        escape(text, value);
        text.push('"');
        separator = ',';
    }
    if separator == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

/// Adds the value of a label, which may be any text.
fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::example;

    #[test]
    fn both_texts_have_the_same_figures_and_openmetrics_has_its_end() {
        let (snapshot, process) = example::full();
        let families = crate::metrics::families::families(&snapshot, &process);
        let (classic, open) = (render(&families, Dialect::Classic), render(&families, Dialect::OpenMetrics));
        let line = r#"pummel_requests_completed_total{run="r",role="run",op="get"} 9"#;
        for text in [&classic, &open] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        assert!(classic.contains("# TYPE pummel_requests_completed_total counter\n"));
        assert!(open.contains("# TYPE pummel_requests_completed counter\n"));
        assert!(classic.contains(r#"pummel_service_seconds_bucket{run="r",role="run",op="get",le="1"} 8"#));
        assert!(open.contains(r#"pummel_service_seconds_bucket{run="r",role="run",op="get",le="1.0"} 8"#));
        assert!(open.ends_with("\n# EOF\n") && !classic.contains("# EOF"));
    }

    #[test]
    fn a_label_of_any_text_stays_one_line() {
        let (mut snapshot, process) = example::full();
        snapshot.identity.run = "a\"b\\c\nd".to_owned();
        let text = render(&crate::metrics::families::families(&snapshot, &process), Dialect::Classic);
        assert!(text.contains(r#"{run="a\"b\\c\nd",role="run""#), "{text}");
    }

    #[test]
    fn buckets_ascend_and_end_with_the_count() {
        let (snapshot, process) = example::full();
        let text = render(&crate::metrics::families::families(&snapshot, &process), Dialect::Classic);
        let of =
            |line: &&str| line.starts_with("pummel_response_seconds_bucket") && line.contains("op=\"get\"");
        let counts: Vec<u64> = text
            .lines()
            .filter(of)
            .map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a number"))
            .collect();
        assert_eq!(counts.len(), 21);
        assert!(counts.is_sorted(), "{counts:?}");
        assert_eq!(counts.last(), Some(&9));
    }
}
