//! The values of a Plan's fields, as the options write them.

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, Burst, Event, Goal, RateShape, TransmitSampling, Until, ValueClass};
use pummel_logic::protocol::Verb;
use pummel_logic::time::typed_time;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text::changes::{burst_words, event_words, shape_words};

/// Most characters of a value that is shown.
const VALUE_CHARS_MAX: usize = 60;

/// Text for a value that a plan does not have.
pub(crate) const NOT_GIVEN: &str = "not given";

/// Text for an option that a plan has.
const GIVEN: &str = "given";

/// The form in which an option writes the value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// The value as it is in the plan.
    Plain,
    /// A time in nanoseconds.
    Time,
    /// A distribution.
    Dist,
    /// A distribution of seconds, of which 0 stands for none.
    Seconds,
    /// Requests per second.
    Rate,
    /// An option without a value, given where the field is true.
    Switch,
    /// An option without a value, given where the field is false.
    Opposite,
    /// An option without a value, given where the field is this word.
    Word(&'static str),
    /// A part of the plan whose fields have rows of their own: only whether it is there.
    Given,
    /// Items with commas between them.
    List,
    /// The names of items, with commas between them.
    Names,
    /// Operations and their weights.
    Operations,
    /// Commands of the user with their names.
    Commands,
    /// The way in which operations are chosen: turns where it is true.
    Turns,
    /// Most requests that a client has outstanding.
    Depth,
    /// The process of arrivals.
    Arrivals,
    /// Bounds of quantiles.
    Goals,
    /// The quantile that ends a measurement, and its interval.
    Until,
    /// The requests that are stamped.
    Stamps,
    /// The warm-up, of which a Plan has a phase and how that ends.
    WarmUp,
    /// The warm-up that ends with an eviction.
    WarmUpUntil,
    /// The rate over time; where it stays, the rate of the first group.
    Shape,
    /// Bursts of the rate.
    Burst,
    /// Events at moments of the measured phase.
    Events,
    /// The rate at which clients come.
    ConnectionRate,
    /// The delay before a missed key is stored, of which a Plan has the mean and, where it is not always the same, the distribution.
    ReadThrough,
    /// The kinds of records that are loaded.
    Loaded,
    /// The due times of a trace.
    Pace,
    /// Lengths by the share of the records that have them.
    Sizes,
    /// Lengths from one to another, by weight.
    Ranges,
    /// A word with its numbers.
    Tagged,
    /// Names of a cluster's nodes, each with the one in its place.
    Rewrites,
}

/// The value at a path; null if there is none. An item of a list is found by its number or by its name, and the first that has the rest
/// of the path by `[]`.
pub(crate) fn at<'a>(value: &'a Value, steps: &[&str]) -> &'a Value {
    let [step, rest @ ..] = steps else { return value };
    let Value::Array(items) = value else { return at(&value[*step], rest) };
    if *step == "[]" {
        let mut found = items.iter().map(|item| at(item, rest));
        return found.find(|value| !value.is_null()).unwrap_or(&Value::Null);
    }
    let named = || items.iter().find(|item| item["name"].as_str() == Some(step));
    let item = step.parse().map_or_else(|_| named(), |place: usize| items.get(place));
    item.map_or(&Value::Null, |item| at(item, rest))
}

/// The warm-up of a plan, as `--warmup` writes it.
fn warm_up_words(plan: &Value) -> String {
    match (plan["adaptive"]["first_eviction"] == Value::Bool(true), longest_warm_up(plan)) {
        (true, _) => NOT_GIVEN.to_owned(),
        (false, longest) if plan["adaptive"]["settle"].is_null() => {
            longest.unwrap_or_else(|| NOT_GIVEN.to_owned())
        }
        (false, longest) => with_longest("auto", longest),
    }
}

/// The warm-up of a plan, as `--warmup-until` writes it.
fn warm_up_until_words(plan: &Value) -> String {
    match plan["adaptive"]["first_eviction"] == Value::Bool(true) {
        true => with_longest("evictions", longest_warm_up(plan)),
        false => NOT_GIVEN.to_owned(),
    }
}

/// The longest time of the warm-up.
fn longest_warm_up(plan: &Value) -> Option<String> {
    let phases = plan["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_warm_up =
        |phase: &&Value| phase["recorded"] != Value::Bool(true) && phase["work"]["load"].is_null();
    phases.iter().find(is_warm_up).map(|phase| Form::Time.of_value(&phase["stop"]["time_ns"]))
}

fn with_longest(word: &str, longest: Option<String>) -> String {
    longest.map_or_else(|| word.to_owned(), |longest| format!("{word}:{longest}"))
}

/// The delay of a fill in the part of a plan around it.
fn read_through_words(part: &Value) -> String {
    let mean = [&part["read_through_ns"], &part["fill_delay_ns"]].into_iter().find(|mean| !mean.is_null());
    match (&part["fill_delay_s"], mean) {
        (Value::Null, mean) => Form::Time.of_value(mean.unwrap_or(&Value::Null)),
        (delay, _) => Form::Dist.of_value(delay),
    }
}

/// The kinds of records that a load stores.
fn loaded_words(load: &Value) -> String {
    let is_set = |name: &&str| load[*name] == Value::Bool(true);
    let plain = (load["no_plain"] != Value::Bool(true)).then_some("plain");
    let others = ["pieces", "counters", "hashes", "commands"].into_iter().filter(is_set);
    plain.into_iter().chain(others).collect::<Vec<&str>>().join(", ")
}

/// Operations and their weights, with the names of the plan's commands; `None` for a value that is no list.
fn operations_words(plan: &Value, operations: &Value) -> Option<String> {
    listed(operations, |operation| {
        let command = || Verb::from_name(operation[0].as_str()?)?.command();
        let name = match command() {
            Some(place) if !plan["commands"][place].is_null() => &plan["commands"][place]["name"],
            _ => &operation[0],
        };
        format!("{}:{}", value_words(name), value_words(&operation[1]))
    })
}

impl Form {
    /// Whether the words of the form say everything of a field that has other fields in it.
    #[cfg(test)]
    pub(crate) fn tells_all(self) -> bool {
        use Form::*;
        matches!(
            self,
            Dist | Seconds
                | List
                | Operations
                | Commands
                | Depth
                | Arrivals
                | Goals
                | Until
                | Stamps
                | Shape
                | Burst
                | Events
                | Loaded
                | Pace
                | Sizes
                | Ranges
                | Tagged
                | ReadThrough
                | Rewrites
        )
    }

    /// The value of a field of a plan as its option writes it.
    pub(crate) fn words(self, plan: &Value, steps: &[&str]) -> String {
        let value = at(plan, steps);
        match self {
            Form::WarmUp => warm_up_words(plan),
            Form::WarmUpUntil => warm_up_until_words(plan),
            Form::Shape if value.is_null() => Form::Rate.of_value(at(plan, &["groups", "0", "rate"])),
            Form::ReadThrough => read_through_words(at(plan, &steps[..steps.len().saturating_sub(1)])),
            Form::Operations if value.is_array() => {
                operations_words(plan, value).map_or_else(|| value_words(value), |words| one_line(&words))
            }
            form => form.of_value(value),
        }
    }

    /// A value as its option writes it.
    pub(crate) fn of_value(self, value: &Value) -> String {
        let given = |is_given: bool| if is_given { GIVEN } else { NOT_GIVEN }.to_owned();
        match self {
            Form::Switch => return given(*value == Value::Bool(true)),
            Form::Opposite => return given(*value == Value::Bool(false)),
            Form::Word(word) => return given(value.as_str() == Some(word)),
            Form::Given => return given(!value.is_null()),
            _ if value.is_null() => return NOT_GIVEN.to_owned(),
            _ => {}
        }
        self.of_given(value).map_or_else(|| value_words(value), |words| one_line(&words))
    }

    /// A value that is there as its option writes it; `None` where it is shown as it is.
    fn of_given(self, value: &Value) -> Option<String> {
        Some(match self {
            Form::Time => typed_time(value.as_u64()?),
            Form::Dist => read::<Dist>(value)?.to_string(),
            Form::Seconds => match read::<Dist>(value)? {
                Dist::Fixed(0.0) => NOT_GIVEN.to_owned(),
                dist => dist.to_string(),
            },
            Form::Rate => rate_words(value.as_f64()?),
            Form::List => listed(value, value_words)?,
            Form::Names => listed(value, |item| value_words(&item["name"]))?,
            Form::Operations => operations_words(&Value::Null, value)?,
            Form::Commands => listed(value, |command| {
                format!("{}={}", value_words(&command["name"]), value_words(&command["template"]))
            })?,
            Form::Turns => (if value == &Value::Bool(true) { "turns" } else { "drawn" }).to_owned(),
            Form::Depth => match value.get("batch") {
                Some(size) => format!("batches of {} (--batch)", value_words(size)),
                None => value_words(value.get("limit")?),
            },
            Form::Arrivals => read::<Arrivals>(value)?.to_string(),
            Form::Goals => listed(value, |goal| {
                read::<Goal>(goal).map_or_else(|| value_words(goal), |goal| goal.to_string())
            })?,
            Form::Until => {
                let until = read::<Until>(value)?;
                format!("p{}:{}%", short(until.quantile * 100.0), short(until.half_width * 100.0))
            }
            Form::Stamps => read::<TransmitSampling>(value)?.to_string(),
            Form::Shape => shape_words(&read::<RateShape>(value)?),
            Form::Burst => burst_words(read::<Burst>(value)?),
            Form::Events => event_words(&read::<Vec<Event>>(value)?),
            Form::ConnectionRate => match value.as_str() {
                Some(_) => NOT_GIVEN.to_owned(),
                None => Form::Rate.of_value(value.get("open")?.get("rate")?),
            },
            Form::Loaded => loaded_words(value),
            Form::Pace => format!("trace:{}", short(value.get("trace")?.get("speed")?.as_f64()?)),
            Form::Sizes => {
                let class = |class: &ValueClass| format!("{} up to {}", class.value_size, short(class.until));
                read::<Vec<ValueClass>>(value)?.iter().map(class).collect::<Vec<String>>().join(", ")
            }
            Form::Ranges => listed(value, |range| {
                format!(
                    "{}-{}:{}",
                    value_words(&range["start"]),
                    value_words(&range["end"]),
                    value_words(&range["share"])
                )
            })?,
            Form::Rewrites => listed(value, |rewrite| {
                format!("{}={}", value_words(&rewrite["from"]), value_words(&rewrite["to"]))
            })?,
            Form::Tagged => {
                let (word, numbers) = value.as_object()?.iter().next()?;
                format!("{word}:{}", listed(numbers, value_words).unwrap_or_else(|| value_words(numbers)))
            }
            _ => return None,
        })
    }
}

/// The items of a list with commas between them; `None` for a value that is no list.
fn listed(value: &Value, words: impl Fn(&Value) -> String) -> Option<String> {
    let items: Vec<String> = value.as_array()?.iter().map(words).collect();
    Some(if items.is_empty() { NOT_GIVEN.to_owned() } else { items.join(",") })
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_slice(value.to_string().as_bytes()).ok()
}

/// A number without superfluous digits: 99, 99.9, 0.3.
fn short(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Requests per second as they are typed: 500, 20k, 1.5m.
fn rate_words(rate: f64) -> String {
    for (unit, letter) in [(1e6, "m"), (1e3, "k")] {
        if rate >= unit {
            return format!("{}{letter}", short(rate / unit));
        }
    }
    short(rate)
}

/// A value as one line of at most 60 characters.
pub(crate) fn value_words(value: &Value) -> String {
    match value {
        Value::Null => NOT_GIVEN.to_owned(),
        Value::String(text) if text.is_empty() => "nothing".to_owned(),
        Value::String(text) => one_line(text),
        Value::Number(number) => {
            number.as_f64().filter(|_| number.is_f64()).map_or_else(|| number.to_string(), short)
        }
        other => one_line(&other.to_string()),
    }
}

/// Words as one line of at most 60 characters. A result may come from elsewhere, so its words must not contain line
/// ends or terminal commands.
pub(crate) fn one_line(words: &str) -> String {
    let clean = |letter: char| if letter.is_control() { '?' } else { letter };
    let mut line: String = words.chars().map(clean).take(VALUE_CHARS_MAX).collect();
    if words.chars().count() > VALUE_CHARS_MAX {
        line += "...";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_they_are_typed() {
        let words = |form: Form, text: &str| form.of_value(&serde_json::from_str(text).expect("JSON"));
        for (form, value, typed) in [
            (Form::Rate, "20000.0", "20k"),
            (Form::Rate, "1500000.0", "1.5m"),
            (Form::Rate, "12.5", "12.5"),
            (Form::Time, "1500000000", "1500ms"),
            (Form::Depth, "{\"limit\": 4}", "4"),
            (Form::Depth, "\"unlimited\"", "unlimited"),
            (Form::Depth, "{\"batch\": 16}", "batches of 16 (--batch)"),
            (Form::Operations, "[[\"get\", 9.0], [\"set\", 0.5]]", "get:9,set:0.5"),
            (Form::Arrivals, "\"constant\"", "constant gaps"),
            (Form::Goals, "[{\"quantile\": 0.99, \"limit_ns\": 1000000}]", "p99:1ms"),
            (Form::Until, "{\"quantile\": 0.99, \"half_width\": 0.02, \"least_ns\": 0}", "p99:2%"),
            (Form::Switch, "true", "given"),
            (Form::Opposite, "false", "given"),
            (Form::Opposite, "null", "not given"),
            (Form::Seconds, "\"0\"", "not given"),
            (Form::List, "[\"a:1\", \"b:2\"]", "a:1,b:2"),
        ] {
            assert_eq!(words(form, value), typed, "{value}");
        }
        // A result of elsewhere may hold anything.
        assert_eq!(words(Form::Rate, "\"a\\u001bb\""), "a?b");
        assert_eq!(words(Form::Plain, &format!("\"{}\"", "x".repeat(300))).chars().count(), 63);
    }
}
