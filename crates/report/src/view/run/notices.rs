//! The notices of a run, each a line that stands only where something happened.

use std::cmp::Reverse;

use pummel_logic::plan::RetryKind;
use pummel_logic::protocol::Fault;
use pummel_logic::retry::KindCounts;
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::{counted, grouped, percent, was};

use super::cluster;
use super::counts::{OUT_OF_BALANCE, faults, is_load, sum};
use super::headline::{Headline, Word};
use super::result::wrong;
use crate::document::{
    Document, FailOnAnswer, GoalOutcome, IntervalResult, OtherOutcomes, ServerRequestsResult, ShardResult,
};
use crate::view::cells::{interval, seconds, share, time};
use crate::view::{Line, Text, Tone};
use crate::visible::cut_name;
use crate::words;
use crate::words::fail_on::answer_words;
use crate::words::outcomes::other_outcomes;

/// The most messages of servers that are shown.
pub(crate) const MESSAGES_MAX: usize = 5;

/// Characters of a server's message that are shown at most; the JSON has all that was kept.
const MESSAGE_CHARS_MAX: usize = 200;
/// The share of a server's requests from which on those of others are told.
const OTHERS_SHARE: f64 = 0.05;

/// The notices that stand before the trust, in their order.
pub(super) fn before_trust(document: &Document, headline: &Headline) -> Vec<Line> {
    let mut lines = goals(document);
    lines.extend(fail_on(document));
    lines.extend(verify(document, headline));
    lines.extend(audit(document));
    let kinds: [fn(&Document) -> Vec<Line>; 19] = [
        cluster::lines,
        retries,
        pushes,
        errors,
        timeouts,
        refused,
        lost,
        stopped,
        restart,
        unsent,
        misses,
        untold_misses,
        without_data,
        outcomes,
        agents,
        servers,
        others,
        evicted,
        udp,
    ];
    lines.extend(kinds.into_iter().flat_map(|notices| notices(document)));
    lines
}

/// Lines below one label, which stands at the first of them.
fn labelled(label: &'static str, tone: Tone, texts: impl IntoIterator<Item = Text>) -> Vec<Line> {
    let line = |(place, text)| Line { label: if place == 0 { label } else { "" }, tone, text };
    texts.into_iter().enumerate().map(line).collect()
}

/// The goals, those that were missed first.
fn goals(document: &Document) -> Vec<Line> {
    let mut goals: Vec<&GoalOutcome> = document.goals.iter().collect();
    goals.sort_by_key(|goal| match goal.met {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    });
    labelled("Goal", Tone::Plain, goals.into_iter().map(|goal| goal_words(document, goal)))
}

fn goal_words(document: &Document, goal: &GoalOutcome) -> Text {
    let name = quantile_name(goal.quantile);
    let (met, tone) = match goal.met {
        Some(true) => ("met", Tone::Plain),
        Some(false) => ("missed", Tone::Alarm),
        None => ("undecided", Tone::Alarm),
    };
    let response = document.totals.times.response_us.as_ref();
    let ends = response.and_then(|response| response.ci.as_ref()?.get(&name)).copied();
    let reached = match (goal.reached_us, goal.above_us) {
        (Some(us), _) => {
            let ends = ends.map(|ends| interval(us, ends)).filter(|ends| !ends.is_empty());
            format!("{}{}", time(us), ends.map_or_else(String::new, |ends| format!(" ({ends})")))
        }
        (None, Some(us)) => format!("more than {}", time(us)),
        (None, None) => "not known".to_owned(),
    };
    let why = if goal.met.is_none() { "; it holds on one side of the change only" } else { "" };
    Text::default()
        .and(tone, met)
        .and(Tone::Plain, format!(": {name} is {reached}, {} asked{why}", time(goal.limit_us)))
}

/// What `--fail-on` found.
fn fail_on(document: &Document) -> Vec<Line> {
    let found = document.failures().into_iter().filter_map(|(on, answer)| {
        let not_known = if matches!(answer, FailOnAnswer::Unknown(_)) { "not known: " } else { "" };
        Some(format!("{on}: {not_known}{}", answer_words(&answer)?))
    });
    labelled("Fail on", Tone::Warning, found.map(Text::plain))
}

/// The values that were wrong or too old, where the result does not begin with them, and the first wrong one.
fn verify(document: &Document, headline: &Headline) -> Vec<Line> {
    let verify = &document.verify;
    let is_told = headline.words.first() == Some(&Word::WrongValues);
    let is_any = verify.failed > 0 || verify.stale > 0;
    let counts = Some(wrong(document)).filter(|_| is_any && !is_told);
    let first = verify.first.first().filter(|_| verify.failed > 0).map(|first| {
        let more = if verify.first.len() > 1 { "; -v lists more" } else { "" };
        format!("{}, first in {}{more}", first.why, first.key)
    });
    labelled("Verify", Tone::Plain, counts.into_iter().chain(first).map(Text::plain))
}

/// The keys that were read back after the run.
fn audit(document: &Document) -> Option<Line> {
    let audit = document.audit.as_ref()?;
    let (lost, keys) = (audit.lost, counted(audit.keys, "key"));
    let read = audit.keys.saturating_sub(audit.unread);
    let mut text = match &audit.inconclusive {
        Some(why) => {
            let end = if read > 0 { "; " } else { "" };
            Text::default().and(Tone::Alarm, "inconclusive").and(Tone::Plain, format!(": {why}{end}"))
        }
        None => Text::default(),
    };
    text = match lost {
        0 if read == 0 => text,
        0 if audit.unread == 0 => text.and(Tone::Plain, format!("{keys} read back, none lost")),
        0 => text.and(Tone::Plain, format!("{} of {keys} read back, none of them lost", grouped(read))),
        _ => text.and(Tone::Alarm, format!("{} of {keys} LOST", grouped(lost))),
    };
    if lost > 0 {
        let kinds = [(audit.missing, "missing"), (audit.older, "older than acknowledged")];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, what)| format!("{} {what}", grouped(count))).collect();
        let when = audit.first_lost_s.zip(audit.last_lost_s);
        let when =
            when.map(|(first, last)| format!(", acknowledged at {} to {} s", tenths(first), tenths(last)));
        text = text.and(Tone::Plain, format!(" ({}){}", kinds.join(", "), when.unwrap_or_default()));
    }
    // Where nothing is lost, the line has said already how many were read.
    let unread = if lost > 0 { audit.unread } else { 0 };
    let more = [(audit.newer, "newer than acknowledged"), (unread, "NOT READ")];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        text = text.and(Tone::Plain, format!("; {} {what}", grouped(count)));
    }
    Some(Line { label: "Audit", tone: Tone::Plain, text })
}

/// A time in seconds, with one digit.
fn tenths(seconds: f64) -> String {
    format!("{seconds:.1}")
}

/// The messages of servers with errors, the commonest first.
pub(crate) fn commonest_messages(document: &Document) -> Vec<(&str, u64)> {
    let mut messages: Vec<(&str, u64)> =
        document.error_messages.iter().map(|(words, count)| (words, *count)).collect();
    messages.sort_by_key(|(_, count)| Reverse(*count));
    messages
}

/// The requests that were sent again after errors, and those that were not since they may have been carried out.
fn retries(document: &Document) -> Vec<Line> {
    let Some(counts) = document.retry.filter(|counts| !counts.is_zero()) else { return Vec::new() };
    let kinds = |counts: &KindCounts| {
        let words = counts.iter().map(|(kind, count)| format!("{} {}", grouped(count), kind_words(kind)));
        words.collect::<Vec<_>>().join(", ")
    };
    let (sent, given_up) = (counts.retries.total(), counts.given_up.total());
    let mut lines = Vec::new();
    if sent > 0 {
        let times = counted(sent, "time");
        let recovered = counted(counts.recovered, "request");
        lines.push(format!(
            "sent again {times} (after {}): {recovered} answered in the end",
            kinds(&counts.retries)
        ));
    }
    if given_up > 0 {
        let after = kinds(&counts.given_up);
        lines.push(format!(
            "{} given up when the time for it was over ({after})",
            counted(given_up, "request")
        ));
    }
    if counts.not_repeatable > 0 {
        let (requests, may) = (counted(counts.not_repeatable, "request"), "may have been carried out");
        lines.push(format!("{requests} not sent again after a loss or a timeout, since they {may}"));
    }
    labelled("Retries", Tone::Plain, lines.into_iter().map(Text::plain))
}

/// A kind of errors as servers write it, or in words.
fn kind_words(kind: RetryKind) -> String {
    if kind.is_unanswered() { kind.name().to_owned() } else { kind.name().to_uppercase() }
}

/// The messages that servers sent without being asked, the commonest first.
fn pushes(document: &Document) -> Vec<Line> {
    let mut pushes: Vec<(&str, u64)> = document.pushes.iter().map(|(name, count)| (name, *count)).collect();
    pushes.sort_by_key(|(_, count)| Reverse(*count));
    if pushes.is_empty() {
        return Vec::new();
    }
    let words = pushes.iter().take(MESSAGES_MAX);
    let words =
        words.map(|(name, count)| format!("{} x {}", grouped(*count), cut_name(name, MESSAGE_CHARS_MAX)));
    let words = words.collect::<Vec<_>>().join(", ");
    vec![Line::new("Pushes", Text::plain(format!("{words}, which no request asked for")))]
}

/// What servers said with errors, the commonest first, with a hint where a cause is known.
fn errors(document: &Document) -> Vec<Line> {
    let answered = faults(document, |fault| !fault.unanswered());
    let noreply = document.noreply_errors.unwrap_or(0);
    let mut lines = Vec::new();
    let mut add = |words: String| {
        let label = if lines.is_empty() { "Errors" } else { "" };
        lines.push(Line::new(label, Text::plain(words)));
    };
    if answered > 0 || noreply > 0 {
        let messages = commonest_messages(document);
        let told = sum(messages.iter().map(|(_, count)| *count));
        messages.iter().take(MESSAGES_MAX).for_each(|(words, count)| {
            add(format!("{} x {}", grouped(*count), cut_name(words, MESSAGE_CHARS_MAX)))
        });
        let more = messages.len().saturating_sub(MESSAGES_MAX) as u64;
        if more > 0 {
            add(counted(more, "more message"));
        }
        for fault in Fault::ALL.into_iter().filter(|fault| !fault.unanswered()) {
            let count = faults(document, |own| own == fault);
            // No server says that a reply was not expected.
            if count > 0 && fault == Fault::Unexpected {
                add(format!("{} x a reply that is not the nil that --command-expect says", grouped(count)));
            } else if count > 0 && told == 0 {
                add(format!("{} x {} error", grouped(count), fault.name()));
            }
        }
        if messages.first().is_some_and(|(words, _)| words.starts_with("WRONGTYPE")) {
            add("The keys hold another type: --key-prefix gives this run keys of its own".to_owned());
        }
    }
    if noreply > 0 {
        add(format!("{} of requests without a reply, which count as completed", grouped(noreply)));
    }
    lines
}

/// The requests that ended with a connection that was closed for another one's timeout.
fn timeouts(document: &Document) -> Vec<Line> {
    let abandoned = faults(document, |fault| fault == Fault::Abandoned);
    if abandoned == 0 {
        return Vec::new();
    }
    let timeouts = faults(document, |fault| fault == Fault::Timeout);
    let words = format!(
        "{}, and {} that {} under way on the connections that pummel closed for them",
        counted(timeouts, "request"),
        grouped(abandoned),
        was(abandoned)
    );
    vec![Line::new("Timeouts", Text::plain(words))]
}

/// The connections that servers refused.
fn refused(document: &Document) -> Vec<Line> {
    let is_resp = document.plan.protocol.is_resp();
    let words = document.connections.refusals.iter().map(|refusal| {
        let of =
            if document.plan.servers.len() > 1 { format!("{}: ", refusal.address) } else { String::new() };
        Text::plain(format!("{of}{}", refusal.words(is_resp)))
    });
    labelled("Refused", Tone::Warning, words)
}

/// The connections that were lost.
fn lost(document: &Document) -> Vec<Line> {
    let connections = &document.connections;
    // Those that pummel closed for requests that were not answered in time are told by the timeouts.
    let of_servers = faults(document, |fault| matches!(fault, Fault::Refused | Fault::Reset | Fault::Closed));
    let timeouts = faults(document, |fault| fault == Fault::Timeout);
    if connections.lost == 0 || of_servers == 0 && timeouts > 0 {
        return Vec::new();
    }
    let back = match connections.reconnected {
        0 => String::new(),
        back => format!(", {} opened again", grouped(back)),
    };
    let many = format!("{} {} lost{back}", counted(connections.lost, "connection"), was(connections.lost));
    vec![Line::new("Lost", Text::plain(many))]
}

/// The times in which the servers answered nothing, with what the other seconds were like.
fn stopped(document: &Document) -> Vec<Line> {
    let Some(first) = document.stops.first() else { return Vec::new() };
    let subject = if document.plan.servers.len() > 1 { "the servers" } else { "the server" };
    let from = seconds(first.from_s);
    let when = match document.stops.as_slice() {
        [one] if one.lasted => format!("from {from} to the end"),
        [one] => format!("from {from} to {}", seconds(one.to_s)),
        many => {
            let all_s: f64 = many.iter().map(|stop| stop.to_s - stop.from_s).sum();
            format!("{} times, first at {from}, for {} in all", many.len(), seconds(all_s))
        }
    };
    let mut words = format!("{subject} answered nothing {when}");
    let busiest = document.ops.iter().max_by_key(|(_, op)| op.completed).map_or("", |(name, _)| name);
    // The second behind a stop works off what had waited.
    let is_apart = |interval: &&IntervalResult| {
        let (from_s, to_s) = (interval.at_s, interval.at_s + interval.seconds);
        document.stops.iter().all(|stop| to_s <= stop.from_s || from_s >= stop.to_s + 1.0)
    };
    let p99 = document
        .intervals
        .iter()
        .filter(is_apart)
        .filter_map(|interval| interval.ops.get(busiest)?.times.response_us.as_ref()?.p99);
    let (least, most) = p99.fold((f64::INFINITY, 0.0_f64), |(least, most), us| (least.min(us), most.max(us)));
    if most > 0.0 {
        let of = if document.ops.iter().len() > 1 { format!(" of {busiest}") } else { String::new() };
        let (least, most) = (time(least), time(most));
        let range = if least == most { most } else { format!("{least} to {most}") };
        words += &format!(". In the other seconds p99{of} was {range}");
    }
    vec![Line::warning("Stopped", words)]
}

/// The servers that were started anew.
fn restart(document: &Document) -> Vec<Line> {
    let servers = document.evidence.iter().flat_map(|seen| &seen.servers);
    let restarted = servers.filter_map(|server| {
        let reading = server.reading.as_ref().filter(|reading| reading.restarted)?;
        let up = reading
            .uptime_s
            .map_or_else(String::new, |up_s| format!(": at the end it had been up for {up_s} s"));
        Some(format!("{} started anew during the run{up}", server.address))
    });
    labelled("Restart", Tone::Warning, restarted.map(Text::plain))
}

/// The requests that were due and never sent, or had no reply at the end.
fn unsent(document: &Document) -> Vec<Line> {
    let totals = &document.totals;
    let mut parts = Vec::new();
    if totals.unsent > 0 {
        parts.push(format!("{} of {}", grouped(totals.unsent), counted(totals.requests, "request")));
    }
    if totals.unfinished > 0 {
        parts.push(format!("{} without a reply at the end", grouped(totals.unfinished)));
    }
    if let Some(skipped) = totals.skipped.filter(|skipped| *skipped > 0) {
        parts.push(format!("{} left out because they were late", grouped(skipped)));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    // Requests without a reply were sent.
    let label = if totals.unsent > 0 || totals.unfinished == 0 { "Unsent" } else { "No reply" };
    vec![Line::new(label, Text::plain(parts.join(", and ")))]
}

/// The misses with their causes, where those are known.
fn misses(document: &Document) -> Vec<Line> {
    let unexpected = document.unexpected_misses_words().map(|words| Line::warning("Misses", words));
    let by_cause = document.misses_words().map(|words| Line::new("Misses", Text::plain(words)));
    unexpected.into_iter().chain(by_cause).collect()
}

/// The commands that found nothing and read what nothing of the run stored.
fn without_data(document: &Document) -> Vec<Line> {
    let commands = document.plan.commands_without_data();
    let found_nothing = |name: &str| {
        let op = document.ops.iter().find(|(other, _)| *other == name);
        op.is_some_and(|(_, op)| op.hits == 0 && op.requests > 0)
    };
    let commands = commands.iter().filter(|command| found_nothing(command.name));
    labelled(
        "Commands",
        Tone::Warning,
        commands.map(|command| Text::plain(words::commands::without_data(command))),
    )
}

/// The command whose keys were not there by the servers' counts alone.
fn untold_misses(document: &Document) -> Vec<Line> {
    let told = document.evidence.as_ref().and_then(|evidence| evidence.untold_misses.as_ref());
    let words = told.and_then(|told| Some(words::commands::untold_misses(&told.command, told.share?)));
    words.into_iter().map(|words| Line::warning("Misses", words)).collect()
}

/// The operations of which some requests were answered and stored or found nothing.
fn outcomes(document: &Document) -> Vec<Line> {
    let named = |others: OtherOutcomes| (others.op.clone(), others);
    outcome_lines(document.other_outcomes().into_iter().map(named))
}

/// A line for each of some operations, with their names, of which some requests stored or found nothing. Those of which nearly all did so
/// come first: their times are not what their names say.
pub(in crate::view) fn outcome_lines(named: impl Iterator<Item = (String, OtherOutcomes)>) -> Vec<Line> {
    let mut told: Vec<(String, OtherOutcomes)> = named.filter(|(_, others)| others.all() > 0).collect();
    told.sort_by_key(|(_, others)| !others.is_nearly_all());
    let is_warning = told.first().is_some_and(|(_, others)| others.is_nearly_all());
    let words = told.iter().map(|(name, others)| other_outcomes(name, others));
    labelled("Outcomes", if is_warning { Tone::Warning } else { Tone::Plain }, words.map(Text::plain))
}

/// The agents that were lost, or left before the end.
fn agents(document: &Document) -> Vec<Line> {
    let members = document.agents.iter().flat_map(|agents| &agents.members);
    let lost = members.filter_map(|member| {
        let lost = member.lost.as_ref()?;
        let how = if lost.left { "left" } else { "was lost" };
        Some(Text::plain(match lost.at_s {
            Some(at_s) => {
                let at = seconds(at_s);
                format!("{} {how} at {at} ({}); its requests until then are counted", member.name, lost.why)
            }
            None => format!("{} {how} before the measurement ({})", member.name, lost.why),
        }))
    });
    labelled("Agents", Tone::Warning, lost)
}

/// The server that has more than its part of the requests, or is slower than the others.
fn servers(document: &Document) -> Vec<Line> {
    let servers: Vec<&ServerRequestsResult> =
        document.servers.iter().filter(|server| serves(document, server)).collect();
    if servers.len() < 2 {
        return Vec::new();
    }
    let completed: Vec<Option<f64>> = servers.iter().map(|server| Some(server.completed as f64)).collect();
    let all = sum(servers.iter().map(|server| server.completed));
    let requests = out_of_balance(&completed).map(|(most, mean)| {
        let mean = share((mean.round() as u64).min(all), all);
        (most, format!("got {} of the requests (mean {mean})", share(servers[most].completed, all)))
    });
    let cpus: Vec<Option<f64>> = servers.iter().map(|server| cpus_of(document, &server.address)).collect();
    let cpu = out_of_balance(&cpus).map(|(most, mean)| {
        let [most_share, mean] = [cpus[most].unwrap_or(0.0), mean].map(percent);
        (most, format!("used {most_share} of a CPU (mean {mean})"))
    });
    let tails: Vec<Option<f64>> = servers.iter().map(|server| server.service_us.p99).collect();
    let tail = out_of_balance(&tails).map(|(most, mean)| {
        (most, format!("took {} at p99 (mean {})", time(tails[most].unwrap_or(0.0)), time(mean)))
    });
    let mut text = String::new();
    let mut named = None;
    for (most, words) in [requests, cpu, tail].into_iter().flatten() {
        text += &match named {
            Some(place) if place == most => format!(" and {words}"),
            Some(_) => format!("; {} {words}", servers[most].address),
            None => format!("{} {words}", servers[most].address),
        };
        named = Some(most);
    }
    if text.is_empty() { Vec::new() } else { vec![Line::new("Servers", Text::plain(text))] }
}

/// Whether a server was to have its part of the requests in the whole run. Of a cluster's nodes those are the ones that were to serve
/// reads.
fn serves(document: &Document, server: &ServerRequestsResult) -> bool {
    document.cluster.as_ref().is_none_or(|cluster| {
        let is_it = |shard: &&ShardResult| shard.node == server.address;
        let read_from = document.plan.cluster.read_from;
        cluster.shards.iter().find(is_it).is_some_and(|shard| shard.was_to_serve_reads(read_from))
    })
}

/// The place of the greatest figure and the mean of all, where it is out of balance. A figure that is not known may be any.
fn out_of_balance(figures: &[Option<f64>]) -> Option<(usize, f64)> {
    let figures: Vec<f64> = figures.iter().copied().collect::<Option<_>>()?;
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let (place, most) = figures.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1))?;
    (*most > OUT_OF_BALANCE * mean && mean > 0.0).then_some((place, mean))
}

/// CPUs that a server used while it was read, by its own account.
fn cpus_of(document: &Document, address: &str) -> Option<f64> {
    let servers = document.evidence.iter().flat_map(|seen| &seen.servers);
    let reading = servers.into_iter().find(|server| server.address == address)?.reading.as_ref()?;
    Some(reading.cpu_s? / reading.seconds).filter(|cpus| cpus.is_finite() && !reading.restarted)
}

/// The requests of others that servers answered meanwhile.
fn others(document: &Document) -> Vec<Line> {
    let readings = document.evidence.iter().flat_map(|seen| &seen.servers);
    let lines = readings.filter_map(|server| {
        let reading =
            server.reading.as_ref().filter(|reading| !reading.restarted && !reading.counters_reset)?;
        let (all, ours) = (reading.counts.requests?, reading.our_requests?);
        let others = all.saturating_sub(ours);
        (others as f64 > OTHERS_SHARE * all as f64)
            .then(|| format!("{} of the requests of {} came from others", share(others, all), server.address))
    });
    labelled("Others", Tone::Plain, lines.map(Text::plain))
}

/// The records that servers evicted; a load tells of them with its servers.
fn evicted(document: &Document) -> Vec<Line> {
    let readings =
        document.evidence.iter().flat_map(|seen| &seen.servers).filter_map(|server| server.reading.as_ref());
    let evicted = sum(readings.filter_map(|reading| reading.counts.evictions));
    if evicted == 0 || is_load(document) {
        Vec::new()
    } else {
        vec![Line::new("Evicted", Text::plain(counted(evicted, "record")))]
    }
}

/// The requests whose datagrams were lost.
fn udp(document: &Document) -> Vec<Line> {
    let Some(udp) = document.udp.filter(|udp| udp.udp_timeout > 0) else { return Vec::new() };
    let share = share(udp.udp_timeout, document.totals.requests.max(udp.udp_timeout));
    vec![Line::new("UDP", Text::plain(format!("{} given up ({share})", counted(udp.udp_timeout, "request"))))]
}

/// The change of a run that was not at one level.
pub(super) fn unsteady(document: &Document) -> Vec<Line> {
    document.unsteady_line().map(|words| Line::warning("Unsteady", words)).into_iter().collect()
}
