//! Commands of users as the command lines of other tools have them, made into commands of a plan: their names, and the text around places.

use pummel_logic::plan::{COMMAND_NAME_MAX_BYTES, Command};
use pummel_logic::protocol::resp::template::literal;

/// Room in a name for a mark and a number.
const NUMBER_BYTES: usize = 4;

/// The command with a name that no operation has, and none of `others`.
pub fn named<'a>(command: Command, others: impl Iterator<Item = &'a Command> + Clone) -> Command {
    let is_free_stem = Command::is_name(&command.name) && !command.is_taken();
    let stem = if is_free_stem { command.name.clone() } else { format!("command-{}", command.name) };
    let stem: String = stem.chars().take(COMMAND_NAME_MAX_BYTES - NUMBER_BYTES).collect();
    let numbered = |number: usize| if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
    let is_free = |name: &String| others.clone().all(|other| other.name != *name);
    let name = (1..).map(numbered).find(is_free).unwrap_or_default();
    Command { name, ..command }
}

/// The text in front of a place in a template, so that it stands for itself; `None` where the two together would be taken for another
/// place.
pub fn before_place(text: &str) -> Option<String> {
    let alone = literal(text);
    (literal(&format!("{text}__")) == format!("{alone}__")).then_some(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name_of_its_own() {
        let mut commands: Vec<Command> = Vec::new();
        for template in ["ZADD z 1 a", "GET a", "GET b", "ZADD z 1 b", "1st"] {
            commands.push(named(Command::unnamed(template), commands.iter()));
        }
        let names: Vec<&str> = commands.iter().map(|command| &*command.name).collect();
        assert_eq!(names, ["zadd", "command-get", "command-get-2", "zadd-2", "command-1st"]);
    }

    #[test]
    fn text_that_would_be_taken_for_a_place_is_refused_in_front_of_one() {
        assert_eq!(before_place("a:__key__").as_deref(), Some(r"a:\__key__"));
        assert_eq!(before_place("__"), Some("__".to_owned()));
        assert_eq!(before_place("__key"), None);
    }
}
