//! The two sides of `pummel ab`, from options to jobs.

use clap::{Arg, Args};
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::outputs::Outputs;
use pummel_fronts::values;
use pummel_fronts::values::ValueError;
use pummel_fronts::values::server_uri::is_in;
use pummel_logic::plan::{Phase, Plan, Work};
use pummel_logic::secrets::masked_text;
use pummel_measure::compare::RUNS_MAX;
use pummel_report::forms::FORMS;

use crate::commands::common_options::{CommonOptions, first_line};
use crate::commands::one_run::{SeveralRuns, refuse_stdin};
use crate::job::detection::Detection;
use crate::job::series::ServerCare;
use crate::job::server_program::{refuse_datagrams, words_of};

/// How the sides differ, and how often each is measured.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sides")]
pub struct SideArgs {
    /// Servers of B, in the form of --server, which gives those of A
    #[arg(long, value_name = "SERVER", allow_hyphen_values = true)]
    pub versus: Option<String>,
    /// Options of A, in addition to the common ones, which they override
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub a: Option<String>,
    /// Options of B, in addition to the common ones, which they override
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub b: Option<String>,
    /// Program to start as the server of A
    ///
    /// Command line that is started before each run of A and ended after it, without a shell; the program must listen where
    /// --server says
    #[arg(long, value_name = "COMMAND", requires = "b_program", conflicts_with = "restart")]
    pub a_program: Option<String>,
    /// Program to start as the server of B
    ///
    /// Its command line is treated like that of A
    #[arg(long, value_name = "COMMAND", requires = "a_program")]
    pub b_program: Option<String>,
    /// Number of pairs, from 2 to 50
    ///
    /// Fewer than 6 cannot show a difference
    #[arg(long, value_name = "N", default_value = "10", value_parser = pairs, allow_hyphen_values = true)]
    pub pairs: u32,
    /// Run this shell command, which restarts the server, before each run; records are stored again
    #[arg(long, value_name = "COMMAND")]
    pub restart: Option<String>,
}

fn pairs(text: &str) -> Result<u32, ValueError> {
    values::count_within(text, 2, RUNS_MAX as u64).map(|count| count as u32)
}

/// One side, ready to be measured.
#[derive(Debug)]
pub struct SideJob {
    /// What the side is, in the user's words.
    pub label: String,
    /// Options of the side, with the protocol that its servers speak.
    pub typed: Typed<RunArgs>,
    /// Its run, without files of its own.
    pub job: Job,
    /// What its servers were found to speak.
    pub detection: Detection,
    /// What is done to its server before each run.
    pub care: ServerCare,
    /// The words of the server that is started for each run, without passwords, for results.
    pub program: Option<String>,
}

/// Asks the servers of a side which protocol they speak, where its options leave that open. A server that is not there yet
/// leaves it to its port. The server of a program is asked when the program runs.
pub type Ask<'a> = &'a dyn Fn(&Typed<RunArgs>, &FrontInputs) -> (Typed<RunArgs>, Detection);

/// The two sides that options describe.
///
/// # Errors
/// Returns [`UsageError`] where nothing differs, where a value is refused, and for an option that has no meaning for several
/// runs.
pub fn sides(
    args: &SideArgs,
    common: &CommonOptions,
    inputs: &FrontInputs,
    ask: Ask<'_>,
) -> Result<[SideJob; 2], UsageError> {
    let has_options = args.a.is_some() || args.b.is_some();
    if args.versus.is_none() && !has_options && args.a_program.is_none() {
        return Err(UsageError::Missing(
            "what differs is required: '--versus' with the servers of B, '--a' and '--b' with options of each side, or \
             '--a-program' and '--b-program' with servers to start"
                .to_owned(),
        ));
    }
    SeveralRuns::Sides.refuse_options(&common.typed)?;
    let first =
        Given { flag: "--a", options: args.a.as_deref(), servers: None, program: args.a_program.as_deref() };
    let second = Given {
        flag: "--b",
        options: args.b.as_deref(),
        servers: args.versus.as_deref(),
        program: args.b_program.as_deref(),
    };
    Ok([side(&first, args, common, (inputs, ask))?, side(&second, args, common, (inputs, ask))?])
}

/// Whether the two sides store different records on one server, so that the load of one spoils the records of the other.
pub fn share_a_server(first: &Plan, second: &Plan) -> bool {
    let loads = |plan: &Plan| -> Vec<Phase> {
        plan.phases.iter().filter(|phase| matches!(phase.work, Work::Load(_))).cloned().collect()
    };
    let is_shared = first.servers.iter().any(|server| second.servers.contains(server));
    is_shared && (first.data != second.data || loads(first) != loads(second))
}

/// What was given for one side.
struct Given<'a> {
    flag: &'static str,
    options: Option<&'a str>,
    servers: Option<&'a str>,
    program: Option<&'a str>,
}

fn side(
    given: &Given<'_>,
    args: &SideArgs,
    common: &CommonOptions,
    (inputs, ask): (&FrontInputs, Ask<'_>),
) -> Result<SideJob, UsageError> {
    let text = given.options.unwrap_or_default();
    let refused = |accepted: String| UsageError::Value {
        flag: given.flag.to_owned(),
        value: text.to_owned(),
        accepted,
    };
    let mut words = shell_words::split(text).map_err(|_| refused("a quote is not closed".to_owned()))?;
    if let Some(servers) = given.servers {
        // The server of a URI is told with the side's other options.
        let read = if is_in(servers) { Ok(Vec::new()) } else { values::servers(servers) };
        read.map_err(|error| UsageError::Value {
            flag: "--versus".to_owned(),
            value: servers.to_owned(),
            accepted: error.to_string(),
        })?;
        words.push(format!("--server={servers}"));
    }
    let typed = common.with(&words).map_err(|error| refused(first_line(&error)))?;
    refuse_of_side(given, &words, &typed)?;
    let (typed, detection) = match given.program {
        Some(_) => (typed, Detection::Unasked),
        None => ask(&typed, inputs),
    };
    let job = native::run(&typed, inputs)?;
    SeveralRuns::Sides.refuse_saved(&typed, &job.plan)?;
    refuse_stdin(&job.plan)?;
    let flag = format!("{}-program", given.flag);
    let program = given.program.map(|program| words_of(program, &flag)).transpose()?;
    if program.is_some() {
        refuse_datagrams(&job.plan, &format!("'{flag}'"))?;
    }
    let care = match (&program, &args.restart) {
        (Some(words), _) => ServerCare::Program(words.clone()),
        (None, Some(command)) => ServerCare::Restart(command.clone()),
        (None, None) => ServerCare::None,
    };
    Ok(SideJob {
        label: label(given, &job),
        typed,
        job: Job { outputs: Outputs::default(), ..job },
        detection,
        care,
        program: given.program.map(masked_text),
    })
}

/// What a side is, in the user's words without passwords: its program, its options, its servers.
fn label(given: &Given<'_>, job: &Job) -> String {
    let options = given.options.map(str::trim).filter(|options| !options.is_empty());
    let servers = job.plan.servers.join(", ");
    // A server that one side alone names is a part of what the side is.
    let server = given.servers.map(|_| servers.as_str());
    let words: Vec<&str> = given.program.into_iter().chain(server).chain(options).collect();
    let words: Vec<String> = words.into_iter().map(masked_text).collect();
    if words.is_empty() { servers } else { words.join(", ") }
}

/// Refuses options of a side that are of both: where results go, and the seed; and those that two sides do not have. `typed` are the
/// options of the side with the common ones.
fn refuse_of_side(given: &Given<'_>, words: &[String], typed: &Typed<RunArgs>) -> Result<(), UsageError> {
    // Without the common options, so that an option that is there was given by the side.
    let own = CommonOptions::flags(words).map_err(|error| UsageError::Missing(first_line(&error)))?;
    let results = FORMS.iter().map(|form| form.flag());
    let of_both =
        ["--seed", "--format", "--quiet", "--parquet"].map(str::to_owned).into_iter().chain(results);
    match of_both.into_iter().find(|flag| own.contains(flag)) {
        Some(flag) => Err(UsageError::Missing(format!(
            "'{flag}' is accepted outside of '{}' only: it applies to both sides",
            given.flag
        ))),
        None => SeveralRuns::Sides.refuse_options(typed),
    }
}

/// An option as the help of `pummel ab` shows it.
pub fn hidden_where_refused(arg: Arg) -> Arg {
    SeveralRuns::Sides.hidden_where_refused(arg)
}

#[cfg(test)]
mod tests {

    use clap::{Command, FromArgMatches};

    use super::*;
    use crate::commands::ab::AbArgs;

    fn read(words: &[&str]) -> Result<[SideJob; 2], String> {
        let command = AbArgs::augment_args(Command::new("ab").no_binary_name(true));
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let args = AbArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let inputs = FrontInputs::without_files(9);
        let ask: Ask<'_> = &|typed, _| (typed.clone(), Detection::Unasked);
        sides(&args.sides, &args.run, &inputs, ask).map_err(|error| error.to_string())
    }

    #[test]
    fn a_side_is_told_without_passwords_and_started_with_them() {
        let program = "redis-server --requirepass SECRET";
        let [first, second] =
            read(&["-s", "a", "--a-program", program, "--b-program", "redis-server"]).expect("two sides");
        assert_eq!(first.label, "redis-server --requirepass ***");
        assert_eq!(first.program.as_deref(), Some("redis-server --requirepass ***"));
        assert_eq!(second.label, "redis-server");
        let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
        assert_eq!(first.care, ServerCare::Program(words));
    }

    #[test]
    fn sides_differ_by_servers_options_or_programs() {
        let [first, second] = read(&["-s", "one", "--versus", "two:1", "-c", "3"]).expect("two sides");
        assert_eq!(first.job.plan.servers, ["one:11211"]);
        assert_eq!(
            (second.job.plan.servers.as_slice(), second.label.as_str()),
            (&["two:1".to_owned()][..], "two:1")
        );
        assert_eq!((first.job.plan.seed, second.job.plan.groups[0].clients), (9, 3));
        let [first, second] =
            read(&["-s", "one", "--a", "-c 1", "--b", "-c 2 --route 'ketama'"]).expect("two sides");
        assert_eq!((first.job.plan.groups[0].clients, second.job.plan.groups[0].clients), (1, 2));
        assert_eq!((first.label.as_str(), &first.care), ("-c 1", &ServerCare::None));
        let [first, _] =
            read(&["-s", "one", "--a-program", "old -p '1 2'", "--b-program", "new"]).expect("two sides");
        let words = ["old", "-p", "1 2"].map(str::to_owned).to_vec();
        assert_eq!((&first.care, first.label.as_str()), (&ServerCare::Program(words), "old -p '1 2'"));
    }

    #[test]
    fn sides_with_other_records_on_one_server_spoil_each_other() {
        for (words, spoil) in [
            (&["-s", "one", "--a", "-d 1", "--b", "-d 2"][..], false),
            (&["-s", "one", "--a", "--value-size 100", "--b", "--value-size 200"], true),
            (&["-s", "one", "--a", "--records 5", "--b", "--records 6 -s one,two"], true),
            (&["-s", "one", "--versus", "two", "--b", "--records 6"], false),
            (&["-s", "one", "--a", "--mix get:1", "--b", "--mix incr:1"], true),
        ] {
            let [first, second] = read(words).expect("two sides");
            assert_eq!(share_a_server(&first.job.plan, &second.job.plan), spoil, "{words:?}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused_by_name() {
        let base = ["-s", "one"];
        for (words, parts) in [
            (&[][..], &["--versus", "--a-program"][..]),
            (&["--a", "-c 'x"], &["--a", "quote"]),
            (&["--a", "--no-such"], &["--a", "pummel run", "--no-such"]),
            (&["--b", "-c many"], &["--b", "many"]),
            (&["--b", "--json x"], &["--json", "--b"]),
            (&["--b", "--seed 3"], &["--seed", "--b"]),
            (&["--a", "--goal p99:1ms"], &["--goal", "--worse"]),
            (&["--versus", "two", "--goal", "p99:1ms"], &["--goal", "--worse"]),
            (&["--versus", "two", "--interval", "1s"], &["--interval"]),
            (&["--a-program", "x"], &["--b-program"]),
            (&["--a-program", "x", "--b-program", " "], &["--b-program", "words"]),
            (&["--a-program", "x", "--b-program", "y", "--restart", "z"], &["--restart"]),
            (&["--a-program", "x", "--b-program", "y", "--udp"], &["--a-program", "--udp"]),
            (&["--versus", "x:y:z"], &["invalid value 'x:y:z' for '--versus': "]),
            (&["--versus", "two", "--pairs", "1"], &["--pairs", "from 2 to 50"]),
            (&["--versus", "two", "--worse", "p98:1%"], &["--worse", "p99.9"]),
            (&["--versus", "two", "--metric", "p98"], &["--metric", "p99.9"]),
        ] {
            let all: Vec<&str> = base.iter().chain(words).copied().collect();
            let error = read(&all).expect_err("it is refused");
            for part in parts {
                assert!(error.contains(part), "{words:?} does not say {part}: {error}");
            }
        }
    }
}
