//! Checks that each phase has work that can be done, and an end.

use super::field::Field;
use super::invalid::{DEPTH_MAX, HOUR, Invalid, NUMBER_MAX, YEAR, part, refuse, refuse_if, span, within};
use super::{clients, requests};
use crate::plan::{
    Arrivals, Delete, Fills, Load, Pause, Phase, Plan, Replay, Route, Stop, TRACE_VERBS, TracePace,
    TraceReplay, Work,
};
use crate::time::{MILLISECOND, typed_time};

/// Refuses plans without phases, and phases whose work cannot be done.
pub fn phases(plan: &Plan) -> Result<(), Invalid> {
    refuse_if(plan.phases.is_empty(), Field::Phases, "[]", "expected at least one phase")?;
    plan.phases.iter().enumerate().try_for_each(|(index, phase)| self::phase(index, phase))
}

fn phase(index: usize, phase: &Phase) -> Result<(), Invalid> {
    match &phase.work {
        Work::Load(load) => self::load(index, load, phase.stop),
        Work::Delete(delete) => self::delete(index, delete, phase.stop),
        Work::Pause(pause) => self::pause(index, pause, phase.stop),
        Work::Audit(audit) => within(Field::AuditDepth.of(index), audit.depth.into(), 1, DEPTH_MAX),
        Work::Replay(replay) => self::replay(index, replay, phase.stop),
        Work::Trace(replay) => {
            stop_time(index, phase.stop)?;
            trace(index, replay, phase.stop)
        }
        Work::Mix(mix) => {
            stop(index, phase)?;
            requests::mix(index, mix)
        }
        Work::Window(window) => {
            if !window.preset {
                stop(index, phase)?;
            }
            clients::window(index, window)
        }
    }
}

fn load(index: usize, load: &Load, stop: Stop) -> Result<(), Invalid> {
    ends_by_itself(index, stop, "loading")?;
    if load.no_plain && !load.pieces && !load.counters && !load.hashes && !load.commands {
        let expected = "it is accepted beside records of another kind";
        return refuse(Field::LoadNoPlain.of(index), true, expected);
    }
    within(Field::LoadDepth.of(index), load.depth.into(), 1, DEPTH_MAX)
}

fn delete(index: usize, delete: &Delete, stop: Stop) -> Result<(), Invalid> {
    ends_by_itself(index, stop, "deleting")?;
    part(Field::DeleteShare.of(index), delete.share)?;
    within(Field::DeleteDepth.of(index), delete.depth.into(), 1, DEPTH_MAX)
}

fn pause(index: usize, pause: &Pause, stop: Stop) -> Result<(), Invalid> {
    ends_by_itself(index, stop, "a pause")?;
    span(Field::PauseFor.of(index), pause.for_ns, (0, "0"), (YEAR, "8760h"))?;
    span(Field::PauseUntil.of(index), pause.until_ns, (0, "0"), (YEAR, "8760h"))
}

fn replay(index: usize, replay: &Replay, stop: Stop) -> Result<(), Invalid> {
    if let Some(delay_ns) = replay.read_through_ns {
        span(Field::ReplayReadThrough.of(index), delay_ns, (0, "0"), (HOUR, "1h"))?;
    }
    stop_time(index, stop)?;
    within(Field::ReplayFormat.of(index), replay.format.into(), 0, 2)
}

fn ends_by_itself(index: usize, stop: Stop, what: &str) -> Result<(), Invalid> {
    if stop == Stop::default() {
        return Ok(());
    }
    refuse(Field::Stop.of(index), "", format!("expected no stop for {what}, which ends by itself"))
}

fn stop_time(index: usize, stop: Stop) -> Result<(), Invalid> {
    stop.time_ns.map_or(Ok(()), |time_ns| {
        span(Field::StopTime.of(index), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))
    })
}

fn stop(index: usize, phase: &Phase) -> Result<(), Invalid> {
    let stop = phase.stop;
    let expected = "expected a time, a number of requests or both";
    refuse_if(stop == Stop::default(), Field::Stop.of(index), "", expected)?;
    stop_time(index, stop)?;
    if let Some(requests) = stop.requests {
        within(Field::StopRequests.of(index), requests, 1, NUMBER_MAX)?;
    }
    Ok(())
}

/// Most requests that are made of one row.
const AMPLIFY_MAX: u32 = 1_000;

/// The slowest and the fastest replay.
const SPEEDS: (f64, f64) = (1e-6, 1e6);

/// The longest value of a replay in bytes.
const VALUE_MAX_BYTES: u32 = 128 << 20;

/// Most files of a trace.
const FILES_MAX: usize = 10_000;

/// Refuses a replay with numbers out of bounds.
fn trace(index: usize, replay: &TraceReplay, stop: Stop) -> Result<(), Invalid> {
    let of = |field: Field| field.of(index);
    let files = replay.paths.len();
    let expected = format!("expected 1 to {FILES_MAX} files");
    refuse_if(files == 0 || files > FILES_MAX, of(Field::Trace), files, expected)?;
    let reads_again = replay.paths.iter().any(|path| path == "-") && (files > 1 || replay.passes != 1);
    refuse_if(reads_again, of(Field::Trace), "-", "standard input is accepted alone, and once")?;
    if let TracePace::Trace { speed } = replay.pace
        && !(SPEEDS.0..=SPEEDS.1).contains(&speed)
    {
        return refuse(of(Field::TraceSpeed), speed, "expected a speed from 0.000001 to 1000000");
    }
    part(of(Field::TraceSample), replay.sample)?;
    let (copies, expected) = (replay.amplify, format!("expected 1 to {AMPLIFY_MAX} requests for each row"));
    refuse_if(!(1..=AMPLIFY_MAX).contains(&copies), of(Field::TraceAmplify), copies, expected)?;
    if let Some(to_ns) = replay.to_ns.filter(|to_ns| *to_ns <= replay.from_ns) {
        let expected =
            format!("expected a time above {}, at which the rows begin", typed_time(replay.from_ns));
        return refuse(of(Field::TraceEnd), typed_time(to_ns), expected);
    }
    let expected = "endless passes are accepted with a time or a number of requests only";
    refuse_if(replay.passes == 0 && stop == Stop::default(), of(Field::TracePasses), 0, expected)?;
    let value_max = replay.value_max_bytes;
    refuse_if(value_max > VALUE_MAX_BYTES, of(Field::TraceValueMax), value_max, "expected at most 128 MiB")?;
    map(index, replay)?;
    fills(index, replay)
}

/// Refuses operations in place of those of a trace that no row can have, and two in place of one.
fn map(index: usize, replay: &TraceReplay) -> Result<(), Invalid> {
    let field = || Field::TraceMap.of(index);
    for (place, mapped) in replay.map.iter().enumerate() {
        if let Some(unknown) = [mapped.from, mapped.to].into_iter().find(|verb| !TRACE_VERBS.contains(verb)) {
            let names: Vec<&str> = TRACE_VERBS.iter().map(|verb| verb.name()).collect();
            let expected = format!("expected operations of traces: {}", names.join(", "));
            return refuse(field(), unknown.name(), expected);
        }
        let is_twice = replay.map[..place].iter().any(|other| other.from == mapped.from);
        let expected = "expected each operation of the trace once";
        refuse_if(is_twice, field(), mapped.from.name(), expected)?;
    }
    Ok(())
}

/// Refuses delays and lengths of stores that a replay does not make or that no store can have.
fn fills(index: usize, replay: &TraceReplay) -> Result<(), Invalid> {
    let of = |field: Field| field.of(index);
    if let Some(delay) = &replay.fill_delay_s
        && (replay.fills != Fills::Own || !requests::is_delay(delay))
    {
        let expected = "expected delays of 0 or more with a mean of at most an hour, where misses of the replay are stored";
        return refuse(of(Field::TraceFillDist), delay, expected);
    }
    if let Some(size) = &replay.missing_size
        && (replay.fills != Fills::Own || size.clone().checked().is_err() || size.support().0 < 0.0)
    {
        let expected = "expected lengths of 0 or more, where misses of the replay are stored (--fills own)";
        return refuse(of(Field::TraceMissingSize), size, expected);
    }
    let delay_ns = if replay.fills == Fills::Own { replay.fill_delay_ns } else { 0 };
    span(of(Field::TraceFillDelay), delay_ns, (0, "0"), (HOUR, "1h"))
}

/// Refuses a replay together with settings that it cannot follow.
pub fn trace_fits(plan: &Plan) -> Result<(), Invalid> {
    let Some(index) = plan.phases.iter().position(|phase| matches!(phase.work, Work::Trace(_))) else {
        let is_timed = |group: &crate::plan::Group| group.arrivals == Arrivals::Trace;
        return match plan.groups.iter().position(is_timed) {
            Some(group) => {
                refuse(Field::Arrivals.of(group), "trace", "it is accepted where a trace is replayed")
            }
            None => Ok(()),
        };
    };
    let path = Field::Trace.of(index);
    let Work::Trace(first) = &plan.phases[index].work else {
        unreachable!("the phase was chosen by its work")
    };
    if let Some(mapped) = first.map.iter().find(|mapped| !plan.protocol.row().verbs.contains(&mapped.to)) {
        let expected = format!("expected an operation that {} has", plan.protocol.name());
        return refuse(Field::TraceMap.of(index), mapped.to.name(), expected);
    }
    let expected = "the same trace is accepted in all phases behind the first replay";
    for phase in &plan.phases[index + 1..] {
        refuse_if(phase.work != plan.phases[index].work, path, &phase.name, expected)?;
    }
    let is_last = |at: usize| at + 1 == plan.phases.len();
    let is_cut = |at: usize| match first.pace {
        TracePace::Fast => plan.phases[at].stop.requests.is_some() && plan.phases[at].stop.time_ns.is_none(),
        TracePace::Trace { .. } | TracePace::Rate => plan.phases[at].stop != Stop::default(),
    };
    if let Some(at) = (index..plan.phases.len()).find(|at| !is_last(*at) && !is_cut(*at)) {
        let expected = "expected a warm-up of so many rows, and one of a time where the rows have times";
        return refuse(Field::Stop.of(at), "", expected);
    }
    let expected = "expected one group of clients where a trace is replayed";
    refuse_if(plan.groups.len() > 1, path, plan.groups.len(), expected)?;
    let group = &plan.groups[0];
    let is_paced = match first.pace {
        TracePace::Trace { .. } => group.arrivals == Arrivals::Trace,
        TracePace::Fast => group.arrivals == Arrivals::Closed,
        TracePace::Rate => group.rate.is_some(),
    };
    refuse_if(!is_paced, path, &group.arrivals, "expected a pace that fits the arrivals of the clients")?;
    let expected = "expected all or cluster where a trace is replayed";
    let is_route = matches!(plan.route, Route::All | Route::Cluster);
    refuse_if(!is_route, Field::Route, plan.route.name(), expected)?;
    let expected = "expected 0 where a trace is replayed: its values are not those of records";
    refuse_if(plan.verify > 0.0, Field::Verify, plan.verify, expected)?;
    let stay = group.churn.is_none() && group.policy == crate::plan::ClientPolicy::default();
    refuse_if(!stay, path, &group.name, "expected clients that stay where a trace is replayed")
}
