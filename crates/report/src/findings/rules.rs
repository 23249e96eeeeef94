//! The rules for one run: facts by which it does not measure what its name says, and facts that a reader has to know.
//!
//! A figure that the result does not have leads to no fact.

use pummel_logic::plan::{Mix, Plan, Popularity, Work};
use pummel_logic::protocol::Verb;
use pummel_measure::limit::{MISSES_SHARE, Subject};
use pummel_measure::measurement::Status;
use pummel_measure::misses::means_hits;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::uncertainty::quantile_name;

use super::asked_records::asked_share;
use super::examined::{Aim, Examined, Of};
use super::fact::Fact;
use super::finding::Grade;
use crate::document::{Document, Figure, NoIntervals, ReadingResult, ReliableFigures, TrustResult};
use crate::run_figures::Lookups;
use crate::words::trust::{self, Around};

/// Fewest requests beyond a quantile that a goal is about.
const BEYOND_MIN: f64 = 10.0;

/// The share of the lookups from which on misses without a count of loaded records are found, and from which on two counts differ.
const MISSES_FOUND: f64 = 0.01;

/// The share of the requests from which on errors are a finding.
const ERRORS_FOUND: f64 = 0.01;

/// The share of the records below which evenly popular ones are a finding, and others a note.
const ASKED_FEW: f64 = 0.5;

/// The share of the records from which on all of them count as asked for.
const ASKED_ALL: f64 = 0.95;

/// Bytes of all records below which they may stay in the cache of a CPU, where no result says how large that is.
const SMALL_BYTES: f64 = (1 << 20) as f64;

/// A rule, which finds facts of a run.
type Rule = fn(&Examined<'_>) -> Vec<(Grade, Fact)>;

/// The rules, in the order in which their facts are told.
const RULES: [Rule; 16] = [
    ended,
    failures,
    client_limit,
    times,
    steadiness,
    goals,
    tail,
    misses,
    server_misses,
    untold_misses,
    nothing_done,
    evictions,
    others,
    records,
    one_thread,
    small_data,
];

/// All facts of a run.
pub(super) fn facts_of(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    RULES.into_iter().flat_map(|rule| rule(run)).collect()
}

fn finding(fact: Fact) -> Vec<(Grade, Fact)> {
    vec![(Grade::Finding, fact)]
}

fn note(fact: Fact) -> Vec<(Grade, Fact)> {
    vec![(Grade::Note, fact)]
}

/// A run that is not there, that is not whole, or that could not carry its load.
fn ended(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let (status, reason) = run.ended();
    let mut facts = Vec::new();
    if status != Status::Complete {
        facts.extend(finding(Fact::NotComplete { status, reason: reason.map(str::to_owned) }));
    }
    if matches!(run.of, Of::Nothing) {
        facts.extend(finding(Fact::NoRun));
    }
    let why = run.document().and_then(|document| document.outcome_says.clone());
    match run.outcome() {
        RunOutcome::Ok => {}
        RunOutcome::Failed => facts.extend(finding(Fact::Failed { why })),
        RunOutcome::Overloaded => facts.extend(finding(Fact::Overloaded { why })),
    }
    facts
}

/// Failed requests and wrong values.
fn failures(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let mut facts = Vec::new();
    let values = run.wrong_values();
    if values > 0 {
        facts.extend(finding(Fact::WrongValues { values }));
    }
    let requests = run.requests();
    // A run that failed, and one whose queue grew, has told so.
    let failed = run.errors().filter(|failed| *failed > 0 && run.outcome() == RunOutcome::Ok);
    if let Some(failed) = failed.filter(|_| requests > 0) {
        let is_much = failed as f64 >= ERRORS_FOUND * requests as f64;
        facts.push((
            if is_much { Grade::Finding } else { Grade::Note },
            Fact::Errors { failed, requests: requests.max(failed) },
        ));
    }
    facts
}

fn client_limit(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    match run.limit() {
        Some("generator") => finding(Fact::ClientLimit { why: run.limit_line() }),
        _ => Vec::new(),
    }
}

/// Times that are the generator's own in part.
fn times(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let mut facts = Vec::new();
    let mostly_lag: &[String] = match run.of {
        Of::Run(document) => {
            facts.extend(times_of(document));
            document.trust.as_ref().map(|trust| trust.mostly_lag.as_slice()).unwrap_or_default()
        }
        Of::Figures(_, figures) => {
            if figures.trust == Some(false) {
                let figures = figures.doubtful.clone();
                facts.extend(finding(Fact::TimesNotReliable { is_none: false, figures, why: None }));
            }
            &figures.mostly_lag
        }
        Of::Series(figures) => {
            if !figures.trust && figures.reliable != ReliableFigures::NoReplies {
                let is_none = figures.reliable == ReliableFigures::None;
                facts.extend(finding(Fact::TimesNotReliable { is_none, figures: Vec::new(), why: None }));
            }
            &[]
        }
        Of::Nothing => &[],
    };
    if facts.is_empty() {
        let of_lag = |aim: &&Aim| mostly_lag.contains(&quantile_name(aim.quantile));
        let own = run.aims.iter().filter(of_lag);
        facts.extend(own.map(|aim| (Grade::Finding, Fact::GoalOfLag { quantile: aim.quantile })));
    }
    facts
}

/// The doubt in the times of a run whose whole result is known.
fn times_of(document: &Document) -> Vec<(Grade, Fact)> {
    let is_doubtful = |trust: &&TrustResult| {
        !trust.ok && !matches!(trust.kind, ReliableFigures::NoReplies | ReliableFigures::NothingMeasured)
    };
    let Some(known) = document.trust.as_ref().filter(is_doubtful) else { return Vec::new() };
    // The line of a report may leave the cause to its line on the limit.
    let line = match document.merged.is_empty() {
        true => document.trust_line().map(|_| trust::line(known, Around::of(&document.plan))),
        false => document.trust_line(),
    };
    line.map_or_else(Vec::new, |line| {
        let why = Some(line.rest).filter(|why| !why.is_empty());
        finding(Fact::TimesNotReliable { is_none: line.is_unreliable, figures: Vec::new(), why })
    })
}

fn steadiness(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    match run.steady() {
        Some(false) => finding(Fact::NotSteady { why: run.document().and_then(Document::unsteady_line) }),
        _ => Vec::new(),
    }
}

/// Goals about quantiles of which too little is known.
fn goals(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let facts = run.aims.iter().filter_map(|aim| goal(run, aim));
    facts.map(|fact| (Grade::Finding, fact)).collect()
}

fn goal(run: &Examined<'_>, aim: &Aim) -> Option<Fact> {
    let Aim { quantile, limit_us, reached, ends } = *aim;
    let requests = run.requests();
    // What is beside a whole number by the rounding of a quantile is that number.
    let least = (BEYOND_MIN / (1.0 - quantile) * (1.0 - 1e-9)).ceil() as u64;
    if requests > 0 && requests < least {
        return Some(Fact::TooFewRequests { quantile, requests, least });
    }
    if let Figure::Above(above_us) = reached
        && above_us.is_finite()
    {
        return Some(Fact::OnlyLowerBound { quantile, above_us });
    }
    let is_short = || why_no_intervals(run) == Some(NoIntervals::Short);
    let ends = ends.map(|ends| ends.map(|end| end.filter(|us| us.is_finite())));
    let Some([low_us, high_us]) = ends.filter(|ends| ends.iter().any(Option::is_some)) else {
        let fact = Fact::NoInterval { quantile, is_goal: true, has_low_end: false };
        return is_short().then_some(fact);
    };
    let is_met = high_us.is_some_and(|high| high <= limit_us);
    let is_missed = low_us.is_some_and(|low| low > limit_us);
    (!is_met && !is_missed).then_some(Fact::Undecided { quantile, limit_us, low_us, high_us })
}

/// Reason why the figures of a run have no intervals; `None` where they have some, and where it is not known.
fn why_no_intervals(run: &Examined<'_>) -> Option<NoIntervals> {
    run.document()?.certainty_missing_kind
}

/// The 99th percentile of a run without goals, where the run was too short to say how sure it is.
fn tail(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let Some(document) = run.document().filter(|document| document.totals.completed > 0) else {
        return Vec::new();
    };
    if !run.aims.is_empty() || run.outcome() != RunOutcome::Ok {
        return Vec::new();
    }
    let of = |has_low_end| note(Fact::NoInterval { quantile: 0.99, is_goal: false, has_low_end });
    if document.certainty_missing_kind == Some(NoIntervals::Short) {
        return of(false);
    }
    let response = document.totals.times.response_us.as_ref();
    let ends = response.and_then(|times| times.ci.as_ref()?.get("p99").copied());
    let is_unanswered = response.is_some_and(|times| times.ci_unanswered.iter().any(|name| name == "p99"));
    match ends {
        Some([Some(_), None]) if !is_unanswered => of(true),
        _ => Vec::new(),
    }
}

/// The lookups of a run that means its reads to find their keys; `None` where it does not, or made none.
fn meant_hits(run: &Examined<'_>) -> Option<(Lookups, u64)> {
    run.plan.filter(|plan| means_hits(plan))?;
    let lookups = run.lookups()?;
    let keys = lookups.hits.saturating_add(lookups.misses);
    (keys > 0).then_some((lookups, keys))
}

fn misses(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let Some((lookups, keys)) = meant_hits(run) else { return Vec::new() };
    let is_more = |misses: u64, share: f64| misses as f64 > share * keys as f64;
    let loaded = run.document().and_then(|document| {
        let misses = document.unexpected_misses.filter(|misses| *misses > 0)?;
        Some((misses, document.unexpected_misses_words()))
    });
    if let Some((misses, why)) = loaded {
        let grade = if is_more(misses, MISSES_SHARE) { Grade::Finding } else { Grade::Note };
        return vec![(grade, Fact::LoadedMissed { misses, keys, why })];
    }
    let misses = lookups.misses;
    // The rule for evictions tells those misses.
    if !is_more(misses, MISSES_FOUND) || evicted(run) > 0 {
        return Vec::new();
    }
    let is_loaded = run.plan.is_some_and(loads);
    finding(Fact::Misses { misses, keys, is_loaded, why: run.document().and_then(Document::misses_words) })
}

/// Whether a plan stores its records before it measures.
fn loads(plan: &Plan) -> bool {
    plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)))
}

/// The servers' own accounts of a run; `None` where one of them gave none, or began anew.
fn readings<'a>(run: &Examined<'a>) -> Option<Vec<&'a ReadingResult>> {
    let servers = &run.document()?.evidence.as_ref()?.servers;
    let readings: Vec<&ReadingResult> =
        servers.iter().map(|server| server.reading.as_ref()).collect::<Option<_>>()?;
    let is_whole = readings.iter().all(|reading| !reading.restarted && !reading.counters_reset);
    (is_whole && !readings.is_empty()).then_some(readings)
}

/// The sum of what all servers counted; `None` where one of them does not say.
fn sum_of(readings: &[&ReadingResult], count: impl Fn(&ReadingResult) -> Option<u64>) -> Option<u64> {
    readings
        .iter()
        .map(|reading| count(reading))
        .try_fold(0, |sum: u64, more| Some(sum.saturating_add(more?)))
}

/// Misses that servers counted and replies do not show, or the other way round.
fn server_misses(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let found = || {
        let (lookups, keys) = meant_hits(run)?;
        let readings = readings(run)?;
        let counted = sum_of(&readings, |reading| reading.counts.misses)?;
        let all = sum_of(&readings, |reading| reading.counts.hits)?.saturating_add(counted);
        let bound = MISSES_FOUND * keys as f64;
        // Counts of other lookups, such as those of other clients, say nothing of this run.
        let are_ours = all.abs_diff(keys) as f64 <= bound;
        let replied = lookups.misses;
        let differ = counted.abs_diff(replied) as f64 > bound;
        (are_ours && differ).then_some(Fact::ServerMisses { counted, replied, keys })
    };
    found().map_or_else(Vec::new, finding)
}

/// Misses of a command whose replies do not tell them.
fn untold_misses(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let evidence = run.document().and_then(|document| document.evidence.as_ref());
    let Some(untold) = evidence.and_then(|evidence| evidence.untold_misses.as_ref()) else {
        return Vec::new();
    };
    let Some(share) = untold.share.filter(|share| *share > MISSES_FOUND) else { return Vec::new() };
    let fact = Fact::UntoldMisses { command: untold.command.clone(), share };
    // A command that finds nothing may be meant to.
    if run.plan.is_some_and(loads) { finding(fact) } else { note(fact) }
}

/// Operations of which nearly all requests stored or found nothing.
fn nothing_done(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let all = run.other_outcomes();
    let idle = all.iter().filter(|others| others.is_nearly_all());
    idle.map(|others| {
        let (op, without_effect, answered) = (others.op.clone(), others.all(), others.answered);
        (Grade::Finding, Fact::NothingDone { op, without_effect, answered })
    })
    .collect()
}

/// Records that servers evicted while a run was measured; 0 where it is not known.
fn evicted(run: &Examined<'_>) -> u64 {
    let evidence = run.document().and_then(|document| document.evidence.as_ref());
    let readings =
        evidence.iter().flat_map(|seen| &seen.servers).filter_map(|server| server.reading.as_ref());
    let whole = readings.filter(|reading| !reading.restarted && !reading.counters_reset);
    whole.filter_map(|reading| reading.counts.evictions).fold(0, u64::saturating_add)
}

fn evictions(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let Some((Lookups { misses, .. }, keys)) = meant_hits(run) else { return Vec::new() };
    match evicted(run) {
        0 => Vec::new(),
        evictions => finding(Fact::Evictions { evictions, misses, keys }),
    }
}

/// Other clients of the servers, as far as the table of limits calls them evidence.
fn others(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    if run.limit() == Some("others") {
        return finding(Fact::OtherClients { requests: None, share: None, why: run.limit_line() });
    }
    let verdict = run.document().and_then(|document| document.verdict.as_ref());
    let seen = verdict.iter().flat_map(|verdict| &verdict.evidence).filter_map(|seen| match seen.subject {
        Some(Subject::OtherClients { requests }) => Some((requests, seen.value?, seen.limit?)),
        _ => None,
    });
    let greatest =
        seen.filter(|(_, share, bound)| share > bound).max_by(|one, other| one.1.total_cmp(&other.1));
    greatest.map_or_else(Vec::new, |(requests, share, _)| {
        finding(Fact::OtherClients { requests: Some(requests), share: Some(share), why: None })
    })
}

/// The one mix of a plan whose measured requests are all drawn from it, and that asks for records alone.
fn only_mix(plan: &Plan) -> Option<&Mix> {
    let mut measured = plan.phases.iter().filter(|phase| phase.recorded);
    let (first, more) = (measured.next()?, measured.next());
    let Work::Mix(mix) = &first.work else { return None };
    let is_one = more.is_none() && plan.changes.parts.is_empty() && plan.changes.events.is_empty();
    let has_own_keys = mix.churn.is_some() || mix.reads_unstored() || mix.inserts || mix.scans;
    (is_one && !has_own_keys && plan.sequence().is_none()).then_some(mix)
}

/// Whether an operation is for the plain records.
fn is_of_records(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Get
            | Verb::Gets
            | Verb::Gat
            | Verb::Gats
            | Verb::Set
            | Verb::Add
            | Verb::Replace
            | Verb::Cas
            | Verb::Delete
            | Verb::Touch
            | Verb::Mset
    )
}

/// Records that were never asked for.
fn records(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let found = || {
        let plan = run.plan?;
        let mix = only_mix(plan).filter(|mix| mix.popularity_of.is_empty())?;
        if plan.groups.iter().any(|group| group.policy.same_draws) {
            return None;
        }
        let keys = keys_asked(run, mix).filter(|keys| *keys > 0)?;
        let records = plan.data.records;
        let share = asked_share(&mix.popularity, records, keys)?;
        let popularity = mix.popularity.to_string();
        let is_even = match mix.popularity {
            Popularity::Zipf { exponent } => exponent == 0.0,
            Popularity::Hot { .. } => false,
            _ => true,
        };
        let fact = Fact::RecordsNotAsked { share, records, keys, popularity, is_even };
        match (is_even, share < ASKED_FEW) {
            (true, true) => Some((Grade::Finding, fact)),
            (true, false) if share < ASKED_ALL => Some((Grade::Note, fact)),
            (false, true) => Some((Grade::Note, fact)),
            _ => None,
        }
    };
    found().into_iter().collect()
}

/// Keys of records that a run asked for; `None` where they are not known.
fn keys_asked(run: &Examined<'_>, mix: &Mix) -> Option<u64> {
    if let Some(document) = run.document() {
        let of_records = document.ops.iter().filter_map(|(name, op)| {
            let verb = Verb::from_name(name).filter(|verb| is_of_records(*verb))?;
            // A cas reads its key before it stores it: one key of one draw.
            Some(if verb == Verb::Cas { op.completed } else { op.keys.max(op.completed) })
        });
        return Some(of_records.fold(0, u64::saturating_add));
    }
    let has_one_key =
        mix.multiget <= 1 && mix.multiset <= 1 && mix.ops.iter().all(|(verb, _)| is_of_records(*verb));
    has_one_key.then(|| run.requests())
}

/// Connections of a plan; `None` where that is not known, or where they come and go.
fn connections(run: &Examined<'_>) -> Option<u64> {
    if let Of::Series(figures) = run.of
        && let Some(level) = figures.level.as_ref().filter(|level| level.of == "connections")
    {
        return Some(u64::from(level.n));
    }
    let plan = run.plan?;
    if plan.groups.iter().any(|group| group.churn.is_some()) {
        return None;
    }
    let clients = plan.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(u64::from(group.clients)));
    plan.connections_of(clients)
}

/// Whether a run has one connection; `None` where that is not known.
pub(super) fn has_one_connection(run: &Examined<'_>) -> Option<bool> {
    connections(run).map(|connections| connections == 1)
}

/// Runs whose requests all went through one thread of the server.
fn one_thread(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    if has_one_connection(run) == Some(true) {
        return note(Fact::OneConnection);
    }
    // RESP servers have one thread for commands by nature.
    if run.plan.is_none_or(|plan| plan.protocol.is_resp()) {
        return Vec::new();
    }
    let servers = run.source().servers;
    match servers.as_slice() {
        [server] if server.serving_threads == Some(1) => note(Fact::OneServingThread),
        _ => Vec::new(),
    }
}

/// Records that are so small together that they may stay in the cache of a CPU.
fn small_data(run: &Examined<'_>) -> Vec<(Grade, Fact)> {
    let Some(plan) = run.plan.filter(|plan| values_are_drawn(plan)) else { return Vec::new() };
    // What a run that asked nothing would have asked is no matter; an old result may not say what it asked.
    let is_idle = |document: &Document| document.status != Status::Complete && document.totals.completed == 0;
    if run.document().is_some_and(is_idle) {
        return Vec::new();
    }
    let asks = |mix: &Mix| mix.any_op(is_of_records);
    if !plan.mixes().any(|(number, mix)| plan.phases[number].recorded && asks(mix)) {
        return Vec::new();
    }
    let values = plan.data.value_sizes().map(|size| size.mean()).fold(0.0, f64::max);
    let bytes = plan.data.records as f64 * (plan.data.key_size.mean() + values);
    match bytes {
        bytes if bytes > 0.0 && bytes < SMALL_BYTES => {
            note(Fact::SmallData { bytes: bytes as u64, below: SMALL_BYTES as u64 })
        }
        _ => Vec::new(),
    }
}

/// Whether all values of a plan have the lengths that its data say: those of commands, traces, windows and sequences have others.
pub(super) fn values_are_drawn(plan: &Plan) -> bool {
    let draws = |work: &Work| matches!(work, Work::Load(_) | Work::Mix(_) | Work::Pause(_) | Work::Audit(_));
    let has_none = plan.commands.is_empty() && plan.load_command.is_none() && plan.dataset.is_none();
    has_none && plan.sequence().is_none() && plan.phases.iter().all(|phase| draws(&phase.work))
}
