//! The files in which CacheLib publishes popularities and sizes (`cachelib/cachebench/test_configs/*/{pop,sizes}.json`).

use pummel_logic::dist::{Dist, Range, Weighted};
use pummel_logic::plan::{BucketShare, BucketShares};
use serde::Deserialize;

/// Bytes of an allocation class: each size in the file is the largest of a class of this many sizes.
const CLASS_BYTES: u64 = 32;

/// Most buckets or sizes of a file.
const ENTRIES_MAX: usize = 65_536;

#[derive(Deserialize)]
struct Popularity {
    #[serde(rename = "popularityBuckets")]
    buckets: Vec<u64>,
    #[serde(rename = "popularityWeights")]
    weights: Vec<f64>,
}

#[derive(Deserialize)]
struct Sizes {
    #[serde(rename = "valSizeRange")]
    sizes: Vec<f64>,
    #[serde(rename = "valSizeRangeProbability")]
    weights: Vec<f64>,
}

/// The popularity in such a file: buckets of equally popular objects.
///
/// # Errors
/// Returns the expected content of the file, if it differs.
pub fn popularity(text: &str) -> Result<BucketShares, String> {
    let expected = format!(
        "JSON with 'popularityBuckets' and 'popularityWeights' is expected, two lists of the same length, of up to {ENTRIES_MAX} \
         numbers of objects and of weights that are not all 0"
    );
    let read: Popularity =
        serde_json::from_slice(text.as_bytes()).map_err(|error| format!("{expected}: {error}"))?;
    if read.buckets.len() != read.weights.len() {
        return Err(format!("{expected}: there are {} and {}", read.buckets.len(), read.weights.len()));
    }
    let buckets = read.buckets.into_iter().zip(read.weights).filter(|(records, _)| *records > 0);
    BucketShares::new(buckets.map(|(records, weight)| BucketShare { records, weight }).collect())
        .ok_or(expected)
}

/// The sizes in such a file. As many weights as sizes: each size is that of an allocation class, and any length of the class is as
/// likely. One weight less: a weight belongs to the sizes from one to the next.
///
/// # Errors
/// Returns the expected content of the file, if it differs.
pub fn sizes(text: &str) -> Result<Dist, String> {
    let expected = format!(
        "JSON with 'valSizeRange' and 'valSizeRangeProbability' is expected: up to {ENTRIES_MAX} rising sizes in bytes, and as many \
         weights, or one less"
    );
    let read: Sizes =
        serde_json::from_slice(text.as_bytes()).map_err(|error| format!("{expected}: {error}"))?;
    let Sizes { sizes, weights } = read;
    let is_size = |size: &f64| (0.0..=1e15).contains(size);
    let rises = sizes.windows(2).all(|pair| pair[0] < pair[1]);
    if sizes.is_empty() || sizes.len() > ENTRIES_MAX || !sizes.iter().all(is_size) || !rises {
        return Err(expected);
    }
    let of_class = |(size, weight): (&f64, f64)| {
        let high = size.round() as u64;
        Range { low: (high + 1).saturating_sub(CLASS_BYTES), high, weight }
    };
    let between = |(pair, weight): (&[f64], f64)| {
        let low = pair[0].round() as u64;
        Range { low, high: (pair[1].round() as u64).saturating_sub(1).max(low), weight }
    };
    let ranges: Vec<Range> = match weights.len() {
        count if count == sizes.len() => sizes.iter().zip(weights).map(of_class).collect(),
        count if count + 1 == sizes.len() => sizes.windows(2).zip(weights).map(between).collect(),
        _ => return Err(expected),
    };
    let ranges = ranges.into_iter().filter(|range| range.weight != 0.0).collect();
    Weighted::new(ranges).map(Dist::Weighted).map_err(|_| expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_popularity_has_buckets_of_objects_and_their_weights() {
        let text =
            r#"{"oneHits": 0.2, "popularityWeights": [66, 129.5, 0, 4], "popularityBuckets": [1, 9, 0, 90]}"#;
        let read = popularity(text).unwrap();
        assert_eq!((read.to_string().as_str(), read.records()), ("1@66,9@129.5,90@4", 100));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"popularityBuckets": [1], "popularityWeights": []}"#,
            r#"{"popularityBuckets": [1], "popularityWeights": [0]}"#,
            r#"{"popularityBuckets": [-1], "popularityWeights": [1]}"#,
            r#"{"popularityBuckets": [], "popularityWeights": []}"#,
        ] {
            let error = popularity(text).unwrap_err();
            assert!(error.contains("popularityWeights"), "{text:?}: {error}");
        }
    }

    #[test]
    fn sizes_are_classes_or_ranges() {
        let of = |text: &str| sizes(text).map(|dist| dist.to_string());
        let classes = r#"{"valSizeRange": [31, 63, 159, 191], "valSizeRangeProbability": [1, 2, 0, 4.5]}"#;
        assert_eq!(of(classes), Ok("weighted:0-31@1,32-63@2,160-191@4.5".to_owned()));
        let ranges = r#"{"valSizeRange": [10, 20, 100], "valSizeRangeProbability": [1, 3]}"#;
        assert_eq!(of(ranges), Ok("weighted:10-19@1,20-99@3".to_owned()));
        for text in [
            "",
            "{}",
            r#"{"valSizeRange": [], "valSizeRangeProbability": []}"#,
            r#"{"valSizeRange": [5], "valSizeRangeProbability": [1, 2]}"#,
            r#"{"valSizeRange": [5, 4], "valSizeRangeProbability": [1, 2]}"#,
            r#"{"valSizeRange": [-5], "valSizeRangeProbability": [1]}"#,
            r#"{"valSizeRange": [5], "valSizeRangeProbability": [0]}"#,
            r#"{"valSizeRange": [5], "valSizeRangeProbability": [-1]}"#,
        ] {
            let error = sizes(text).unwrap_err();
            assert!(error.contains("valSizeRange"), "{text:?}: {error}");
        }
    }
}
