//! The lists of RESP servers: slow commands, latency events, errors, and histograms of the times of commands.
//!
//! Redis' documents of SLOWLOG GET, LATENCY LATEST and LATENCY HISTOGRAM have the forms of the answers. Only names and numbers
//! are kept: the arguments of slow commands are the user's data.

use std::collections::BTreeMap;

use super::facts::{Facts, Pair, field, number_in};
use super::resp_value::RespValue;
use super::server::{ErrorCount, LatencyEvent, SlowCommand};
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos};

/// Most slow commands that are asked for, the newest.
pub const SLOW_COMMANDS_MAX: usize = 10;

/// Most latency events, and most errors, that are kept.
const NAMES_MAX: usize = 16;

/// Most commands of which a histogram is kept.
const HISTOGRAMS_MAX: usize = 512;

/// Longest name of a command, an event or an error, in bytes.
const NAME_MAX_BYTES: usize = 40;

/// First words of the commands with which pummel asks servers.
const OWN_WORDS: &[&str] = &["info", "config", "slowlog", "latency", "cluster", "auth", "hello", "select"];

/// A name in lower case that can stand in a list of facts; `None` for other text.
fn name_of(text: &[u8]) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.|".contains(byte);
    let is_name = !text.is_empty() && text.len() <= NAME_MAX_BYTES && text.iter().all(is_plain);
    is_name.then(|| String::from_utf8_lossy(text).to_lowercase())
}

/// The facts of an answer to `SLOWLOG GET`: entries of id, Unix time in seconds, microseconds, and arguments.
pub fn reported_slow_commands(answer: &RespValue<'_>) -> Facts {
    let mut facts = Facts::default();
    for (number, entry) in answer.list().iter().take(SLOW_COMMANDS_MAX).enumerate() {
        let [id, at_s, took_us, arguments, ..] = entry.list() else { continue };
        let numbers = (id.number(), at_s.number(), took_us.number());
        let (Some(id), Some(at_s), Some(took_us)) = numbers else { continue };
        let name = arguments.list().first().and_then(|word| name_of(word.text()?));
        let name = name.unwrap_or_else(|| "?".to_owned());
        let text = format!("id={id},at={at_s},us={took_us},name={name}");
        facts.add(format!("slow_command_{number}").as_bytes(), text.as_bytes());
    }
    facts
}

/// The slow commands that came between two readings, the newest first; without those with which the server was asked.
pub fn slow_commands(pair: &Pair<'_>) -> Vec<SlowCommand> {
    let id_of = |text: &str| field(text, "id")?.parse::<i64>().ok();
    let reported = |facts: &Facts| -> Vec<String> {
        facts.beginning_with("slow_command_").map(|(_, text)| text.to_owned()).collect()
    };
    let last_before =
        reported(pair.before).iter().filter_map(|text| id_of(text)).max().filter(|_| !pair.anew);
    let command = |text: &String| {
        let name = field(text, "name")?;
        let is_new = last_before.is_none_or(|last| id_of(text) > Some(last));
        (is_new && !OWN_WORDS.contains(&name)).then_some(())?;
        Some(SlowCommand {
            name: name.to_owned(),
            at_unix_s: number_in(text, "at")?,
            took_ns: number_in(text, "us")?.saturating_mul(MICROSECOND),
        })
    };
    let mut commands: Vec<SlowCommand> = reported(pair.after).iter().filter_map(command).collect();
    commands.sort_by_key(|command| std::cmp::Reverse(command.at_unix_s));
    commands
}

/// The facts of an answer to `LATENCY LATEST`: events of name, Unix time in seconds, and the last and the greatest time in
/// milliseconds.
pub fn reported_events(answer: &RespValue<'_>) -> Facts {
    let mut facts = Facts::default();
    for event in answer.list().iter().take(NAMES_MAX) {
        let [name, at_s, latest_ms, most_ms, ..] = event.list() else { continue };
        let Some(name) = name.text().and_then(name_of) else { continue };
        let numbers = (at_s.number(), latest_ms.number(), most_ms.number());
        let (Some(at_s), Some(latest_ms), Some(most_ms)) = numbers else { continue };
        let text = format!("at={at_s},latest={latest_ms},most={most_ms}");
        facts.add(format!("latency_event_{name}").as_bytes(), text.as_bytes());
    }
    facts
}

/// The latency events that are new since the first reading.
pub fn events(pair: &Pair<'_>) -> Vec<LatencyEvent> {
    let event = |(name, text): (&str, &str)| {
        let is_new = pair.anew || pair.before.text(&format!("latency_event_{name}")) != Some(text);
        let ns = |name: &str| number_in(text, name).map(|ms| ms.saturating_mul(MILLISECOND));
        is_new.then_some(())?;
        Some(LatencyEvent {
            name: name.to_owned(),
            at_unix_s: number_in(text, "at")?,
            latest_ns: ns("latest")?,
            greatest_ns: ns("most")?,
        })
    };
    pair.after.beginning_with("latency_event_").filter_map(event).collect()
}

/// The facts of an answer to `LATENCY HISTOGRAM`: for each command its calls and, by the upper bound of a cell in microseconds,
/// how many calls took at most that.
pub fn reported_histograms(answer: &RespValue<'_>) -> Facts {
    let mut facts = Facts::default();
    for pair in answer.list().chunks_exact(2).take(HISTOGRAMS_MAX) {
        let Some(name) = pair[0].text().and_then(name_of) else { continue };
        let cells = pair[1].list().chunks_exact(2).find(|part| part[0].text() == Some(b"histogram_usec"));
        let cells = cells.into_iter().flat_map(|part| part[1].list().chunks_exact(2));
        let cell = |cell: &[RespValue<'_>]| Some(format!("{}={}", cell[0].number()?, cell[1].number()?));
        let text: Vec<String> = cells.filter_map(cell).collect();
        facts.add(format!("latency_histogram_{name}").as_bytes(), text.join(",").as_bytes());
    }
    facts
}

/// Calls of a command that took at most so many microseconds, by their upper bounds.
fn cells_of(facts: &Facts, name: &str) -> Option<BTreeMap<u64, u64>> {
    let text = facts.text(&format!("latency_histogram_{name}"))?;
    let cell = |part: &str| {
        let (bound, count) = part.split_once('=')?;
        Some((bound.parse().ok()?, count.parse().ok()?))
    };
    text.split(',').filter(|part| !part.is_empty()).map(cell).collect()
}

/// The least upper bound of a cell that a share `quantile` of the calls between two readings did not exceed; `None`
/// where the server does not report it, and where a count fell.
pub fn at_most(pair: &Pair<'_>, name: &str, quantile: f64) -> Option<Nanos> {
    let after = cells_of(pair.after, name)?;
    let before = if pair.anew { None } else { cells_of(pair.before, name) }.unwrap_or_default();
    // Cells without a call of their own are left out of an answer.
    let until = |cells: &BTreeMap<u64, u64>, bound: u64| {
        cells.range(..=bound).next_back().map_or(0, |(_, count)| *count)
    };
    let risen = |bound: u64| until(&after, bound).checked_sub(until(&before, bound));
    let all = risen(u64::MAX).filter(|&calls| calls > 0)?;
    let wanted = (quantile * all as f64).ceil() as u64;
    let bounds = after.keys().copied();
    let found = bounds
        .map(|bound| Some((bound, risen(bound)?)))
        .find(|cell| cell.is_none_or(|(_, calls)| calls >= wanted));
    found.flatten().map(|(bound_us, _)| bound_us.saturating_mul(MICROSECOND))
}

/// The errors with which a server answered between two readings, by their first word, the most frequent first.
pub fn errors(pair: &Pair<'_>) -> Vec<ErrorCount> {
    let error = |(name, _): (&str, &str)| {
        let count = pair.rise_in(&format!("errorstat_{name}"), "count").filter(|&count| count > 0)?;
        Some(ErrorCount { name: name.to_owned(), count })
    };
    let mut errors: Vec<ErrorCount> = pair.after.beginning_with("errorstat_").filter_map(error).collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors.truncate(NAMES_MAX);
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::resp_value::RespRead;

    #[track_caller]
    fn reported(bytes: &[u8], reported: fn(&RespValue<'_>) -> Facts) -> Facts {
        match RespValue::read(bytes, 16_384) {
            RespRead::Whole(value, _) => reported(&value),
            other => panic!("{other:?}"),
        }
    }

    fn pair<'a>(before: &'a Facts, after: &'a Facts) -> Pair<'a> {
        Pair { before, after, anew: false }
    }

    #[test]
    fn slow_commands_have_a_name_and_none_of_their_arguments() {
        let first = b"*1\r\n*6\r\n:4\r\n:100\r\n:9000\r\n*1\r\n$3\r\nget\r\n$3\r\na:1\r\n$0\r\n\r\n";
        let second = b"*4\r\n*6\r\n:7\r\n:103\r\n:20000\r\n*2\r\n$4\r\nKEYS\r\n$6\r\nsecret\r\n$3\r\na:1\r\n$0\r\n\r\n\
            *4\r\n:6\r\n:102\r\n:11\r\n*2\r\n$7\r\nSLOWLOG\r\n$3\r\nGET\r\n*4\r\n:5\r\n:101\r\n:12\r\n*1\r\n$6\r\na,id=9\r\n\
            *4\r\n:4\r\n:100\r\n:9000\r\n*1\r\n$3\r\nget\r\n";
        let (before, after) =
            (reported(first, reported_slow_commands), reported(second, reported_slow_commands));
        assert!(!format!("{after:?}").contains("secret"));
        let seen = slow_commands(&pair(&before, &after));
        let of = |name: &str, at_unix_s, us| SlowCommand {
            name: name.to_owned(),
            at_unix_s,
            took_ns: us * MICROSECOND,
        };
        assert_eq!(seen, [of("keys", 103, 20_000), of("?", 101, 12)]);
        let restarted = slow_commands(&Pair { anew: true, ..pair(&after, &before) });
        assert_eq!(restarted, [of("get", 100, 9_000)], "ids count anew");
        assert!(slow_commands(&pair(&after, &after)).is_empty());
    }

    #[test]
    fn latency_events_are_those_that_changed() {
        let event = |at: u32, ms: u32| format!("*4\r\n$7\r\ncommand\r\n:{at}\r\n:{ms}\r\n:900\r\n");
        let before = reported(format!("*1\r\n{}", event(5, 12)).as_bytes(), reported_events);
        let after = reported(format!("*1\r\n{}", event(9, 30)).as_bytes(), reported_events);
        let seen = events(&pair(&before, &after));
        let [LatencyEvent { name, at_unix_s: 9, latest_ns, greatest_ns }] = &seen[..] else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (name.as_str(), *latest_ns, *greatest_ns),
            ("command", 30 * MILLISECOND, 900 * MILLISECOND)
        );
        assert!(events(&pair(&after, &after)).is_empty());
    }

    #[test]
    fn the_times_of_a_command_are_bounded_by_the_cells_that_its_calls_between_the_readings_fell_into() {
        let histogram = |cells: &[(u64, u64)]| {
            let text: String =
                cells.iter().map(|(bound, count)| format!(":{bound}\r\n:{count}\r\n")).collect();
            let head = "*2\r\n$3\r\nGET\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n";
            reported(format!("{head}*{}\r\n{text}", 2 * cells.len()).as_bytes(), reported_histograms)
        };
        // Of the 1,000 calls in between 900 took at most 4 us, 95 more at most 16, and 5 at most 1,056.
        let (before, after) = (
            histogram(&[(4, 10), (66, 40)]),
            histogram(&[(4, 910), (8, 910), (16, 1_005), (66, 1_035), (1_056, 1_040)]),
        );
        let us = |quantile| at_most(&pair(&before, &after), "get", quantile).map(|ns| ns / MICROSECOND);
        assert_eq!((us(0.5), us(0.9), us(0.99), us(0.999)), (Some(4), Some(4), Some(16), Some(1_056)));
        assert_eq!(at_most(&pair(&after, &after), "get", 0.5), None, "nothing was called");
        assert_eq!(at_most(&pair(&after, &before), "get", 0.5), None, "counts fell");
        assert_eq!(at_most(&pair(&before, &after), "set", 0.5), None);
        let anew = Pair { anew: true, ..pair(&after, &before) };
        assert_eq!(at_most(&anew, "get", 0.99), Some(66 * MICROSECOND));
    }

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let facts = |moved: u64| {
            let mut facts = Facts::default();
            facts.add(b"errorstat_MOVED", format!("count={moved}").as_bytes());
            facts.add(b"errorstat_ERR", b"count=2");
            facts
        };
        let seen = errors(&pair(&facts(3), &facts(10)));
        assert_eq!(seen, [ErrorCount { name: "MOVED".to_owned(), count: 7 }]);
        assert_eq!(errors(&pair(&Facts::default(), &facts(1))).len(), 2, "none of them was there before");
    }

    #[test]
    fn answers_of_another_form_tell_nothing() {
        for bytes in
            [&b"*1\r\n:1\r\n"[..], b":1\r\n", b"*2\r\n$3\r\nget\r\n:1\r\n", b"*1\r\n*3\r\n:1\r\n:2\r\n:3\r\n"]
        {
            assert!(
                reported(bytes, reported_slow_commands).is_empty()
                    && reported(bytes, reported_events).is_empty()
            );
            let pair_of = reported(bytes, reported_histograms);
            assert_eq!(at_most(&pair(&pair_of, &pair_of), "get", 0.5), None);
        }
    }
}
