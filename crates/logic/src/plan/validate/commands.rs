//! Checks of the commands that the user gives as templates.

use super::field::{Field, FieldPath};
use super::invalid::{Invalid, refuse, refuse_if, within};
use super::records::value_size;
use super::retry::sent_again_fits;
use crate::cluster::slot_of;
use crate::plan::command::NAME_MAX_BYTES;
use crate::plan::{Command, Dataset, LoadCommand, Phase, Plan, Route, SCRIPT_MAX_BYTES, Work};
use crate::protocol::resp::template::{Template, TemplateError};
use crate::protocol::{COMMANDS_MAX, Verb};
use crate::time::{MILLISECOND, typed_time};

/// Time beyond its own bound that the server may need to end a command that waits, in nanoseconds: an idle Redis looks every 100 ms.
const WAIT_SLACK_NS: u64 = 200 * MILLISECOND;

/// The reason why memcached has no commands of the user.
const ONLY_RESP: &str = "it is accepted only with --protocol resp2 or resp3";

/// Most times that a load sends its command for each record.
const PER_RECORD_MAX: u64 = 10_000;

/// Refuses commands that cannot be read or told apart, that nothing asks for, or that do not fit the load.
pub fn fit(plan: &Plan) -> Result<(), Invalid> {
    commands(plan)?;
    dataset(plan)?;
    script(plan)
}

fn commands(plan: &Plan) -> Result<(), Invalid> {
    let missing = plan.mixes().find_map(|(index, mix)| {
        let is_missing = |verb: &Verb| verb.command().is_some_and(|place| place >= plan.commands.len());
        mix.ops.iter().map(|&(verb, _)| verb).find(is_missing).map(|verb| (index, verb))
    });
    if let Some((index, verb)) = missing {
        let expected = "it is accepted only with --command, which says what it is";
        return refuse(Field::Operations.of(index), verb.name(), expected);
    }
    let is_resp = plan.protocol.is_resp();
    if let Some(load) = &plan.load_command {
        let path = Field::LoadCommand;
        refuse_if(!is_resp, path, &load.template, ONLY_RESP)?;
        load_command(plan, load)?;
    }
    let Some(first) = plan.commands.first() else { return Ok(()) };
    let path = Field::CommandTemplate.of(0);
    refuse_if(!is_resp, path, &first.template, ONLY_RESP)?;
    let expected = format!("expected at most {COMMANDS_MAX} commands");
    let commands = plan.commands.len() + usize::from(plan.load_command.is_some());
    refuse_if(commands > COMMANDS_MAX, Field::Commands, commands, expected)?;
    for (place, command) in plan.commands.iter().enumerate() {
        template(plan, place, command)?;
        name(plan, place, command)?;
    }
    Ok(())
}

fn name(plan: &Plan, place: usize, command: &Command) -> Result<(), Invalid> {
    let path = Field::CommandName.of(place);
    let expected = format!(
        "expected a small letter, then small letters, digits, _ and -, at most {NAME_MAX_BYTES} in all"
    );
    refuse_if(!Command::is_name(&command.name), path, &command.name, expected)?;
    let expected =
        "expected another name: it is that of an operation already; --command NAME=COMMAND gives one";
    refuse_if(command.is_taken(), path, &command.name, expected)?;
    let is_of_load = plan.load_command.is_some() && command.name == LoadCommand::NAME;
    refuse_if(is_of_load, path, &command.name, "expected another name: requests of --load-command have it")?;
    let is_known = plan.commands[..place].iter().any(|other| other.name == command.name);
    refuse_if(is_known, path, &command.name, "expected a name for each command that no other has")
}

fn template(plan: &Plan, place: usize, command: &Command) -> Result<(), Invalid> {
    let (path, text) = (Field::CommandTemplate.of(place), &command.template);
    let read = if command.inline { Template::parse_inline } else { Template::parse };
    let template = parsed(path, text, read)?;
    let is_asked = |verb| plan.mixes().any(|(_, mix)| mix.any_op(|asked| Some(asked) == verb));
    let expected = format!("it is accepted only with {} in --mix", command.name);
    refuse_if(!is_asked(Verb::of_command(place)), path, text, expected)?;
    if let Some(waits_ns) = template.waits_ns() {
        let is_single = plan.groups.iter().all(|group| group.depth.is_one());
        let expected =
            "expected --depth 1: what a connection asks behind a command that waits would wait as well";
        refuse_if(!is_single, path, text, expected)?;
        let least_ns = waits_ns.saturating_add(WAIT_SLACK_NS);
        let expected = format!(
            "expected a --timeout of at least {}: the command waits for up to {}, and a server may end the wait 200 ms late",
            typed_time(least_ns),
            typed_time(waits_ns)
        );
        refuse_if(least_ns > plan.timeout_ns, path, text, expected)?;
    }
    if let Some(sequence) = template.sequence() {
        let is_single = plan.groups.iter().all(|group| group.depth.is_one());
        let expected = "expected --depth 1: a request between WATCH or MULTI and the end of its transaction would be part of it, or end it";
        refuse_if(sequence.divides_transaction() && !is_single, path, text, expected)?;
        let expected = "expected only reads between WATCH and MULTI, which --cluster repeats where the transaction has to go elsewhere";
        let is_repeated = plan.route == Route::Cluster && sequence.writes_before_transaction();
        refuse_if(is_repeated, path, text, expected)?;
        let expected = "expected a single command with --command-expect: a sequence has no hits and misses";
        refuse_if(command.expect.is_some(), path, text, expected)?;
    }
    has_what_it_names(plan, path, text, &template)?;
    keeps_slot(plan, path, text, &template)
}

/// Refuses a command that the load cannot store with.
fn load_command(plan: &Plan, load: &LoadCommand) -> Result<(), Invalid> {
    let (path, text) = (Field::LoadCommand, &load.template);
    let template = parsed(path, text, Template::parse)?;
    let expected =
        "expected a command that stores whatever the server holds, such as 'RPUSH __key__ __value__'";
    refuse_if(template.reads() || template.tells() || template.waits_ns().is_some(), path, text, expected)?;
    refuse_if(template.sequence().is_some(), path, text, "expected a single command")?;
    let expected = "expected one record in it, __key__: every record is stored in its turn";
    refuse_if(template.records() > 1 || !template.has_key(), path, text, expected)?;
    within(Field::LoadPerRecord, load.per_record, 1, PER_RECORD_MAX)?;
    let stores = |phase: &Phase| !matches!(&phase.work, Work::Load(load) if !load.commands);
    let expected = "it is accepted only where --command asks for what it stores";
    refuse_if(!plan.phases.iter().all(stores), path, text, expected)?;
    has_what_it_names(plan, path, text, &template)?;
    keeps_slot(plan, path, text, &template)
}

/// Refuses a command with a place for which nothing is given that fills it.
fn has_what_it_names(
    plan: &Plan,
    path: impl Into<FieldPath>,
    text: &str,
    template: &Template,
) -> Result<(), Invalid> {
    let path = path.into();
    if let Some(field) = template.field_names().next().filter(|_| plan.dataset.is_none()) {
        let expected = format!("expected --dataset FILE, whose column '{field}' is to be in the command");
        return refuse(path, text, expected);
    }
    let expected = "expected --script FILE, whose name is to be in the command in place of __script__";
    refuse_if(template.names_script() && plan.script.is_none(), path, text, expected)
}

/// Refuses a dataset whose form is not known, or that no command takes anything of.
fn dataset(plan: &Plan) -> Result<(), Invalid> {
    let Some(dataset) = &plan.dataset else { return Ok(()) };
    let (field, path) = (Field::Dataset, &dataset.path);
    refuse_if(!plan.protocol.is_resp(), field, path, ONLY_RESP)?;
    let expected = format!("expected a file whose name ends in {}", Dataset::ENDINGS);
    refuse_if(dataset.form().is_none(), field, path, expected)?;
    let expected = "it is accepted only with __field:NAME__ in a --command or --load-command, which is the column of that name";
    refuse_if(plan.dataset_fields().is_empty(), field, path, expected)
}

/// Refuses a script that cannot be loaded, or that no command names.
fn script(plan: &Plan) -> Result<(), Invalid> {
    let Some(script) = &plan.script else { return Ok(()) };
    let (field, path) = (Field::Script, &script.path);
    refuse_if(!plan.protocol.is_resp(), field, path, ONLY_RESP)?;
    let len = script.text.len();
    refuse_if(len == 0, field, path, "expected a script, and the file is empty")?;
    let expected = format!("expected a script of at most {SCRIPT_MAX_BYTES} bytes, and this one has {len}");
    refuse_if(len > SCRIPT_MAX_BYTES, field, path, expected)?;
    let expected = "it is accepted only with __script__ in a --command or --load-command, such as 'EVALSHA __script__ 1 __key__'";
    refuse_if(!plan.names_script(), field, path, expected)?;
    sent_again_fits(plan, |is_so, expected| refuse_if(is_so, field, path, expected))
}

fn parsed(
    path: impl Into<FieldPath>,
    text: &str,
    read: fn(&str) -> Result<Template, TemplateError>,
) -> Result<Template, Invalid> {
    let path = path.into();
    let template = read(text).or_else(|error| {
        let expected = format!("{error}; a command such as 'ZADD __key__ __number__ __value__' is accepted");
        refuse(path, text, expected)
    })?;
    let lengths = (0..template.fill_count()).filter_map(|place| template.lengths(place));
    lengths.into_iter().try_for_each(|lengths| value_size(path, lengths))?;
    Ok(template)
}

/// Refuses a command with keys of other slots than that of its record, where slots decide on the node.
fn keeps_slot(
    plan: &Plan,
    path: impl Into<FieldPath>,
    text: &str,
    template: &Template,
) -> Result<(), Invalid> {
    let has_tag = plan.data.key_tag.is_some();
    // Braces around a key that has a tag make another tag of it.
    let expected = match has_tag {
        true => {
            "expected keys that have the tag of __key__, such as __key__, __key2__ or __key__:x, where slots decide on the node"
        }
        false => {
            "expected keys that have the slot of __key__ whatever it is, such as __key__ or {__key__}:x, where slots decide on the \
             node; several records need --key-tag"
        }
    };
    refuse_if(plan.route.deals_slots() && !template.keeps_slot(has_tag, slot_of), path, text, expected)
}
