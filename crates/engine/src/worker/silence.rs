//! How long each server has been silent, as one worker sees it. A run gives up a server that is silent for too long.

use pummel_logic::time::{NEVER, Nanos};

/// The silence of every server of the plan.
#[derive(Debug)]
pub struct Silence {
    servers: Vec<ServerSilence>,
}

#[derive(Clone, Copy, Debug)]
struct ServerSilence {
    /// When the server's last reply came.
    heard: Nanos,
    /// Since when the server owed a reply that did not come; [`NEVER`] if there is none. A time before the last reply
    /// does not count.
    missed: Nanos,
}

impl Silence {
    /// The silence of `servers` servers, to which no request was sent yet.
    pub fn new(servers: usize) -> Silence {
        Silence { servers: vec![ServerSilence { heard: 0, missed: NEVER }; servers] }
    }

    /// Notes a reply of a server at `at`.
    #[inline]
    pub fn answered(&mut self, server: u32, at: Nanos) {
        self.servers[server as usize].heard = at;
    }

    /// Notes that a request to a server, sent at `since`, got no reply.
    pub fn missed(&mut self, server: u32, since: Nanos) {
        let known = &mut self.servers[server as usize];
        if known.missed == NEVER || known.missed < known.heard {
            known.missed = since.max(known.heard);
        }
    }

    /// How long a server has sent no reply to its requests, in nanoseconds; 0 when it replies, or has no request.
    pub fn of(&self, server: u32, now: Nanos) -> Nanos {
        match self.servers[server as usize] {
            ServerSilence { missed: NEVER, .. } => 0,
            ServerSilence { heard, missed } if missed < heard => 0,
            ServerSilence { missed, .. } => now.saturating_sub(missed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_with_what_came_to_nothing_and_ends_with_an_answer() {
        let mut silence = Silence::new(2);
        assert_eq!(silence.of(1, 100), 0, "nothing was asked");
        silence.missed(1, 100);
        silence.missed(1, 150);
        assert_eq!(silence.of(1, 300), 200, "since the first of them");
        assert_eq!(silence.of(0, 300), 0, "the other server was not asked");
        silence.answered(1, 310);
        assert_eq!(silence.of(1, 400), 0);
    }

    #[test]
    fn an_answer_to_another_request_interrupts_the_silence() {
        let mut silence = Silence::new(1);
        silence.answered(0, 500);
        silence.missed(0, 200);
        assert_eq!(silence.of(0, 1_200), 700, "it was asked before its last answer");
        silence.answered(0, 2_000);
        silence.missed(0, 2_500);
        assert_eq!(silence.of(0, 3_000), 500, "what was missed before is over");
    }
}
