//! Connections that a server accepted and then refused, because it has too many, and the pauses before new attempts.

use std::collections::{BTreeMap, HashMap};

use pummel_logic::rng::{Stream, below};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::connections::{Refusal, TroubleKind};
use pummel_measure::trouble::{CloseReason, says_full};

use crate::worker::opening::retry_pause;

/// Longest gap between two consecutive refusals of a server, in nanoseconds. The longest pause between two attempts is
/// shorter.
const CONSECUTIVE_GAP_MAX_NS: Nanos = 2 * SECOND;

/// Most bytes of a server's message that are kept.
const WORDS_MAX_BYTES: usize = 200;

/// The refusals of all servers in one worker.
#[derive(Debug)]
pub struct Refusals {
    /// The refusals of each server that has refused connections, by the index of the server in the Plan.
    servers: BTreeMap<u32, ServerRefusals>,
    /// Messages of servers that have too many connections, by the slot of the connection; only connections that are
    /// still open.
    said: HashMap<u32, Vec<u8>>,
    /// Servers of the connections that were closed without an answer and without such a message, by slot. These
    /// connections count as refused if their server refuses others with a message later. An entry is removed when the
    /// slot is used again.
    wordless: HashMap<u32, u32>,
    /// Random numbers that spread the attempts to open refused connections.
    chance: Stream,
    draws: u64,
}

/// The refusals of one server.
#[derive(Debug, Default)]
struct ServerRefusals {
    /// Number of connections that the server accepted and then refused.
    attempts: u64,
    /// The first message of the server.
    words: Vec<u8>,
    /// Number of consecutive refusals.
    consecutive: u32,
    /// Time of the first of the consecutive refusals, or a later one that [`Refusals::restart_since`] has set.
    since: Nanos,
    /// Time of the last refusal.
    last: Nanos,
}

impl Refusals {
    /// Creates an empty record of refusals. `chance` spreads the attempts to open refused connections.
    pub fn new(chance: Stream) -> Refusals {
        Refusals {
            servers: BTreeMap::new(),
            said: HashMap::new(),
            wordless: HashMap::new(),
            chance,
            draws: 0,
        }
    }

    /// Whether any server has refused a connection.
    pub fn any(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Keeps a message of the server on the connection in `slot` if it says that the server takes no more
    /// connections.
    pub fn note_words(&mut self, slot: usize, message: &[u8]) {
        if says_full(message) {
            let words = message.strip_prefix(b"-").unwrap_or(message).trim_ascii_end();
            self.said.insert(slot as u32, words[..words.len().min(WORDS_MAX_BYTES)].to_vec());
        }
    }

    /// Forgets all that is known about the previous connection in `slot`.
    #[inline]
    pub fn begin_connection(&mut self, slot: usize) {
        if !self.said.is_empty() {
            self.said.remove(&(slot as u32));
        }
        if !self.wordless.is_empty() {
            self.wordless.remove(&(slot as u32));
        }
    }

    /// Notes that a server closed the connection in `slot` at `now`. Returns whether that was a refusal: the server
    /// had said that it takes no more connections, or it had not `answered` on this connection and had refused
    /// another a short time ago.
    pub fn end_connection(&mut self, slot: usize, server: u32, answered: bool, now: Nanos) -> bool {
        let words = self.said.remove(&(slot as u32));
        if words.is_none() && (answered || !self.refused_lately(server, now)) {
            if !answered {
                self.wordless.insert(slot as u32, server);
            }
            return false;
        }
        self.count(server, words.unwrap_or_default(), now);
        true
    }

    /// Whether a server that has refused others closed the last connection in `slot` without an answer and without a
    /// message.
    pub fn ended_without_a_word(&self, slot: usize) -> bool {
        self.wordless.get(&(slot as u32)).is_some_and(|server| self.servers.contains_key(server))
    }

    /// Notes that a server ended a handshake at `now` for a reason, which has words if the server sent a message. Returns whether
    /// that was a refusal because of too many connections.
    pub fn end_handshake(&mut self, server: u32, reason: &CloseReason, now: Nanos) -> bool {
        let said = reason.words.as_deref().filter(|_| reason.kind == Some(TroubleKind::Full));
        if said.is_none() && (reason.words.is_some() || !self.refused_lately(server, now)) {
            return false;
        }
        let words = said.unwrap_or_default().as_bytes();
        self.count(server, words[..words.len().min(WORDS_MAX_BYTES)].to_vec(), now);
        true
    }

    /// The pause before the next attempt to open a connection to `server`, in nanoseconds. `failures` is the number
    /// of consecutive failures of this connection. The longest pause doubles with these failures or with the
    /// consecutive refusals of the server, whichever are more; the pause is a random time from half of it to all of
    /// it.
    pub fn pause(&mut self, server: u32, failures: u32) -> Nanos {
        let consecutive = self.servers.get(&server).map_or(0, |known| known.consecutive);
        let longest = retry_pause(consecutive.max(failures).max(1));
        self.draws += 1;
        longest / 2 + below(self.chance.draw(self.draws), longest / 2 + 1)
    }

    /// Time since which a server has refused connections without a longer gap; `None` if it does not refuse them now.
    pub fn since(&self, server: u32, now: Nanos) -> Option<Nanos> {
        self.refused_lately(server, now).then(|| self.servers[&server].since)
    }

    /// Sets the time since which a server has refused connections to `now`, because another connection to it is still
    /// at work. The pauses keep their length, since a full server serves the connections that it has accepted.
    pub fn restart_since(&mut self, server: u32, now: Nanos) {
        if let Some(known) = self.servers.get_mut(&server) {
            known.since = now;
        }
    }

    /// Takes the refusals of all servers. `connections` returns, for a server, the number of connections that the
    /// worker has to it and the number of those that it refused at the last attempt.
    pub fn take(&mut self, connections: impl Fn(u32) -> (u64, u64)) -> Vec<Refusal> {
        let of = |(server, known): (u32, ServerRefusals)| {
            let (connections, refused) = connections(server);
            let attempts = known.attempts.max(refused);
            let words = String::from_utf8_lossy(&known.words).into_owned();
            Refusal { server, connections, refused, attempts, words, ..Refusal::default() }
        };
        std::mem::take(&mut self.servers).into_iter().map(of).collect()
    }

    /// Whether a server has refused a connection within [`CONSECUTIVE_GAP_MAX_NS`] before `now`.
    fn refused_lately(&self, server: u32, now: Nanos) -> bool {
        self.servers
            .get(&server)
            .is_some_and(|known| now.saturating_sub(known.last) <= CONSECUTIVE_GAP_MAX_NS)
    }

    /// Counts a refusal of a server, as a consecutive one if the last was a short time ago.
    fn count(&mut self, server: u32, words: Vec<u8>, now: Nanos) {
        let goes_on = self.refused_lately(server, now);
        let known = self.servers.entry(server).or_default();
        known.attempts += 1;
        if known.words.is_empty() {
            known.words = words;
        }
        if !goes_on {
            (known.consecutive, known.since) = (0, now);
        }
        known.consecutive = known.consecutive.saturating_add(1);
        known.last = now;
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::protocol::{Fault, ServerError};

    use pummel_logic::time::MILLISECOND;

    use super::*;

    const FULL: &[u8] = b"ERROR Too many open connections\r\n";

    fn refusals() -> Refusals {
        Refusals::new(Stream::from_seed(7))
    }

    #[test]
    fn words_refuse_a_connection_and_its_end_without_words_does_among_others_that_were_refused() {
        let mut refusals = refusals();
        assert!(!refusals.end_connection(0, 0, false, 5), "no server has refused anything");
        refusals.note_words(1, b"CLIENT_ERROR bad data chunk");
        assert!(!refusals.end_connection(1, 0, true, 10), "an ordinary error");
        refusals.note_words(2, FULL);
        assert!(refusals.end_connection(2, 0, true, 20), "the words are no answer");
        assert!(refusals.end_connection(3, 0, false, 30), "a reset may take the words with it");
        assert!(!refusals.end_connection(4, 0, true, 40), "it had answered");
        assert!(!refusals.end_connection(5, 1, false, 50), "another server");
        assert!(
            !refusals.end_connection(6, 0, false, 31 + CONSECUTIVE_GAP_MAX_NS),
            "long after the last refusal"
        );
        let told = refusals.take(|server| (10, u64::from(server) + 2));
        let words = "ERROR Too many open connections".to_owned();
        let counts = Refusal { connections: 10, refused: 2, attempts: 2, ..Refusal::default() };
        assert_eq!(told, [Refusal { words, ..counts }]);
        assert!(!refusals.any());
    }

    #[test]
    fn a_connection_that_ended_without_a_word_was_refused_where_the_server_says_so_to_others_later() {
        let mut refusals = refusals();
        assert!(!refusals.end_connection(1, 0, false, 5));
        assert!(!refusals.ended_without_a_word(1), "no server has refused anything");
        refusals.note_words(2, FULL);
        assert!(refusals.end_connection(2, 0, false, 6));
        assert!(refusals.ended_without_a_word(1) && !refusals.ended_without_a_word(2));
        refusals.begin_connection(1);
        assert!(!refusals.ended_without_a_word(1), "it was opened again");
    }

    #[test]
    fn what_was_said_belongs_to_its_connection_and_not_to_the_next_one_in_its_slot() {
        let mut refusals = refusals();
        refusals.note_words(2, FULL);
        refusals.begin_connection(2);
        assert!(!refusals.end_connection(2, 0, true, 20));
    }

    #[test]
    fn a_handshake_is_refused_by_words_alone_or_by_an_end_among_refusals() {
        let mut refusals = refusals();
        let ended = CloseReason::new(Fault::Client, 0);
        let said = |kind| CloseReason { words: Some("said".into()), kind: Some(kind), ..ended.clone() };
        let wrong = said(TroubleKind::HandshakeRefused(ServerError::LoginWrong));
        assert!(!refusals.end_handshake(0, &wrong, 10));
        assert!(!refusals.end_handshake(0, &ended, 10));
        assert!(refusals.end_handshake(0, &said(TroubleKind::Full), 10));
        assert!(refusals.end_handshake(0, &ended, 20));
        assert!(!refusals.end_handshake(0, &wrong, 30));
    }

    #[test]
    fn the_pause_doubles_with_the_refusals_of_a_server_up_to_a_second_and_is_spread() {
        let mut refusals = refusals();
        for (refused, longest_ms) in [(1, 10), (2, 20), (5, 160), (8, 1_000), (500, 1_000)] {
            let known = refusals.servers.get(&0).map_or(0, |known| known.consecutive);
            (known..refused).for_each(|_| refusals.count(0, Vec::new(), 100));
            let pauses: Vec<Nanos> = (0..50).map(|_| refusals.pause(0, 1)).collect();
            let (shortest, longest) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
            assert!(*longest <= longest_ms * MILLISECOND, "{refused}: {longest}");
            assert!(2 * shortest >= longest_ms * MILLISECOND, "{refused}: {shortest}");
            assert!(longest - shortest > longest_ms * MILLISECOND / 5, "{refused}: {shortest} to {longest}");
        }
        assert!(refusals.pause(1, 8) >= SECOND / 2, "the failures of the connection itself count too");
        refusals.count(0, Vec::new(), 101 + CONSECUTIVE_GAP_MAX_NS);
        assert!(refusals.pause(0, 1) <= 10 * MILLISECOND, "consecutive refusals begin anew");
        assert_eq!(refusals.since(0, 101 + CONSECUTIVE_GAP_MAX_NS), Some(101 + CONSECUTIVE_GAP_MAX_NS));
    }
}
