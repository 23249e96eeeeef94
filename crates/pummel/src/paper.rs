//! The paper that text for people is drawn on: the width of the terminal, and the colours that it and its user want.

use std::env;
use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};
use pummel_report::screen::{Colours, Hints, Paper, WIDTH};
use pummel_report::text::Detail;

/// When text has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal that understands them, unless NO_COLOR is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// Options of the text for people.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenArgs {
    /// Show the five times (response, service, wait, lag, reaction) of all operations and of each
    #[arg(long)]
    pub times: bool,
    /// Show everything: the five times, counts, bytes, connections, loading, generator, clock, servers, machine, seed
    #[arg(short, long)]
    pub verbose: bool,
    /// When the text has colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub color: ColourChoice,
}

/// Options of the text for people about several runs.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeveralArgs {
    /// Show everything: all that differs, all figures, every run
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// When the text has colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", help_heading = "Output")]
    pub color: ColourChoice,
}

impl SeveralArgs {
    /// How much the text has; one line where the command line asks for quiet.
    pub fn detail(self, is_quiet: bool) -> Detail {
        self.of_run().detail(is_quiet)
    }

    /// The paper of standard output; `hints` are those of a terminal.
    pub fn paper(self, hints: Hints) -> Paper {
        self.of_run().paper(hints)
    }

    fn of_run(self) -> ScreenArgs {
        ScreenArgs { times: false, verbose: self.verbose, color: self.color }
    }
}

impl ScreenArgs {
    /// How much the text has; one line where the command line asks for quiet.
    pub fn detail(self, is_quiet: bool) -> Detail {
        match (is_quiet, self.verbose, self.times) {
            (true, ..) => Detail::Line,
            (_, true, _) => Detail::Everything,
            (_, _, true) => Detail::Times,
            _ => Detail::Screen,
        }
    }

    /// The paper of standard output; `hints` are those of a terminal.
    pub fn paper(self, hints: Hints) -> Paper {
        let is_terminal = io::stdout().is_terminal();
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let width = is_terminal.then(terminal_width).flatten().or_else(|| set("COLUMNS")?.parse().ok());
        let is_capable = is_terminal && set("TERM").is_some_and(|term| term != "dumb");
        let is_forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let colours = match self.color {
            ColourChoice::Always => Colours::All,
            ColourChoice::Never => Colours::None,
            ColourChoice::Auto if is_forced => Colours::All,
            ColourChoice::Auto if !is_capable => Colours::None,
            ColourChoice::Auto if set("NO_COLOR").is_some() => Colours::Emphasis,
            ColourChoice::Auto => Colours::All,
        };
        let has_hints = is_terminal && set("CI").is_none() && !self.times && !self.verbose;
        let hints = if has_hints { hints } else { Hints::None };
        Paper { colours, hints, ..Paper::of_width(width.unwrap_or(WIDTH)) }
    }
}

/// The columns of the terminal that is standard output; `None` where it does not say.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
