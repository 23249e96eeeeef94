//! What is asked of one run alone, and refused where several are judged together: by an option, or by a field of a saved plan.

use clap::Arg;
use pummel_engine::run::STDIN;
use pummel_fronts::job::UsageError;
use pummel_fronts::native::{OutputArgs, RunArgs, Typed};
use pummel_logic::plan::Plan;
use pummel_report::forms::FORMS;
use pummel_report::json_layout::json_value;
use pummel_report::plan_options::given_field;

/// A command that makes several runs, or judges them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeveralRuns {
    /// `search`, `curve` and `scan`: runs of which each has its rate, or is a closed loop.
    Series,
    /// `run --repeat`: runs of one plan.
    Repeated,
    /// `ab`: runs of two sides.
    Sides,
    /// `suite`: runs that each have a result of their own.
    Suite,
}

/// The reason against options of one run.
const SEVERAL: &str = "a series makes several runs";

/// The reason against options that give requests other times than a rate does.
const NOT_TIMED: &str = "each run of a series has its rate, or is a closed loop";

/// The reason against options by which clients come and go.
const NO_RATE: &str =
    "clients that come and go make as many requests as --conn-rate and --calls-per-connection say";

/// The reason against options that judge one run, where two sides are judged.
const CHANGE: &str = "--worse and --within judge a change";

/// The reasons against options whose figures the result of several runs does not have.
const NO_INTERVALS: &str = "the result of several runs has no intervals";
const NO_STAMPS: &str = "the result of several runs has no figure of them";
const NO_TIMES: &str = "the result of several runs has the response alone";

/// The reason against the figures of one run beside a suite.
const IN_ROWS: &str = "the result of a suite has a row for each run; -v has all times";

/// The reason against the metrics of the runs of a suite.
const MIXED_RUNS: &str = "the figures of its runs would be mixed";

/// The reason against the metrics of two sides.
const MIXED: &str = "the metrics of two sides would be mixed";

/// Options of `pummel run` that have no meaning for several runs, and the reasons in a series, for repeated runs, for two sides and in
/// a suite; no reason where the option is accepted.
const REFUSED: [(&str, [&str; 4]); 19] = [
    ("--rate", [SEVERAL, "", "", ""]),
    ("--stage-connections", [SEVERAL, "", "", ""]),
    ("--phases", [SEVERAL, "", "", ""]),
    ("--pace", [NOT_TIMED, "", "", ""]),
    ("--within-second", [NOT_TIMED, "", "", ""]),
    ("--conn-rate", [NO_RATE, "", "", ""]),
    ("--calls-per-connection", [NO_RATE, "", "", ""]),
    ("--goal", ["", "", CHANGE, ""]),
    ("--fail-on", [SEVERAL, "it judges one run", CHANGE, ""]),
    ("--interval", [SEVERAL, NO_INTERVALS, NO_INTERVALS, ""]),
    (
        "--until",
        [SEVERAL, "runs that are compared have one length", "runs that are compared have one length", ""],
    ),
    (
        "--anonymous",
        ["", "the result of several runs names its servers", "the sides are told apart by their names", ""],
    ),
    ("--server-stats", ["", NO_INTERVALS, NO_INTERVALS, ""]),
    ("--stamps", ["the result of a series has no figure of them", NO_STAMPS, NO_STAMPS, ""]),
    ("--times", [SEVERAL, NO_TIMES, NO_TIMES, IN_ROWS]),
    ("--plan", [SEVERAL, "", "", ""]),
    ("--live", ["", "", "the figures of two sides would be mixed", MIXED_RUNS]),
    ("--metrics", ["", "", MIXED, MIXED_RUNS]),
    ("--push-result", ["", "", MIXED, MIXED_RUNS]),
];

impl SeveralRuns {
    /// The options that are refused, with the reasons.
    fn refused(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        REFUSED
            .iter()
            .map(move |(flag, reasons)| (*flag, reasons[self as usize]))
            .filter(|(_, why)| !why.is_empty())
    }

    /// Words for where an option is accepted that is refused here.
    fn accepted(self) -> &'static str {
        match self {
            SeveralRuns::Series | SeveralRuns::Sides | SeveralRuns::Suite => "with 'pummel run' only",
            SeveralRuns::Repeated => "without --repeat only",
        }
    }

    /// Options that are accepted only beside refused ones.
    fn beside_refused(self) -> &'static [&'static str] {
        match self {
            SeveralRuns::Series => &["burst", "max-time", "min-time", "stage"],
            SeveralRuns::Repeated => &[],
            SeveralRuns::Suite => &["metrics-linger"],
            SeveralRuns::Sides => &["max-time", "min-time", "metrics-linger"],
        }
    }

    /// Refuses the first option that has no meaning for these runs.
    ///
    /// # Errors
    /// Returns [`UsageError::Missing`] with the option and the reason.
    pub fn refuse_options(self, typed: &Typed<RunArgs>) -> Result<(), UsageError> {
        match self.refused().find(|(flag, _)| typed.has(flag)) {
            Some((flag, why)) => {
                Err(UsageError::Missing(format!("'{flag}' is accepted {}: {why}", self.accepted())))
            }
            None => Ok(()),
        }
    }

    /// An option as the help of these runs shows it: the refused ones are hidden, with others that are accepted only together with
    /// refused ones, and the forms that the result of several runs does not have.
    pub fn hidden_where_refused(self, arg: Arg) -> Arg {
        let is_refused = arg.get_long().is_some_and(|name| {
            let is_form = FORMS.iter().any(|form| form.name == name && !form.is_of_series());
            let is_named = self.refused().any(|(flag, _)| flag.trim_start_matches('-') == name);
            is_named || is_form || name == "parquet" || self.beside_refused().contains(&name)
        });
        if is_refused { arg.hide(true) } else { arg }
    }

    /// Refuses a saved plan that asks for what a refused option asks for. `plan` is what the options mean.
    ///
    /// # Errors
    /// Returns [`UsageError::Value`] with the file of the plan, its field and the reason.
    pub fn refuse_saved(self, typed: &Typed<RunArgs>, plan: &Plan) -> Result<(), UsageError> {
        let Some(file) = &typed.args.saved.plan else { return Ok(()) };
        let (plan, accepted) = (json_value(plan), self.accepted());
        match self.refused().find_map(|(flag, why)| Some((given_field(flag, &plan)?, why))) {
            Some((field, why)) => Err(UsageError::Value {
                flag: "--plan".to_owned(),
                value: file.clone(),
                accepted: format!("expected a plan without '{field}', which is accepted {accepted}: {why}"),
            }),
            None => Ok(()),
        }
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
