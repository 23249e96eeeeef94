//! Checks that databases, hashes and commands of the user's own, which only RESP servers have, are asked of RESP
//! servers.

use super::bounds::{refuse, within};
use super::field::Field;
use super::invalid::Invalid;
use super::requests::{asks, mixes};
use crate::plan::{Plan, Work};
use crate::protocol::Verb;
use crate::protocol::resp::template::Template;

/// Largest number of a database: a server may have fewer.
const DATABASE_MAX: u64 = i32::MAX as u64;

/// Refuses databases, hashes and commands where no RESP server is asked, and commands that cannot be read.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let database = Field::Database.path();
    within(database, plan.database.into(), 0, DATABASE_MAX)?;
    if plan.database != 0 && !plan.protocol.is_resp() {
        let expected =
            "only RESP servers (Redis, Valkey) have databases: 0 is accepted beside other protocols";
        return refuse(database, plan.database, expected);
    }
    command(plan)?;
    let loads = |work: &Work| matches!(work, Work::Load(load) if load.hashes || load.commands);
    let loading = plan.phases.iter().position(|phase| loads(&phase.work));
    if let Some(index) = loading.filter(|_| !plan.protocol.is_resp()) {
        let expected = "hget, hset and command are accepted only with --protocol resp2 or resp3";
        return refuse(Field::Load.of(index), "hashes or commands", expected);
    }
    Ok(())
}

fn command(plan: &Plan) -> Result<(), Invalid> {
    let asking = mixes(plan).find(|(_, mix)| asks(mix, Verb::Command)).map(|(index, _)| index);
    let path = Field::Command.path();
    match (&plan.command, asking) {
        (None, Some(index)) => {
            let expected = "command is accepted only with --command, which says what it is";
            refuse(Field::Operations.of(index), "command", expected)
        }
        (None, None) => Ok(()),
        (Some(text), _) if !plan.protocol.is_resp() => {
            refuse(path, text, "it is accepted only with --protocol resp2 or resp3")
        }
        (Some(text), None) => refuse(path, text, "it is accepted only with command in --mix"),
        (Some(text), Some(_)) => Template::parse(text).map(|_| ()).or_else(|error| {
            let expected =
                format!("{error}; a command such as 'ZADD __key__ __number__ __value__' is accepted");
            refuse(path, text, expected)
        }),
    }
}
