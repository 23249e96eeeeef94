//! The result of a suite that was interrupted, as the beginning of one that goes on.

use std::path::Path;

use pummel_fronts::job::UsageError;
use pummel_report::comparison::load_difference;
use pummel_report::stored::ResultDocument;
use pummel_report::suite::{SuiteDocument, is_whole};

use super::suite_job::SuiteJob;
use crate::commands::stored::load;

/// Puts the results of the file at `path` into `document`, whose runs are those of `jobs`: those that are complete, and at most as many
/// as there are rounds. A file that is not there is the result of a suite that has not begun.
///
/// # Errors
/// Returns [`UsageError`] for a file that is no result of a suite, and for one of other runs.
pub fn resumed(path: &Path, document: &mut SuiteDocument, jobs: &[SuiteJob]) -> Result<(), UsageError> {
    if !path.exists() {
        return Ok(());
    }
    let refused = |accepted: String| UsageError::Value {
        flag: "--json".to_owned(),
        value: path.display().to_string(),
        accepted: format!("expected with --resume the result of this suite: {accepted}"),
    };
    let stored = load(path).map_err(|why| refused(why.to_string()))?.stored;
    let ResultDocument::Suite(stored) = stored else {
        return Err(refused(format!("it is the result of `pummel {}`", stored.command())));
    };
    if stored.title != document.title {
        return Err(refused(format!("it is that of the suite '{}'", stored.title)));
    }
    document.made_again = stored.made_again;
    for mut run in stored.runs {
        let Some(place) = document.runs.iter().position(|own| own.name == run.name) else {
            return Err(refused(format!("it has a run '{}', which is not to be made", run.name)));
        };
        run.results.retain(is_whole);
        let rounds = document.rounds as usize;
        if run.results.len() > rounds {
            return Err(refused(format!("'{}' has been made more often than {rounds} times", run.name)));
        }
        let plan = &jobs[place].job.plan;
        let differs = run.results.iter().find_map(|result| load_difference(&result.plan, plan));
        if let Some(option) = differs {
            return Err(refused(format!("its run '{}' was made with another {option}", run.name)));
        }
        let expectations = &jobs[place].expectations;
        let own = &mut document.runs[place];
        own.expectations = match run.results.is_empty() {
            true => Vec::new(),
            false => expectations.iter().map(|expected| expected.judged(&run.results)).collect(),
        };
        (own.results, own.whole_s) = (run.results, run.whole_s);
    }
    Ok(())
}
