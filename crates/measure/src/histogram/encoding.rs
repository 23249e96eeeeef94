//! Histograms as the HdrHistogram library has them, as text and in saved results.

use std::fmt;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::Histogram;
use super::cells::{HIGHEST, index_of};
use super::moments::Moments;
use pummel_logic::time::{Nanos, SECOND};

/// Error about a text that holds no histogram of this kind, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAHistogram(pub(crate) String);

/// The greatest value that the encoding names, unless a greater one was recorded.
const NOMINAL_HIGHEST: Nanos = 3_600 * SECOND;

/// The first word of a compressed encoding.
const COMPRESSED: u32 = 0x1c84_9314;

/// Length of the two words before the compressed part.
const WORDS_BYTES: usize = 8;

/// Length of what stands before the counts.
const HEAD_BYTES: usize = 40;

/// Length of the longest number.
const NUMBER_BYTES: usize = 9;

/// The most bytes of counts: those of 500,000 cells, ten times as many as a histogram of three digits has.
const PAYLOAD_MAX_BYTES: usize = 4 << 20;

impl Histogram {
    /// The counts as a histogram of the HdrHistogram library. The exact figures are not part of it.
    pub fn to_hdr(&self) -> hdrhistogram::Histogram<u64> {
        let highest = NOMINAL_HIGHEST.max(self.max);
        let mut hdr = hdrhistogram::Histogram::new_with_bounds(1, highest, 3)
            .expect("these bounds and digits are within what the library allows");
        for (lowest, _, count) in self.cells() {
            hdr.record_n(lowest, count).expect("the bounds include every value");
        }
        hdr
    }

    /// The counts of a histogram of the HdrHistogram library. Least, greatest, sum and sum of squares are as exact as
    /// its cells; where those are wider than ours, they are those of the middles of the cells.
    pub fn from_hdr(hdr: &hdrhistogram::Histogram<u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for cell in hdr.iter_recorded() {
            let value = cell.value_iterated_to();
            histogram.record_many(hdr.median_equivalent(value), cell.count_at_value());
        }
        if histogram.count > 0 {
            let (min, max) = (hdr.lowest_equivalent(hdr.min()).min(HIGHEST), hdr.max().min(HIGHEST));
            // The least and the greatest value lie in cells that were counted in.
            if index_of(min) == index_of(histogram.min) && index_of(max) == index_of(histogram.max) {
                (histogram.min, histogram.max) = (min, max);
            }
        }
        histogram
    }

    /// HdrHistogram's V2 encoding, compressed and in base64: the form that HdrHistogram libraries of all languages read.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.to_hdr(), &mut bytes)
            .expect("counts fit and memory does not fail to be written");
        STANDARD.encode(bytes)
    }

    /// The histogram in a text of [`Histogram::to_base64`], or of another library's V2 encoding, compressed or not.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] for a text that is not in base64, or holds no V2 encoding of a histogram, or one of more values
    /// than can be counted.
    pub fn from_base64(text: &str) -> Result<Histogram, NotAHistogram> {
        let bytes = STANDARD.decode(text).map_err(|error| NotAHistogram(error.to_string()))?;
        let bytes = checked(bytes)?;
        let hdr: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| NotAHistogram(error.to_string()))?;
        let mut counts = hdr.iter_recorded().map(|cell| cell.count_at_value());
        match counts.try_fold(0u64, u64::checked_add) {
            Some(_) => Ok(Histogram::from_hdr(&hdr)),
            None => Err(NotAHistogram("it has too many values".to_owned())),
        }
    }

    /// The histogram whose cells are in a text of [`Histogram::to_base64`] and whose exact figures lie beside it.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] for a text without a histogram, and for exact figures that are not those of its
    /// cells.
    pub fn from_parts(v2: &str, exact: Moments) -> Result<Histogram, NotAHistogram> {
        let mut histogram = Histogram::from_base64(v2)?;
        let fits = exact.count == histogram.count
            && (exact.count == 0
                || (exact.max <= HIGHEST
                    && exact.min <= exact.max
                    && index_of(exact.min) == index_of(histogram.min)
                    && index_of(exact.max) == index_of(histogram.max)));
        if !fits {
            return Err(NotAHistogram("the exact figures do not belong to it".to_owned()));
        }
        (histogram.min, histogram.max) = (exact.min, exact.max);
        (histogram.sum, histogram.sum_squares) = (exact.sum, exact.sum_squares);
        Ok(histogram)
    }
}

/// An encoding, unpacked, whose length and numbers the library can take: it takes the length that the encoding names for granted, and
/// panics at a number that has no opposite.
fn checked(bytes: Vec<u8>) -> Result<Vec<u8>, NotAHistogram> {
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes)
    };
    let too_long = || NotAHistogram(format!("it holds more than {PAYLOAD_MAX_BYTES} bytes"));
    let plain = match word(&bytes, 0) {
        Some(COMPRESSED) => {
            let mut plain = Vec::new();
            let packed = bytes.get(WORDS_BYTES..).unwrap_or_default();
            ZlibDecoder::new(packed)
                .take((HEAD_BYTES + PAYLOAD_MAX_BYTES) as u64 + 1)
                .read_to_end(&mut plain)
                .map_err(|error| NotAHistogram(error.to_string()))?;
            plain
        }
        _ => bytes,
    };
    let is_long = word(&plain, 4).is_some_and(|length| length as usize > PAYLOAD_MAX_BYTES);
    if is_long || plain.len() > HEAD_BYTES + PAYLOAD_MAX_BYTES {
        return Err(too_long());
    }
    // A number has up to nine bytes of seven bits each, the last one of eight; all bits set are the number without an opposite.
    let payload = plain.get(HEAD_BYTES..).unwrap_or_default();
    if payload.windows(NUMBER_BYTES).any(|number| number.iter().all(|byte| *byte == u8::MAX)) {
        return Err(NotAHistogram("a number is out of range".to_owned()));
    }
    Ok(plain)
}

impl fmt::Display for NotAHistogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not a histogram in HdrHistogram's V2 encoding: {}", self.0)
    }
}

impl std::error::Error for NotAHistogram {}

/// A histogram as it is saved: the cells in the common encoding, the exact figures beside it.
#[derive(Serialize, Deserialize)]
struct Saved {
    exact: Moments,
    v2: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Saved { exact: self.moments(), v2: self.to_base64() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        Histogram::from_parts(&saved.v2, saved.exact).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::tests::{of, oracle, values};
    use flate2::Compression;
    use flate2::read::ZlibEncoder;
    use hdrhistogram::serialization::V2Serializer;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn the_library_and_its_encoding_get_the_same_cells_and_give_them_back(values in values()) {
            let histogram = of(&values);
            prop_assert_eq!(&histogram.to_hdr(), &oracle(&values));
            prop_assert!(Histogram::from_hdr(&histogram.to_hdr()).cells().eq(histogram.cells()));
            let back = Histogram::from_base64(&histogram.to_base64()).unwrap();
            prop_assert!(back.cells().eq(histogram.cells()));
        }

        #[test]
        fn no_text_makes_the_decoder_panic(text in "[A-Za-z0-9+/]{0,64}", bytes in vec(any::<u8>(), 0..64)) {
            let _ = Histogram::from_base64(&text);
            prop_assert!(Histogram::from_base64(&STANDARD.encode(bytes)).is_err());
        }

        #[test]
        fn nothing_is_lost_on_the_way_through_json(values in values()) {
            let histogram = of(&values);
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_survives_the_encoding() {
        let empty = Histogram::new();
        assert_eq!(empty.quantile(0.5), None);
        assert_eq!(empty.at_ranks([0, 1, 2]), [None; 3]);
        assert_eq!(empty.moments().mean_ns(), None);
        assert_eq!(empty.moments().stddev_ns(), None);
        assert_eq!(Histogram::from_base64(&empty.to_base64()).unwrap(), empty);
        let text = serde_json::to_string(&empty).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), empty);
    }

    /// An encoding that is not compressed, with these counts; `length` is the length that it names.
    fn encoding(length: u32, counts: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&of(&[1, 2, 3]).to_hdr(), &mut bytes).expect("memory can be written");
        bytes.truncate(HEAD_BYTES);
        bytes[4..8].copy_from_slice(&length.to_be_bytes());
        bytes.extend(counts);
        bytes
    }

    #[test]
    fn neither_a_length_nor_a_number_of_an_encoding_is_taken_for_granted() {
        let long = vec![0; PAYLOAD_MAX_BYTES + 1];
        for (length, counts) in [
            (u32::MAX, &[2, 2][..]),
            (90, &[u8::MAX; 90]),
            (9, &[u8::MAX; 9]),
            (PAYLOAD_MAX_BYTES as u32 + 1, &long),
        ] {
            let plain = encoding(length, counts);
            let mut packed = COMPRESSED.to_be_bytes().to_vec();
            let mut deflated = Vec::new();
            let mut encoder = ZlibEncoder::new(plain.as_slice(), Compression::fast());
            encoder.read_to_end(&mut deflated).expect("memory can be read");
            packed.extend((deflated.len() as u32).to_be_bytes());
            packed.extend(deflated);
            for bytes in [plain, packed] {
                let why = Histogram::from_base64(&STANDARD.encode(&bytes)).expect_err("it is refused").0;
                assert!(
                    why.contains("more than 4194304 bytes") || why.contains("out of range"),
                    "{length}: {why}"
                );
            }
        }
        let good = STANDARD.encode(encoding(2, &[2, 2]));
        assert_eq!(Histogram::from_base64(&good).map(|histogram| histogram.count()), Ok(2));
    }

    #[test]
    fn a_histogram_of_one_digit_goes_on_to_another_process() {
        let values = [100, 5_000, 70_000_000_000, 3_000_000_000_000];
        for digits in [0, 1, 2, 4] {
            let mut hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, NOMINAL_HIGHEST, digits)
                .expect("the library allows them");
            values.iter().for_each(|value| hdr.record(*value).expect("it is within the bounds"));
            let histogram = Histogram::from_hdr(&hdr);
            let mut merged = Histogram::new();
            merged.merge_sparse(&histogram.to_sparse());
            assert_eq!(merged, histogram, "{digits} digits");
        }
    }

    #[test]
    fn exact_figures_that_belong_to_another_histogram_are_refused() {
        let exact = of(&[1, 2, 3]).moments();
        let v2 = of(&[1_000_000, 2, 3]).to_base64();
        assert!(Histogram::from_parts(&v2, exact).is_err());
        assert!(
            Histogram::from_parts(&v2, Moments { count: 4, ..of(&[2, 3, 1_000_000]).moments() }).is_err()
        );
    }
}
