//! Named workloads: what production and other benchmarks ask of a cache, as values for the options of a run.

mod presets;
mod profile;
mod twitter;

pub use self::presets::listed;
use self::profile::Refusal;
pub use self::profile::{Listed, Profile, ReadThrough};
use pummel_logic::protocol::Verb;

use crate::job::{FrontInputs, UsageError};
use crate::native::options::{DataArgs, List, LoadArgs, MixArgs, RunArgs};
use crate::native::{Typed, options};

/// The option that names a workload.
const FLAG: &str = "--workload";

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
            "a name that 'pummel workloads' lists, or the file of a profile, is accepted{near}; as a file: {why}"
        )
    };
    let text = (inputs.read_text)(name).map_err(|error| unknown(error.to_string()))?;
    Profile::read(&text).map_err(|refusal| format!("the file of a profile is accepted: {}", refusal.0))
}

impl Typed<RunArgs> {
    /// These options with the values of their workload where nothing was typed.
    ///
    /// # Errors
    /// Returns [`UsageError`] for a workload that cannot be had.
    pub(super) fn with_workload(&self, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        let mut typed = self.clone();
        if let Some(profile) = self.named_profile(self.args.data.workload.as_deref(), inputs)? {
            self.fill_data(&profile, &mut typed.args.data);
            self.fill_mix(&profile, &mut typed.args.mix);
            if let Some(arrivals) = &profile.arrivals
                && typed.args.pace.rate.is_some()
                && !self.has("--arrivals")
            {
                typed.args.pace.arrivals = options::arrivals(arrivals).ok();
            }
        }
        Ok(typed)
    }

    fn fill_mix(&self, profile: &Profile, mix: &mut MixArgs) {
        if !self.has("--mix") && !self.has("--command") {
            mix.mix = Some(List(profile.mix.clone()));
        }
        if !self.has("--popularity") {
            mix.popularity = profile.popularity.clone();
        }
        // A mix of one's own may read nothing.
        let ops = mix.mix.iter().flat_map(|ops| &ops.0);
        let reads = ops.clone().any(|(verb, _)| verb.reads() && *verb != Verb::Hget);
        if !self.has("--fresh") && reads {
            mix.fresh = profile.fresh;
        }
        if !self.has("--absent") && reads {
            mix.absent = profile.absent;
        }
        if let (Some(ReadThrough(delay_ns)), false) = (profile.read_through, self.has("--read-through")) {
            mix.read_through = Some(delay_ns);
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
