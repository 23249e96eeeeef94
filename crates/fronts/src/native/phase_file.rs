//! The file of `--phases`: phases of a load that follow each other without a gap.

use std::collections::BTreeMap;

use pummel_logic::plan::{
    Command, Event, EventKind, FlashCrowd, KeyChurn, Part, Popularity, RatePoint, TextError,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;
use pummel_measure::figures::time_text;
use serde::Deserialize;

use crate::native::typed_rate::{self, TypedRate};
use crate::values::{self, Operation, ValueError};

/// The phases of a file, in their order; none before the file is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseFile {
    /// Path of the file.
    pub path: String,
    phases: Vec<FilePhase>,
}

/// One phase of a file.
#[derive(Clone, Debug, PartialEq)]
struct FilePhase {
    name: String,
    time_ns: Nanos,
    /// The rates at its beginning and at its end; `None` for that of the command line.
    rates: Option<(f64, f64)>,
    ops: Option<Vec<(Verb, f64)>>,
    popularity: Option<Popularity>,
    churn: Option<KeyChurn>,
    /// Events of the phase; their times count from its beginning.
    events: Vec<Event>,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    phase: Vec<WrittenPhase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPhase {
    name: String,
    time: Quantity,
    rate: Option<Quantity>,
    mix: Option<BTreeMap<String, f64>>,
    popularity: Option<String>,
    churn: Option<String>,
    #[serde(default)]
    event: Vec<WrittenEvent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    at: Quantity,
    hot: Option<WrittenCrowd>,
    delete: Option<String>,
    expire: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCrowd {
    key: String,
    share: f64,
    rise: Option<Quantity>,
    hold: Quantity,
    fall: Option<Quantity>,
}

/// A number, or a text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Whole(u64),
    Fraction(f64),
    Text(String),
}

impl Quantity {
    fn text(&self) -> String {
        match self {
            Quantity::Whole(number) => number.to_string(),
            Quantity::Fraction(number) => number.to_string(),
            Quantity::Text(text) => text.clone(),
        }
    }
}

/// The name of a file of phases, which is still to be read.
///
/// # Errors
/// Returns [`ValueError`] for an empty name.
pub fn phase_file(text: &str) -> Result<PhaseFile, ValueError> {
    if text.is_empty() {
        return Err(ValueError("expected the name of a file".to_owned()));
    }
    Ok(PhaseFile { path: text.to_owned(), phases: Vec::new() })
}

impl PhaseFile {
    /// The phases of the file with this text.
    ///
    /// # Errors
    /// Returns [`ValueError`] for text that is no TOML, has other fields, or has values that cannot be read.
    pub fn read(&self, text: &str, commands: &[Command]) -> Result<PhaseFile, ValueError> {
        let written: Written = values::written::from_toml(text)
            .map_err(|why| ValueError(format!("expected a file of phases; {why}")))?;
        if written.phase.is_empty() {
            return Err(ValueError("expected at least one [[phase]]".to_owned()));
        }
        let phases =
            written.phase.iter().map(|phase| FilePhase::of(phase, commands)).collect::<Result<_, _>>()?;
        Ok(PhaseFile { path: self.path.clone(), phases })
    }

    /// The time of all phases together.
    pub fn time_ns(&self) -> Nanos {
        self.phases.iter().map(|phase| phase.time_ns).fold(0, Nanos::saturating_add)
    }

    /// The rate over the time of all phases, where a phase without a rate of its own has the rate `base`.
    ///
    /// # Errors
    /// Returns [`ValueError`] for a phase without a rate where there is no `base`.
    pub fn points(&self, base: Option<f64>) -> Result<Vec<RatePoint>, ValueError> {
        let mut points = Vec::new();
        let mut at_ns: Nanos = 0;
        for phase in &self.phases {
            let Some((from, to)) = phase.rates.or(base.map(|rate| (rate, rate))) else {
                let why = "expected a rate in each phase, or --rate for those without one; phase";
                return Err(ValueError(format!("{why} '{}' has none", phase.name.escape_debug())));
            };
            points.push(RatePoint { at_ns, rate: from });
            at_ns = at_ns.saturating_add(phase.time_ns);
            points.push(RatePoint { at_ns, rate: to });
        }
        Ok(points)
    }

    /// The phases as parts of the measured phase.
    pub fn parts(&self) -> Vec<Part> {
        let mut at_ns: Nanos = 0;
        let part = |phase: &FilePhase| {
            let begin = at_ns;
            at_ns = at_ns.saturating_add(phase.time_ns);
            Part {
                ops: phase.ops.clone(),
                popularity: phase.popularity.clone(),
                churn: phase.churn.clone(),
                ..Part::plain(phase.name.clone(), begin)
            }
        };
        self.phases.iter().map(part).collect()
    }

    /// Events of all phases, with times from the beginning of the first one.
    pub fn events(&self) -> Vec<Event> {
        let mut begin_ns: Nanos = 0;
        let mut events = Vec::new();
        for phase in &self.phases {
            let later =
                |event: &Event| Event { at_ns: begin_ns.saturating_add(event.at_ns), ..event.clone() };
            events.extend(phase.events.iter().map(later));
            begin_ns = begin_ns.saturating_add(phase.time_ns);
        }
        events
    }
}

impl WrittenEvent {
    /// The event, whose time counts from the beginning of its phase.
    fn read(&self) -> Result<Event, ValueError> {
        let at_ns = time_of(&self.at, "at")?;
        let ranks = |text: &String, field| match text.parse() {
            Ok(ranks) => Ok(ranks),
            Err(error) => Err(ValueError(format!("{field}: {}", TextError::to_string(&error)))),
        };
        let what = match (&self.hot, &self.delete, &self.expire) {
            (Some(crowd), None, None) => EventKind::Hot(crowd.read()?),
            (None, Some(text), None) => EventKind::Delete(ranks(text, "delete")?),
            (None, None, Some(text)) => EventKind::Expire(ranks(text, "expire")?),
            _ => return Err(ValueError("expected one of hot, delete and expire".to_owned())),
        };
        Ok(Event { at_ns, what })
    }
}

impl WrittenCrowd {
    fn read(&self) -> Result<FlashCrowd, ValueError> {
        let optional =
            |time: &Option<Quantity>, field| time.as_ref().map_or(Ok(0), |time| time_of(time, field));
        let key = self.key.parse().map_err(|error: TextError| ValueError(format!("hot, key: {error}")))?;
        Ok(FlashCrowd {
            key,
            share: self.share,
            rise_ns: optional(&self.rise, "hot, rise")?,
            hold_ns: time_of(&self.hold, "hot, hold")?,
            fall_ns: optional(&self.fall, "hot, fall")?,
        })
    }
}

/// A time that is 0 or more.
fn time_of(time: &Quantity, field: &str) -> Result<Nanos, ValueError> {
    values::time(&time.text()).map_err(|error| ValueError(format!("{field}: {error}")))
}

impl FilePhase {
    fn of(written: &WrittenPhase, commands: &[Command]) -> Result<FilePhase, ValueError> {
        let in_field = |field: &str, why: String| {
            ValueError(format!("phase '{}', {field}: {why}", written.name.escape_debug()))
        };
        let time_ns = values::time_above_zero(&written.time.text())
            .map_err(|error| in_field("time", error.to_string()))?;
        let rates = written.rate.as_ref().map(|rate| match typed_rate::rate(&rate.text()) {
            Ok(TypedRate::Constant(rate)) => Ok((rate, rate)),
            Ok(TypedRate::Line(from, to)) => Ok((from, to)),
            _ => {
                let why = "expected a rate or a line between two, such as 20k or 5k..60k";
                Err(in_field("rate", why.to_owned()))
            }
        });
        let verb = |(name, weight): (&String, &f64)| {
            let operation = Verb::from_name(name).map_or(Operation::Named(name.clone()), Operation::Verb);
            let unknown = |_| in_field("mix", format!("no operation is called '{name}'"));
            values::verb_of(&operation, commands).map(|verb| (verb, *weight)).map_err(unknown)
        };
        let ops = written.mix.as_ref().map(|mix| mix.iter().map(verb).collect());
        let popularity = written
            .popularity
            .as_ref()
            .map(|text| text.parse().map_err(|error: TextError| in_field("popularity", error.to_string())));
        let churn = written
            .churn
            .as_ref()
            .map(|text| match text.as_str() {
                "none" => {
                    Err("a phase cannot end the churn of the load, only change how long keys stay".to_owned())
                }
                text => values::churn(text).map_err(|error| error.to_string()),
            })
            .map(|churn| churn.map_err(|why| in_field("churn", why)));
        let mut events = Vec::new();
        for event in &written.event {
            let event = event.read().map_err(|error| in_field("event", error.to_string()))?;
            if event.at_ns >= time_ns {
                let at = time_text(event.at_ns);
                let why = format!("at: expected a moment before the phase ends, not {at}");
                return Err(in_field("event", why));
            }
            events.push(event);
        }
        Ok(FilePhase {
            name: written.name.clone(),
            time_ns,
            rates: rates.transpose()?,
            ops: ops.transpose()?,
            popularity: popularity.transpose()?,
            churn: churn.transpose()?,
            events,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{HotKey, RankRange};
    use pummel_logic::time::SECOND;

    const TEXT: &str = r#"
        [[phase]]
        name = "calm"
        time = "1m"
        [[phase]]
        name = "flash"
        time = 30
        rate = "5k..60k"
        mix = { get = 0.99, set = 0.01 }
        popularity = "zipf:1.2"
        churn = "15m"
        [[phase.event]]
        at = "10s"
        hot = { key = "new", share = 0.4, rise = "2s", hold = "20s" }
        [[phase.event]]
        at = 20
        delete = "rank:0-9"
        [[phase]]
        name = "after"
        time = 0.5
        rate = 0.5
        [[phase.event]]
        at = "100ms"
        expire = "rank:3"
    "#;

    #[test]
    fn phases_follow_each_other() {
        let file = PhaseFile::default().read(TEXT, &[]).expect("it is a file of phases");
        assert_eq!(file.time_ns(), 90 * SECOND + SECOND / 2);
        let points: Vec<(u64, f64)> = file
            .points(Some(2_000.0))
            .expect("all have rates")
            .iter()
            .map(|point| (point.at_ns / SECOND, point.rate))
            .collect();
        let expected = [(0, 2_000.0), (60, 2_000.0), (60, 5_000.0), (90, 60_000.0), (90, 0.5), (90, 0.5)];
        assert_eq!(points, expected);
        let parts = file.parts();
        assert_eq!(parts[0], Part::plain("calm".to_owned(), 0));
        assert_eq!(parts[1].at_ns, 60 * SECOND);
        assert_eq!(parts[1].ops, Some(vec![(Verb::Get, 0.99), (Verb::Set, 0.01)]));
        assert_eq!(parts[1].popularity, Some(Popularity::Zipf { exponent: 1.2 }));
        assert_eq!(parts[1].churn.as_ref().map(ToString::to_string).as_deref(), Some("900"));
        let crowd = FlashCrowd {
            key: HotKey::New,
            share: 0.4,
            rise_ns: 2 * SECOND,
            hold_ns: 20 * SECOND,
            fall_ns: 0,
        };
        let ranks = |first, last| RankRange { first, last };
        let events = [
            (70 * SECOND, EventKind::Hot(crowd)),
            (80 * SECOND, EventKind::Delete(ranks(0, 9))),
            (90 * SECOND + SECOND / 10, EventKind::Expire(ranks(3, 3))),
        ];
        assert_eq!(file.events(), events.map(|(at_ns, what)| Event { at_ns, what }));
        let error = file.points(None).expect_err("calm has no rate").to_string();
        assert!(error.contains("phase 'calm' has none"), "{error}");
    }

    #[test]
    fn what_is_no_file_of_phases_is_refused_with_its_field() {
        for (text, words) in [
            ("", "phase"),
            ("phase = []", "at least one"),
            ("[[phase]]\nname = 'a'", "time"),
            ("[[phase]]\nname = 'a'\ntime = 0", "phase 'a', time"),
            ("[[phase]]\nname = 'a'\ntime = 1\nrate = 'fast'", "phase 'a', rate"),
            ("[[phase]]\nname = 'a'\ntime = 1\nrate = 'day:5'", "phase 'a', rate"),
            ("[[phase]]\nname = 'a'\ntime = 1\nmix = { read = 1 }", "'read'"),
            ("[[phase]]\nname = 'a'\ntime = 1\npopularity = 'none'", "phase 'a', popularity"),
            ("[[phase]]\nname = 'a'\ntime = 1\ndrain = true", "drain"),
            ("[[phase]]\nname = 'a'\ntime = 1\nchurn = 'often'", "phase 'a', churn"),
            (
                "[[phase]]\nname = 'a'\ntime = 1\nevent = [{ at = 2, delete = 'rank:0' }]",
                "before the phase ends",
            ),
            ("[[phase]]\nname = 'a'\ntime = 1\nevent = [{ at = 0 }]", "one of hot, delete and expire"),
            (
                "[[phase]]\nname = 'a'\ntime = 1\nevent = [{ at = 0, expire = 'rank:9-0' }]",
                "expire: expected rank:R",
            ),
            (
                "[[phase]]\nname = 'a'\ntime = 1\nevent = [{ at = 0, hot = { key = 'old', share = 1, hold = 1 } }]",
                "key",
            ),
        ] {
            let error = PhaseFile::default().read(text, &[]).expect_err(text).to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
