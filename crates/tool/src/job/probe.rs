//! The probe of a run: its own operations with few requests in flight, made by the same runner when the run is over.

use pummel_engine::run::{Inputs, Watch};
use pummel_logic::measure::evidence::{Probe, ProbeHalf};
use pummel_logic::measure::measurement::{Measurement, Status};
use pummel_logic::measure::recorder::Span;
use pummel_logic::plan::probe::{IN_FLIGHT, half_of};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::time::Nanos;

use crate::job::runner::{Dealing, Runner};

/// A watch that shows nothing.
struct Unwatched;

impl Watch for Unwatched {}

/// Probes the server of a run that is complete, and adds what was found to its evidence. A half that could not be made leaves the
/// run without a probe.
pub fn add(
    plan: &ValidPlan,
    runner: &Runner,
    inputs: &Inputs,
    measurement: &mut Measurement,
    stop: &dyn Fn() -> bool,
) {
    if measurement.status != Status::Complete || measurement.evidence.is_none() {
        return;
    }
    let service_ns = service_p50_ns(measurement);
    let half = |in_flight| probed(plan, in_flight, service_ns, runner, inputs, stop);
    let [one, ten] = IN_FLIGHT;
    let probe = half(one).and_then(|one| Some(Probe { one, ten: half(ten)? }));
    if let Some(evidence) = &mut measurement.evidence {
        evidence.probe = probe;
    }
}

/// One half of a probe; `None` where it did not run to its end.
fn probed(
    plan: &ValidPlan,
    in_flight: u32,
    service_ns: Nanos,
    runner: &Runner,
    inputs: &Inputs,
    stop: &dyn Fn() -> bool,
) -> Option<ProbeHalf> {
    let half = half_of(plan, in_flight, service_ns)?;
    let measured = runner.run(&half, Dealing::Evenly, inputs, &mut Unwatched, stop).ok()?;
    (measured.status == Status::Complete).then(|| ProbeHalf {
        in_flight,
        completed: measured.ops().all().counts.completed,
        span_ns: measured.measured_ns.max(measured.answered_ns),
        service_p50_ns: service_p50_ns(&measured),
    })
}

/// The median of the service times of a run, in nanoseconds; 0 where it has none.
fn service_p50_ns(measurement: &Measurement) -> Nanos {
    measurement.ops().all().times.of(Span::Service).quantile(0.5).unwrap_or(0)
}
