//! The question to memcached whether it demands a login, before one is sent: a server without users stores it as an item.

use std::io;
use std::sync::Arc;

use pummel_logic::plan::detect::Question;
use pummel_logic::plan::{Plan, Protocol};

use super::detect::{self, Undetected};
use super::error::{LoginUnsent, RunError};
use crate::backend::Backend;
use crate::resolve::Server;

/// Whether the login of a plan is an item where a server demands none: memcached's text and meta protocols send it by a `set`.
fn is_stored_where_not_demanded(plan: &Plan) -> bool {
    plan.login.is_some() && matches!(plan.protocol, Protocol::Text | Protocol::Meta)
}

/// Makes sure that every server demands the login of a plan, where one that does not would store it. All servers are asked at
/// once, on connections of `backend`, until `goes_on` returns false.
///
/// # Errors
/// Returns [`RunError::Login`] for the first server that does not say that it demands a login, [`RunError::Interrupted`] when
/// `goes_on` returned false before all had said so, and [`RunError::Kernel`] when no backend can be made.
pub(super) fn ensure_demanded<B: Backend>(
    plan: &Plan,
    servers: &Arc<[Server]>,
    backend: impl FnOnce() -> io::Result<B>,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    if !is_stored_where_not_demanded(plan) {
        return Ok(());
    }
    let backend = backend().map_err(|error| {
        RunError::Kernel("the servers cannot be asked whether they demand a login", error)
    })?;
    let answers = detect::ask_all(backend, servers, plan.timeout_ns, &[Question::Version], goes_on);
    for (server, answer) in servers.iter().zip(answers) {
        let why = match answer {
            Ok(spoken) if spoken.protocol == Protocol::Text && spoken.login.is_some() => continue,
            Ok(spoken) if spoken.protocol == Protocol::Text => LoginUnsent::NotDemanded,
            Ok(spoken) => LoginUnsent::Unknown(format!("answered as {}", spoken.words())),
            Err(Undetected::Refused { said, .. }) => LoginUnsent::Unknown(format!("said \"{said}\"")),
            Err(Undetected::Foreign { did, .. }) => LoginUnsent::Unknown(did),
            Err(Undetected::Unreachable { why, .. }) => LoginUnsent::Unreachable(why),
            // Servers are not compared with each other here.
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
