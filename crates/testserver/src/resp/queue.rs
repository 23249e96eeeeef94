//! The transaction of a connection: what it watches, and the commands that wait for EXEC.

use pummel_logic::protocol::Keys;

/// The transaction of a connection, and what it watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// The watched keys with the CAS uniques that they had; 0 for a key that did not exist.
    pub(super) watched: Vec<(Vec<u8>, u64)>,
    /// The commands since MULTI; `None` outside of a transaction.
    pub(super) queue: Option<Queue>,
}

/// The commands of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) commands: Vec<Words>,
    /// Whether a command could not be queued.
    pub(super) is_bad: bool,
    /// Whether ASKING was sent before MULTI.
    pub(super) is_asking: bool,
}

/// The words of a command that is kept.
#[derive(Clone, Debug)]
pub(super) struct Words {
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

    pub(super) fn keys(&self) -> Keys<'_> {
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
    pub(super) fn keep(&mut self, name: &str, words: Keys<'_>) -> bool {
        match &mut self.queue {
            Some(queue) if !matches!(name, "multi" | "exec" | "discard" | "watch" | "quit") => {
                queue.commands.push(Words::of(words));
                true
            }
            _ => false,
        }
    }
}
