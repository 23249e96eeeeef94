//! RESP from the server's side: commands are carried out and become replies.

use super::call::{Call, TOO_LARGE, error};
use super::command;
use super::request::{Asked, Request};
use crate::server::context::Context;
use crate::server::contract::ASKED_FOR_ERROR;
use crate::server::owed::Reply;

const SHUT_OUT: &str = "NOAUTH Authentication required.";

/// Carries out `request` and writes its reply.
pub(in crate::server) fn answer(request: &Request<'_>, context: &mut Context<'_>, reply: &mut Reply) {
    let words = match request.0 {
        Asked::Words(words) => words,
        Asked::TooLong => return error(TOO_LARGE, reply),
        Asked::Broken(why) => {
            context.session.leaving = true;
            return error(&format!("ERR Protocol error: {why}"), reply);
        }
    };
    let name = words.key(0);
    let Some((place, command)) = command::find(name) else {
        let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
        let shown: String = name.chars().filter(|letter| !letter.is_control()).collect();
        return error(&format!("ERR unknown command '{shown}', with args beginning with: "), reply);
    };
    if !command.takes(words.count()) {
        let words = format!("ERR wrong number of arguments for '{}' command", command.name);
        return error(&words, reply);
    }
    if context.is_shut_out() && !matches!(command.name, "auth" | "hello" | "quit") {
        return error(SHUT_OUT, reply);
    }
    context.calls.count(place, command.name);
    (command.run)(&mut Call { words, context, reply });
}

/// The answer to a request that was chosen to fail. Its first word is one that says that the server is at fault.
pub(in crate::server) fn fail(reply: &mut Reply) {
    error(&format!("TRYAGAIN {ASKED_FOR_ERROR}"), reply);
}

/// The name of the command that is asked for; `error` for one that is not understood.
pub(in crate::server) fn verb(request: &Request<'_>) -> &'static str {
    match request.0 {
        Asked::Words(words) => command::find(words.key(0)).map_or("error", |(_, command)| command.name),
        Asked::TooLong | Asked::Broken(_) => "error",
    }
}
