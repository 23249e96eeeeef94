//! The probe of a run: its own operations with few requests in flight, made by the same runner when the run is over.

use pummel_engine::run::{Inputs, Watch};
use pummel_logic::plan::probe::{IN_FLIGHT, half_of};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::time::Nanos;
use pummel_measure::evidence::{Probe, ProbeHalf};
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::recorder::Span;
use pummel_report::words::reason;

use crate::job::runner::{Dealing, Runner};

/// A watch that shows nothing.
struct Unwatched;

impl Watch for Unwatched {}

/// Probes the server of a run that is complete, and adds what was found to its evidence.
///
/// # Errors
/// Returns why the server was not probed, as the end of a sentence.
pub fn add(
    plan: &ValidPlan,
    runner: &Runner,
    inputs: &Inputs,
    measurement: &mut Measurement,
    stop: &dyn Fn() -> bool,
) -> Result<(), String> {
    if measurement.status != Status::Complete {
        return Err("the run was not complete".to_owned());
    }
    let service_ns = service_p50_ns(measurement);
    let half = |in_flight| probed(plan, in_flight, service_ns, runner, inputs, stop);
    let [one, ten] = IN_FLIGHT;
    let probe = Probe { one: half(one)?, ten: half(ten)? };
    let evidence = measurement.evidence.as_mut().ok_or("the server was not read")?;
    evidence.probe = Some(probe);
    Ok(())
}

/// One half of a probe.
///
/// # Errors
/// Returns why the half did not run to its end.
fn probed(
    plan: &ValidPlan,
    in_flight: u32,
    service_ns: Nanos,
    runner: &Runner,
    inputs: &Inputs,
    stop: &dyn Fn() -> bool,
) -> Result<ProbeHalf, String> {
    let half = half_of(plan, in_flight, service_ns).ok_or("its requests cannot be made by so few clients")?;
    let run = runner.run(&half, &Dealing::Evenly, inputs, &mut Unwatched, stop);
    let measured = run.map_err(|error| error.to_string())?;
    if measured.status != Status::Complete {
        return Err(reason::of_run(&measured));
    }
    Ok(ProbeHalf {
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
