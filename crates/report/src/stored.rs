//! A stored result as bytes: JSON, JSON that gzip packed, or a report page that holds it.

use std::fmt;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use serde::Deserialize;

use crate::checked_json;
use crate::comparison::{Comparison, Comparisons, PairCommand, SuitesComparison};
use crate::document::{CurveDocument, Document, Label, NotAResult};
use crate::repetition::Repetition;
use crate::suite::SuiteDocument;

/// The most bytes that are read of a result, unpacked: 4,096 intervals of eleven operations are some 200 MB.
pub const STORED_MAX_BYTES: u64 = 1 << 29;

/// What begins the data of a report page.
pub const PAGE_DATA: &str = "href=\"data:application/gzip;base64,";

/// The first bytes of what gzip packed (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The result of any command, as it is written and read.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultDocument {
    /// Result of a run.
    Run(Box<Document>),
    /// Result of a search, a scan or a curve.
    Series(Box<CurveDocument>),
    /// Result of repeated runs.
    Repeated(Box<Repetition>),
    /// Result of two sides.
    Pair(Box<Comparison>),
    /// Result of three sides or more.
    Comparison(Box<Comparisons>),
    /// Comparison of two suites.
    Suites(Box<SuitesComparison>),
    /// Result of a suite.
    Suite(Box<SuiteDocument>),
}

impl ResultDocument {
    /// The subcommand that wrote the result, as it is typed.
    pub fn command(&self) -> &str {
        match self {
            ResultDocument::Run(_) => "run",
            ResultDocument::Series(series) => &series.command,
            ResultDocument::Repeated(_) => "run --repeat",
            ResultDocument::Pair(pair) => pair.command.name(),
            ResultDocument::Comparison(_) | ResultDocument::Suites(_) => PairCommand::Compare.name(),
            ResultDocument::Suite(_) => "suite",
        }
    }
}

/// Why bytes are no stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// The bytes cannot be unpacked, or are too many.
    Packed(String),
    /// The bytes are a page without data.
    Page,
    /// What the bytes hold is no result.
    Content(NotAResult),
}

impl fmt::Display for NotStored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotStored::Packed(why) => out.write_str(why),
            NotStored::Page => out.write_str(
                "a page without the data of a result: one that `pummel report` wrote is expected, and not with --embed none",
            ),
            NotStored::Content(why) => why.fmt(out),
        }
    }
}

impl std::error::Error for NotStored {}

/// The JSON that bytes hold.
///
/// # Errors
/// Returns [`NotStored`] when they cannot be unpacked, hold more than [`STORED_MAX_BYTES`], or are a page without data.
pub fn json_of(bytes: &[u8]) -> Result<Vec<u8>, NotStored> {
    if bytes.starts_with(&GZIP) {
        return unpacked(bytes);
    }
    if !bytes.trim_ascii_start().starts_with(b"<") {
        return Ok(bytes.to_vec());
    }
    let page = String::from_utf8_lossy(bytes);
    let from = page.find(PAGE_DATA).ok_or(NotStored::Page)? + PAGE_DATA.len();
    let length = page[from..].find('"').ok_or(NotStored::Page)?;
    let packed = STANDARD.decode(&page[from..from + length]).map_err(|_| NotStored::Page)?;
    unpacked(&packed)
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, NotStored> {
    let mut json = Vec::new();
    let read = GzDecoder::new(bytes).take(STORED_MAX_BYTES + 1).read_to_end(&mut json);
    match read {
        Err(error) => {
            Err(NotStored::Packed(format!("it begins like a file of gzip, and cannot be unpacked: {error}")))
        }
        Ok(_) if json.len() as u64 > STORED_MAX_BYTES => {
            Err(NotStored::Packed(format!("it holds more than {STORED_MAX_BYTES} bytes")))
        }
        Ok(_) => Ok(json),
    }
}

/// Bytes packed by gzip, the same for the same bytes.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    GzEncoder::new(bytes, Compression::best()).read_to_end(&mut packed).expect("memory can be read");
    packed
}

/// Bytes in base64, as a link of a page has them.
pub fn base64_of(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads the JSON of a stored result.
///
/// # Errors
/// Returns [`NotAResult`], which says what the bytes are instead, or where they are wrong.
pub fn read(json: &[u8]) -> Result<ResultDocument, NotAResult> {
    let label = Label::of(json)?;
    match label.command() {
        None => Document::read(json).map(|run| ResultDocument::Run(Box::new(run))),
        Some("search" | "scan" | "curve") => parsed(json).map(ResultDocument::Series),
        Some("repeat") => parsed(json).map(ResultDocument::Repeated),
        Some("compare") if label.compares_suites() => {
            let suites: Box<SuitesComparison> = parsed(json)?;
            match suites.is_within_limits() {
                true => Ok(ResultDocument::Suites(suites)),
                false => Err(NotAResult::Malformed(SUITES_OUT_OF_LIMITS.to_owned())),
            }
        }
        Some("suite") => parsed(json).map(ResultDocument::Suite),
        Some("ab" | "compare") if label.compares_several() => {
            let several: Box<Comparisons> = parsed(json)?;
            let is_whole = !several.comparisons.is_empty();
            if !is_whole || !several.comparisons.iter().all(Comparison::is_within_limits) {
                return Err(NotAResult::Malformed(OUT_OF_LIMITS.to_owned()));
            }
            Ok(ResultDocument::Comparison(several))
        }
        Some("ab" | "compare") => {
            let pair: Box<Comparison> = parsed(json)?;
            match pair.is_within_limits() {
                true => Ok(ResultDocument::Pair(pair)),
                false => Err(NotAResult::Malformed(OUT_OF_LIMITS.to_owned())),
            }
        }
        Some(command) => Err(NotAResult::Another(Some(command.to_owned()))),
    }
}

/// The refusal of a comparison with too few sides, too many runs, or without a figure.
const OUT_OF_LIMITS: &str = "a comparison has two sides or more, with at most 50 runs each, and all figures";

/// The refusal of a comparison of suites with too many runs or rounds, or without a figure.
const SUITES_OUT_OF_LIMITS: &str =
    "a comparison of suites has at most 200 runs, with at most 50 rounds a side, and all figures of each";

fn parsed<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Box<T>, NotAResult> {
    checked_json::read(json).map(Box::new).map_err(|error| NotAResult::of_error(json, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use crate::json;
    use pummel_measure::measurement::Keep;

    #[test]
    fn a_result_is_found_in_json_gzip_and_page() {
        let bytes = Run::new(Keep::Figures).document(json::render);
        let small = packed(&bytes);
        assert!(small.len() < bytes.len());
        let page = format!("<!doctype html><a download {PAGE_DATA}{}\">", base64_of(&small));
        for stored in [bytes.clone(), small.clone(), page.into_bytes()] {
            assert_eq!(json_of(&stored).expect("it holds a result"), bytes);
        }
        let Ok(ResultDocument::Run(document)) = read(&bytes) else { panic!("the result of a run") };
        assert_eq!(json::render(&document), bytes, "it is written as it was read");
        for cut in (2..small.len()).step_by(11) {
            assert!(matches!(json_of(&small[..cut]), Err(NotStored::Packed(_))), "cut at {cut}");
        }
        assert_eq!(json_of(b"<html></html>"), Err(NotStored::Page));
        assert_eq!(json_of(b"<a href=\"data:application/gzip;base64,!!\">"), Err(NotStored::Page));
    }
}
