//! A rate that may change, its stages and its bursts, as they are typed.

use pummel_logic::plan::{Burst, BurstSources, BurstStates, Day, POINTS_MAX, RatePoint, RateShape, Sine};
use pummel_logic::time::{Nanos, SECOND};

use crate::values::nearest::hint;
use crate::values::{self, ValueError};

/// The rate of an option, as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedRate {
    /// One rate, in requests per second.
    Constant(f64),
    /// A multiple of the rate of the workload's source.
    Times(f64),
    /// A straight line over the whole measured time, from one rate to another.
    Line(f64, f64),
    /// A rate that does not depend on the measured time.
    Shape(RateShape),
    /// The file with the points of the rate, which is still to be read.
    File(String),
}

/// A stage of a rate: how long it takes, and the rate at its end; `None` where the rate stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// How long the stage takes.
    pub time_ns: Nanos,
    /// The rate at its end.
    pub target: Option<f64>,
    /// The stage as it was typed.
    pub words: String,
}

/// The number of sources of `hurst:` where none is given.
const SOURCES_DEFAULT: u32 = 200;

/// The length of a day where none is given.
const DAY_NS: Nanos = 24 * 3_600 * SECOND;

/// Most times the rate of a workload.
const TIMES_MAX: f64 = 1e6;

const RATE: &str = "expected requests per second above 0 and up to 1g, such as 500, 20k or 1.5m, 0.5x for half of the rate of \
                    --workload, or a rate that changes: \
                    10k..100k, sine:MEAN,AMPLITUDE,PERIOD[,START], day:MEAN[,PERIOD] or file:PATH; without the flag the loop is \
                    closed";

const STAGES: &str = "expected stages TIME:RATE or TIME, separated by commas, such as 30s:50k,2m,0s:5k,1m";

const BURST: &str =
    "expected FACTOR,ON,OFF such as 5,50ms,450ms, or hurst:H,ON[,SOURCES] such as hurst:0.8,1s";

fn refused<T>(accepted: impl Into<String>) -> Result<T, ValueError> {
    Err(ValueError(accepted.into()))
}

/// A rate, which may change with time.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is not a rate.
pub fn rate(text: &str) -> Result<TypedRate, ValueError> {
    if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
        return Ok(TypedRate::File(path.to_owned()));
    }
    if let Some(times) = text.strip_suffix('x').and_then(|times| times.parse::<f64>().ok()) {
        let is_some = times > 0.0 && times <= TIMES_MAX;
        return if is_some { Ok(TypedRate::Times(times)) } else { refused(RATE) };
    }
    let read = match text.split_once(':') {
        Some(("sine", rest)) => sine(rest).map(RateShape::Sine).map(TypedRate::Shape),
        Some(("day", rest)) => day(rest).map(RateShape::Day).map(TypedRate::Shape),
        _ => match text.split_once("..") {
            Some((from, to)) => line(from, to),
            None => values::rate(text).ok().map(TypedRate::Constant),
        },
    };
    read.map_or_else(|| refused(values::too_much(text).unwrap_or_else(|| RATE.to_owned())), Ok)
}

/// A rate that may be 0.
fn rate_or_zero(text: &str) -> Option<f64> {
    match values::count(text) {
        Ok(0) => Some(0.0),
        _ => values::rate(text).ok(),
    }
}

fn line(from: &str, to: &str) -> Option<TypedRate> {
    let (from, to) = (rate_or_zero(from)?, rate_or_zero(to)?);
    (from + to > 0.0).then_some(TypedRate::Line(from, to))
}

fn sine(text: &str) -> Option<Sine> {
    let parts: Vec<&str> = text.split(',').collect();
    let (&[mean, amplitude, period], start) = parts.split_at_checked(3)? else { return None };
    let start = match start {
        [] => 0.0,
        [start] => values::fraction(start).ok()?,
        _ => return None,
    };
    let (mean, amplitude) = (values::rate(mean).ok()?, rate_or_zero(amplitude)?);
    let period_ns = values::time_above_zero(period).ok()?;
    (amplitude < mean).then_some(Sine { mean, amplitude, period_ns, start })
}

fn day(text: &str) -> Option<Day> {
    let (mean, period) = text.split_once(',').map_or((text, None), |(mean, period)| (mean, Some(period)));
    let period_ns = period.map_or(Some(DAY_NS), |period| values::time_above_zero(period).ok())?;
    Some(Day { mean: values::rate(mean).ok()?, period_ns })
}

/// The stages of a rate.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no list of stages.
pub fn stages(text: &str) -> Result<Vec<Stage>, ValueError> {
    let stage = |text: &str| {
        let (time, target) = text.split_once(':').map_or((text, None), |(time, rate)| (time, Some(rate)));
        let target = target.map(|rate| rate_or_zero(rate).ok_or(()));
        let words = text.to_owned();
        Some(Stage { time_ns: values::time(time).ok()?, target: target.transpose().ok()?, words })
    };
    let stages: Option<Vec<Stage>> = text.split(',').map(stage).collect();
    stages.map_or_else(|| refused(STAGES), Ok)
}

/// Bursts of a rate.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is not a burst.
pub fn burst(text: &str) -> Result<Burst, ValueError> {
    let read = match text.strip_prefix("hurst:") {
        Some(rest) => sources(rest).map(Burst::Hurst),
        None => states(text).map(Burst::States),
    };
    let name = text.split_once(':').map_or("", |(name, _)| name);
    read.map_or_else(|| refused(format!("{BURST}{}", hint(name, ["hurst"]))), Ok)
}

fn states(text: &str) -> Option<BurstStates> {
    let [factor, on, off] = text.split(',').collect::<Vec<_>>()[..] else { return None };
    let (on_ns, off_ns) = (values::time_above_zero(on).ok()?, values::time_above_zero(off).ok()?);
    Some(BurstStates { factor: values::rate(factor).ok()?, on_ns, off_ns })
}

fn sources(text: &str) -> Option<BurstSources> {
    let (hurst, on, sources) = match text.split(',').collect::<Vec<_>>()[..] {
        [hurst, on] => (hurst, on, SOURCES_DEFAULT),
        [hurst, on, sources] => (hurst, on, values::count_u32(sources).ok()?),
        _ => return None,
    };
    let on_ns = values::time_above_zero(on).ok()?;
    Some(BurstSources { hurst: values::fraction(hurst).ok()?, on_ns, sources })
}

/// The points of a file: lines of seconds and requests per second, with a comma between them, in the order of time. Empty lines and
/// those that begin with `#` are left out.
///
/// # Errors
/// Returns [`ValueError`], which names the line, for text with other lines, with none, or with too many.
pub fn points_of(text: &str) -> Result<Vec<RatePoint>, ValueError> {
    let mut points: Vec<RatePoint> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| refused(format!("{why}, and line {} is '{line}'", number + 1));
        let read = line.split_once(',').and_then(|(at, rate)| {
            Some(RatePoint {
                at_ns: values::time(at.trim()).ok()?,
                rate: rate_or_zero(rate.trim()).or_else(|| decimal(rate))?,
            })
        });
        let Some(point) = read else {
            return wrong("expected lines 'seconds,rate', such as 10,20k");
        };
        if points.last().is_some_and(|last| last.at_ns > point.at_ns) {
            return wrong("expected lines in the order of time");
        }
        if points.len() == POINTS_MAX {
            return refused(format!("expected at most {POINTS_MAX} lines"));
        }
        points.push(point);
    }
    if points.is_empty() {
        return refused("expected a file with at least one line 'seconds,rate'");
    }
    Ok(points)
}

/// A rate of 0 with a decimal point, as programs write it.
fn decimal(text: &str) -> Option<f64> {
    values::fraction(text.trim()).ok().filter(|rate| *rate == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::time::MILLISECOND;

    fn point(at_s: u64, rate: f64) -> RatePoint {
        RatePoint { at_ns: at_s * SECOND, rate }
    }

    #[test]
    fn a_rate_may_change_in_four_ways() {
        let sine = |start| Sine { mean: 20e3, amplitude: 5e3, period_ns: 60 * SECOND, start };
        for (text, expected) in [
            ("20k", TypedRate::Constant(20e3)),
            ("1x", TypedRate::Times(1.0)),
            ("0.5x", TypedRate::Times(0.5)),
            ("10k..100k", TypedRate::Line(10e3, 100e3)),
            ("0..100k", TypedRate::Line(0.0, 100e3)),
            ("1.5k..0", TypedRate::Line(1_500.0, 0.0)),
            ("sine:20k,5k,1m", TypedRate::Shape(RateShape::Sine(sine(0.0)))),
            ("sine:20k,5k,60,0.75", TypedRate::Shape(RateShape::Sine(sine(0.75)))),
            ("day:20k", TypedRate::Shape(RateShape::Day(Day { mean: 20e3, period_ns: DAY_NS }))),
            ("day:5,24m", TypedRate::Shape(RateShape::Day(Day { mean: 5.0, period_ns: 1_440 * SECOND }))),
            ("file:a,b.csv", TypedRate::File("a,b.csv".to_owned())),
        ] {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_what_is_accepted() {
        for text in [
            "",
            "0",
            "-1",
            "x",
            "10k/60s",
            "0x",
            "-1x",
            "nanx",
            "infx",
            "1e7x",
            "10k..",
            "..5k",
            "0..0",
            "1..2..3",
            "sine:",
            "sine:20k",
            "sine:20k,5k",
            "sine:5k,5k,1m",
            "sine:5k,1k,0",
            "sine:5k,1k,1s,2",
            "sine:5k,1k,1s,0,0",
            "day:",
            "day:0",
            "day:5,0",
            "day:1,2,3",
            "file:",
            "linear:1,2",
        ] {
            let error = rate(text).expect_err(text).to_string();
            assert!(error.contains("10k..100k") && error.contains("sine:MEAN"), "{text}: {error}");
        }
    }

    #[test]
    fn stages_go_to_a_rate_or_stay() {
        let stage =
            |words: &str, time_s, target| Stage { time_ns: time_s * SECOND, target, words: words.to_owned() };
        let expected = vec![
            stage("30s:50k", 30, Some(50e3)),
            stage("2m", 120, None),
            stage("0s:5k", 0, Some(5e3)),
            stage("1m", 60, None),
        ];
        assert_eq!(stages("30s:50k,2m,0s:5k,1m"), Ok(expected));
        assert_eq!(stages("5s:0"), Ok(vec![stage("5s:0", 5, Some(0.0))]));
        for text in ["", "30s:", ":5k", "30s:50k,", "30s:x", "x", "30s:1:2"] {
            assert!(stages(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bursts_have_two_states_or_many_sources() {
        let (on_ns, off_ns) = (50 * MILLISECOND, 450 * MILLISECOND);
        assert_eq!(burst("5,50ms,450ms"), Ok(Burst::States(BurstStates { factor: 5.0, on_ns, off_ns })));
        let hurst = |sources| Burst::Hurst(BurstSources { hurst: 0.8, on_ns: SECOND, sources });
        assert_eq!(burst("hurst:0.8,1s"), Ok(hurst(200)));
        assert_eq!(burst("hurst:0.8,1s,20"), Ok(hurst(20)));
        for text in
            ["", "5", "5,1s", "5,1s,1s,1s", "5,0,1s", "hurst:", "hurst:0.8", "hurst:0.8,1s,x", "hurst:2,1s"]
        {
            assert!(burst(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_has_lines_of_seconds_and_rates_in_the_order_of_time() {
        let text = "# a day\n0,10k\n\n 10 , 20000 \r\n10,0\n20.5,0.0\n";
        let at = RatePoint { at_ns: 20_500 * MILLISECOND, rate: 0.0 };
        assert_eq!(points_of(text), Ok(vec![point(0, 10e3), point(10, 20e3), point(10, 0.0), at]));
        for (text, words) in [
            ("", "at least one line"),
            ("# nothing", "at least one line"),
            ("0,1k\nx,2", "line 2 is 'x,2'"),
            ("0", "line 1 is '0'"),
            ("5,1k\n4,1k", "order of time"),
            ("0,-1", "seconds,rate"),
        ] {
            let error = points_of(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
