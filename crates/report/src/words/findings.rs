//! The words for findings: why a run, or several results, do not measure what their names say.

use pummel_measure::measurement::Status;
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::{counted, grouped, percent, was};

use crate::findings::fact::{Differing, Fact};
use crate::text::byte_text;
use crate::view::cells::{set_time, time};
use crate::visible::cut_name;

/// Most things that differ between results that are told; the JSON has all of them.
const DIFFERENCES_TOLD: usize = 4;

/// Characters of a value that differs that are told at most.
const VALUE_CHARS_MAX: usize = 40;

/// Most names of results that a sentence has.
const NAMES_TOLD: usize = 4;

/// The sentence for a fact, without its full stop.
pub fn says(fact: &Fact) -> String {
    match fact {
        Fact::ClientLimit { why } => with("pummel itself was the limit", why),
        Fact::TimesNotReliable { is_none, figures, why } => not_reliable(*is_none, figures, why.as_deref()),
        Fact::GoalOfLag { quantile } => {
            let name = quantile_name(*quantile);
            format!("half or more of {name}, which a goal is about, is pummel's own delay")
        }
        Fact::NotSteady { why } => with("not at one level", why),
        Fact::TooFewRequests { quantile, requests, least } => format!(
            "too short for a goal at {}: of {} fewer than 10 lie beyond it, which takes {}",
            quantile_name(*quantile),
            counted(*requests, "request"),
            grouped(*least)
        ),
        Fact::OnlyLowerBound { quantile, above_us } => format!(
            "{}, which a goal is about, falls among requests without an answer: it is more than {}",
            quantile_name(*quantile),
            time(*above_us)
        ),
        Fact::Undecided { quantile, limit_us, low_us, high_us } => {
            let end = |us: &Option<f64>| us.map_or_else(|| "an end that is not known".to_owned(), time);
            format!(
                "a goal is not decided: {} is between {} and {} with 95 % confidence, and the limit of {} is inside",
                quantile_name(*quantile),
                end(low_us),
                end(high_us),
                set_time(*limit_us)
            )
        }
        Fact::NoInterval { quantile, is_goal, has_low_end } => {
            let name = quantile_name(*quantile);
            let about = if *is_goal { ", which a goal is about," } else { "" };
            match has_low_end {
                true => format!("too short to bound {name}{about} from above"),
                false => format!("too short to say how sure {name}{about} is"),
            }
        }
        Fact::LoadedMissed { why: Some(why), keys, .. } => {
            format!("misses among {} read: {why}", counted(*keys, "key"))
        }
        Fact::LoadedMissed { misses, keys, why: None } => {
            format!(
                "{} of {} read were misses of records that were loaded",
                grouped(*misses),
                counted(*keys, "key")
            )
        }
        Fact::Misses { why: Some(why), .. } => why.clone(),
        Fact::Misses { misses, keys, is_loaded, why: None } => {
            let cause =
                if *is_loaded { "although the run loads records" } else { "and the run loads nothing" };
            format!("{} of {} read were misses, {cause}", grouped(*misses), counted(*keys, "key"))
        }
        Fact::ServerMisses { counted: of_server, replied, keys } => format!(
            "of {} read {} were misses by the server's count, and {} by the replies",
            counted(*keys, "key"),
            grouped(*of_server),
            grouped(*replied)
        ),
        Fact::UntoldMisses { command, share } => super::commands::untold_misses(command, *share),
        Fact::NothingDone { op, without_effect, answered } => format!(
            "{op}: {} of {} stored or found nothing, and its times are those of such requests",
            grouped(*without_effect),
            counted(*answered, "answered request")
        ),
        Fact::RecordsNotAsked { share, records, keys, popularity, is_even } => {
            let draws = counted(*keys, "draw");
            let how = if *is_even { String::new() } else { format!(" by {popularity}") };
            format!(
                "about {} of {} were asked for while it was measured ({draws}{how})",
                percent(*share),
                counted(*records, "record")
            )
        }
        Fact::OneConnection => "one connection: one thread of the server answered everything".to_owned(),
        Fact::OneServingThread => "one thread of the server answered everything".to_owned(),
        Fact::SmallData { bytes, below } => format!(
            "all records together are {}, less than {}: they may stay in the cache of a CPU",
            byte_text(*bytes),
            bound_text(*below)
        ),
        Fact::Evictions { evictions, misses, keys } => {
            let evicted = format!("{} {} evicted", counted(*evictions, "record"), was(*evictions));
            match misses {
                0 => format!("{evicted} while the run was measured"),
                _ => format!(
                    "{evicted} while the run was measured; {} of {} read were misses",
                    grouped(*misses),
                    counted(*keys, "key")
                ),
            }
        }
        Fact::OtherClients { why: Some(why), .. } => why.clone(),
        Fact::OtherClients { requests: Some(requests), share: Some(share), .. } => format!(
            "other clients made {}, {} of the number of this run's",
            counted(*requests, "request"),
            percent(*share)
        ),
        Fact::OtherClients { .. } => "other clients used the server".to_owned(),
        Fact::Failed { why } => with("failed", why),
        Fact::Errors { failed, requests } => {
            format!("{} of {} failed", grouped(*failed), counted(*requests, "request"))
        }
        Fact::WrongValues { values } => {
            format!("{} {} wrong or too old", counted(*values, "value"), was(*values))
        }
        Fact::NotComplete { status: Status::Interrupted, reason } => with("interrupted", reason),
        Fact::NotComplete { reason, .. } => with("not complete", reason),
        Fact::NoRun => "no run was made".to_owned(),
        Fact::Overloaded { why } => with("overloaded", why),
        Fact::ResultsDiffer { results, differ } => differing(results, differ),
        Fact::NoTls => "no run is encrypted (--tls)".to_owned(),
        Fact::NoLargeValues { from } => format!("no run has values of {} or more", bound_text(*from)),
        Fact::NoConcurrency => "no run has more than one connection".to_owned(),
    }
}

/// What kind of fact was found, where several runs have facts of one kind.
pub fn kind_words(fact: &Fact) -> &'static str {
    match fact {
        Fact::ClientLimit { .. } => "pummel itself was the limit",
        Fact::TimesNotReliable { .. } => "the times are not reliable, or not all of them",
        Fact::GoalOfLag { .. } => "a time that a goal is about is for half or more pummel's own delay",
        Fact::NotSteady { .. } => "not at one level",
        Fact::TooFewRequests { .. } => "too few requests for a goal",
        Fact::OnlyLowerBound { .. } => "a time that a goal is about falls among requests without an answer",
        Fact::Undecided { .. } => "a goal is not decided",
        Fact::NoInterval { .. } => "too short to say how sure the times are",
        Fact::LoadedMissed { .. } => "records that were loaded were missed",
        Fact::Misses { .. } => "misses, although the plan means hits",
        Fact::ServerMisses { .. } => "the servers counted other misses than the replies show",
        Fact::UntoldMisses { .. } => "misses by the servers' count that the replies do not show",
        Fact::NothingDone { .. } => "nearly all requests stored or found nothing",
        Fact::RecordsNotAsked { .. } => "a part of the records was not asked for",
        Fact::OneConnection => "one connection",
        Fact::OneServingThread => "one serving thread",
        Fact::SmallData { .. } => "data as small as the cache of a CPU",
        Fact::Evictions { .. } => "records were evicted",
        Fact::OtherClients { .. } => "other clients used the server",
        Fact::Failed { .. } => "most requests failed",
        Fact::Errors { .. } => "some requests failed",
        Fact::WrongValues { .. } => "values were wrong or too old",
        Fact::NotComplete { .. } => "not complete",
        Fact::NoRun => "no run was made",
        Fact::Overloaded { .. } => "overloaded",
        Fact::ResultsDiffer { .. } => "results with names alike differ",
        Fact::NoTls => "not encrypted",
        Fact::NoLargeValues { .. } => "no large values",
        Fact::NoConcurrency => "one connection",
    }
}

/// A sentence that was found in some runs of a result, the first of which is `first`, from 1.
pub fn in_runs(says: &str, found: usize, all: usize, first: usize) -> String {
    match (found, found == all) {
        (_, true) => format!("in all {} runs; in run {first}: {says}", grouped(all as u64)),
        (1, _) => format!("in run {first} of {}: {says}", grouped(all as u64)),
        _ => format!("in {} of {} runs; in run {first}: {says}", grouped(found as u64), grouped(all as u64)),
    }
}

/// The numbers of results, findings and notes.
pub fn headline(results: usize, findings: usize, notes: usize) -> String {
    let counts = [(findings, "finding"), (notes, "note")];
    let each = counts.into_iter().filter(|(count, _)| *count > 0);
    let each: Vec<String> = each.map(|(count, what)| counted(count as u64, what)).collect();
    let what = if each.is_empty() { "nothing found".to_owned() } else { each.join(", ") };
    format!("{}: {what}", counted(results as u64, "result"))
}

/// A sentence with its reason, where there is one.
fn with(words: &str, why: &Option<String>) -> String {
    // Sentences of older versions have a full stop.
    let why =
        why.as_ref().map(|why| why.trim_end_matches('.')).filter(|why| !why.is_empty() && *why != words);
    why.map_or_else(|| words.to_owned(), |why| format!("{words}: {why}"))
}

/// Bytes of a bound, which is a round number in binary units.
fn bound_text(bytes: u64) -> String {
    match (bytes % (1 << 20), bytes % (1 << 10)) {
        (0, _) => format!("{} MiB", grouped(bytes >> 20)),
        (_, 0) => format!("{} KiB", grouped(bytes >> 10)),
        _ => byte_text(bytes),
    }
}

fn not_reliable(is_none: bool, figures: &[String], why: Option<&str>) -> String {
    match (is_none, why) {
        // The sentence goes on behind its first words.
        (true, Some(why)) => format!("the times are not reliable{why}"),
        (false, Some(why)) => format!("not all times are reliable: {why}"),
        (_, None) if figures.is_empty() => "the times are not reliable".to_owned(),
        (_, None) => {
            format!(
                "not all times are reliable: pummel's own delay is a visible part of {}",
                figures.join(", ")
            )
        }
    }
}

/// The results that differ, and what differs between them.
fn differing(results: &[String], differ: &[Differing]) -> String {
    let more = |told: usize, all: usize, what: &str| match all.saturating_sub(told) {
        0 => String::new(),
        more => format!(" and {more} more {what}"),
    };
    let names: Vec<&str> = results.iter().take(NAMES_TOLD).map(String::as_str).collect();
    let own = |differing: &Differing| {
        let values: Vec<String> =
            differing.values.iter().take(NAMES_TOLD).map(|value| cut_name(value, VALUE_CHARS_MAX)).collect();
        format!("{} {}", differing.name, values.join(", "))
    };
    let told: Vec<String> = differ.iter().take(DIFFERENCES_TOLD).map(own).collect();
    format!(
        "{}{} have names alike and differ in {}{}",
        names.join(", "),
        more(names.len(), results.len(), "results"),
        told.join("; "),
        more(told.len(), differ.len(), "things")
    )
}
