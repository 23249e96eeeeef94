//! `pummel ab`: two sides, measured by turns and compared.

mod sides;

use clap::Args;
use pummel_engine::run::replay_of;
use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError, seed_of};
use pummel_fronts::native;
use pummel_fronts::outputs::Outputs;
use pummel_fronts::style::StyleOutput;
use pummel_logic::plan::validate::ValidPlan;
use pummel_measure::compare::second_side_first;
use pummel_report::comparison::{Comparison, PairCommand, Question, Side, SideSource};
use pummel_report::run_figures::RunFigures;
use pummel_report::stored::ResultDocument;

use self::sides::{SideArgs, SideJob, hidden_where_refused, share_a_server, sides};
use crate::commands::common_options::CommonOptions;
use crate::commands::detection::detected;
use crate::commands::judge_options::JudgeArgs;
use crate::commands::one_run::refuse_forms;
use crate::detection::leaves_protocol_open;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::job::runner::NotRun;
use crate::job::series::{
    Finished, RunSeries, SeriesRun, SeriesSide, SeriesState, SeriesStyle, ServerCare, tell_end,
};
use crate::job::series_result::{ResultSeries, follow};
use crate::job::server_program::ServerProgram;
use crate::parser_answer::answer;

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

/// Measures and compares two sides.
pub fn ab(args: &AbArgs, inputs: &FrontInputs) -> Exit {
    let sides = refuse_forms(&args.run.typed.args.output)
        .and_then(|()| sides(&args.sides, &args.run, inputs, &detected))
        .and_then(checked);
    let [first, second] = match sides {
        Ok(sides) => sides,
        Err(error) => return answer(&error.into()),
    };
    let asked = asked(first, inputs).and_then(|first| Ok([first, asked(second, inputs)?]));
    match asked {
        Ok(sides) => measure(args, sides).unwrap_or_else(|exit| exit),
        Err(end) => tell_end(&end),
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
/// Returns [`NotRun`] when the program does not listen, and when no run can be made in the protocol that it speaks.
fn asked(side: SideJob, inputs: &FrontInputs) -> Result<SideJob, NotRun> {
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

/// Measures two sides. Returns the exit status also where nothing could be begun.
fn measure(args: &AbArgs, sides: [SideJob; 2]) -> Result<Exit, Exit> {
    let output = &args.run.typed.args.output;
    let [first, second] = sides.each_ref().map(|side| &side.job);
    let prepare =
        |job, other_plans| Driver::prepare(job, &Extras { other_plans, ..Extras::default() }, &SeriesStyle);
    let drivers = match first.fleet.is_some() && first.fleet == second.fleet {
        true => vec![prepare(first, vec![second.plan.clone()])?],
        false => vec![prepare(first, Vec::new())?, prepare(second, Vec::new())?],
    };
    let spoil = share_a_server(&first.plan, &second.plan);
    let cared = |side: &SideJob| SeriesSide::new(side.care.clone(), side.detection.clone(), spoil);
    let mut pairs = Pairs {
        sides: sides.each_ref().map(MeasuredSide::of),
        question: Question { loads_may_differ: true, ..args.judge.question(false) },
        asked: args.sides.pairs,
    };
    Ok(follow(&mut pairs, drivers, sides.iter().map(cared).collect(), output))
}

/// Runs of two sides by turns: each pair has one seed, and begins with the side that the seed draws.
struct Pairs {
    sides: [MeasuredSide; 2],
    question: Question,
    /// Number of pairs that were asked for.
    asked: u32,
}

/// A side with its runs so far.
struct MeasuredSide {
    label: String,
    plan: ValidPlan,
    /// Servers and machine, as the last run knew them.
    source: SideSource,
    runs: Vec<RunFigures>,
}

impl MeasuredSide {
    fn of(side: &SideJob) -> MeasuredSide {
        let source = SideSource { program: side.program.clone(), ..SideSource::default() };
        MeasuredSide { label: side.label.clone(), plan: side.job.plan.clone(), source, runs: Vec::new() }
    }
}

impl Pairs {
    /// Index of the next pair, and of the side of it that is next.
    fn next(&self) -> (u32, usize) {
        let [first, second] = self.sides.each_ref().map(|side| side.runs.len() as u32);
        let pair = first.min(second);
        let begins = usize::from(second_side_first(self.sides[0].plan.seed, u64::from(pair)));
        (pair, if first == second { begins } else { 1 - begins })
    }
}

impl RunSeries for Pairs {
    fn next_run(&mut self, _: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        let (pair, side) = self.next();
        let seed = seed_of(self.sides[0].plan.seed, pair);
        let run = || SeriesRun { side, ..SeriesRun::new(&self.sides[side].plan, seed) };
        Ok((pair < self.asked).then(run))
    }

    fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
        let (pair, side) = self.next();
        let (run, source) = finished.figures();
        out.line(format_args!("pair {} of {}, {}: {}", pair + 1, self.asked, ["A", "B"][side], run.line()));
        let side = &mut self.sides[side];
        side.source = SideSource { program: side.source.program.take(), ..source };
        side.runs.push(run);
        Ok(())
    }
}

impl ResultSeries for Pairs {
    fn result(&self, state: &SeriesState) -> ResultDocument {
        let side = |side: &MeasuredSide| {
            Side::new(side.label.clone(), &side.plan, side.source.clone(), side.runs.clone())
        };
        let comparison = Comparison {
            argv: told_command_line(&self.sides[0].plan),
            made_again: state.made_again,
            ..Comparison::of_pairs(PairCommand::Ab, self.sides.each_ref().map(side), &self.question)
        };
        let comparison = comparison.ended(self.asked, state.reason(), state.is_interrupted());
        ResultDocument::Pair(Box::new(comparison))
    }
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Status;

    use super::*;
    use crate::job::series::tests::{asked, interrupted, plan};

    fn pairs(asked: u32) -> Pairs {
        let side = |label: &str| MeasuredSide {
            label: label.to_owned(),
            plan: plan(),
            source: SideSource { program: Some(label.to_owned()), ..SideSource::default() },
            runs: Vec::new(),
        };
        Pairs { sides: ["old", "new"].map(side), question: Question::default(), asked }
    }

    #[test]
    fn both_runs_of_a_pair_have_one_seed_and_each_side_begins_half_of_the_pairs() {
        let runs = asked(&mut pairs(6), 99);
        assert_eq!(runs.len(), 12);
        let mut begun = [0, 0];
        for (number, pair) in runs.chunks(2).enumerate() {
            assert_eq!(pair[0].plan.seed, pair[1].plan.seed);
            assert_eq!(pair[0].plan.seed, seed_of(plan().seed, number as u32));
            assert_eq!(pair[0].side + pair[1].side, 1);
            begun[pair[0].side] += 1;
        }
        assert_eq!(begun, [3, 3]);
    }

    #[test]
    fn a_run_without_its_partner_is_no_pair() {
        let mut pairs = pairs(3);
        asked(&mut pairs, 3);
        let ResultDocument::Pair(result) = pairs.result(&interrupted()) else { panic!("two sides") };
        assert_eq!((result.runs(), result.status), (1, Status::Interrupted));
        let programs = result.sides.map(|side| side.source.program);
        assert_eq!(programs, ["old", "new"].map(|name| Some(name.to_owned())));
    }
}
