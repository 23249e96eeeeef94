//! Options for a load that changes: the rate over the measured time, its bursts, and its parts.

use pummel_logic::arrival::RateCurve;
use pummel_logic::plan::{Changes, Part, RatePoint, RateShape, Stop};
use pummel_logic::time::{NEVER, Nanos, typed_time};

use crate::job::{FrontInputs, UsageError};
use crate::native::connection_steps::{parts_of, time_of};
use crate::native::options::{PaceArgs, RunArgs};
use crate::native::phase_file::PhaseFile;
use crate::native::typed_rate::{TypedRate, points_of};
use crate::native::{Typed, adaptive, commands};
use crate::values::ValueError;

/// The points of stages that begin with a rate.
fn points_of_stages(pace: &PaceArgs, first: f64) -> Vec<RatePoint> {
    let mut points = vec![RatePoint { at_ns: 0, rate: first }];
    let (mut at_ns, mut rate): (Nanos, f64) = (0, first);
    for stage in pace.stage.iter().flat_map(|stages| &stages.0) {
        at_ns = at_ns.saturating_add(stage.time_ns);
        rate = stage.target.unwrap_or(rate);
        points.push(RatePoint { at_ns, rate });
    }
    points
}

/// The stages that take time, as parts of the measured phase, with their rates as they were typed; `first` is that of `--rate`.
fn parts_of_stages(pace: &PaceArgs, first: &str) -> Vec<Part> {
    let stages = pace.stage.iter().flat_map(|stages| &stages.0);
    let mut at_ns: Nanos = 0;
    let mut rate = first;
    let mut parts = Vec::new();
    for (index, stage) in stages.enumerate() {
        let target = stage.words.split_once(':').map_or(rate, |(_, target)| target);
        if stage.time_ns > 0 {
            let course =
                if target == rate { format!("hold {rate}") } else { format!("ramp {rate}..{target}") };
            parts.push(Part::plain(format!("stage {}: {course}", index + 1), at_ns));
        }
        at_ns = at_ns.saturating_add(stage.time_ns);
        rate = target;
    }
    parts
}

impl Typed<RunArgs> {
    /// The rate that the options ask for, or the mean of one that changes, and what changes while the run measures. The rate is
    /// `None` in closed loop.
    ///
    /// # Errors
    /// Returns [`UsageError`] for a file that cannot be read or is no rate, and for options that do not go together.
    pub(super) fn changes(&self, inputs: &FrontInputs) -> Result<(Option<f64>, Changes), UsageError> {
        let pace = &self.args.pace;
        let burst = pace.burst;
        self.check_steps()?;
        if let Some(file) = &pace.phases {
            let points = self.points_of_phases(file)?;
            return Ok(self.shaped(
                RateShape::Points(points),
                Changes { parts: file.parts(), events: file.events(), ..Changes::default() },
            ));
        }
        let Some(typed) = &pace.rate else {
            return match burst {
                None => {
                    Ok((None, Changes { parts: parts_of(pace.connection_steps()), ..Changes::default() }))
                }
                Some(_) => Err(UsageError::Missing(
                    "'--burst' is accepted only with '--rate' or '--phases'".to_owned(),
                )),
            };
        };
        let shape = match typed {
            TypedRate::Constant(rate) if pace.stage.is_empty() => {
                let parts = parts_of(pace.connection_steps());
                return Ok((Some(*rate), Changes { burst, parts, ..Changes::default() }));
            }
            TypedRate::Constant(rate) => RateShape::Points(points_of_stages(pace, *rate)),
            _ if !pace.stage.is_empty() => {
                let accepted = "expected one rate with --stage, at which the first stage begins";
                return Err(self.unread("--rate <RATE>", &ValueError(accepted.to_owned())));
            }
            TypedRate::Times(times) => {
                let accepted =
                    format!("expected {times}x with --workload and a workload whose source has a rate");
                return Err(self.unread("--rate <RATE>", &ValueError(accepted)));
            }
            TypedRate::Line(from, to) => RateShape::Points(self.line(*from, *to)?),
            TypedRate::Shape(shape) => shape.clone(),
            TypedRate::File(path) => RateShape::Points(self.points(path, inputs)?),
        };
        let parts = match &pace.stage_connections {
            Some(steps) => parts_of(&steps.0),
            None => parts_of_stages(pace, self.word("--rate").unwrap_or_default()),
        };
        Ok(self.shaped(shape, Changes { parts, ..Changes::default() }))
    }

    /// Refuses steps of connections without an end, and a time beside steps that have one.
    fn check_steps(&self) -> Result<(), UsageError> {
        let pace = &self.args.pace;
        let Some(steps) = &pace.stage_connections else { return Ok(()) };
        let accepted = match (time_of(&steps.0), pace.time) {
            (Some(time_ns), Some(_)) => {
                let time = typed_time(time_ns);
                format!("expected no --time (-t) beside it, since its steps take {time}, or a last step without a time")
            }
            (None, None) => {
                "expected --time (-t) with it, or a time for the last step: that one lasts until the end of the run".to_owned()
            }
            _ => return Ok(()),
        };
        Err(self.unread("--stage-connections <N:TIME,...,N>", &ValueError(accepted)))
    }

    /// The mean of a rate over the measured time, and the changes with this rate and the bursts of the options.
    fn shaped(&self, shape: RateShape, changes: Changes) -> (Option<f64>, Changes) {
        let pace = &self.args.pace;
        let curve = RateCurve::of(&shape);
        let stop = Stop { time_ns: adaptive::measured_ns(pace), requests: pace.requests };
        // The rate of a phase that would never end is refused with the plan.
        let rate = match curve.length_until(stop) {
            NEVER | 0 => curve.range_until(NEVER).1,
            length_ns => curve.mean_until(length_ns),
        };
        (Some(rate), Changes { rate: Some(shape), burst: pace.burst, ..changes })
    }

    /// These options with the file of their phases read.
    ///
    /// # Errors
    /// Returns [`UsageError`] for a file that cannot be read or has no phases.
    pub(super) fn with_phases(&self, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        let mut typed = self.clone();
        if let Some(file) = &mut typed.args.pace.phases {
            let commands = commands(&self.args.mix);
            let text = (inputs.read_text)(&file.path)
                .map_err(|error| ValueError(format!("'{}' cannot be read: {error}", file.path)));
            let read = text.and_then(|text| file.read(&text, &commands));
            *file = read.map_err(|error| self.unread("--phases <FILE>", &error))?;
        }
        Ok(typed)
    }

    /// The points of phases; those without a rate have that of the command line.
    fn points_of_phases(&self, file: &PhaseFile) -> Result<Vec<RatePoint>, UsageError> {
        let base = match &self.args.pace.rate {
            None => None,
            Some(TypedRate::Constant(rate)) => Some(*rate),
            Some(_) => {
                let accepted = "expected one rate with --phases, for the phases without one";
                return Err(self.unread("--rate <RATE>", &ValueError(accepted.to_owned())));
            }
        };
        file.points(base).map_err(|error| self.unread("--phases <FILE>", &error))
    }

    /// The points of a straight line over the measured time.
    fn line(&self, from: f64, to: f64) -> Result<Vec<RatePoint>, UsageError> {
        let Some(time_ns) = adaptive::measured_ns(&self.args.pace) else {
            let accepted =
                "expected --time (-t) with a rate from one value to another, which changes over that time";
            return Err(self.unread("--rate <RATE>", &ValueError(accepted.to_owned())));
        };
        Ok(vec![RatePoint { at_ns: 0, rate: from }, RatePoint { at_ns: time_ns, rate: to }])
    }

    /// The points of the file that an option names.
    fn points(&self, path: &str, inputs: &FrontInputs) -> Result<Vec<RatePoint>, UsageError> {
        let read =
            (inputs.read_text)(path).map_err(|error| ValueError(format!("'{path}' cannot be read: {error}")));
        read.and_then(|text| points_of(&text)).map_err(|error| self.unread("--rate <RATE>", &error))
    }
}
