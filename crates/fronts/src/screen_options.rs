//! The options of text for people, and the paper that such text is drawn on: its width, and the colours that the terminal and
//! its user want.

use clap::{Args, ValueEnum};
use pummel_report::screen::{Colours, Hints, Paper, WIDTH};
use pummel_report::text::Detail;

/// What standard output is, and what the environment says of terminals.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Whether standard output is a terminal.
    pub is_one: bool,
    /// Columns of the terminal; `None` without one, and where it does not say.
    pub columns: Option<usize>,
    /// The value of a variable of the environment; `None` where it is not set.
    pub variable: fn(&str) -> Option<String>,
}

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

    /// The paper of standard output, which is `terminal`; `hints` are those of a terminal.
    pub fn paper(self, hints: Hints, terminal: &Terminal) -> Paper {
        self.of_run().paper(hints, terminal)
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

    /// The paper of standard output, which is `terminal`; `hints` are those of a terminal.
    pub fn paper(self, hints: Hints, terminal: &Terminal) -> Paper {
        let is_terminal = terminal.is_one;
        let set = |name: &str| (terminal.variable)(name).filter(|value| !value.is_empty());
        let width = terminal.columns.or_else(|| set("COLUMNS")?.parse().ok());
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
