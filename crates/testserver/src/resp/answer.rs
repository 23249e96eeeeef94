//! RESP from the server's side: commands are carried out and become replies.

use super::call::{Call, TOO_LARGE, error};
use super::command;
use super::queue::{Queue, Transaction};
use super::request::{Request, RespRequest};
use super::transaction;
use crate::context::Context;
use crate::contract::ASKED_FOR_ERROR;
use crate::owed::ReplyBuffer;

const SHUT_OUT: &str = "NOAUTH Authentication required.";

/// Carries out `request` and writes its reply.
pub(crate) fn answer(request: &Request<'_>, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
    let is_asking = std::mem::take(&mut context.session.is_asking) || context.session.transaction.is_asking();
    let words = match request.0 {
        RespRequest::Words(words) => words,
        RespRequest::TooLong => return error(TOO_LARGE, reply),
        RespRequest::Broken(why) => {
            context.session.is_closing = true;
            return error(&format!("ERR Protocol error: {why}"), reply);
        }
    };
    let name = words.key(0);
    let Some((place, command)) = command::find(name) else {
        context.session.transaction.spoil();
        let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
        let shown: String = name.chars().filter(|letter| !letter.is_control()).collect();
        return error(&format!("ERR unknown command '{shown}', with args beginning with: "), reply);
    };
    if !command.takes(words.count()) {
        context.session.transaction.spoil();
        let words = format!("ERR wrong number of arguments for '{}' command", command.name);
        return error(&words, reply);
    }
    if context.needs_login() && !matches!(command.name, "auth" | "hello" | "quit") {
        return error(SHUT_OUT, reply);
    }
    if let Some(cluster) = context.cluster {
        let (node, now, store) = (context.session.node, context.now, &mut *context.store);
        let is_present = |key: &[u8]| store.peek(key, now).is_some();
        let reads = context.session.is_readonly && command.reads();
        if let Some(refusal) = cluster.refusal(node, command.keys(words), (is_asking, reads), is_present) {
            context.session.transaction.spoil();
            return error(&refusal, reply);
        }
    }
    if context.session.transaction.keep(command.name, words) {
        return reply.push(b"+QUEUED\r\n");
    }
    context.calls.count(place, command.name);
    let mut call = Call { words, context, reply };
    match command.name {
        // ASKING before MULTI is for all of the transaction.
        "multi" => transaction::multi(&mut call, is_asking),
        "exec" if call.context.session.transaction.queue.is_some() => exec(&mut call),
        _ => (command.run)(&mut call),
    }
}

/// Carries out a transaction.
fn exec(call: &mut Call<'_, '_, '_>) {
    let Transaction { watched, queue } = std::mem::take(&mut call.context.session.transaction);
    let Queue { commands, is_bad, is_asking } = queue.unwrap_or_default();
    if is_bad {
        return call.error("EXECABORT Transaction discarded because of previous errors.");
    }
    let named = || commands.iter().filter_map(|words| Some((words, command::find(words.keys().key(0))?)));
    if let Some(cluster) = call.context.cluster {
        let keys: Vec<&[u8]> = named().flat_map(|(words, (_, known))| known.keys(words.keys())).collect();
        let reads = call.context.session.is_readonly && named().all(|(_, (_, known))| known.reads());
        let (node, now, store) = (call.context.session.node, call.context.now, &mut *call.context.store);
        let is_present = |key: &[u8]| store.peek(key, now).is_some();
        if let Some(refusal) = cluster.refusal(node, keys.into_iter(), (is_asking, reads), is_present) {
            return call.error(&refusal);
        }
    }
    if watched.iter().any(|(key, version)| transaction::version_of(call, key) != *version) {
        return call.reply.push(if call.context.session.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }
    call.head(b'*', commands.len());
    for (words, (place, known)) in named() {
        call.context.calls.count(place, known.name);
        (known.run)(&mut Call { words: words.keys(), context: call.context, reply: call.reply });
    }
}

/// Writes the answer to a request that was chosen to fail. Its first word shows that the server is at fault.
pub(crate) fn fail(reply: &mut ReplyBuffer) {
    error(&format!("IOERR {ASKED_FOR_ERROR}"), reply);
}

/// The name of the command that is asked for; `error` for one that is not understood.
pub(crate) fn verb(request: &Request<'_>) -> &'static str {
    match request.0 {
        RespRequest::Words(words) => command::find(words.key(0)).map_or("error", |(_, command)| command.name),
        RespRequest::TooLong | RespRequest::Broken(_) => "error",
    }
}
