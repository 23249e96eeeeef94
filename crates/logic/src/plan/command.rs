//! The commands of RESP servers that the user gives as templates, and the names of their requests.

use serde::{Deserialize, Serialize};

use super::Script;
use super::absent::is_default;
use crate::protocol::Verb;
use crate::protocol::resp::reply_shape::ReplyShape;
use crate::protocol::resp::template::{Template, TemplateError};

/// A command of the user: the requests of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Name of the operation in results: a small letter, then small letters, digits, `_` and `-`.
    pub name: String,
    /// The command, with places such as `__key__` that each request fills; or a sequence of commands with `;` between them, where `;;`
    /// also waits for the replies.
    pub template: String,
    /// The shape that its replies are to have; absent: what is known of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ReplyShape>,
    /// Whether the command is sent in the inline form of the protocol, its words between blanks, in place of an array.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inline: bool,
}

/// Longest name of a command, in bytes.
pub const NAME_MAX_BYTES: usize = 32;

impl Command {
    /// A command of this text, called by its first word in small letters.
    pub fn unnamed(template: &str) -> Command {
        let word = template.split_ascii_whitespace().next().unwrap_or_default();
        let is_of_name = |letter: &char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let letters = word.chars().map(|letter| letter.to_ascii_lowercase());
        let name: String = letters
            .map(|letter| if is_of_name(&letter) || letter == '_' { letter } else { '-' })
            .take(NAME_MAX_BYTES)
            .collect();
        Command { name, template: template.to_owned(), expect: None, inline: false }
    }

    /// Whether a text can be the name of a command.
    pub fn is_name(text: &str) -> bool {
        let is_of_name =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        text.starts_with(|letter: char| letter.is_ascii_lowercase())
            && text.len() <= NAME_MAX_BYTES
            && text.bytes().all(is_of_name)
    }

    /// The template of the command, whose replies have the shape that the command expects.
    pub(super) fn template(&self, script: Option<&Script>) -> Result<Template, TemplateError> {
        let template = match self.inline {
            true => Template::parse_inline(&self.template)?,
            false => template_of(&self.template, script)?,
        };
        Ok(match self.expect {
            Some(shape) => template.expecting(shape),
            None => template,
        })
    }

    /// Whether the name is that of an operation already.
    pub fn is_taken(&self) -> bool {
        Verb::from_name(&self.name).is_some_and(|verb| !verb.is_command())
    }
}

/// The template of a text that has the name of this script in place of `__script__`.
pub(super) fn template_of(text: &str, script: Option<&Script>) -> Result<Template, TemplateError> {
    match script {
        Some(script) => Template::parse_with(text, &script.name()),
        None => Template::parse(text),
    }
}

/// The command of the user that a load stores with, in place of storing a plain value under each key of the commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoadCommand {
    /// The command, with places such as `__key__` that each request fills.
    pub template: String,
    /// Number of times that it is sent for each record.
    pub per_record: u64,
}

impl LoadCommand {
    /// Name of its requests in results.
    pub const NAME: &str = "load";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_a_name_has_that_of_its_first_word() {
        for (template, name) in [("ZADD __key__ 1 a", "zadd"), ("  JSON.SET x", "json-set"), ("", "")] {
            assert_eq!(Command::unnamed(template).name, name);
        }
        assert!(Command::unnamed("GET __key__").is_taken());
        assert!(!Command::unnamed("ZADD __key__ 1 a").is_taken());
        for (text, is_name) in
            [("push", true), ("a-1_b", true), ("1a", false), ("A", false), ("", false), ("a b", false)]
        {
            assert_eq!(Command::is_name(text), is_name, "{text}");
        }
    }
}
