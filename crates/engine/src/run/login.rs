//! The handshake of every new connection: the version of the protocol and the login.

use pummel_logic::plan::Plan;
use pummel_logic::protocol::Refused;
use pummel_logic::protocol::handshake::{self, Handshake};

use super::error::RunError;
use super::inputs::Inputs;

/// The handshake of every new connection of a plan.
pub(super) fn handshake_of(plan: &Plan, inputs: &Inputs) -> Result<Handshake, RunError> {
    let password = inputs.password.clone().map_or_else(|| password_of(plan), |known| Ok(Some(known)))?;
    let login = plan.login.as_ref().zip(password.as_ref()).map(|(login, password)| handshake::Credentials {
        user: login.user.as_bytes(),
        password: password.as_bytes(),
    });
    let handshake = plan.protocol.handshake(login, plan.database);
    handshake.map_err(|Refused(why)| RunError::Plan(format!("the login cannot be sent: {why}")))
}

/// The password of the plan's user, which no Plan holds; `None` for a plan without a login. The password is read from
/// where the plan says, which may be a pipe that can be read only once: a caller hands the password over as
/// [`Inputs::password`].
///
/// # Errors
/// Returns [`RunError::Plan`] when the file of the password cannot be read, or when the plan names no file and the
/// environment variable `PUMMEL_PASSWORD` is not set.
pub fn password_of(plan: &Plan) -> Result<Option<String>, RunError> {
    let Some(login) = &plan.login else { return Ok(None) };
    let Some(path) = &login.password_file else {
        let missing = |_| RunError::Plan("a user needs a password: PUMMEL_PASSWORD is not set".to_owned());
        return std::env::var("PUMMEL_PASSWORD").map(Some).map_err(missing);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| RunError::Plan(format!("the password cannot be read from {path}: {error}")))?;
    Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
}
