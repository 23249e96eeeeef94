//! The queue of the events of all members, which holds so many requests at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::agent::member::MemberEvent;

/// Most requests of all members that wait to be heard; others are dropped and counted. All other events are bounded by the
/// numbers of phases, intervals and connections.
pub const ROWS_WAITING_MAX: usize = 512 * 1024;

/// The end of the queue that events are put into, with the number of their member; one for each member.
#[derive(Clone, Debug)]
pub struct EventSender {
    events: Sender<(usize, MemberEvent)>,
    rows: Arc<Rows>,
}

/// The end of the queue at which events are heard.
#[derive(Debug)]
pub struct HeardEvents {
    events: Receiver<(usize, MemberEvent)>,
    rows: Arc<Rows>,
}

/// The requests in a queue.
#[derive(Debug, Default)]
struct Rows {
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

/// An empty queue.
pub fn event_queue() -> (EventSender, HeardEvents) {
    let (events, heard) = channel();
    let rows = Arc::<Rows>::default();
    (EventSender { events, rows: Arc::clone(&rows) }, HeardEvents { events: heard, rows })
}

impl EventSender {
    /// Adds an event with the number of its member. Requests are dropped and counted where too many wait.
    pub fn send(&self, event: (usize, MemberEvent)) {
        self.send_while_heard(event);
    }

    /// Adds an event as [`EventSender::send`] does. Returns whether the run listens, which it does until it is over.
    pub fn send_while_heard(&self, event: (usize, MemberEvent)) -> bool {
        if let MemberEvent::Rows(rows) = &event.1 {
            let count = rows.len();
            if self.rows.waiting.fetch_add(count, Ordering::Relaxed) + count > ROWS_WAITING_MAX {
                self.rows.waiting.fetch_sub(count, Ordering::Relaxed);
                self.rows.dropped.fetch_add(count as u64, Ordering::Relaxed);
                return true;
            }
        }
        self.events.send(event).is_ok()
    }
}

impl HeardEvents {
    /// Waits for the next event and the number of its member, for `limit` at most.
    ///
    /// # Errors
    /// Returns `Timeout` when none came within the limit, and `Disconnected` when no member is left that could send one.
    pub fn recv_timeout(&self, limit: Duration) -> Result<(usize, MemberEvent), RecvTimeoutError> {
        let heard = self.events.recv_timeout(limit)?;
        if let MemberEvent::Rows(rows) = &heard.1 {
            self.rows.waiting.fetch_sub(rows.len(), Ordering::Relaxed);
        }
        Ok(heard)
    }

    /// Requests that were dropped.
    pub fn rows_dropped(&self) -> u64 {
        self.rows.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_measure::events::Row;

    use super::*;

    fn rows(count: usize) -> MemberEvent {
        let row = Row {
            due: 1,
            ready: 1,
            sent: 2,
            arrived: 3,
            read: 4,
            verb: Verb::Get,
            outcome: Outcome::Hit,
            key: 5,
            client: 0,
            group: 0,
        };
        MemberEvent::Rows(vec![row; count])
    }

    #[test]
    fn requests_wait_up_to_the_limit_and_events_of_other_kinds_are_never_dropped() {
        let (say, heard) = event_queue();
        let other = say.clone();
        say.send((0, rows(ROWS_WAITING_MAX - 5)));
        other.send((1, rows(6)));
        say.send((0, MemberEvent::Began(0)));
        other.send((1, rows(5)));
        other.send((1, rows(1)));
        assert_eq!(heard.rows_dropped(), 7);
        drop((say, other));
        let mut kinds = Vec::new();
        while let Ok((number, event)) = heard.recv_timeout(Duration::ZERO) {
            kinds.push((number, matches!(event, MemberEvent::Rows(_))));
        }
        assert_eq!(kinds, [(0, true), (0, false), (1, true)]);
    }

    #[test]
    fn there_is_room_again_for_requests_when_others_were_heard() {
        let (say, heard) = event_queue();
        for _ in 0..3 {
            say.send((0, rows(ROWS_WAITING_MAX)));
            assert!(heard.recv_timeout(Duration::ZERO).is_ok());
        }
        assert_eq!(heard.rows_dropped(), 0);
    }
}
