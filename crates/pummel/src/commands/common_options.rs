//! Options that several runs share, kept as words, so that a side or a run of a suite can add words of its own and take the place of
//! some.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use pummel_fronts::job::UsageError;
use pummel_fronts::native::{RunArgs, Typed};

/// The options of `pummel run`, read, and as words.
#[derive(Clone, Debug)]
pub struct CommonOptions {
    /// The options as they are without those of a side.
    pub typed: Typed<RunArgs>,
    words: Vec<OptionWord>,
}

/// One option of the command line as one word, `--name` or `--name=value`.
#[derive(Clone, Debug)]
struct OptionWord {
    /// `--name`.
    flag: String,
    word: OsString,
}

impl CommonOptions {
    /// The options with those of `defaults` in front that are not given.
    ///
    /// # Errors
    /// Returns the parser's error for defaults that are no options of `pummel run`.
    pub fn behind(&self, defaults: &[String]) -> Result<CommonOptions, clap::Error> {
        let mut all = given(defaults)?;
        all.retain(|option| self.words.iter().all(|own| own.flag != option.flag));
        all.extend(self.words.iter().cloned());
        let kept = all.len() - self.words.len();
        let typed = parse_over(&mut all, kept)?;
        Ok(CommonOptions { typed, words: all })
    }

    /// The options of a side: the common ones, but for those that the side gives too or excludes, and then the side's own.
    ///
    /// # Errors
    /// Returns the parser's error for words that are no options of `pummel run`.
    pub fn with(&self, side: &[String]) -> Result<Typed<RunArgs>, clap::Error> {
        let own = given(side)?;
        let is_own = |option: &&OptionWord| own.iter().any(|given| given.flag == option.flag);
        let mut all: Vec<OptionWord> = self.words.iter().filter(|option| !is_own(option)).cloned().collect();
        let common = all.len();
        all.extend(own);
        parse_over(&mut all, common)
    }

    /// The options that a side gives itself, such as `--seed`.
    ///
    /// # Errors
    /// Returns the parser's error for words that are no options of `pummel run`.
    pub fn flags(side: &[String]) -> Result<BTreeSet<String>, clap::Error> {
        Ok(given(side)?.into_iter().map(|option| option.flag).collect())
    }
}

/// Reads options of `pummel run`, without those of `--help`.
fn parse(words: impl Iterator<Item = OsString>) -> Result<Typed<RunArgs>, clap::Error> {
    Typed::from_arg_matches(&matches_of(words)?)
}

/// The parser of options of `pummel run`, which stand alone.
fn command() -> Command {
    Typed::<RunArgs>::augment_args(Command::new("run").no_binary_name(true).disable_help_flag(true))
}

/// The options of `pummel run` that words are.
fn matches_of(words: impl Iterator<Item = OsString>) -> Result<ArgMatches, clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    // The common servers are no words alone here, and a stray word of a side or of a run is more likely a slip.
    if let Some(mut stray) = matches.get_raw("bare_server") {
        let word = stray.next().unwrap_or_default().display();
        return Err(UsageError::Missing(format!("unexpected word '{word}': servers stand behind -s")).into());
    }
    Ok(matches)
}

/// The options among some words, of which one may need another that stands elsewhere.
fn given(words: &[String]) -> Result<Vec<OptionWord>, clap::Error> {
    let words = || words.iter().map(OsString::from);
    let needs_others = |error: &clap::Error| error.kind() == ErrorKind::MissingRequiredArgument;
    let matches = match matches_of(words()) {
        Err(error) if needs_others(&error) => command().ignore_errors(true).try_get_matches_from(words())?,
        read => read?,
    };
    Ok(option_words(&matches))
}

/// Reads options of which the first `common` give way to those behind them that exclude them.
fn parse_over(all: &mut Vec<OptionWord>, mut common: usize) -> Result<Typed<RunArgs>, clap::Error> {
    loop {
        let error = match parse(all.iter().map(|option| option.word.clone())) {
            Ok(typed) => return Ok(typed),
            Err(error) => error,
        };
        let named = excluded(&error);
        let is_named = |option: &OptionWord| named.contains(&option.flag);
        // Two that exclude each other stand in one place: neither is to be preferred.
        let (before, behind) = all.split_at(common);
        let gives_way = before.iter().filter(|option| is_named(option)).count();
        if gives_way == 0 || !behind.iter().any(is_named) {
            return Err(error);
        }
        let mut place = 0;
        all.retain(|option| {
            let stays = place >= common || !named.contains(&option.flag);
            place += 1;
            stays
        });
        common -= gives_way;
    }
}

/// The options that an error of the parser is about, where they exclude each other.
fn excluded(error: &clap::Error) -> Vec<String> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return Vec::new();
    }
    let words = |value: &ContextValue| match value {
        ContextValue::String(word) => vec![word.clone()],
        ContextValue::Strings(words) => words.clone(),
        _ => Vec::new(),
    };
    let told =
        [ContextKind::InvalidArg, ContextKind::PriorArg].into_iter().filter_map(|kind| error.get(kind));
    // The parser names an option with the form of its value.
    let flag = |word: String| word.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    told.flat_map(words).map(flag).collect()
}

/// The options that stood on a command line, each as one word.
fn option_words(matches: &ArgMatches) -> Vec<OptionWord> {
    let command = RunArgs::augment_args(Command::new("run"));
    let mut words = Vec::new();
    for option in command.get_arguments() {
        let id = option.get_id().as_str();
        let long = match option.get_long() {
            Some(long) => long,
            None if id == "bare_server" => "server",
            None => continue,
        };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let flag = format!("--{long}");
        if matches!(option.get_action(), ArgAction::SetTrue) {
            words.push(OptionWord { word: OsString::from(&flag), flag });
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let mut word = OsString::from(format!("{flag}="));
            word.push(value);
            words.push(OptionWord { flag: flag.clone(), word });
        }
    }
    words
}

/// The sentence of a parser's error, without what surrounds it.
pub fn first_line(error: &clap::Error) -> String {
    let words = error.to_string();
    let first = words.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match error.kind() {
        ErrorKind::UnknownArgument => format!("expected options of `pummel run`; {first}"),
        _ => first.to_owned(),
    }
}

impl FromArgMatches for CommonOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let words = option_words(matches);
        Ok(CommonOptions { typed: Typed::from_arg_matches(matches)?, words })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = CommonOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for CommonOptions {
    fn augment_args(command: Command) -> Command {
        RunArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        CommonOptions::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Depth;

    use super::*;

    fn common(words: &str) -> CommonOptions {
        let command = CommonOptions::augment_args(Command::new("ab").no_binary_name(true));
        let matches = command.try_get_matches_from(words.split_whitespace()).expect("options");
        CommonOptions::from_arg_matches(&matches).expect("options")
    }

    fn side(common: &CommonOptions, words: &str) -> Typed<RunArgs> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        common.with(&words).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_side_has_the_common_options_and_its_own_in_their_place() {
        let common = common("-s one -s two -c 7 -d 2 --no-load --verify --goal p99:1ms --key-prefix=");
        let plain = side(&common, "");
        assert_eq!((plain.args.pace.connections, plain.args.target.server.len()), (7, 2));
        assert!(plain.args.mix.no_load && plain.args.mix.verify == Some(1.0));
        assert_eq!((plain.args.data.key_prefix.as_str(), plain.args.pace.goal.len()), ("", 1));
        let own = side(&common, "-d 16 -s three --load --verify=0.5");
        assert_eq!((own.args.pace.depth, own.args.pace.connections), (Depth::Limit(16), 7));
        assert_eq!((own.args.target.server.len(), own.args.mix.no_load), (1, false));
        assert_eq!(own.args.mix.verify, Some(0.5));
    }

    #[test]
    fn an_option_of_a_side_takes_the_place_of_a_common_one_that_it_excludes() {
        let common = common("-s one -t 20s --rate 500");
        let staged = side(&common, "--stage 100ms:1k");
        assert!(!staged.has("--time") && staged.has("--stage") && staged.has("--rate"));
        let behind = common.behind(&["--requests=5".to_owned()]).expect("options");
        assert!(behind.typed.has("--time") && behind.typed.has("--requests"), "both may be given");
        // Options of one side that exclude each other are wrong.
        assert!(common.with(&["--stage=1s:1k".to_owned(), "--time=1s".to_owned()]).is_err());
        let flags = CommonOptions::flags(&["--stage=100ms:1k".to_owned()]).expect("options");
        assert!(flags.contains("--stage") && flags.len() == 1, "what an option needs may be a common one");
    }

    #[test]
    fn words_that_are_no_options_are_refused() {
        let common = common("-c 7");
        for words in ["--no-such-option", "stray", "-d many"] {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            assert!(common.with(&words).is_err(), "{words:?}");
        }
    }
}
