//! The commands of `--command` as templates, the lines of a recorded MONITOR, and the rows that reports have for them.

use pummel_logic::plan::Command;
use pummel_logic::protocol::resp::template::literal;

use crate::user_commands::{before_place, named};

use super::options::{GivenCommand, Pattern, Refusal, command_name};

/// The place of a key in a command.
const KEY: &str = "__key__";

/// The place of a value in a command, which is a word of its own.
const DATA: &str = "__data__";

/// The beginning of the place of a line of the MONITOR file.
const LINE: &str = "__monitor_line";

/// Most keys of one command: one, and the other draws of a template.
const KEYS_MAX: usize = 9;

/// A command that clients ask.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedCommand {
    /// The template with a name.
    pub command: Command,
    /// How often it is asked in its turn.
    pub ratio: u32,
    /// The spread of its keys.
    pub pattern: Pattern,
    /// The name that its row in reports is made of, in capitals.
    pub title: String,
}

/// What the commands of a command line come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedCommands {
    /// The commands, in their order.
    pub commands: Vec<AskedCommand>,
    /// Whether they are drawn, and not asked in turns.
    pub are_drawn: bool,
}

/// The commands of a MONITOR file: each line from its first quote on; lines without one are no commands.
pub fn monitor_lines(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| Some(&line[line.find('"')?..])).collect()
}

/// The templates of these commands. `lines` are those of the MONITOR file; `draws_lines` is `--monitor-pattern R`.
///
/// # Errors
/// Returns the [`Refusal`] of the first command that cannot be sent.
pub fn asked(given: &[GivenCommand], lines: &[&str], draws_lines: bool) -> Result<AskedCommands, Refusal> {
    let mut asked = AskedCommands::default();
    for command in given {
        let Some(which) = line_place(&command.text) else {
            asked.add(&command.text, command)?;
            continue;
        };
        if which == "@" {
            if draws_lines && given.len() > 1 {
                let words = "--monitor-pattern R: expected no other command beside __monitor_line@__";
                return Err(Refusal::Configuration(format!("error: {words}")));
            }
            asked.are_drawn = draws_lines;
            for line in lines {
                asked.add(line, command)?;
            }
            continue;
        }
        let number = which.parse::<usize>().ok().filter(|number| (1..=lines.len()).contains(number));
        let line = number.map(|number| lines[number - 1]).ok_or_else(|| {
            Refusal::Configuration(format!(
                "error: invalid monitor placeholder '{}' (valid range: __monitor_line1__ to __monitor_line{}__)",
                command.text,
                lines.len()
            ))
        })?;
        asked.add(line, command)?;
    }
    Ok(asked)
}

/// The number of the line that a command stands for, or `@`; `None` for a command that is none of the file.
fn line_place(text: &str) -> Option<&str> {
    text.trim().strip_prefix(LINE)?.strip_suffix("__")
}

impl AskedCommands {
    fn add(&mut self, text: &str, given: &GivenCommand) -> Result<(), Refusal> {
        let template = template_of(text)?;
        let title = command_name(text.trim_start_matches('"')).replace('"', "");
        let command = Command { name: Command::unnamed(&title).name, ..Command::unnamed(&template) };
        self.commands.push(AskedCommand {
            command: named(command, self.commands.iter().map(|other| &other.command)),
            ratio: given.ratio,
            pattern: given.pattern,
            title: if title.is_empty() { "COMMAND".to_owned() } else { title },
        });
        Ok(())
    }
}

/// The template of a command: the same words, with the places of templates for those of the original, and all else as it stands there.
fn template_of(text: &str) -> Result<String, Refusal> {
    let mut template = String::with_capacity(text.len());
    let mut keys = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start().len();
        template.push_str(&rest[..blanks]);
        rest = &rest[blanks..];
        let end = word_end(rest);
        let (word, behind) = rest.split_at(end);
        template.push_str(&word_of(word, &mut keys)?);
        rest = behind;
    }
    Ok(template)
}

/// The end of the word that a text begins with, in quotes or not.
fn word_end(text: &str) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match quote {
            _ if is_escaped => is_escaped = false,
            Some(_) if letter == '\\' => is_escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter.is_whitespace() => return at,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None => {}
        }
    }
    text.len()
}

/// A word of a command as a word of a template. `keys` counts the keys of the command.
fn word_of(word: &str, keys: &mut usize) -> Result<String, Refusal> {
    // A mark between commands is a word like any other there.
    if !word.is_empty() && word.bytes().all(|byte| byte == b';') {
        return Ok(format!("\"{word}\""));
    }
    if word.trim_matches(['"', '\'']) == DATA {
        return Ok("__value__".to_owned());
    }
    if word.contains(DATA) {
        let words = "error: data placeholder can't combined with other data";
        return Err(Refusal::Configuration(words.to_owned()));
    }
    let Some((before, behind)) = word.split_once(KEY) else { return Ok(literal(word)) };
    *keys += 1;
    let place = match *keys {
        1 => KEY.to_owned(),
        number @ 2..=KEYS_MAX => format!("__key{number}__"),
        _ => {
            let words = format!("error: a command has at most {KEYS_MAX} keys");
            return Err(Refusal::Configuration(words));
        }
    };
    let before = before_place(before).ok_or_else(|| {
        let why = format!("the text in front of {KEY} looks like something that is replaced");
        Refusal::Configuration(format!("error: '{word}': {why}"))
    })?;
    Ok([before, place, literal(behind)].concat())
}

/// The name of a row in tables: a capital, small letters and an `s`.
pub fn row_name(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let rest = letters.map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(rest).chain(['s']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Result<String, Refusal> {
        template_of(text)
    }

    #[test]
    fn places_of_the_original_become_places_of_templates() {
        for (text, expected) in [
            ("SET __key__ __data__", "SET __key__ __value__"),
            ("MSET __key__ __data__ __key__ __data__", "MSET __key__ __value__ __key2__ __value__"),
            ("HSET h:__key__:x f \"a b\"", "HSET h:__key__:x f \"a b\""),
            ("EVAL 'return 1' 0 __value__", r"EVAL 'return 1' 0 \__value__"),
            ("GET a ; b", "GET a \";\" b"),
            ("SET \"__key__\" '__data__'", "SET \"__key__\" __value__"),
            ("SET k \"a \\\" b\" __key__", "SET k \"a \\\" b\" __key__"),
        ] {
            assert_eq!(template(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(template("SET k x__data__").is_err());
        assert!(template(&format!("MGET{}", " __key__".repeat(10))).is_err());
    }

    #[test]
    fn a_line_of_monitor_is_what_stands_behind_the_first_quote() {
        let text = "OK\n1460100081.165665 [0 127.0.0.1:51706] \"set\" \"shipment:8000736522714\" \"true\"\n\n\"get\" \"a\"\n";
        let lines = monitor_lines(text);
        assert_eq!(lines, ["\"set\" \"shipment:8000736522714\" \"true\"", "\"get\" \"a\""]);
        let given = |text: &str| GivenCommand { text: text.to_owned(), ratio: 2, pattern: Pattern::Random };
        let all = asked(&[given("__monitor_line2__"), given("__monitor_line@__")], &lines, false);
        let all = all.expect("all of them can be sent");
        let titles: Vec<_> =
            all.commands.iter().map(|command| (&*command.title, &*command.command.name)).collect();
        assert_eq!(titles, [("GET", "command-get"), ("SET", "command-set"), ("GET", "command-get-2")]);
        let refused = asked(&[given("__monitor_line3__")], &lines, false);
        assert!(matches!(refused, Err(Refusal::Configuration(words)) if words.contains("__monitor_line2__")));
    }

    #[test]
    fn rows_are_named_as_the_original_names_them() {
        assert_eq!(row_name("ZADD"), "Zadds");
        assert_eq!(row_name("JSON.SET"), "Json.sets");
        assert_eq!(row_name(""), "s");
    }
}
