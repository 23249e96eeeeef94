//! The time for which each server has been silent, as one worker sees it. A run gives up a server that is silent for
//! too long.

use pummel_logic::time::{NEVER, Nanos};

/// The state of silence of all servers of the plan.
#[derive(Debug)]
pub struct Silence {
    servers: Vec<ServerSilence>,
}

#[derive(Clone, Copy, Debug)]
struct ServerSilence {
    /// Time of the server's last reply.
    replied_at: Nanos,
    /// The slot of the connection on which the last reply came.
    replied_on: u32,
    /// Time since which the server has owed a reply that did not come; [`NEVER`] if there is none. A time before the
    /// last reply does not count.
    missed: Nanos,
    /// Number of connections to the server.
    connections: u32,
    /// Number of requests without reply, each on a different connection, that were sent before the last reply, which
    /// came at `passed_since` on another connection.
    passed: u32,
    passed_since: Nanos,
    /// Whether an attempt to open a connection has failed, and no accepted connection has counted as a reply since.
    is_closed: bool,
    /// Time at which the server last refused or reset an attempt to connect; 0 if it has accepted a connection since,
    /// or none was made.
    turned_away: Nanos,
}

impl Silence {
    /// Creates the state of `servers` servers to which no request was sent yet. `slots` has the server of each
    /// connection.
    pub fn new(servers: usize, slots: impl Iterator<Item = u32>) -> Silence {
        let unasked = ServerSilence {
            replied_at: 0,
            replied_on: 0,
            missed: NEVER,
            connections: 0,
            passed: 0,
            passed_since: 0,
            is_closed: false,
            turned_away: 0,
        };
        let mut silence = Silence { servers: vec![unasked; servers] };
        slots.for_each(|server| silence.servers[server as usize].connections += 1);
        silence
    }

    /// Time of a server's last reply; 0 without one.
    pub fn replied_at(&self, server: u32) -> Nanos {
        self.servers[server as usize].replied_at
    }

    /// Whether a server was asked anything: it has replied, or has owed a reply.
    pub fn was_asked(&self, server: u32) -> bool {
        let known = &self.servers[server as usize];
        known.replied_at > 0 || known.missed != NEVER
    }

    /// Notes a reply of a server at `at`, on the connection in `slot`.
    #[inline]
    pub fn answered(&mut self, server: u32, slot: usize, at: Nanos) {
        let known = &mut self.servers[server as usize];
        (known.replied_at, known.replied_on) = (at, slot as u32);
    }

    /// Notes that a request, sent to a server at `since` on the connection in `slot`, got no reply. If the server has
    /// replied on another connection since then, this proves no silence, unless most connections to the server have
    /// such a request: the server then stopped after that reply. Requests sent before the last reply on their own
    /// connection wait behind that reply, and are owed since then.
    pub fn missed(&mut self, server: u32, slot: usize, since: Nanos) {
        let known = &mut self.servers[server as usize];
        if since < known.replied_at && slot as u32 != known.replied_on {
            if known.passed_since != known.replied_at {
                (known.passed, known.passed_since) = (0, known.replied_at);
            }
            known.passed += 1;
            if 2 * known.passed <= known.connections {
                return;
            }
        }
        if known.missed == NEVER || known.missed < known.replied_at {
            known.missed = since.max(known.replied_at);
        }
    }

    /// Notes that a server did not accept the connection in `slot`, which was requested at `since`.
    pub fn refused(&mut self, server: u32, slot: usize, since: Nanos) {
        self.missed(server, slot, since);
        self.servers[server as usize].is_closed = true;
    }

    /// Notes at `at` that a server refused or reset an attempt to connect.
    pub fn turned_away(&mut self, server: u32, at: Nanos) {
        self.servers[server as usize].turned_away = at;
    }

    /// Notes that a server accepted a connection.
    pub fn opened(&mut self, server: u32) {
        self.servers[server as usize].turned_away = 0;
    }

    /// Whether a server refused or reset the last attempt to connect, and has neither accepted a connection nor
    /// answered since.
    pub fn turns_away(&self, server: u32) -> bool {
        let known = &self.servers[server as usize];
        known.turned_away > known.replied_at
    }

    /// Notes that a server accepted the connection in `slot` at `at`, in a run whose requests get no replies. The
    /// connection counts as a reply if an earlier one was not accepted. Otherwise it does not, because the system of
    /// a server that hangs still accepts connections.
    pub fn accepted(&mut self, server: u32, slot: usize, at: Nanos) {
        if std::mem::take(&mut self.servers[server as usize].is_closed) {
            self.answered(server, slot, at);
        }
    }

    /// Forgets which servers did not accept a connection, because this proves nothing in the next phase.
    pub fn begin_phase(&mut self) {
        self.servers.iter_mut().for_each(|known| known.is_closed = false);
    }

    /// Time for which a server has sent no reply to its requests, in nanoseconds; 0 if it replies or has no request.
    pub fn of(&self, server: u32, now: Nanos) -> Nanos {
        match self.servers[server as usize] {
            ServerSilence { missed: NEVER, .. } => 0,
            ServerSilence { replied_at, missed, .. } if missed < replied_at => 0,
            ServerSilence { missed, .. } => now.saturating_sub(missed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_with_what_came_to_nothing_and_ends_with_an_answer() {
        let mut silence = Silence::new(2, [0, 1, 1].into_iter());
        assert_eq!(silence.of(1, 100), 0, "nothing was asked");
        silence.missed(1, 7, 100);
        silence.missed(1, 8, 150);
        assert_eq!(silence.of(1, 300), 200, "since the first of them");
        assert_eq!(silence.of(0, 300), 0, "the other server was not asked");
        silence.answered(1, 7, 310);
        assert_eq!(silence.of(1, 400), 0);
    }

    #[test]
    fn an_answer_on_another_connection_proves_that_the_server_was_there_after_a_request() {
        let mut silence = Silence::new(1, [0; 4].into_iter());
        silence.answered(0, 7, 500);
        silence.missed(0, 8, 200);
        assert_eq!(silence.of(0, 1_200), 0, "the server passed that request over");
        silence.missed(0, 8, 600);
        silence.missed(0, 8, 900);
        assert_eq!(silence.of(0, 1_200), 600, "it was asked again after its last answer");
        silence.answered(0, 7, 2_000);
        silence.missed(0, 7, 2_500);
        assert_eq!(silence.of(0, 3_000), 500, "what was missed before is over");
    }

    #[test]
    fn a_server_that_is_asked_for_no_reply_and_takes_connections_again_is_not_silent() {
        let mut silence = Silence::new(1, [0; 4].into_iter());
        silence.accepted(0, 7, 100);
        silence.refused(0, 7, 200);
        silence.refused(0, 7, 300);
        assert_eq!(silence.of(0, 400), 200);
        silence.accepted(0, 7, 500);
        assert_eq!(silence.of(0, 9_000), 0);
        silence.missed(0, 7, 9_000);
        silence.accepted(0, 7, 9_500);
        assert_eq!(silence.of(0, 9_900), 900, "the system takes connections for a server that hangs");
        silence.refused(0, 7, 9_950);
        silence.begin_phase();
        silence.accepted(0, 7, 9_960);
        assert_eq!(silence.of(0, 9_990), 990, "the refusal belongs to the phase before");
    }

    #[test]
    fn a_server_that_passed_over_most_connections_stopped_behind_its_last_answer() {
        let mut silence = Silence::new(1, [0; 4].into_iter());
        silence.answered(0, 3, 500);
        silence.missed(0, 0, 200);
        silence.missed(0, 1, 200);
        assert_eq!(silence.of(0, 1_200), 0, "half of the connections prove nothing");
        silence.missed(0, 2, 300);
        assert_eq!(silence.of(0, 1_200), 700);
        silence.answered(0, 3, 2_000);
        silence.missed(0, 0, 1_900);
        assert_eq!(silence.of(0, 2_500), 0, "what was passed over before that answer is over");
    }

    #[test]
    fn a_server_turns_connections_away_until_it_takes_one_or_answers() {
        let mut silence = Silence::new(2, [0, 1].into_iter());
        assert!(!silence.turns_away(0), "nothing was asked");
        silence.turned_away(0, 100);
        assert!(silence.turns_away(0) && !silence.turns_away(1));
        silence.opened(0);
        assert!(!silence.turns_away(0));
        silence.turned_away(0, 300);
        silence.answered(0, 7, 400);
        assert!(!silence.turns_away(0), "an older connection goes on");
        silence.turned_away(0, 500);
        assert!(silence.turns_away(0));
    }

    #[test]
    fn requests_behind_the_last_answer_on_its_connection_wait_since_that_answer() {
        let mut silence = Silence::new(1, [0; 4].into_iter());
        silence.answered(0, 7, 500);
        silence.missed(0, 8, 300);
        silence.missed(0, 7, 200);
        assert_eq!(silence.of(0, 1_200), 700, "the server stopped between two requests of one connection");
    }
}
