//! Metrics as protobuf: the messages of `io.prometheus.client`, each behind its length, with classic and native buckets.
//!
//! The messages follow <https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto>, of which
//! only the fields that pummel fills are here.

use prost::Message;
use pummel_report::snapshot::buckets::{CLASSIC_BOUNDS, NATIVE_SCHEMA, TimeBuckets};

use crate::metrics::families::{Family, Sample, Value};
use crate::metrics::table::Kind;

/// The width of the bucket of zero, as the client libraries of Prometheus have it: 2^-128 s.
const ZERO_THRESHOLD: f64 = f64::from_bits((1023 - 128) << 52);

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    /// 0 is a counter, 1 a gauge, 4 a histogram.
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

/// The bytes of these metrics.
pub fn render(families: &[Family<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32 << 10);
    for family in families {
        let message = MetricFamily {
            name: family.row.name.to_owned(),
            help: family.row.help.to_owned(),
            kind: Some(match family.row.kind {
                Kind::Counter => 0,
                Kind::Gauge => 1,
                Kind::Histogram => 4,
            }),
            metric: family.samples.iter().map(|sample| metric(family.row.kind, sample)).collect(),
        };
        bytes.extend(message.encode_length_delimited_to_vec());
    }
    bytes
}

fn metric(kind: Kind, sample: &Sample<'_>) -> Metric {
    let pair =
        |(name, value): &(&'static str, String)| LabelPair { name: (*name).to_owned(), value: value.clone() };
    let number = Number { value: Some(sample.value.as_f64()) };
    let times = if let Value::Times(times) = sample.value { Some(times) } else { None };
    Metric {
        label: sample.labels.iter().map(pair).collect(),
        gauge: (kind == Kind::Gauge).then(|| number.clone()),
        counter: (kind == Kind::Counter).then_some(number),
        histogram: times.map(histogram),
    }
}

fn histogram(times: &TimeBuckets) -> Histogram {
    let bounds = CLASSIC_BOUNDS.iter().zip(times.cumulative());
    let (positive_span, positive_delta) = spans(times);
    Histogram {
        sample_count: Some(times.count()),
        sample_sum: Some(times.sum_s()),
        bucket: bounds
            .map(|((bound, _), count)| Bucket {
                cumulative_count: Some(count),
                upper_bound: Some(bound.parse().expect("a bound is a number")),
            })
            .collect(),
        schema: Some(NATIVE_SCHEMA),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count: Some(times.zeros()),
        positive_span,
        positive_delta,
    }
}

/// Runs of native buckets without a gap, each with its distance to the end of the one before, and the counts of all buckets as
/// differences to the one before.
fn spans(times: &TimeBuckets) -> (Vec<BucketSpan>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<BucketSpan>, Vec<i64>) = (Vec::new(), Vec::new());
    let (mut next, mut last) = (0, 0);
    for (index, count) in times.native() {
        match spans.last_mut() {
            Some(span) if index == next => span.length = span.length.map(|length| length + 1),
            _ => spans.push(BucketSpan { offset: Some(index - next), length: Some(1) }),
        }
        next = index + 1;
        deltas.push(count as i64 - last);
        last = count as i64;
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::example;
    use crate::metrics::families;

    fn decoded() -> Vec<MetricFamily> {
        let (snapshot, process) = example::full();
        let bytes = render(&families::families(&snapshot, &process));
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        while !rest.is_empty() {
            found.push(MetricFamily::decode_length_delimited(&mut rest).expect("a family"));
        }
        found
    }

    #[test]
    fn every_family_is_there_behind_its_length() {
        let (snapshot, process) = example::full();
        let names: Vec<&str> =
            families::families(&snapshot, &process).iter().map(|family| family.row.name).collect();
        let found = decoded();
        assert_eq!(found.iter().map(|family| family.name.as_str()).collect::<Vec<_>>(), names);
        let completed = found
            .iter()
            .find(|family| family.name == "pummel_requests_completed_total")
            .expect("it is there");
        assert_eq!(completed.metric[0].counter.as_ref().and_then(|counter| counter.value), Some(9.0));
    }

    #[test]
    fn native_buckets_sum_up_to_the_count() {
        let found = decoded();
        let service =
            found.iter().find(|family| family.name == "pummel_service_seconds").expect("it is there");
        let times = service.metric[0].histogram.as_ref().expect("a histogram");
        let lengths: u32 = times.positive_span.iter().filter_map(|span| span.length).sum();
        assert_eq!(lengths as usize, times.positive_delta.len());
        let mut count = 0;
        let counts = times.positive_delta.iter().map(|delta| {
            count += delta;
            count
        });
        assert_eq!(counts.sum::<i64>() as u64 + times.zero_count.unwrap_or(0), 9);
        assert_eq!((times.sample_count, times.schema, times.bucket.len()), (Some(9), Some(5), 20));
        assert!((ZERO_THRESHOLD - 2f64.powi(-128)).abs() < f64::MIN_POSITIVE);
    }
}
