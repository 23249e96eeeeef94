//! `pummel ab`: two sides, measured by turns and compared.

mod common_options;
mod sides;
mod words;

use clap::Args;
use pummel_engine::sys;
use pummel_measure::compare::second_side_first;

use self::common_options::CommonOptions;
use self::sides::{SideArgs, SideJob, hidden_where_refused, share_a_server, sides};
use crate::commands::detection::detected;
use crate::commands::judge_options::JudgeArgs;
use crate::commands::run_maker::{RunMaker, SeriesEnd, SeriesStyle, ServerCare};
use crate::commands::series_files::{Reports, SeriesFiles, SeriesForm, TextOf};
use crate::detection::leaves_protocol_open;
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::job::server_program::ServerProgram;
use crate::parser_answer::answer;
use crate::stderr::say;
use pummel_engine::run::replay_of;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native;
use pummel_fronts::outputs::Outputs;
use pummel_report::comparison;
use pummel_report::comparison::{Comparison, PairCommand, Question, Side, SideSource};
use pummel_report::run_figures::RunFigures;
use pummel_report::screen::Paper;
use pummel_report::text::Detail;
use pummel_report::view::pair;
use pummel_report::view::pair::Headline;
use pummel_report::view::run::Wanted;
use pummel_report::{markdown, page, text};

/// Options of `pummel ab`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES, mut_args(hidden_where_refused))]
pub struct AbArgs {
    /// How the sides differ, and how often each is measured.
    #[command(flatten)]
    pub sides: SideArgs,
    /// How they are judged.
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// What the runs of both sides have in common.
    #[command(flatten)]
    pub run: CommonOptions,
}

const EXAMPLES: &str = "\
Each pair is one run of A and one of B with the same seed, in random order, so that a drift in the machine's speed affects both \
sides alike. The sides differ by one or more of: --versus (other servers), --a and --b (other options of `pummel run`), --a-program \
and --b-program (a server that is started for each run and ended after it).

Examples:
  pummel ab -s cache1 --versus cache2 --rate 20k -t 10s
  pummel ab -s 127.0.0.1 --a '-d 1' --b '-d 16'
  An old and a new build of a server, as a gate in a CI job:
    pummel ab -s 127.0.0.1:11311 --a-program './old -p 11311' --b-program './new -p 11311' -t 5s --worse rate:2%

Exit status:
  0    measured; no gate of --worse or --within failed
  1    a run failed, or --worse or --within cannot be judged; the report says why
  2    wrong usage; nothing was sent
  3    B is shown to be worse than --worse allows, or is not shown to be within --within, or a value
       was wrong
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

/// The forms of the result of two sides.
const FORMS: [SeriesForm<Comparison>; 4] = [
    ("json", comparison::json),
    ("csv", comparison::csv),
    ("report", page::render_pair),
    ("summary", markdown),
];

/// The comparison for the page of a job or a comment.
fn markdown(comparison: &Comparison) -> Vec<u8> {
    markdown::render(&pair::view(std::slice::from_ref(comparison), Wanted::Screen))
}

/// The comparison for people.
fn text(comparison: &Comparison, detail: Detail, paper: Paper) -> String {
    text::comparison(std::slice::from_ref(comparison), detail, paper)
}

/// Measures and compares two sides.
pub fn ab(args: &AbArgs, inputs: &FrontInputs) -> Exit {
    let jobs = match sides(&args.sides, &args.run, inputs, &detected).and_then(checked) {
        Ok(jobs) => jobs,
        Err(error) => return answer(&error.into()),
    };
    let [first, second] = jobs;
    let asked = asked(first, inputs).and_then(|first| Ok([first, asked(second, inputs)?]));
    match asked.and_then(|jobs| measure(args, jobs)) {
        Ok(exit) => exit,
        Err(end) => end.exit(),
    }
}

fn checked(sides: [SideJob; 2]) -> Result<[SideJob; 2], UsageError> {
    for side in &sides {
        check_here(&side.job)?;
    }
    let [first, second] = &sides;
    let is_shared = first.job.fleet.is_some() && first.job.fleet == second.job.fleet;
    if is_shared && replay_of(&first.job.plan) != replay_of(&second.job.plan) {
        return Err(UsageError::Missing(
            "two sides that replay different recordings are accepted without agents only".to_owned(),
        ));
    }
    Ok(sides)
}

/// The side with the protocol of its program, which is started for the detection and ended after it, if the side has a
/// program and its options leave the protocol open.
///
/// # Errors
/// Returns [`SeriesEnd`] when the program does not listen, and when no run can be made in the protocol that it speaks.
fn asked(side: SideJob, inputs: &FrontInputs) -> Result<SideJob, SeriesEnd> {
    let ServerCare::Program(words) = &side.care else { return Ok(side) };
    if !leaves_protocol_open(&side.typed) {
        return Ok(side);
    }
    // A signal ends the program too, and not this process alone.
    sys::on_interrupt()?;
    let program = ServerProgram::start(words, &side.job.plan.servers)?;
    let (typed, detection) = detected(&side.typed, inputs);
    drop(program);
    let job = Job { outputs: Outputs::default(), ..native::run(&typed, inputs)? };
    check_here(&job)?;
    Ok(SideJob { typed, job, detection, ..side })
}

/// Two sides that are being measured.
struct Experiment {
    makers: [RunMaker; 2],
    /// What is known of the servers of each.
    detections: [Detection; 2],
    labels: [String; 2],
    programs: [Option<String>; 2],
    runs: [Vec<RunFigures>; 2],
    question: Question,
    pairs: u32,
}

fn measure(args: &AbArgs, sides: [SideJob; 2]) -> Result<Exit, SeriesEnd> {
    let output = &args.run.typed.args.output;
    let is_shared = sides[0].job.fleet.is_some() && sides[0].job.fleet == sides[1].job.fleet;
    let prepare = |side: usize| {
        let other_plans = if is_shared { vec![sides[1 - side].job.plan.clone()] } else { Vec::new() };
        Driver::prepare(&sides[side].job, &Extras { other_plans, ..Extras::default() }, &SeriesStyle)
    };
    let mut drivers = vec![prepare(0).map_err(SeriesEnd::Reported)?];
    if !is_shared {
        drivers.push(prepare(1).map_err(SeriesEnd::Reported)?);
    }
    let files = SeriesFiles::prepare(output, &FORMS)?;
    let spoils = share_a_server(&sides[0].job.plan, &sides[1].job.plan);
    let maker =
        |side: &SideJob| RunMaker::new(side.job.plan.clone(), side.care.clone()).loading_always(spoils);
    let mut experiment = Experiment {
        makers: sides.each_ref().map(maker),
        detections: sides.each_ref().map(|side| side.detection.clone()),
        labels: sides.each_ref().map(|side| side.label.clone()),
        programs: sides.each_ref().map(|side| side.program.clone()),
        runs: [Vec::new(), Vec::new()],
        question: Question { loads_may_differ: true, ..args.judge.question(false) },
        pairs: args.sides.pairs,
    };
    let mut end = None;
    for pair in 0..args.sides.pairs {
        if let Err(why) = experiment.measure_pair(pair, &mut drivers, output.quiet) {
            end = Some(why);
            break;
        }
        if let Err(error) = files.checkpoint(&experiment.comparison(None)) {
            end = Some(error.into());
            break;
        }
    }
    let comparison = experiment.comparison(end.as_ref());
    let is_told = SeriesEnd::says_all(end.as_ref(), experiment.runs.iter().map(Vec::len).sum());
    let status = Headline::of(std::slice::from_ref(&comparison)).status;
    let exit = end.map_or_else(|| Exit::of_status(status), SeriesEnd::exit);
    let reports = Reports { text: (!is_told).then_some(text as TextOf<_>), markdown, json: comparison::json };
    Ok(files.finish(output, &comparison, reports, exit))
}

impl Experiment {
    /// Makes one run of each side, in the order that the seed draws.
    fn measure_pair(&mut self, pair: u32, drivers: &mut [Driver<'_>], quiet: bool) -> Result<(), SeriesEnd> {
        let seed = self.makers[0].plan().seed;
        let order = if second_side_first(seed, u64::from(pair)) { [1, 0] } else { [0, 1] };
        for side in order {
            let driver = &mut drivers[side.min(drivers.len() - 1)];
            driver.swap_detection(&mut self.detections[side]);
            let run = self.makers[side].make(driver, seed, pair);
            driver.swap_detection(&mut self.detections[side]);
            let run = run?;
            if !quiet {
                let name = ["A", "B"][side];
                say(format_args!("pair {} of {}, {name}: {}", pair + 1, self.pairs, run.line()));
            }
            self.runs[side].push(run);
        }
        Ok(())
    }

    /// What is known so far.
    fn comparison(&self, end: Option<&SeriesEnd>) -> Comparison {
        let side = |side: usize| {
            let maker = &self.makers[side];
            let source = SideSource { program: self.programs[side].clone(), ..maker.source().clone() };
            Side::new(self.labels[side].clone(), maker.plan(), source, self.runs[side].clone())
        };
        let sides = [side(0), side(1)];
        let comparison = Comparison {
            argv: told_command_line(self.makers[0].plan()),
            made_again: self.makers.iter().map(RunMaker::made_again).sum(),
            ..Comparison::of_pairs(PairCommand::Ab, sides, &self.question)
        };
        let is_interrupted = matches!(end, Some(SeriesEnd::Interrupted));
        comparison.ended(self.pairs, end.and_then(SeriesEnd::reason), is_interrupted)
    }
}
