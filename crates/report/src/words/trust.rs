//! The words for how far the times of a run can be trusted.

use std::fmt;

use pummel_logic::plan::{Group, Plan};
use pummel_logic::time::{MICROSECOND, Nanos};
use pummel_measure::limit::{Limit, SLIP_MIN_NS, VISIBLE_SHARE};
use pummel_measure::reason::Reason;
use pummel_measure::summary::time_text;
use pummel_measure::words::{counted, percent};

use crate::document::MergedResult;
use crate::document::trust::{
    CauseResult, LagCauseResult, LagPartResult, ReliableFigures, SharedMachineResult, StallsResult, Taker,
    TrustResult,
};

/// What a sentence on trust has to know of the rest of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// All clients ask again as soon as they are answered.
    pub is_closed: bool,
    /// The limit of the run is the generator, so that the sentence on the limit names the cause and the advice.
    pub limit_has_cause: bool,
    /// The server went away or fell silent before the end, so that the times are those of a part of the run.
    pub is_cut_short: bool,
}

impl Around {
    /// The rest of the result of a run to its end, of this plan, whose limit names no generator.
    pub fn of(plan: &Plan) -> Around {
        Around {
            is_closed: plan.groups.iter().all(Group::is_closed_loop),
            limit_has_cause: false,
            is_cut_short: false,
        }
    }
}

/// The words in capitals for times of which none is reliable.
pub const UNRELIABLE: &str = "NOT RELIABLE";

/// The text behind the label `Trust`, without a line break and a full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Whether the text begins with [`UNRELIABLE`].
    pub is_unreliable: bool,
    /// The text behind those words.
    pub rest: String,
}

impl fmt::Display for Line {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.is_unreliable { UNRELIABLE } else { "" })?;
        to.write_str(&self.rest)
    }
}

/// The line on trust in the times of a run.
pub fn line(trust: &TrustResult, around: Around) -> Line {
    let is_unreliable = trust.kind == ReliableFigures::None;
    let rest = match trust.kind {
        ReliableFigures::Other => trust.says.clone(),
        ReliableFigures::NothingMeasured => "no response was measured".to_owned(),
        ReliableFigures::NoReplies => {
            "not known: so few requests were answered that neither p50 nor p99 is known".to_owned()
        }
        ReliableFigures::All => {
            let then = if around.is_cut_short { " until then" } else { "" };
            format!("reliable{then}: {OWN_DELAY} is {}", shares(trust, false, true))
        }
        ReliableFigures::UpToP99 => {
            format!("reliable up to p99: {OWN_DELAY} is {}", shares(trust, true, true))
        }
        ReliableFigures::FullClosedLoop => {
            let exception = if is_mostly_lag(trust, "p99.9") { " up to p99" } else { "" };
            format!(
                "reliable{exception}. Lag is {}: in a full closed loop replies come together and are read one after the other",
                shares(trust, false, false)
            )
        }
        ReliableFigures::P50 => tail_line(trust, around),
        ReliableFigures::None => format!(": {}", unreliable(trust, around)),
    };
    Line { is_unreliable, rest }
}

/// The line on trust in the times of a sum, from those of its parts; `None` where a part does not say.
pub fn merged(sum: &TrustResult, parts: &[MergedResult], is_closed: bool) -> Option<Line> {
    let all: Option<Vec<(&MergedResult, &TrustResult)>> =
        parts.iter().map(|part| Some((part, part.trust.as_ref()?))).collect();
    let all = all.filter(|all| !all.is_empty())?;
    let doubtful: Vec<(&MergedResult, Line)> = all
        .iter()
        .filter(|(_, trust)| !trust.ok)
        .map(|(part, trust)| (*part, line_of_part(part, trust, is_closed)))
        .collect();
    let unreliable = doubtful.iter().filter(|(_, line)| line.is_unreliable).count();
    if doubtful.is_empty() {
        let exception = if is_mostly_lag(sum, "p99.9") { " up to p99" } else { "" };
        let lag = match shares(sum, false, false) {
            shares if shares.is_empty() => String::new(),
            shares => format!(": {OWN_DELAY} is at most {shares}"),
        };
        let whole = if all.len() == 2 { "both".to_owned() } else { format!("all {}", all.len()) };
        let rest = format!("reliable{exception} in {whole} results{lag}");
        return Some(Line { is_unreliable: false, rest });
    }
    let mut sentences = vec![match unreliable {
        0 => format!("reliable in {} of {} results", all.len() - doubtful.len(), all.len()),
        count => format!(" in {count} of {} results", all.len()),
    }];
    // Behind the head, which says so, the name of a part stands in the place of the words in capitals.
    sentences.extend(doubtful.iter().take(PARTS_MAX).map(|(part, line)| match line.is_unreliable {
        true => format!("{}{}", part.file, line.rest),
        false => format!("{}: {}", part.file, line.rest),
    }));
    let more = doubtful.len().saturating_sub(PARTS_MAX);
    sentences.extend((more > 0).then(|| format!("{} in doubt", counted(more as u64, "more result"))));
    Some(Line { is_unreliable: unreliable > 0, rest: sentences.join(". ") })
}

fn line_of_part(part: &MergedResult, trust: &TrustResult, is_closed: bool) -> Line {
    let around = Around {
        is_closed,
        limit_has_cause: part.limit.as_ref().is_some_and(|limit| limit.limit == Limit::Generator.name()),
        is_cut_short: matches!(part.why, Some(Reason::ServerGone { .. })),
    };
    line(trust, around)
}

/// The most parts of a sum whose doubts are told one by one.
const PARTS_MAX: usize = 3;

/// All that is known of the trust in the times of a run: the line of the report and [`beyond_line`].
pub fn says(trust: &TrustResult, around: Around) -> String {
    let beyond = beyond_line(trust).map(|text| format!(". {text}"));
    format!("{}{}", line(trust, around), beyond.unwrap_or_default())
}

/// Sentences on single operations, waits and reading, of which the line says nothing; `None` where there are none, and where the line
/// is the text of another version.
pub fn beyond_line(trust: &TrustResult) -> Option<String> {
    if trust.kind == ReliableFigures::Other {
        return None;
    }
    let mut sentences = Vec::new();
    let is_in_table = |name: &&String| ["p50", "p99", "p99.9"].contains(&name.as_str());
    let is_doubtful = |name: &&String| trust.doubtful.iter().any(|part| part.figure == **name);
    let others: Vec<&String> =
        trust.mostly_lag.iter().filter(|name| !is_in_table(name) && !is_doubtful(name)).collect();
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|name| figure_name(name)).collect();
        sentences.push(format!("Half or more of {} is lag", joined(&names)));
    }
    let of_operation = |(operation, figures): (&str, &Vec<String>)| {
        let own: Vec<String> = figures
            .iter()
            .filter(|name| !trust.mostly_lag.contains(name))
            .map(|name| figure_name(name))
            .collect();
        (!own.is_empty()).then(|| format!("{} of {operation}", joined(&own)))
    };
    let operations: Vec<String> = trust.mostly_lag_of.iter().filter_map(of_operation).collect();
    if !operations.is_empty() {
        sentences.push(format!("Of single operations, half or more of {} is lag", joined(&operations)));
    }
    if let Some(wait) = trust.wait_behind_late.as_ref().filter(|_| !trust.doubtful.is_empty()) {
        let time = micros_text(wait.us);
        sentences
            .push(format!("Requests waited behind those that were sent late: {time} at {}", wait.figure));
    }
    if let Some(unread) = &trust.unread {
        let time = micros_text(unread.us);
        sentences.push(format!(
            "Replies lay unread for {time} at {}, which is in none of the times",
            unread.figure
        ));
    }
    if trust.reading_is_service {
        sentences.push(
            "There are no receive stamps, so service times contain the time until a reply was read"
                .to_owned(),
        );
    }
    (!sentences.is_empty()).then(|| sentences.join(". "))
}

/// Reason why response times are not reliable, as a sentence without its full stop; `None` where they are.
pub fn doubt(trust: &TrustResult) -> Option<String> {
    let about = if trust.lag_share.same_requests { "" } else { "about " };
    let part = |part: &LagPartResult| {
        let (share, figure) = (percent(part.share), figure_name(&part.figure));
        format!("{share} of {figure} ({} of {})", micros_text(part.lag_us), micros_text(part.response_us))
    };
    let parts: Vec<String> = trust.doubtful.iter().map(part).collect();
    let lag = (!parts.is_empty()).then(|| format!("lag is {about}{}", joined(&parts)));
    let wait = trust
        .wait_behind_late
        .as_ref()
        .map(|wait| format!("{} of wait behind late requests at {}", micros_text(wait.us), wait.figure));
    let all: Vec<String> = lag.into_iter().chain(wait).collect();
    (!trust.ok).then(|| format!("part of these times was added by pummel itself: {}", all.join(", ")))
}

/// Reason why a rate is not reliable, as a sentence without its full stop; `None` where it is.
pub fn rate_doubt(trust: &TrustResult) -> Option<String> {
    let lag = micros_text(trust.slowed_by_us?);
    Some(format!("the rate was limited by pummel itself, which sent each request {lag} late on average"))
}

/// The name of lag for readers who do not know the word.
const OWN_DELAY: &str = "pummel's own delay (lag)";

/// The line of times whose median alone is reliable.
fn tail_line(trust: &TrustResult, around: Around) -> String {
    let Some(named) = named_tail(trust) else { return format!("p50 is reliable; {}", waited(trust, around)) };
    let names: Vec<&str> = named.iter().map(|part| part.figure.as_str()).collect();
    let cause = cause_of(trust, &names, around);
    let mut parts: Vec<String> = named.iter().map(|part| part_text(part)).collect();
    let tail = trust.lag_share.p99_9.filter(|_| cause.is_unknown() && is_mostly_lag(trust, "p99.9"));
    parts.extend(tail.map(|share| format!("{} of p99.9 (*)", percent(share))));
    let cause = cause.text(parts.len());
    let delay = if cause.is_empty() { "pummel's own delay" } else { OWN_DELAY };
    format!("p50 is reliable; {}{} is {delay}{cause}", about(trust), joined(&parts))
}

/// The figures that a line on the tail names: the 99th percentile, or those that are doubtful without it. `None` where lag itself is
/// small everywhere.
fn named_tail(trust: &TrustResult) -> Option<Vec<&LagPartResult>> {
    let p99 = trust.doubtful.iter().find(|part| part.figure == "p99");
    let named = p99.map_or_else(|| trust.doubtful.iter().collect(), |part| vec![part]);
    (!named.is_empty()).then_some(named)
}

/// Reason why none of the times is reliable.
fn unreliable(trust: &TrustResult, around: Around) -> String {
    let at = |name: &str| trust.doubtful.iter().find(|part| part.figure == name);
    let named: Vec<&LagPartResult> = match at("p50") {
        Some(p50) => {
            let tail = at("p99").filter(|p99| p99.share >= p50.share || is_mostly_lag(trust, "p99"));
            std::iter::once(p50).chain(tail).collect()
        }
        None => named_tail(trust).unwrap_or_default(),
    };
    if named.is_empty() {
        return waited(trust, around);
    }
    let names: Vec<&str> = named.iter().map(|part| part.figure.as_str()).collect();
    let cause = cause_of(trust, &names, around).text(named.len());
    let parts: Vec<String> = named.iter().map(|part| part_text(part)).collect();
    format!("{}{} is {OWN_DELAY}{cause}", about(trust), joined(&parts))
}

/// The wait behind late requests, with its cause.
fn waited(trust: &TrustResult, around: Around) -> String {
    let Some(wait) = &trust.wait_behind_late else { return "its tail is not".to_owned() };
    let cause = cause_of(trust, &[&wait.figure], around).text(1);
    let (time, figure) = (micros_text(wait.us), &wait.figure);
    format!("requests waited {time} (at {figure}) behind others that pummel sent late{cause}")
}

fn part_text(part: &LagPartResult) -> String {
    format!("{} of {}", percent(part.share), figure_name(&part.figure))
}

/// The shares of lag in the figures that are known, such as `3 % of p50 and 8 % of p99`. A share that a reader would take for too much is
/// that of a time that is short, where the times are reliable all the same.
fn shares(trust: &TrustResult, with_tail: bool, are_short: bool) -> String {
    let shares = &trust.lag_share;
    let part = |(name, share): (&str, Option<f64>)| {
        let share = share?;
        let short = if are_short && share > VISIBLE_SHARE {
            format!(" (below {} us)", SLIP_MIN_NS / MICROSECOND)
        } else {
            String::new()
        };
        Some(format!("{} of {name}{short}", percent(share)))
    };
    let mut parts: Vec<String> =
        [("p50", shares.p50), ("p99", shares.p99)].into_iter().filter_map(part).collect();
    let tail = shares.p99_9.filter(|_| with_tail);
    parts.extend(tail.map(|share| format!("{} of p99.9 (*)", percent(share))));
    format!("{}{}", about(trust), joined(&parts))
}

/// The word before shares that are estimates.
fn about(trust: &TrustResult) -> &'static str {
    if trust.lag_share.same_requests { "" } else { "about " }
}

fn is_mostly_lag(trust: &TrustResult, figure: &str) -> bool {
    trust.mostly_lag.iter().any(|name| name == figure)
}

/// The cause of the lag in the figures of a line, as far as the line says it.
enum Cause {
    /// The sentence on the limit says it.
    SeeLimit,
    /// It is not known, and nothing is said of it: replies of a closed loop that come together wait for each other, and a run
    /// that lost its server was no usual one.
    Untold,
    /// It is not known.
    Unknown,
    /// Words behind a colon.
    Words(String),
    /// A sentence.
    Sentence(String),
}

impl Cause {
    fn is_unknown(&self) -> bool {
        matches!(self, Cause::Untold | Cause::Unknown)
    }

    /// The cause behind a statement on so many figures.
    fn text(&self, figures: usize) -> String {
        match self {
            Cause::SeeLimit => ", see Limit".to_owned(),
            Cause::Untold => String::new(),
            Cause::Unknown if figures == 1 => ", and its cause is not known".to_owned(),
            Cause::Unknown => ": its cause is not known".to_owned(),
            Cause::Words(words) => format!(": {words}"),
            Cause::Sentence(words) => format!(". {words}"),
        }
    }
}

/// The cause of the lag in these figures: the first that is known, with its figures where it is not that of all.
fn cause_of(trust: &TrustResult, figures: &[&str], around: Around) -> Cause {
    if around.limit_has_cause {
        return Cause::SeeLimit;
    }
    let is_of = |cause: &CauseResult, figure: &str| cause.figures.iter().any(|name| name == figure);
    let is_named = |cause: &&CauseResult| figures.iter().any(|figure| is_of(cause, figure));
    let known = trust.causes.iter().filter(is_named).find(|one| one.cause != LagCauseResult::Unknown);
    let Some(known) = known else {
        return if around.is_closed || around.is_cut_short { Cause::Untold } else { Cause::Unknown };
    };
    let own: Vec<String> =
        figures.iter().filter(|figure| is_of(known, figure)).map(|figure| figure_name(figure)).collect();
    let place = if own.len() < figures.len() { format!("at {} ", joined(&own)) } else { String::new() };
    match &known.cause {
        LagCauseResult::Slept { late_us, machine } => {
            let sentence = format!("{place}{}", slept(*late_us, *machine, around.is_closed));
            Cause::Sentence(capitalised(&sentence))
        }
        LagCauseResult::CpuTaken { taker, taken_s, machine, .. } => {
            Cause::Words(format!("{place}{}", taken(*taker, *taken_s, *machine)))
        }
        LagCauseResult::ThreadBusy { share } => {
            let share = percent(*share);
            Cause::Words(format!(
                "{place}its thread was busy {share} of the time. Use more threads (-T) or agents"
            ))
        }
        LagCauseResult::StoodStill { stalls } => {
            Cause::Words(format!("{place}{}, and the reason is not known", stood_still(*stalls)))
        }
        LagCauseResult::Unknown => Cause::Unknown,
    }
}

fn slept(late_us: f64, machine: SharedMachineResult, is_closed: bool) -> String {
    let until = if is_closed { "slept until replies came" } else { "slept between requests" };
    let late = if late_us >= 10.0 { format!("{late_us:.0} us") } else { micros_text(late_us) };
    match machine.servers {
        0 => format!("it {until}, and was woken {late} late each time: --wait spin"),
        servers => format!(
            "it {until}, to leave {} to {}, and was woken {late} late each time: --wait spin, or send from another machine",
            cpus_text(machine.cpus),
            servers_text(servers),
        ),
    }
}

fn taken(taker: Taker, taken_s: f64, machine: SharedMachineResult) -> String {
    let time = seconds_text(taken_s);
    match taker {
        Taker::OtherProcesses => {
            format!("other programs took pummel's CPU for {time}. Stop them, or send from another machine")
        }
        Taker::Servers => format!(
            "{} took pummel's CPU for {time}. Give each CPUs of its own (taskset, --cpus), or send from another machine",
            servers_text(machine.servers)
        ),
        Taker::Agents => {
            let agents = match machine.agents {
                0 | 1 => "the agents".to_owned(),
                agents => format!("the {agents} agents"),
            };
            match machine.servers {
                0 => format!(
                    "{agents} share {} of one machine. Run each on a machine of its own",
                    cpus_text(machine.cpus)
                ),
                servers => {
                    let cpus = if machine.cpus == 0 {
                        "CPUs".to_owned()
                    } else {
                        counted(machine.cpus.into(), "CPU")
                    };
                    format!(
                        "{agents} and {} share this machine's {cpus}. Run each on a machine of its own",
                        servers_text(servers)
                    )
                }
            }
        }
        Taker::Hypervisor => {
            format!(
                "the hypervisor gave pummel's CPU to other machines for {time}. Send from a machine that has its CPUs alone"
            )
        }
        Taker::ContainerLimit => {
            format!(
                "the CPU limit of its container held it back for {time}. Raise it, or send from another machine"
            )
        }
        Taker::OwnThreads => {
            format!(
                "its own threads, more than its CPUs, took them from each other for {time}. Use fewer (-T)"
            )
        }
        Taker::Other => format!("pummel's CPU was taken away for {time}"),
    }
}

fn stood_still(stalls: StallsResult) -> String {
    let time = seconds_text(stalls.total_s);
    match stalls.count {
        1 => format!("it stood still once, for {time}"),
        count => format!("it stood still {}, for {time} in all", counted(count, "time")),
    }
}

fn servers_text(servers: usize) -> &'static str {
    if servers > 1 { "the servers" } else { "the server" }
}

fn cpus_text(cpus: u32) -> String {
    match cpus {
        0 => "the CPUs".to_owned(),
        1 => "the only CPU".to_owned(),
        cpus => format!("the {cpus} CPUs"),
    }
}

fn figure_name(name: &str) -> String {
    if name == "mean" { "the mean".to_owned() } else { name.to_owned() }
}

/// Words joined in a sentence: `a`, `a and b`, `a, b and c`.
fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

fn micros_text(us: f64) -> String {
    time_text((us * 1e3).round() as Nanos)
}

fn seconds_text(seconds: f64) -> String {
    time_text((seconds * 1e9).round() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::trust::{LagShareResult, TimeAt};

    const OPEN: Around = Around { is_closed: false, limit_has_cause: false, is_cut_short: false };
    const CLOSED: Around = Around { is_closed: true, ..OPEN };
    const LIMITED: Around = Around { limit_has_cause: true, ..CLOSED };
    const CUT_SHORT: Around = Around { is_cut_short: true, ..OPEN };
    const HERE: SharedMachineResult = SharedMachineResult { cpus: 2, agents: 0, servers: 1 };
    const AWAY: SharedMachineResult = SharedMachineResult { cpus: 2, agents: 0, servers: 0 };

    /// Facts with these shares of lag in percent at p50, p99 and p99.9; what is half or more is marked.
    fn facts(kind: ReliableFigures, shares: [Option<f64>; 3]) -> TrustResult {
        let [p50, p99, p99_9] = shares.map(|percent| percent.map(|percent| percent / 100.0));
        let figures = [("p50", p50), ("p99", p99), ("p99.9", p99_9)];
        let share = |known: &(&str, Option<f64>)| Some((known.0.to_owned(), known.1?));
        let known: Vec<(String, f64)> = figures.iter().filter_map(share).collect();
        let doubtful = match kind {
            ReliableFigures::P50 => &["p99"][..],
            ReliableFigures::None => &["p50", "p99"],
            _ => &[],
        };
        TrustResult {
            ok: doubtful.is_empty(),
            kind,
            lag_share: LagShareResult { mean: None, p50, p99, p99_9, same_requests: true },
            doubtful: known
                .iter()
                .filter(|(name, _)| doubtful.contains(&name.as_str()))
                .map(|(name, share)| LagPartResult {
                    figure: name.clone(),
                    share: *share,
                    lag_us: share * 200.0,
                    response_us: 200.0,
                })
                .collect(),
            mostly_lag: known
                .iter()
                .filter(|(_, share)| *share >= 0.5)
                .map(|(name, _)| name.clone())
                .collect(),
            ..TrustResult::default()
        }
    }

    fn caused(trust: TrustResult, figures: &[&str], cause: LagCauseResult) -> TrustResult {
        let figures = figures.iter().map(|figure| (*figure).to_owned()).collect();
        TrustResult { causes: vec![CauseResult { figures, cause }], ..trust }
    }

    fn taken(taker: Taker, taken_s: f64, machine: SharedMachineResult) -> LagCauseResult {
        LagCauseResult::CpuTaken { taker, taken_s, stalls: StallsResult::default(), machine }
    }

    #[test]
    fn times_are_reliable_with_the_share_of_lag() {
        let all = |shares| facts(ReliableFigures::All, shares);
        let rows = [
            (
                all([Some(3.0), Some(8.0), Some(20.0)]),
                OPEN,
                "reliable: pummel's own delay (lag) is 3 % of p50 and 8 % of p99",
            ),
            (
                all([Some(0.3), Some(5.0), None]),
                CLOSED,
                "reliable: pummel's own delay (lag) is 0.3 % of p50 and 5 % of p99",
            ),
            (all([Some(0.01), None, None]), OPEN, "reliable: pummel's own delay (lag) is below 0.1 % of p50"),
            (
                all([Some(6.0), Some(0.0), None]),
                OPEN,
                "reliable: pummel's own delay (lag) is 6 % of p50 and 0 % of p99",
            ),
            (
                all([Some(9.0), None, None]),
                CUT_SHORT,
                "reliable until then: pummel's own delay (lag) is 9 % of p50",
            ),
            (
                facts(ReliableFigures::UpToP99, [Some(3.0), Some(9.0), Some(84.0)]),
                OPEN,
                "reliable up to p99: pummel's own delay (lag) is 3 % of p50, 9 % of p99 and 84 % of p99.9 (*)",
            ),
            (
                all([Some(29.0), Some(9.0), Some(12.0)]),
                OPEN,
                "reliable: pummel's own delay (lag) is 29 % of p50 (below 20 us) and 9 % of p99",
            ),
            (
                facts(ReliableFigures::FullClosedLoop, [Some(8.0), Some(19.0), Some(70.0)]),
                CLOSED,
                "reliable up to p99. Lag is 8 % of p50 and 19 % of p99: in a full closed loop replies come together and are \
                 read one after the other",
            ),
            (
                facts(ReliableFigures::FullClosedLoop, [Some(8.0), Some(19.0), Some(40.0)]),
                CLOSED,
                "reliable. Lag is 8 % of p50 and 19 % of p99: in a full closed loop replies come together and are read one \
                 after the other",
            ),
        ];
        for (trust, around, expected) in rows {
            assert_eq!(line(&trust, around).to_string(), expected);
        }
        let mut estimated = all([Some(3.0), Some(8.0), None]);
        estimated.lag_share.same_requests = false;
        assert_eq!(
            line(&estimated, OPEN).to_string(),
            "reliable: pummel's own delay (lag) is about 3 % of p50 and 8 % of p99"
        );
    }

    #[test]
    fn a_tail_that_is_lag_is_named_with_its_cause() {
        let tail = |p99, p99_9| facts(ReliableFigures::P50, [Some(3.0), Some(p99), Some(p99_9)]);
        let agents = SharedMachineResult { agents: 3, ..HERE };
        let rows = [
            (
                tail(21.0, 40.0),
                OPEN,
                "p50 is reliable; 21 % of p99 is pummel's own delay (lag), and its cause is not known",
            ),
            (
                tail(55.0, 82.0),
                OPEN,
                "p50 is reliable; 55 % of p99 and 82 % of p99.9 (*) is pummel's own delay (lag): its cause is not known",
            ),
            (
                tail(11.0, 74.0),
                CUT_SHORT,
                "p50 is reliable; 11 % of p99 and 74 % of p99.9 (*) is pummel's own delay",
            ),
            (
                caused(tail(85.0, 90.0), &["p99", "p99.9"], taken(Taker::OtherProcesses, 0.354, HERE)),
                OPEN,
                "p50 is reliable; 85 % of p99 is pummel's own delay (lag): other programs took pummel's CPU for 354 ms. Stop them, \
                 or send from another machine",
            ),
            (
                caused(tail(33.0, 40.0), &["p99"], taken(Taker::Agents, 1.2, agents)),
                OPEN,
                "p50 is reliable; 33 % of p99 is pummel's own delay (lag): the 3 agents and the server share this machine's 2 \
                 CPUs. Run each on a machine of its own",
            ),
            (
                caused(
                    tail(60.0, 40.0),
                    &["p99"],
                    LagCauseResult::StoodStill { stalls: StallsResult { count: 1, total_s: 0.08 } },
                ),
                OPEN,
                "p50 is reliable; 60 % of p99 is pummel's own delay (lag): it stood still once, for 80.0 ms, and the reason is \
                 not known",
            ),
            (
                caused(tail(60.0, 40.0), &["p99"], LagCauseResult::ThreadBusy { share: 0.95 }),
                OPEN,
                "p50 is reliable; 60 % of p99 is pummel's own delay (lag): its thread was busy 95 % of the time. Use more \
                 threads (-T) or agents",
            ),
            (
                caused(tail(60.0, 40.0), &["p99"], taken(Taker::Hypervisor, 0.07, AWAY)),
                OPEN,
                "p50 is reliable; 60 % of p99 is pummel's own delay (lag): the hypervisor gave pummel's CPU to other machines for \
                 70.0 ms. Send from a machine that has its CPUs alone",
            ),
        ];
        for (trust, around, expected) in rows {
            assert_eq!(line(&trust, around).to_string(), expected);
        }
    }

    #[test]
    fn a_median_that_is_lag_is_not_reliable() {
        let median = |p50, p99| facts(ReliableFigures::None, [Some(p50), Some(p99), Some(30.0)]);
        let slept = |machine| LagCauseResult::Slept { late_us: 18.2, machine };
        let four = SharedMachineResult { servers: 4, ..HERE };
        let rows = [
            (median(95.0, 30.0), LIMITED, "NOT RELIABLE: 95 % of p50 is pummel's own delay (lag), see Limit"),
            (median(89.0, 30.0), CLOSED, "NOT RELIABLE: 89 % of p50 is pummel's own delay (lag)"),
            (
                caused(median(54.0, 63.0), &["p50", "p99"], slept(four)),
                OPEN,
                "NOT RELIABLE: 54 % of p50 and 63 % of p99 is pummel's own delay (lag). It slept between requests, to leave \
                 the 2 CPUs to the servers, and was woken 18 us late each time: --wait spin, or send from another machine",
            ),
            (
                caused(median(54.0, 63.0), &["p50"], slept(AWAY)),
                CLOSED,
                "NOT RELIABLE: 54 % of p50 and 63 % of p99 is pummel's own delay (lag). At p50 it slept until replies came, \
                 and was woken 18 us late each time: --wait spin",
            ),
            (
                median(54.0, 63.0),
                OPEN,
                "NOT RELIABLE: 54 % of p50 and 63 % of p99 is pummel's own delay (lag): its cause is not known",
            ),
            (
                caused(median(15.0, 30.0), &["p50", "p99"], taken(Taker::Servers, 2.0, HERE)),
                OPEN,
                "NOT RELIABLE: 15 % of p50 and 30 % of p99 is pummel's own delay (lag): the server took pummel's CPU for 2.00 s. \
                 Give each CPUs of its own (taskset, --cpus), or send from another machine",
            ),
        ];
        for (trust, around, expected) in rows {
            assert_eq!(line(&trust, around).to_string(), expected);
        }
    }

    #[test]
    fn waits_behind_late_requests_stand_for_themselves_where_lag_is_small() {
        let wait = Some(TimeAt { figure: "p99".to_owned(), us: 1_200.0 });
        let behind = TrustResult {
            ok: false,
            doubtful: Vec::new(),
            wait_behind_late: wait.clone(),
            ..facts(ReliableFigures::P50, [Some(3.0), Some(8.0), None])
        };
        assert_eq!(
            line(&behind, OPEN).to_string(),
            "p50 is reliable; requests waited 1.20 ms (at p99) behind others that pummel sent late, and its cause is not known"
        );
        let both = TrustResult {
            wait_behind_late: wait,
            ..facts(ReliableFigures::P50, [Some(3.0), Some(21.0), None])
        };
        assert_eq!(
            says(&both, OPEN),
            "p50 is reliable; 21 % of p99 is pummel's own delay (lag), and its cause is not known. Requests waited behind those \
             that were sent late: 1.20 ms at p99"
        );
        assert_eq!(
            doubt(&both).as_deref(),
            Some(
                "part of these times was added by pummel itself: lag is 21 % of p99 (42.0 us of 200 us), 1.20 ms of wait behind \
                 late requests at p99"
            )
        );
        assert_eq!(doubt(&facts(ReliableFigures::All, [Some(3.0), None, None])), None);
        let slowed = TrustResult { slowed_by_us: Some(60.0), ..TrustResult::default() };
        assert_eq!(
            rate_doubt(&slowed).as_deref(),
            Some("the rate was limited by pummel itself, which sent each request 60.0 us late on average")
        );
    }

    #[test]
    fn what_a_reader_may_ask_next_follows_the_line() {
        let trust = TrustResult {
            mostly_lag: vec!["p99.9".to_owned(), "max".to_owned()],
            mostly_lag_of: [
                ("get", vec!["p99.9".to_owned()]),
                ("set", vec!["p99".to_owned(), "max".to_owned()]),
            ]
            .into_iter()
            .collect(),
            unread: Some(TimeAt { figure: "p50".to_owned(), us: 1_000.0 }),
            reading_is_service: true,
            ..facts(ReliableFigures::UpToP99, [Some(3.0), Some(9.0), Some(84.0)])
        };
        assert_eq!(
            says(&trust, OPEN),
            "reliable up to p99: pummel's own delay (lag) is 3 % of p50, 9 % of p99 and 84 % of p99.9 (*). Half or more of max is \
             lag. Of single operations, half or more of p99 of set is lag. Replies lay unread for 1.00 ms at p50, which is in \
             none of the times. There are no receive stamps, so service times contain the time until a reply was read"
        );
        let beyond = beyond_line(&trust).expect("there is more");
        assert!(beyond.starts_with("Half or more of max is lag. Of single operations"), "{beyond}");
        assert_eq!(
            beyond_line(&facts(ReliableFigures::All, [Some(3.0), None, None])),
            None,
            "the line says all"
        );
        let none = |kind| line(&TrustResult { kind, ..TrustResult::default() }, OPEN).to_string();
        assert_eq!(none(ReliableFigures::NothingMeasured), "no response was measured");
        let unknown = "not known: so few requests were answered that neither p50 nor p99 is known";
        assert_eq!(none(ReliableFigures::NoReplies), unknown);
        let other = TrustResult { says: "Times are reliable.".to_owned(), ..TrustResult::default() };
        assert_eq!(line(&other, OPEN).to_string(), "Times are reliable.", "a result of another version");
    }
}
