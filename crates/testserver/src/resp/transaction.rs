//! Transactions: commands that are queued between MULTI and EXEC, and the keys whose changes keep EXEC from carrying them out.

use super::call::Call;
use super::command;
use pummel_logic::protocol::Keys;

/// The transaction of a connection, and what it watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// The watched keys with the CAS uniques that they had; 0 for a key that did not exist.
    watched: Vec<(Vec<u8>, u64)>,
    /// What was queued since MULTI; `None` outside of a transaction.
    queue: Option<Queue>,
}

/// The commands of a transaction.
#[derive(Clone, Debug, Default)]
struct Queue {
    commands: Vec<Words>,
    /// Whether a command could not be queued.
    is_bad: bool,
    /// Whether ASKING was sent before MULTI.
    is_asking: bool,
}

/// The words of a command that is kept.
#[derive(Clone, Debug)]
struct Words {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Words {
    fn of(words: Keys<'_>) -> Words {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for n in 0..words.count() {
            bytes.extend_from_slice(words.key(n));
            ends.push(bytes.len() as u32);
        }
        Words { bytes, ends }
    }

    fn keys(&self) -> Keys<'_> {
        Keys::Many { bytes: &self.bytes, ends: &self.ends }
    }
}

impl Transaction {
    /// Whether commands of the transaction are served as ASKING lets them be.
    pub(super) fn is_asking(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_asking)
    }

    /// Takes in that a command was refused, so that EXEC carries out none.
    pub(super) fn spoil(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.is_bad = true;
        }
    }

    /// Queues a command, unless there is no transaction or the command ends it. Returns whether it is queued.
    pub(super) fn queue(&mut self, name: &str, words: Keys<'_>) -> bool {
        match &mut self.queue {
            Some(queue) if !matches!(name, "multi" | "exec" | "discard" | "watch" | "quit") => {
                queue.commands.push(Words::of(words));
                true
            }
            _ => false,
        }
    }
}

/// Begins a transaction.
pub(super) fn multi(call: &mut Call<'_, '_, '_>, is_asking: bool) {
    let transaction = &mut call.context.session.transaction;
    if transaction.queue.is_some() {
        return call.error("ERR MULTI calls can not be nested");
    }
    transaction.queue = Some(Queue { is_asking, ..Queue::default() });
    call.ok();
}

pub(super) fn discard(call: &mut Call<'_, '_, '_>) {
    match std::mem::take(&mut call.context.session.transaction).queue {
        Some(_) => call.ok(),
        None => call.error("ERR DISCARD without MULTI"),
    }
}

pub(super) fn watch(call: &mut Call<'_, '_, '_>) {
    if call.context.session.transaction.queue.is_some() {
        return call.error("ERR WATCH inside MULTI is not allowed");
    }
    for key in call.rest(1) {
        let version = version_of(call, key);
        let watched = &mut call.context.session.transaction.watched;
        if !watched.iter().any(|(known, _)| known == key) {
            watched.push((key.to_vec(), version));
        }
    }
    call.ok();
}

pub(super) fn unwatch(call: &mut Call<'_, '_, '_>) {
    call.context.session.transaction.watched.clear();
    call.ok();
}

/// Carries out a transaction.
pub(super) fn exec(call: &mut Call<'_, '_, '_>) {
    let Transaction { watched, queue } = std::mem::take(&mut call.context.session.transaction);
    let Some(Queue { commands, is_bad, is_asking }) = queue else {
        return call.error("ERR EXEC without MULTI");
    };
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
    if watched.iter().any(|(key, version)| version_of(call, key) != *version) {
        return call.reply.push(if call.context.session.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }
    call.head(b'*', commands.len());
    for (words, (place, known)) in named() {
        call.context.calls.count(place, known.name);
        (known.run)(&mut Call { words: words.keys(), context: call.context, reply: call.reply });
    }
}

fn version_of(call: &mut Call<'_, '_, '_>, key: &[u8]) -> u64 {
    let now = call.context.now;
    call.context.store.peek(key, now).map_or(0, |item| item.cas)
}
