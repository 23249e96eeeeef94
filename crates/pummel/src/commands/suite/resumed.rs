//! The result of a suite that was interrupted, as the beginning of one that goes on.

use std::path::Path;

use pummel_fronts::job::UsageError;
use pummel_logic::plan::{Plan, Route};
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
    if (stored.restarted, &stored.program) != (document.restarted, &document.program) {
        return Err(refused("its server was started or restarted in another way".to_owned()));
    }
    document.made_again = stored.made_again;
    for mut run in stored.runs {
        let Some(place) = document.runs.iter().position(|own| own.name == run.name) else {
            return Err(refused(format!("it has a run '{}', which is not to be made", run.name)));
        };
        run.results.retain(is_whole);
        let rounds = document.rounds as usize;
        if run.results.len() > rounds {
            let made = run.results.len();
            return Err(refused(format!(
                "'{}' has {made} rounds already, and --rounds is {rounds}",
                run.name
            )));
        }
        let plan = &jobs[place].job.plan;
        let differs = run.results.iter().find_map(|result| load_difference(&result.plan, plan));
        if let Some(option) = differs {
            return Err(refused(format!("its run '{}' was made with another {option}", run.name)));
        }
        let others = run.results.iter().find_map(|result| other_option(&result.plan, plan));
        if let Some(option) = others {
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

/// An option beside those of the load in which a run differs that goes on: its servers, and what it is held to. The nodes of a cluster
/// come and go.
fn other_option(made: &Plan, next: &Plan) -> Option<&'static str> {
    let is_other_server = made.servers != next.servers && next.route != Route::Cluster && !next.anonymous;
    match () {
        () if is_other_server => Some("--server"),
        () if made.goals != next.goals => Some("--goal"),
        () if made.fail_on != next.fail_on => Some("--fail-on"),
        () => None,
    }
}
