//! The login of a plan: its password, the handshake of every new connection, and the check that servers demand a
//! login.

use std::env::VarError;
use std::sync::Arc;

use pummel_logic::plan::detect::Question;
use pummel_logic::plan::{Plan, Protocol, Tracking};
use pummel_logic::protocol::Refused;
use pummel_logic::protocol::handshake::{self, Handshake};
use pummel_logic::secrets::Secret;

use super::detect::{Asking, Undetected};
use super::error::{LoginUnsent, RunError};
use super::inputs::Inputs;
use crate::backend::tls::Setup;
use crate::resolve::Server;

/// The handshake of every new connection of a plan, with the password of `inputs` or else that of [`password_of`].
pub(super) fn handshake_of(plan: &Plan, inputs: &Inputs) -> Result<Handshake, RunError> {
    let password = inputs.password.clone().map_or_else(|| password_of(plan), |known| Ok(Some(known)))?;
    let login = plan.login.as_ref().zip(password.as_ref()).map(|(login, password)| handshake::Credentials {
        user: login.user.as_bytes(),
        password: password.reveal().as_bytes(),
    });
    let handshake = plan.protocol.handshake(login, plan.database);
    let handshake =
        handshake.map_err(|Refused(why)| RunError::Plan(format!("the login cannot be sent: {why}")))?;
    Ok(match plan.tracking {
        Some(tracking) => handshake.with_tracking(tracking == Tracking::Broadcast),
        None => handshake,
    })
}

/// Reads the password of the plan's user from the password file or the environment, since a Plan holds no password;
/// `None` for a plan without a login. The file may be a pipe that can be read only once: a caller that has read it
/// passes the password on in [`Inputs::password`].
///
/// # Errors
/// Returns [`RunError::Plan`] when the password file cannot be read or has an empty first line, and when the plan
/// names no file and the environment variable `PUMMEL_PASSWORD` is not set or not UTF-8.
pub fn password_of(plan: &Plan) -> Result<Option<Secret>, RunError> {
    let Some(login) = &plan.login else { return Ok(None) };
    let Some(path) = &login.password_file else {
        let missing = |why| {
            let why = match why {
                VarError::NotPresent => "is not set",
                VarError::NotUnicode(_) => "is not UTF-8",
            };
            RunError::Plan(format!("a user needs a password: PUMMEL_PASSWORD {why}"))
        };
        return std::env::var("PUMMEL_PASSWORD").map(|word| Some(Secret::new(word))).map_err(missing);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| RunError::Plan(format!("the password cannot be read from {path}: {error}")))?;
    match text.lines().next().unwrap_or_default() {
        "" => {
            Err(RunError::Plan(format!("the password cannot be read from {path}: its first line is empty")))
        }
        password => Ok(Some(Secret::new(password))),
    }
}

/// Whether a server that demands no login would store the login as an item: memcached's text and meta protocols send
/// it as a `set`.
fn is_stored_where_not_demanded(plan: &Plan) -> bool {
    plan.login.is_some() && matches!(plan.protocol, Protocol::Text | Protocol::Meta)
}

/// Asks all servers at once whether they demand a login, before the login is sent to one that would store it as an
/// item. Plans whose login cannot become an item ask nothing. The servers are asked until `goes_on` returns false.
///
/// # Errors
/// Returns [`RunError::Login`] for the first server that does not confirm that it demands a login,
/// [`RunError::Interrupted`] when `goes_on` returned false before all servers had answered, and [`RunError::Kernel`]
/// when the servers cannot be asked.
pub(super) fn ensure_login_demanded(
    plan: &Plan,
    servers: &Arc<[Server]>,
    tls: Option<&Setup>,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    if !is_stored_where_not_demanded(plan) {
        return Ok(());
    }
    let asking =
        Asking { socket: &plan.socket, tls, timeout_ns: plan.timeout_ns, questions: &[Question::Version] };
    let answers = asking.ask(servers, goes_on).map_err(|error| {
        RunError::Kernel("the servers cannot be asked whether they demand a login", error)
    })?;
    for (server, answer) in servers.iter().zip(answers) {
        let why = match answer {
            Ok(spoken) if spoken.protocol == Protocol::Text && spoken.login.is_some() => continue,
            Ok(spoken) if spoken.protocol == Protocol::Text => LoginUnsent::NotDemanded,
            Ok(spoken) => LoginUnsent::Unknown(format!("answered as {}", spoken.words())),
            Err(Undetected::Refused { said, .. }) => LoginUnsent::Unknown(format!("said \"{said}\"")),
            Err(Undetected::Foreign { did, .. }) => LoginUnsent::Unknown(did),
            Err(Undetected::Unreachable { kind, why, .. }) => LoginUnsent::Unreachable(kind, why),
            // The servers are not compared with each other here.
            Err(Undetected::Interrupted | Undetected::Different(_)) => return Err(RunError::Interrupted),
        };
        return Err(RunError::Login { server: server.name().to_owned(), why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Login;

    use super::*;

    #[test]
    fn only_a_login_that_is_a_set_may_become_an_item() {
        let login = Some(Login { user: "joe".to_owned(), password_file: None });
        let table = [
            (Protocol::Text, true),
            (Protocol::Meta, true),
            (Protocol::Binary, false),
            (Protocol::Resp2, false),
            (Protocol::Resp3, false),
        ];
        for (protocol, is_stored) in table {
            let plan = Plan { protocol, login: login.clone(), ..Plan::default() };
            assert_eq!(is_stored_where_not_demanded(&plan), is_stored, "{protocol:?}");
            assert!(!is_stored_where_not_demanded(&Plan { protocol, ..Plan::default() }));
        }
    }
}
