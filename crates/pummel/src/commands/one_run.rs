//! What is asked of one run alone, and refused where several are judged together: by an option, or by a field of a saved plan.

use clap::Arg;
use pummel_engine::run::STDIN;
use pummel_fronts::job::UsageError;
use pummel_fronts::native::{OutputArgs, RunArgs, Typed};
use pummel_logic::plan::Plan;
use pummel_report::forms::FORMS;
use pummel_report::json_layout::json_value;
use pummel_report::plan_options::given_field;

/// An option of `pummel run`, and the reason why it has no meaning for several runs.
pub type Refused = (&'static str, &'static str);

/// Refuses the first of these options that is given; `accepted` is where they are accepted, such as `without --repeat only`.
///
/// # Errors
/// Returns [`UsageError::Missing`] with the option and the reason.
pub fn refuse_options(typed: &Typed<RunArgs>, refused: &[Refused], accepted: &str) -> Result<(), UsageError> {
    match refused.iter().find(|(flag, _)| typed.has(flag)) {
        Some((flag, why)) => Err(UsageError::Missing(format!("'{flag}' is accepted {accepted}: {why}"))),
        None => Ok(()),
    }
}

/// An option as the help of a series shows it: the refused ones are hidden, with others that are accepted only together with
/// refused ones, and the forms that the result of a series does not have.
pub fn hidden_where_refused(arg: Arg, refused: &[Refused], others: &[&str]) -> Arg {
    let is_refused = arg.get_long().is_some_and(|name| {
        let is_form = FORMS.iter().any(|form| form.name == name && !form.is_of_series());
        let is_named = refused.iter().any(|(flag, _)| flag.trim_start_matches('-') == name);
        is_named || is_form || name == "parquet" || others.contains(&name)
    });
    if is_refused { arg.hide(true) } else { arg }
}

/// Refuses a saved plan that asks for what one of these options asks for. `plan` is what the options mean.
///
/// # Errors
/// Returns [`UsageError::Value`] with the file of the plan, its field and the reason.
pub fn refuse_saved(
    typed: &Typed<RunArgs>,
    plan: &Plan,
    refused: &[Refused],
    accepted: &str,
) -> Result<(), UsageError> {
    let Some(file) = &typed.args.saved.plan else { return Ok(()) };
    let plan = json_value(plan);
    match refused.iter().find_map(|(flag, why)| Some((given_field(flag, &plan)?, why))) {
        Some((field, why)) => Err(UsageError::Value {
            flag: "--plan".to_owned(),
            value: file.clone(),
            accepted: format!("expected a plan without '{field}', which is accepted {accepted}: {why}"),
        }),
        None => Ok(()),
    }
}

/// Refuses the first form of a result that a series of runs does not have.
///
/// # Errors
/// Returns [`UsageError::Missing`] with the option of the form.
pub fn refuse_forms(args: &OutputArgs) -> Result<(), UsageError> {
    let files = &args.files.0;
    let parquet = files.parquet().map(|_| "--parquet".to_owned());
    let mut of_one_run =
        files.iter().filter(|(form, _)| !form.is_of_series()).map(|(form, _)| form.flag()).chain(parquet);
    match of_one_run.next() {
        Some(flag) => Err(UsageError::Missing(format!(
            "'{flag}' is accepted with one run only, and this is a series of runs"
        ))),
        None => Ok(()),
    }
}

/// Refuses a plan that reads standard input where it is run several times.
///
/// # Errors
/// Returns [`UsageError`] for such a plan: its first run would take all that there is to read.
pub fn refuse_stdin(plan: &Plan) -> Result<(), UsageError> {
    if plan.trace().is_some_and(|replay| replay.paths.iter().any(|path| path == STDIN)) {
        return Err(UsageError::Value {
            flag: "--trace".to_owned(),
            value: STDIN.to_owned(),
            accepted:
                "expected a file: several runs are made, and the first would take all of standard input"
                    .to_owned(),
        });
    }
    Ok(())
}
