//! Command lines as GNU's `getopt_long` reads them: short bundles, abbreviated long names, and its words for what is wrong.
//!
//! The rules are those of the C library's manual, chapter "Parsing program options using getopt", with its default order:
//! words that are no options may stand anywhere.

use std::fmt;

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None.
    Nothing,
    /// One: the rest of a short option's word or the next word, or what follows a long option's equals sign.
    Value,
    /// One at choice, which has to stand in the same word.
    Maybe,
}

/// An option that a command line may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its long name, without dashes.
    pub long: Option<&'static str>,
    /// Its short name.
    pub short: Option<char>,
    /// Whether it has a value.
    pub takes: Takes,
    /// Whose option it is.
    pub owner: Owner,
}

/// Whose option it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// One of the program whose command line this is.
    Original,
    /// One that pummel adds: its name has to be written out, so that every abbreviation means what it always meant.
    Pummel,
}

impl Choice {
    /// An option of the original with both names.
    pub const fn both(short: char, long: &'static str, takes: Takes) -> Choice {
        Choice { long: Some(long), short: Some(short), takes, owner: Owner::Original }
    }

    /// An option of the original that has no short name.
    pub const fn long(long: &'static str, takes: Takes) -> Choice {
        Choice { long: Some(long), short: None, takes, owner: Owner::Original }
    }

    /// An option of the original that has no long name.
    pub const fn short(short: char, takes: Takes) -> Choice {
        Choice { long: None, short: Some(short), takes, owner: Owner::Original }
    }

    /// An option that pummel adds.
    pub const fn added(long: &'static str, takes: Takes) -> Choice {
        Choice { long: Some(long), short: None, takes, owner: Owner::Pummel }
    }
}

/// What a word of the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An option.
    Option {
        /// Its place in the table.
        choice: usize,
        /// Its value.
        value: Option<String>,
    },
    /// A word that is no option and no option's value.
    Word(String),
}

/// What is wrong with an option; printed in the words of the C library, without the program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// There is no such long option; what was typed.
    Unrecognized(String),
    /// There is no such short option.
    Invalid(char),
    /// More than one long option begins like this.
    Ambiguous {
        /// What was typed.
        typed: String,
        /// The options that it may mean.
        possible: Vec<&'static str>,
    },
    /// A long option has no value, and needs one.
    Needs(&'static str),
    /// A short option has no value, and needs one.
    NeedsShort(char),
    /// A long option has a value, and takes none.
    TakesNone(&'static str),
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Unrecognized(typed) => write!(out, "unrecognized option '--{typed}'"),
            Wrong::Invalid(short) => write!(out, "invalid option -- '{short}'"),
            Wrong::Ambiguous { typed, possible } => {
                write!(out, "option '--{typed}' is ambiguous; possibilities:")?;
                possible.iter().try_for_each(|name| write!(out, " '--{name}'"))
            }
            Wrong::Needs(name) => write!(out, "option '--{name}' requires an argument"),
            Wrong::NeedsShort(short) => write!(out, "option requires an argument -- '{short}'"),
            Wrong::TakesNone(name) => write!(out, "option '--{name}' doesn't allow an argument"),
        }
    }
}

impl std::error::Error for Wrong {}

/// Reads a command line word by word. What is wrong is said when its turn comes: what stands before it is handed out
/// first, because the original had acted upon it by then.
#[derive(Clone, Debug)]
pub struct Getopt<'t, W> {
    table: &'t [Choice],
    words: W,
    /// The rest of a bundle of short options.
    bundle: String,
    /// `--` has passed: there are no options any more.
    over: bool,
}

impl<'t, W: Iterator<Item = String>> Getopt<'t, W> {
    /// Reads `words`, which begin behind the program's name.
    pub fn new(table: &'t [Choice], words: W) -> Getopt<'t, W> {
        Getopt { table, words, bundle: String::new(), over: false }
    }

    /// The next option of a bundle.
    fn short(&mut self) -> Result<Event, Wrong> {
        let letter = self.bundle.remove(0);
        let found = self.table.iter().position(|choice| choice.short == Some(letter) && letter != ':');
        let choice = found.ok_or(Wrong::Invalid(letter))?;
        let rest = |bundle: &mut String| Some(std::mem::take(bundle)).filter(|rest| !rest.is_empty());
        let value = match self.table[choice].takes {
            Takes::Nothing => None,
            Takes::Maybe => rest(&mut self.bundle),
            Takes::Value => {
                let value = rest(&mut self.bundle).or_else(|| self.words.next());
                Some(value.ok_or(Wrong::NeedsShort(letter))?)
            }
        };
        Ok(Event::Option { choice, value })
    }

    /// An option by its long name; `typed` stands behind the dashes.
    fn long(&mut self, typed: &str) -> Result<Event, Wrong> {
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (typed, None),
        };
        let choice = self.meaning(name, typed)?;
        let full = self.table[choice].long.unwrap_or_default();
        let value = match (self.table[choice].takes, value) {
            (Takes::Nothing, Some(_)) => return Err(Wrong::TakesNone(full)),
            (Takes::Value, None) => Some(self.words.next().ok_or(Wrong::Needs(full))?),
            (_, value) => value,
        };
        Ok(Event::Option { choice, value })
    }

    /// The option that a long name or the beginning of one means.
    fn meaning(&self, name: &str, typed: &str) -> Result<usize, Wrong> {
        if let Some(exact) = self.table.iter().position(|choice| choice.long == Some(name)) {
            return Ok(exact);
        }
        let mut candidates = self.table.iter().enumerate().filter(|(_, choice)| {
            choice.owner == Owner::Original && choice.long.is_some_and(|long| long.starts_with(name))
        });
        let (first, meant) = candidates.next().ok_or_else(|| Wrong::Unrecognized(typed.to_owned()))?;
        // The C library lets the first one pass where the others look the same to it: options without a short name and
        // with the same kind of value, which it cannot tell apart.
        let others: Vec<&'static str> = candidates
            .filter(|(_, other)| (other.short, other.takes) != (meant.short, meant.takes))
            .filter_map(|(_, other)| other.long)
            .collect();
        if others.is_empty() {
            return Ok(first);
        }
        let possible = meant.long.into_iter().chain(others).collect();
        Err(Wrong::Ambiguous { typed: typed.to_owned(), possible })
    }
}

impl<W: Iterator<Item = String>> Iterator for Getopt<'_, W> {
    type Item = Result<Event, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.bundle.is_empty() {
            return Some(self.short());
        }
        let word = self.words.next()?;
        if self.over {
            return Some(Ok(Event::Word(word)));
        }
        match word.strip_prefix("--") {
            Some("") => {
                self.over = true;
                self.next()
            }
            Some(typed) => Some(self.long(typed)),
            None => match word.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => {
                    self.bundle = letters.to_owned();
                    Some(self.short())
                }
                _ => Some(Ok(Event::Word(word))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Choice] = &[
        Choice::both('v', "verbose", Takes::Nothing),
        Choice::both('t', "time", Takes::Value),
        Choice::both('o', "omit", Takes::Maybe),
        Choice::long("save", Takes::Value),
        Choice::both('s', "server", Takes::Value),
        Choice::long("noload", Takes::Nothing),
        Choice::long("no_nodelay", Takes::Nothing),
        Choice::added("json", Takes::Value),
        Choice::added("samples", Takes::Value),
        Choice::short('q', Takes::Nothing),
    ];

    /// What a line says: options by their first name and value, words in brackets, or what is wrong.
    fn read(line: &[&str]) -> String {
        let words = line.iter().map(|word| (*word).to_owned());
        let said = Getopt::new(TABLE, words).map(|event| match event {
            Ok(Event::Option { choice, value }) => {
                let name = TABLE[choice].long.map_or("q", |long| long).to_owned();
                value.map_or(name.clone(), |value| format!("{name}={value}"))
            }
            Ok(Event::Word(word)) => format!("[{word}]"),
            Err(wrong) => format!("! {wrong}"),
        });
        said.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_value_is_the_rest_of_its_word_or_the_next_word() {
        for line in [&["-t5"][..], &["-t", "5"], &["--time=5"], &["--time", "5"], &["--ti=5"], &["--t", "5"]]
        {
            assert_eq!(read(line), "time=5", "{line:?}");
        }
        assert_eq!(read(&["-t", "-5"]), "time=-5");
        assert_eq!(read(&["--time="]), "time=");
        assert_eq!(read(&["-o5", "-o", "5", "--omit", "--omit=6"]), "omit=5 omit [5] omit omit=6");
    }

    #[test]
    fn short_options_are_bundled() {
        assert_eq!(read(&["-vvqt7", "-vq"]), "verbose verbose q time=7 verbose q");
    }

    #[test]
    fn words_may_stand_anywhere_and_two_dashes_end_the_options() {
        assert_eq!(read(&["a", "-v", "-", "--", "-v", "--time"]), "[a] verbose [-] [-v] [--time]");
    }

    #[test]
    fn wrong_options_are_named_as_the_c_library_names_them() {
        for (line, said) in [
            (&["--bogus=1"][..], "! unrecognized option '--bogus=1'"),
            (&["-Z"], "! invalid option -- 'Z'"),
            (&["-v:"], "verbose ! invalid option -- ':'"),
            (&["-vt"], "verbose ! option requires an argument -- 't'"),
            (&["--ti"], "! option '--time' requires an argument"),
            (&["--verb=2"], "! option '--verbose' doesn't allow an argument"),
            (&["--s=1"], "! option '--s=1' is ambiguous; possibilities: '--save' '--server'"),
        ] {
            assert_eq!(read(line), said, "{line:?}");
        }
    }

    #[test]
    fn what_stands_before_a_mistake_is_read_first_and_what_follows_after_it() {
        assert_eq!(read(&["-t1", "-Zv", "--json", "x"]), "time=1 ! invalid option -- 'Z' verbose json=x");
    }

    #[test]
    fn options_that_look_alike_to_the_c_library_are_not_ambiguous() {
        assert_eq!(read(&["--no"]), "noload");
        assert_eq!(read(&["--no_"]), "no_nodelay");
    }

    #[test]
    fn what_pummel_adds_is_never_abbreviated_and_makes_no_abbreviation_ambiguous() {
        assert_eq!(read(&["--sa=f", "--samples=g"]), "save=f samples=g");
        assert_eq!(
            read(&["--sam=f", "--js=x"]),
            "! unrecognized option '--sam=f' ! unrecognized option '--js=x'"
        );
    }
}
