//! The result of a run in a sentence: the words in capitals with their reason, the rate, the hits and the errors.

use pummel_logic::plan::{Group, Transport};
use pummel_logic::protocol::Fault;
use pummel_logic::protocol::udp::DatagramCounts;
use pummel_logic::time::seconds as seconds_of;
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::{counted, grouped, percent, was};

use super::counts::{asked_rate, failed_share, faults, is_load, sum};
use super::headline::{Headline, Word};
use super::ran::measured;
use crate::document::{Document, LoadedResult, OpResult, reads, reads_records};
use crate::text::byte_text;
use crate::view::cells::{given_time, rate, rate_interval, seconds, share, time};
use crate::view::{Line, Text, Tone};
use crate::words::commands::loaded as loaded_words;

/// Requests from which on the quantiles of the few that were answered are told.
const QUANTILES_OF_MIN: u64 = 100;

/// The share of errors from which on the rate is that of all requests that ended, and the share stands beside it.
const MANY_ERRORS: f64 = 0.01;

/// The sentence behind `Result`.
pub(super) fn result(document: &Document, headline: &Headline) -> Text {
    let mut text = Text::default();
    for (place, word) in headline.words.iter().enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" }).and(word.tone(), word.text());
    }
    if let Some(load) = document.load.as_ref().filter(|_| is_load(document)) {
        return loaded(text, document, load);
    }
    let Some(first) = headline.words.first() else { return with_rate(text, document) };
    match first {
        Word::Failed => {
            let reason = document.reason.as_ref().map_or_else(String::new, |reason| format!(". {reason}"));
            text.and(Tone::Plain, format!(": {}{reason}", failed(document)))
        }
        Word::Overloaded => {
            let text = text.and(Tone::Plain, ": ");
            with_ends(overload(text, document), document, false)
        }
        Word::Interrupted if document.seconds == 0.0 => {
            text.and(Tone::Plain, " before anything was measured")
        }
        Word::Interrupted => {
            with_rate(text.and(Tone::Plain, format!(" after {}. ", measured(document))), document)
        }
        word => {
            let reason = match word {
                Word::Partial => document.reason.clone().unwrap_or_default(),
                Word::WrongValues => wrong(document),
                Word::NotSure => not_sure(document),
                _ => String::new(),
            };
            let is_overloaded = headline.has(Word::Overloaded);
            let reason = match reason.trim_end_matches('.') {
                "" if is_overloaded => ": ".to_owned(),
                "" => ". ".to_owned(),
                reason => format!(": {reason}. "),
            };
            let text = text.and(Tone::Plain, reason);
            match is_overloaded {
                true => with_ends(overload(text, document), document, false),
                false => with_rate(text, document),
            }
        }
    }
}

/// The records that a load stored.
fn loaded(mut text: Text, document: &Document, load: &LoadedResult) -> Text {
    if !text.0.is_empty() {
        let reason = document
            .reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(": {}", reason.trim_end_matches('.')));
        text = text.and(Tone::Plain, format!("{reason}. "));
    }
    let rate = if load.seconds > 0.0 {
        format!("; {}/s", rate(load.stored as f64 / load.seconds))
    } else {
        String::new()
    };
    let stored = loaded_words(&document.plan, load.stored, load.records);
    text.and(Tone::Figure, stored).and(Tone::Plain, format!(", {}{rate}", byte_text(load.bytes)))
}

/// How full the servers are after a load, with what they evicted.
pub(super) fn fullness(document: &Document) -> Vec<Line> {
    let servers = document.evidence.iter().flat_map(|seen| &seen.servers);
    let several = document.plan.servers.len() > 1;
    let words = servers.filter_map(|server| {
        let reading = server.reading.as_ref()?;
        let (used, limit) = (reading.memory_bytes?, reading.memory_limit_bytes.filter(|limit| *limit > 0)?);
        let of = if several { format!("{}: ", server.address) } else { String::new() };
        let evicted = match reading.counts.evictions {
            Some(0) => "; nothing was evicted".to_owned(),
            Some(count) => format!("; {} evicted", counted(count, "record")),
            None => String::new(),
        };
        Some(format!("{of}its memory is {} full now{evicted}", percent(used as f64 / limit as f64)))
    });
    words
        .enumerate()
        .map(|(place, words)| Line::new(if place == 0 { "Server" } else { "" }, Text::plain(words)))
        .collect()
}

/// The share of the requests that ended as errors, without what servers said: of those that were late where most were.
fn failed(document: &Document) -> String {
    let (share, is_late) = failed_share(document);
    let ended = counted(document.totals.ended(), "request");
    match is_late {
        true => {
            let timeout = given_time(seconds_of(document.plan.timeout_ns));
            format!("{share} of {ended} got no reply in time (--timeout {timeout})")
        }
        false => format!("{share} of {ended} were errors"),
    }
}

/// The rate that was answered of the one that was asked for, and the backlog.
fn overload(text: Text, document: &Document) -> Text {
    let totals = &document.totals;
    let figure = format!("{} req/s", rate(totals.rate));
    let text = text.and(Tone::Figure, figure);
    let Some(asked) = asked_rate(document) else {
        return text.and(Tone::Plain, " answered; the queue grew to the end");
    };
    let behind_s = totals.unsent.saturating_add(totals.unfinished) as f64 / asked;
    let behind = if behind_s > 0.0 { format!(" ({} behind)", seconds(behind_s)) } else { String::new() };
    text.and(
        Tone::Plain,
        format!(
            " answered of {} asked; the queue grew to the end{behind}, a longer run will not help",
            rate(asked)
        ),
    )
}

/// The wrong values of a run that checked them.
pub(super) fn wrong(document: &Document) -> String {
    let verify = &document.verify;
    let checked = grouped(verify.checked);
    let mut parts = Vec::new();
    if verify.failed > 0 {
        let or_more = if verify.failed_keys_or_more { " or more" } else { "" };
        parts.push(format!(
            "{} of {checked}, of {}{or_more}",
            grouped(verify.failed),
            counted(verify.failed_keys, "key")
        ));
    }
    if verify.stale > 0 {
        parts.push(format!("{} of {checked} older than they may be", grouped(verify.stale)));
    }
    parts.join("; ")
}

fn not_sure(document: &Document) -> String {
    let Some(until) = &document.until else { return String::new() };
    let (name, asked) = (quantile_name(until.quantile), percent(until.asked));
    match until.half_width {
        Some(half_width) => format!("{name} is known to +- {}, {asked} were asked for", percent(half_width)),
        None => format!("how sure {name} is, is not known; +- {asked} were asked for"),
    }
}

/// The text with the rate, the hits and the errors.
fn with_rate(text: Text, document: &Document) -> Text {
    let totals = &document.totals;
    let ended = totals.ended();
    if ended == 0 {
        let text = text.and(Tone::Plain, "No request was completed");
        return if totals.requests == 0 { text } else { with_ends(text, document, false) };
    }
    let answered_with_errors = faults(document, |fault| !fault.unanswered());
    let has_many = answered_with_errors as f64 >= MANY_ERRORS * ended as f64 && answered_with_errors > 0;
    let fills_rate = fills(document) as f64 / document.seconds.max(f64::MIN_POSITIVE);
    let errors_rate =
        if has_many { answered_with_errors as f64 / document.seconds.max(f64::MIN_POSITIVE) } else { 0.0 };
    let mut text =
        text.and(Tone::Figure, format!("{} req/s", rate((totals.rate - fills_rate).max(0.0) + errors_rate)));
    let asked = asked_rate(document);
    text = text.and(
        Tone::Plain,
        match (asked, totals.rate_ci) {
            (Some(asked), _) => format!(" of {} asked", rate(asked)),
            // The interval is that of all replies, and of no other rate.
            (None, Some(ends))
                if fills_rate == 0.0
                    && !has_many
                    && document.plan.groups.iter().all(Group::is_closed_loop) =>
            {
                format!(" ({})", rate_interval(ends))
            }
            (None, _) => String::new(),
        },
    );
    if fills(document) > 0 {
        text = text.and(Tone::Plain, format!(", and {}/s that store misses", rate(fills_rate)));
    }
    let of_records = document.ops.iter().filter(|(name, _)| reads_records(name));
    let keys = sum(of_records.map(|(_, op)| op.keys));
    if totals.keys_rate.is_some() && keys > 0 && document.seconds > 0.0 {
        text = text.and(Tone::Plain, format!(", {} keys/s read", rate(keys as f64 / document.seconds)));
    }
    if has_many {
        let share = share(answered_with_errors, ended);
        text = text.and(Tone::Plain, ", ").and(Tone::Warning, format!("{share} of them errors"));
    }
    with_ends(text, document, has_many)
}

/// The text with the hits, the errors, and the values that were checked. `is_share_told`: the share of error replies stands already.
fn with_ends(mut text: Text, document: &Document, is_share_told: bool) -> Text {
    let mut next = "; ";
    let mut parts: Vec<(Tone, String)> = Vec::new();
    let (hits, misses) = (of_reads(document, |op| op.hits), of_reads(document, |op| op.misses));
    let looked_up = hits.saturating_add(misses);
    if looked_up > 0 {
        parts.push((Tone::Plain, format!("{} hits", share(hits, looked_up))));
    }
    parts.extend(errors(document, is_share_told));
    let verify = &document.verify;
    if verify.checked > 0 && verify.failed == 0 && verify.stale == 0 {
        parts.push((Tone::Plain, format!("{} right", counted(verify.checked, "value"))));
    }
    // Some misses look like lost datagrams, and of requests without a reply it is not known.
    let has_lost_none = |udp: &DatagramCounts| udp.udp_timeout == 0 && udp.unclear_misses == 0;
    let is_told = document.plan.transport == Transport::Udp && document.noreply_errors.is_none();
    if is_told && document.udp.as_ref().is_some_and(has_lost_none) {
        parts.push((Tone::Plain, "no datagram lost".to_owned()));
    }
    for (tone, words) in parts {
        text = text.and(Tone::Plain, next).and(tone, words);
        next = ", ";
    }
    text
}

/// The sum of counts of the operations that read.
fn of_reads(document: &Document, count: fn(&OpResult) -> u64) -> u64 {
    sum(document.ops.iter().filter(|(name, op)| reads(name, op)).map(|(_, op)| count(op)))
}

/// The errors by what became of the requests; `no errors` where there were none.
fn errors(document: &Document, is_share_told: bool) -> Vec<(Tone, String)> {
    let totals = &document.totals;
    let ended = totals.ended();
    let answered = faults(document, |fault| !fault.unanswered());
    let timeouts = faults(document, |fault| fault == Fault::Timeout);
    let lost = faults(document, |fault| fault.unanswered() && fault != Fault::Timeout);
    // Errors of requests without a reply have a line of their own.
    if sum([answered, timeouts, lost]) == 0 {
        let is_without = document.noreply_errors.unwrap_or(0) == 0;
        return is_without.then(|| (Tone::Plain, "no errors".to_owned())).into_iter().collect();
    }
    let mut parts = Vec::new();
    if answered > 0 && !is_share_told {
        parts.push((Tone::Warning, format!("{} ({})", counted(answered, "error"), share(answered, ended))));
    }
    if timeouts > 0 {
        parts.push((Tone::Warning, format!("{} ({})", counted(timeouts, "timeout"), share(timeouts, ended))));
    }
    if lost > 0 {
        parts.push((Tone::Warning, format!("{} lost", counted(lost, "request"))));
    }
    parts
}

/// The stores of keys that were missed.
fn fills(document: &Document) -> u64 {
    document.cache.as_ref().map_or(0, |cache| cache.counts.fills)
}

/// The few replies of a run that failed, in place of a table.
pub(super) fn few_replies(document: &Document) -> Option<String> {
    let totals = &document.totals;
    let response = totals.times.response_us.as_ref().filter(|_| totals.completed > 0)?;
    // Quantiles of fewer requests than this say nothing that their mean does not.
    let has_quantiles = totals.completed >= QUANTILES_OF_MIN;
    let words = match (response.p50, response.p99, response.mean) {
        (Some(p50), Some(p99), _) if has_quantiles => format!(": p50 {}, p99 {}", time(p50), time(p99)),
        (_, _, Some(mean)) => format!(", after {} on average", time(mean)),
        _ => String::new(),
    };
    let (many, was) = (counted(totals.completed, "request"), was(totals.completed));
    let how = if failed_share(document).1 { "in time" } else { "without error" };
    Some(format!("{many} {was} answered {how}{words}"))
}
