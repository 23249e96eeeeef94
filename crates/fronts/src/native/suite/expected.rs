//! What a suite expects of a run, as its file has it: `p99 = "<1ms"`.

use pummel_logic::time::MICROSECOND;
use pummel_report::suite::Expectation;
use pummel_report::suite::expectation::{Measure, Relation, Subject, Wanted};

use crate::values::nearest::hint;
use crate::values::{self, ValueError};

/// The words for limits that `verdict.limit` knows.
const LIMITS: [&str; 8] =
    ["none", "generator", "server", "connections", "network", "others", "workload", "unknown"];

/// The relations and their signs, the longer signs first.
const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// The expectation of a subject, such as `p99`, and of a value, such as `<1ms`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for another subject or value.
pub(super) fn expectation(subject: &str, value: &toml::Value) -> Result<Expectation, ValueError> {
    let known = Subject::from_name(subject).ok_or_else(|| {
        let names = Subject::names();
        let near = hint(subject, names.iter().map(String::as_str));
        ValueError(format!("expected one of {}{near}", names.join(", ")))
    })?;
    let text = match value {
        toml::Value::String(text) => text.trim().to_owned(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        _ => return Err(ValueError("expected a text, a number, or true or false".to_owned())),
    };
    let wanted = match known.measure() {
        Measure::Truth => match text.as_str() {
            "true" => Wanted::Is(true),
            "false" => Wanted::Is(false),
            _ => return Err(ValueError(format!("'{text}': expected true or false"))),
        },
        Measure::Word => words(&text)?,
        measure => figure(&text, measure)?,
    };
    Ok(Expectation { subject: known, wanted, text })
}

/// Words with commas between them: all without an exclamation mark, or all with one.
fn words(text: &str) -> Result<Wanted, ValueError> {
    let (negated, list) = match text.strip_prefix('!') {
        Some(list) => (true, list),
        None => (false, text),
    };
    let names: Vec<String> = list.split(',').map(|word| word.trim().to_owned()).collect();
    if let Some(wrong) = names.iter().find(|name| !LIMITS.contains(&name.as_str())) {
        let limits = LIMITS.join(", ");
        let near = hint(wrong, LIMITS);
        let quoted = if wrong.is_empty() { String::new() } else { format!("'{wrong}': ") };
        return Err(ValueError(format!(
            "{quoted}expected one of {limits}, several with commas, or ! and those that it may not be{near}"
        )));
    }
    Ok(if negated { Wanted::NoneOf(names) } else { Wanted::OneOf(names) })
}

/// A bound with its relation; a bare figure is one that has to be reached exactly.
fn figure(text: &str, measure: Measure) -> Result<Wanted, ValueError> {
    let signed = RELATIONS.iter().find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)));
    let (relation, bound) = match signed {
        Some(signed) => signed,
        // A bare time or rate is more likely one whose sign was left out than one that is to be met to the nanosecond.
        None if measure != Measure::Share => {
            return Err(ValueError(format!("'{text}': expected <, <=, >, >= or = before it")));
        }
        None => (Relation::Equal, text),
    };
    let bound: &str = &bound.split_whitespace().collect::<String>();
    let value = match measure {
        Measure::Share => share(bound),
        Measure::Rate => values::rate(bound).map_err(|why| why.0),
        _ => values::time(bound).map(|ns| ns as f64 / MICROSECOND as f64).map_err(|why| why.0),
    };
    let value = value.map_err(|why| ValueError(format!("'{text}': {why}, behind <, <=, >, >= or =")))?;
    Ok(Wanted::Figure(relation, value))
}

/// A share as a percentage, or as a number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a share, such as 99% or 0.99".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(subject: &str, value: impl Into<toml::Value>) -> Result<Wanted, String> {
        expectation(subject, &value.into()).map(|own| own.wanted).map_err(|why| why.0)
    }

    #[test]
    fn bounds_have_the_units_of_their_subjects() {
        for (subject, value, bound) in [
            ("hits", ">= 99.5%", Wanted::Figure(Relation::AtLeast, 0.995)),
            ("misses", "<0.01", Wanted::Figure(Relation::Below, 0.01)),
            ("errors", "0", Wanted::Figure(Relation::Equal, 0.0)),
            ("p99", "< 1 ms", Wanted::Figure(Relation::Below, 1_000.0)),
            ("rate", ">100k", Wanted::Figure(Relation::Above, 100_000.0)),
            ("p99.9", "<=1.5ms", Wanted::Figure(Relation::AtMost, 1_500.0)),
            ("server-cpu", "<10us", Wanted::Figure(Relation::Below, 10.0)),
            ("limit", "server", Wanted::OneOf(vec!["server".to_owned()])),
            ("limit", "server, network", Wanted::OneOf(vec!["server".to_owned(), "network".to_owned()])),
            ("limit", "!generator", Wanted::NoneOf(vec!["generator".to_owned()])),
        ] {
            assert_eq!(wanted(subject, value), Ok(bound), "{subject} {value}");
        }
        assert_eq!(wanted("errors", 0), Ok(Wanted::Figure(Relation::Equal, 0.0)));
        assert_eq!(wanted("steady", true), Ok(Wanted::Is(true)));
    }

    #[test]
    fn values_that_no_subject_has_are_refused() {
        for (subject, value, words) in [
            ("hits", ">101%", "expected a share"),
            ("hits", "many", "'many': expected a share, such as 99% or 0.99, behind <"),
            ("rate", ">fast", "expected requests per second"),
            ("p99", "<1 parsec", "expected a time"),
            ("limit", "serve", "(did you mean 'server'?)"),
            ("steady", "perhaps", "expected true or false"),
            ("p98", "<1ms", "expected one of hits"),
            ("p99", "1ms", "'1ms': expected <, <=, >, >= or = before it"),
            ("limit", "!", "expected one of none, generator"),
        ] {
            let why = wanted(subject, value).expect_err(value);
            assert!(why.contains(words), "{subject} {value}: {why}");
        }
    }
}
