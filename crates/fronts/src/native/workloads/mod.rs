//! Named workloads: what production and other benchmarks ask of a cache, as values for the options of a run.

mod fitted;
mod presets;
mod profile;
mod twitter;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Day, RatePoint, RateShape, Sine};
use pummel_logic::protocol::Verb;
use pummel_logic::time::seconds;

pub use self::fitted::{Source, profile_text};
pub use self::presets::listed;
use self::profile::Refusal;
pub use self::profile::{Listed, Profile, ReadThrough};
use crate::job::{FrontInputs, UsageError};
use crate::native::options::{DataArgs, List, LoadArgs, MixArgs, RunArgs, TypedChurn};
use crate::native::typed_rate::TypedRate;
use crate::native::{Typed, options};
use crate::values::{Operation, UnreadDist, UnreadPopularity};

/// The option that names a workload.
const FLAG: &str = "--workload";

/// Whether `pummel workloads` has a workload of this name, so that no file of the name is read.
pub fn is_built_in(name: &str) -> bool {
    presets::find(name).is_some()
}

/// The profile that a name means: that of a workload that this program knows, or else that of the file with this name.
///
/// # Errors
/// Returns what is accepted instead, for a name that is neither, for a file that is no profile, and for a workload that cannot
/// be had.
pub fn profile(name: &str, inputs: &FrontInputs) -> Result<Profile, String> {
    if let Some(preset) = presets::find(name) {
        return preset.map_err(|refusal: Refusal| refusal.0);
    }
    let unknown = |why: String| {
        let near =
            presets::nearest(name).map_or_else(String::new, |near| format!(" (did you mean '{near}'?)"));
        format!(
            "expected a name that 'pummel workloads' lists, or the file of a profile{near}; as a file: {why}"
        )
    };
    let text = (inputs.read_text)(name).map_err(|error| unknown(error.to_string()))?;
    Profile::read(&text).map_err(|refusal| format!("expected the file of a profile: {}", refusal.0))
}

/// A rate over time, multiplied by this factor.
fn times_of(shape: &RateShape, times: f64) -> RateShape {
    match shape {
        RateShape::Points(points) => {
            let point = |point: &RatePoint| RatePoint { rate: times * point.rate, ..*point };
            RateShape::Points(points.iter().map(point).collect())
        }
        RateShape::Sine(sine) => {
            RateShape::Sine(Sine { mean: times * sine.mean, amplitude: times * sine.amplitude, ..*sine })
        }
        RateShape::Day(day) => RateShape::Day(Day { mean: times * day.mean, ..*day }),
    }
}

impl Typed<RunArgs> {
    /// These options with the values of their workload where nothing was typed.
    ///
    /// # Errors
    /// Returns [`UsageError`] for a workload that cannot be had.
    pub(super) fn with_workload(&self, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        let mut typed = self.clone();
        if let Some(profile) = self.named_profile(self.args.data.workload.as_deref(), inputs)? {
            self.scans_as(&profile)?;
            self.fill_data(&profile, &mut typed.args.data);
            self.fill_mix(&profile, &mut typed.args.mix);
            if let Some(TypedRate::Times(times)) = typed.args.pace.rate {
                let rate = self.rate_of(&profile)?;
                typed.args.pace.rate = Some(match &profile.rate_shape {
                    Some(shape) => TypedRate::Shape(times_of(shape, times)),
                    None => TypedRate::Constant(times * rate),
                });
            }
            if let Some(arrivals) = &profile.arrivals
                && typed.args.pace.rate.is_some()
                && !self.has("--arrivals")
            {
                typed.args.pace.arrivals = options::arrivals(arrivals).ok();
            }
            if typed.args.pace.rate.is_some() && !self.has("--burst") {
                typed.args.pace.burst = profile.burst;
            }
        }
        Ok(typed)
    }

    /// The rate of the source of a workload, in requests per second.
    fn rate_of(&self, profile: &Profile) -> Result<f64, UsageError> {
        profile.rate.ok_or_else(|| {
            let accepted = "expected a rate in requests per second: the source of this workload has none";
            self.usage("--rate", String::new(), accepted.to_owned())
        })
    }

    /// Refuses a workload with scans if `--scan-as` is missing, and `--scan-as` for a workload without scans.
    fn scans_as(&self, profile: &Profile) -> Result<(), UsageError> {
        let name = || self.args.data.workload.clone().unwrap_or_default();
        match (profile.scan, self.args.mix.scan_as) {
            (Some(_), None) if !self.has("--mix") => {
                let accepted = "expected a workload without scans: memcached has no scan, and YCSB's binding for Redis scans a \
                                sorted set beside the records. With --scan-as multiget one read of as many records stands for a scan";
                Err(self.usage(FLAG, name(), accepted.to_owned()))
            }
            (None, Some(_)) => {
                let accepted = "it is accepted only with a workload that scans, such as ycsb-e";
                Err(self.usage("--scan-as", String::new(), accepted.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn fill_mix(&self, profile: &Profile, mix: &mut MixArgs) {
        if !self.has("--mix") && !self.has("--command") {
            let ops = profile.mix.iter().map(|(verb, weight)| (Operation::Verb(*verb), *weight));
            mix.mix = Some(List(ops.collect()));
        }
        if !self.has("--popularity") {
            mix.popularity = UnreadPopularity::Ready(profile.popularity.clone());
        }
        // A mix of one's own may read nothing.
        let verb = |(operation, _): &(Operation, f64)| match operation {
            Operation::Verb(verb) => Some(*verb),
            Operation::Named(_) => None,
        };
        let verbs: Vec<Verb> = mix.mix.iter().flat_map(|ops| &ops.0).filter_map(verb).collect();
        let reads = verbs.iter().any(|verb| verb.reads() && *verb != Verb::Hget);
        if !self.has("--fresh") && reads {
            mix.fresh = profile.fresh;
        }
        if !self.has("--absent") && reads {
            mix.absent = profile.absent;
        }
        if !self.has("--churn") {
            mix.churn = profile.churn.clone().map(|churn| TypedChurn(Some(churn)));
        }
        let asks = |wanted| verbs.contains(&wanted);
        if !self.has("--read-modify-write") && asks(Verb::Get) {
            mix.read_modify_write = profile.read_modify_write;
        }
        mix.insert |= profile.insert && asks(Verb::Add);
        mix.scan = profile.scan.filter(|_| reads && mix.scan_as.is_some());
        if let (Some(ReadThrough(delay_ns)), false) = (profile.read_through, self.has("--read-through")) {
            mix.read_through = Some(UnreadDist::of_seconds(Dist::Fixed(seconds(delay_ns))));
        }
    }
}

impl Typed<LoadArgs> {
    /// These options with the values of their workload where nothing was typed.
    ///
    /// # Errors
    /// Returns [`UsageError`] for a workload that cannot be had.
    pub(super) fn with_workload(&self, inputs: &FrontInputs) -> Result<Typed<LoadArgs>, UsageError> {
        let mut typed = self.clone();
        if let Some(profile) = self.named_profile(self.args.data.workload.as_deref(), inputs)? {
            self.fill_data(&profile, &mut typed.args.data);
            if !self.has("--mix") {
                typed.args.pace.mix = List(profile.mix.clone());
            }
        }
        Ok(typed)
    }
}

impl<A> Typed<A> {
    fn named_profile(&self, name: Option<&str>, inputs: &FrontInputs) -> Result<Option<Profile>, UsageError> {
        let Some(name) = name else { return Ok(None) };
        let refused =
            |accepted| UsageError::Value { flag: FLAG.to_owned(), value: name.to_owned(), accepted };
        profile(name, inputs).map(Some).map_err(refused)
    }

    fn fill_data(&self, profile: &Profile, data: &mut DataArgs) {
        if !self.has("--records") {
            data.records = profile.records;
        }
        if !self.has("--key-prefix") {
            data.key_prefix.clone_from(&profile.key_prefix);
        }
        if !self.has("--value-size") {
            data.value_classes.clone_from(&profile.value_classes);
        }
        let dists = [
            ("--key-size", &mut data.key_size, &profile.key_size),
            ("--value-size", &mut data.value_size, &profile.value_size),
            ("--ttl", &mut data.ttl, &profile.ttl),
        ];
        for (flag, given, dist) in dists {
            if !self.has(flag) {
                given.keep(dist.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
