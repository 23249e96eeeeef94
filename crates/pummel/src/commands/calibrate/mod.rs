//! `pummel calibrate`: what the instrument itself adds on this machine, measured against the built-in server.

mod instruments;
mod runs;
mod surroundings;

use std::path::PathBuf;

use clap::Args;
use pummel_engine::{clock, sys};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::FrontInputs;
use pummel_fronts::outputs::Format;
use pummel_logic::plan::Backend;
use pummel_logic::time::SECOND;
use pummel_measure::calibration::{Calibration, advice, unix_s};
use pummel_report::calibration_words;

use crate::job::calibration_store;
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, exit_after};
use crate::job::series::{SeriesRunner, SeriesSide, SeriesStyle, ServerCare, tell_end};
use crate::output::{Output, print};
use crate::stderr::say;
use runs::{CalibrationRuns, Length};

/// Options of `pummel calibrate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES}"))]
pub struct CalibrateArgs {
    /// Rough figures in about ten seconds: shorter runs, and no measurement of how much runs differ
    #[arg(long)]
    pub quick: bool,
    /// Kernel interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", value_parser = backend, default_value = "auto")]
    pub backend: Backend,
    /// Format of the output
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Do not store the figures for later results
    #[arg(long)]
    pub no_store: bool,
}

const EXAMPLES: &str = "\
Starts the built-in server on this machine and takes one to two minutes, during which nothing else should run. The figures are \
stored for this user (in $XDG_STATE_HOME/pummel or ~/.local/state/pummel), and for 30 days the results of runs on this machine \
with this version include them as `calibration`. Nothing on the machine is changed: if a figure is bad and a setting may be the \
cause, the command that changes the setting is printed.

Example:
  pummel calibrate";

const STATUSES: &str = "\
Exit status:
  0    measured
  1    the measurement failed, or its figures cannot be written or stored
  2    wrong usage
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); nothing is stored";

fn backend(text: &str) -> Result<Backend, String> {
    let all = [Backend::Auto, Backend::Epoll, Backend::Uring];
    let found = all.into_iter().find(|backend| backend.name() == text);
    found.ok_or_else(|| "expected auto, epoll or uring".to_owned())
}

/// Measures the instrument, prints and stores its figures.
pub fn calibrate(args: &CalibrateArgs, inputs: &FrontInputs) -> Exit {
    let file = match args.json.as_deref().map(Output::prepare).transpose() {
        Ok(file) => file,
        Err(error) => return tell_end(&error.into()),
    };
    let length = if args.quick { Length::Quick } else { Length::Whole };
    let watch = surroundings::Watch::begin();
    let figures = match figures(args, inputs, length) {
        Ok(figures) => figures,
        Err(exit) => {
            if exit == Exit::Interrupted {
                say("interrupted: nothing is stored");
            }
            return exit;
        }
    };
    let mut json = serde_json::to_vec_pretty(&figures).expect("figures have nothing that JSON has not");
    json.push(b'\n');
    let shown = match args.format {
        Format::Text => {
            let around = watch.end();
            calibration_words::text(&figures, &advice(&figures, &around)).into_bytes()
        }
        Format::Json => json.clone(),
    };
    let stored = if args.no_store { Ok(None) } else { calibration_store::store(&figures).map(Some) };
    let written = file.as_ref().map_or(Ok(()), |file| file.finish(&json));
    let printed = print(&shown);
    let unstored = match stored {
        Ok(path) => {
            path.into_iter().for_each(|path| say(format_args!("stored in {}", path.display())));
            None
        }
        Err(error) => Some(error),
    };
    let troubles = [unstored, written.err(), printed.err()].into_iter().flatten();
    exit_after(Exit::Complete, troubles, &SeriesStyle)
}

/// Measures all figures. Returns the exit status where that is not possible; the words are on standard error.
fn figures(args: &CalibrateArgs, inputs: &FrontInputs, length: Length) -> Result<Calibration, Exit> {
    let cpus = sys::allowed_cpus().map_err(|error| tell_end(&error.into()))?;
    if cpus.len() < 2 {
        say(
            "there is one core, which the generator and the server share: the figures are worse than with a server on another machine",
        );
    }
    say("the clock and the timer ...");
    let clock_figures = instruments::clock();
    let timer = instruments::timer(match length {
        Length::Whole => 10 * SECOND,
        Length::Quick => SECOND,
    });
    let mut runs = CalibrationRuns::new(inputs, args.backend, length);
    let job = runs.first_job().map_err(|end| tell_end(&end))?;
    let driver = Driver::prepare(&job, &Extras::default(), &SeriesStyle)?;
    let side = SeriesSide::new(ServerCare::None, Detection::default(), false);
    let state = SeriesRunner::new(vec![driver], vec![side], false).run(&mut runs, |_, _| {});
    if let Some(end) = state.end {
        return Err(tell_end(&end));
    }
    let figures = runs.into_figures();
    Ok(Calibration {
        key: calibration_store::key(&figures.backend),
        unix_s: unix_s(clock::wall()),
        quick: length == Length::Quick,
        clock: clock_figures,
        timer,
        rate_per_core: figures.rate_per_core(),
        noise: figures.noise(),
        backend: figures.backend,
        stamps: figures.stamps,
        service_error: figures.service_error,
        lag: figures.lag,
    })
}
