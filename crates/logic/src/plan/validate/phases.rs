//! Checks that each phase has work that can be done, and an end.

use super::bounds::{DEPTH_MAX, HOUR, NUMBER_MAX, YEAR, refuse, span, within};
use super::field::Field;
use super::invalid::Invalid;
use super::{requests, trace, windows};
use crate::plan::{Delete, Load, Pause, Phase, Plan, Replay, Stop, Work};
use crate::time::MILLISECOND;

/// Refuses plans without phases, and phases whose work cannot be done.
pub fn phases(plan: &Plan) -> Result<(), Invalid> {
    if plan.phases.is_empty() {
        return refuse(Field::Phases.path(), "[]", "expected at least one phase");
    }
    plan.phases.iter().enumerate().try_for_each(|(index, phase)| self::phase(index, phase))
}

fn phase(index: usize, phase: &Phase) -> Result<(), Invalid> {
    match &phase.work {
        Work::Load(load) => self::load(index, load, phase.stop),
        Work::Delete(delete) => self::delete(index, delete, phase.stop),
        Work::Pause(pause) => self::pause(index, pause, phase.stop),
        Work::Replay(replay) => self::replay(index, replay, phase.stop),
        Work::Trace(replay) => {
            if let Some(time_ns) = phase.stop.time_ns {
                span(Field::StopTime.of(index), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))?;
            }
            trace::replay(index, replay, phase.stop)
        }
        Work::Mix(mix) => {
            stop(index, phase)?;
            requests::mix(index, mix)
        }
        Work::Window(window) => {
            if !window.preset {
                stop(index, phase)?;
            }
            windows::window(index, window)
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
    if !(delete.share > 0.0 && delete.share <= 1.0) {
        let expected = "expected a share above 0 and at most 1";
        return refuse(Field::DeleteShare.of(index), delete.share, expected);
    }
    within(Field::DeleteDepth.of(index), delete.depth.into(), 1, DEPTH_MAX)
}

fn pause(index: usize, pause: &Pause, stop: Stop) -> Result<(), Invalid> {
    ends_by_itself(index, stop, "a pause")?;
    span(Field::PauseUntil.of(index), pause.until_ns, (0, "0"), (YEAR, "8760h"))
}

fn replay(index: usize, replay: &Replay, stop: Stop) -> Result<(), Invalid> {
    if let Some(delay_ns) = replay.read_through_ns {
        span(Field::ReplayReadThrough.of(index), delay_ns, (0, "0"), (HOUR, "1h"))?;
    }
    if let Some(time_ns) = stop.time_ns {
        span(Field::StopTime.of(index), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))?;
    }
    within(Field::ReplayFormat.of(index), replay.format.into(), 0, 2)
}

fn ends_by_itself(index: usize, stop: Stop, what: &str) -> Result<(), Invalid> {
    if stop == Stop::default() {
        return Ok(());
    }
    refuse(Field::Stop.of(index), "", format!("expected no stop for {what}, which ends by itself"))
}

fn stop(index: usize, phase: &Phase) -> Result<(), Invalid> {
    let stop = phase.stop;
    if stop == Stop::default() {
        let expected = "expected a time, a number of requests or both";
        return refuse(Field::Stop.of(index), "", expected);
    }
    if let Some(time_ns) = stop.time_ns {
        span(Field::StopTime.of(index), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))?;
    }
    if let Some(requests) = stop.requests {
        within(Field::StopRequests.of(index), requests, 1, NUMBER_MAX)?;
    }
    Ok(())
}
