//! The commands of a Plan as a run needs them: their templates, the verb of the load, the errors after which they are sent again, and those
//! that read what nothing stores.

use std::sync::Arc;

use crate::plan::command::template_of;
use crate::plan::{Plan, RETRY_FOR_NS, Retry, RetryKind, Work};
use crate::protocol::Verb;
use crate::protocol::resp::template::{Template, TemplateError};

/// A command that reads keys in which nothing of its plan has stored what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandWithoutData<'a> {
    /// Name of the command.
    pub name: &'a str,
    /// The command reads keys that hold plain values.
    pub reads_plain: bool,
    /// A load stores plain values under its keys.
    pub loaded_plain: bool,
}

impl Plan {
    /// The commands that read keys in which neither the load nor another command stores what they read.
    pub fn commands_without_data(&self) -> Vec<CommandWithoutData<'_>> {
        let loaded_plain =
            self.phases.iter().any(|phase| matches!(&phase.work, Work::Load(load) if load.commands));
        let templates: Vec<Template> =
            self.commands.iter().filter_map(|own| own.template(None).ok()).collect();
        let may_store = |template: &Template| template.has_key() && !template.reads();
        // A command that cannot be read here may store as well.
        let is_fed = self.load_command.is_some() || templates.len() < self.commands.len();
        if is_fed || templates.iter().any(may_store) {
            return Vec::new();
        }
        let commands = self.commands.iter().zip(&templates).filter(|(_, template)| template.has_key());
        let without = commands.map(|(command, template)| CommandWithoutData {
            name: &command.name,
            reads_plain: template.reads_plain(),
            loaded_plain,
        });
        without.filter(|command| !(command.reads_plain && command.loaded_plain)).collect()
    }

    /// The templates of the commands, by [`Verb::command`], that of the load behind the others; `None` without any.
    ///
    /// # Errors
    /// Returns the [`TemplateError`] of the first text that is none.
    pub fn templates(&self) -> Result<Option<Arc<Vec<Template>>>, TemplateError> {
        let mut templates = self.unnumbered_templates()?;
        let fields = fields_of(&templates);
        templates.iter_mut().for_each(|template| template.number_fields(&fields));
        Ok(Some(templates).filter(|templates| !templates.is_empty()).map(Arc::new))
    }

    /// The columns of the dataset that commands name, each once, in the order of their numbers in the templates.
    pub fn dataset_fields(&self) -> Vec<String> {
        fields_of(&self.unnumbered_templates().unwrap_or_default())
    }

    /// Whether a command has the name of the script in it.
    pub fn names_script(&self) -> bool {
        self.unnumbered_templates().unwrap_or_default().iter().any(Template::names_script)
    }

    fn unnumbered_templates(&self) -> Result<Vec<Template>, TemplateError> {
        let script = self.script.as_ref();
        let of_load = self.load_command.iter().map(|load| template_of(&load.template, script));
        self.commands.iter().map(|command| command.template(script)).chain(of_load).collect()
    }

    /// The errors after which requests are sent again: those that the plan names, and the loss of its script; `None` without any.
    pub fn sent_again_after(&self) -> Option<Retry> {
        let mut retry = self.retry.clone();
        if self.script.is_some() {
            let retry = retry.get_or_insert(Retry { kinds: Vec::new(), for_ns: RETRY_FOR_NS });
            retry.kinds.push(RetryKind::NoScript);
        }
        retry
    }

    /// Whether the plan has no command of the user.
    pub fn has_no_commands(&self) -> bool {
        self.commands.is_empty() && self.load_command.is_none()
    }

    /// Whether a server counts one command for each request of a command of the user, as far as is known here.
    pub fn commands_count_once(&self) -> bool {
        let mut templates = self.commands.iter().map(|command| command.template(self.script.as_ref()));
        templates.all(|template| template.is_ok_and(|template| template.counts_once()))
    }

    /// Times that a load sends its command for each record of commands; 1 where it stores plain values.
    pub fn stores_per_record(&self) -> u64 {
        self.load_command.as_ref().map_or(1, |load| load.per_record)
    }

    /// The verb of the command that the load stores with; `None` where it stores plain values alone.
    pub fn load_verb(&self) -> Option<Verb> {
        self.load_command.as_ref().and_then(|_| Verb::of_command(self.commands.len()))
    }
}

/// The columns of the dataset that templates name, each once.
fn fields_of(templates: &[Template]) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for name in templates.iter().flat_map(Template::field_names) {
        if !fields.iter().any(|known| known == name) {
            fields.push(name.to_owned());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Command, Load, LoadCommand, Phase, Stop};

    #[test]
    fn commands_that_read_what_nothing_stores_are_found() {
        let without_data = |texts: &[&str], load: Option<Load>, load_command: Option<&str>| {
            let load = load.map(|load| Phase {
                name: "load".to_owned(),
                work: Work::Load(load),
                stop: Stop::default(),
                recorded: false,
            });
            let plan = Plan {
                commands: texts.iter().map(|text| Command::unnamed(text)).collect(),
                load_command: load_command
                    .map(|text| LoadCommand { template: text.to_owned(), per_record: 1 }),
                phases: load.into_iter().collect(),
                ..Plan::default()
            };
            let names = plan.commands_without_data();
            names.iter().map(|without_data| without_data.name.to_owned()).collect::<Vec<String>>().join(",")
        };
        let (range, get) = ("LRANGE __key__ 0 9", "GETRANGE __key__ 0 9");
        let plain = || Some(Load { commands: true, ..Load::default() });
        assert_eq!(without_data(&[range, get, "PING"], None, None), "lrange,getrange");
        assert_eq!(without_data(&[range, get], plain(), None), "lrange");
        assert_eq!(without_data(&[range, get], Some(Load::default()), None), "lrange,getrange");
        assert_eq!(without_data(&[range, get], plain(), Some("RPUSH __key__ x")), "");
        assert_eq!(without_data(&[range, "LPUSH __key__ x"], None, None), "");
        assert_eq!(without_data(&[range, "NEW.COMMAND __key__"], None, None), "");
        assert_eq!(without_data(&["LRANGE"], None, None), "", "a command whose words were hidden");
    }
}
