//! The queues between a worker and the collecting thread: messages go out, and emptied intervals come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use pummel_measure::interval::Interval;

use crate::worker::messages::WorkerMessage;

/// Most requests of one worker that wait as rows to be received; others are dropped and counted.
pub const ROWS_WAITING_MAX: usize = 128 * 1024;

/// Most droppable messages of one worker that wait to be received; others are dropped and counted. Messages that are
/// never dropped are bounded by the numbers of phases, connections and the worker's intervals.
pub const MESSAGES_WAITING_MAX: usize = 1024;

/// A message in the queue. A message that may be dropped takes room in the queue.
#[derive(Debug)]
pub struct QueuedMessage {
    /// The message itself.
    pub message: WorkerMessage,
    /// Room in the queue that the message takes; it is given back when this value is dropped.
    _space: Option<QueueSpace>,
}

/// Room in the queue of messages that may be dropped.
#[derive(Debug)]
struct QueueSpace {
    waiting: Arc<AtomicUsize>,
    count: usize,
}

impl QueueSpace {
    /// Takes room for `count` messages or rows in the queue, if at most `most` are taken in all. Only one thread
    /// takes room.
    fn take(waiting: &Arc<AtomicUsize>, count: usize, most: usize) -> Option<QueueSpace> {
        if waiting.load(Ordering::Relaxed) + count > most {
            return None;
        }
        waiting.fetch_add(count, Ordering::Relaxed);
        Some(QueueSpace { waiting: Arc::clone(waiting), count })
    }
}

impl Drop for QueueSpace {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The worker's end of the queues: its messages go out, and its emptied intervals come back.
#[derive(Debug)]
pub struct MessageSender {
    /// Number of the worker.
    pub worker: usize,
    /// The queue of messages.
    messages: Sender<QueuedMessage>,
    /// The queue of emptied intervals that come back.
    pub spares: Receiver<Box<Interval>>,
    rows_waiting: Arc<AtomicUsize>,
    messages_waiting: Arc<AtomicUsize>,
}

impl MessageSender {
    /// The sender of a worker that has sent no message.
    pub fn new(
        worker: usize,
        messages: Sender<QueuedMessage>,
        spares: Receiver<Box<Interval>>,
    ) -> MessageSender {
        MessageSender {
            worker,
            messages,
            spares,
            rows_waiting: Arc::default(),
            messages_waiting: Arc::default(),
        }
    }

    /// Sends a message that is never dropped. The message is lost only if the receiver is gone, when the run is over.
    pub fn say(&self, message: WorkerMessage) {
        let _ = self.messages.send(QueuedMessage { message, _space: None });
    }

    /// Returns a function that sends one last message for a worker that may be gone by then, together with its sender.
    pub fn last_message(&self) -> impl FnOnce(WorkerMessage) + use<> {
        let messages = self.messages.clone();
        move |message| {
            let _ = messages.send(QueuedMessage { message, _space: None });
        }
    }

    /// Sends a message if there is room for it in the queue. Returns whether it was sent.
    pub fn offer(&self, message: WorkerMessage) -> bool {
        let space = match &message {
            WorkerMessage::Rows(rows) => QueueSpace::take(&self.rows_waiting, rows.len(), ROWS_WAITING_MAX),
            _ => QueueSpace::take(&self.messages_waiting, 1, MESSAGES_WAITING_MAX),
        };
        let has_room = space.is_some();
        if has_room {
            let _ = self.messages.send(QueuedMessage { message, _space: space });
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use pummel_logic::protocol::{Outcome, Verb};

    use super::*;
    use pummel_measure::events::{ConnectionEvent, Row};

    fn sender() -> (MessageSender, Receiver<QueuedMessage>) {
        let (messages, receiver) = channel();
        (MessageSender::new(0, messages, channel().1), receiver)
    }

    #[test]
    fn what_may_be_dropped_has_room_for_so_many_and_what_may_not_is_always_said() {
        let (sender, receiver) = sender();
        let lost = || WorkerMessage::Connection { server: 0, event: ConnectionEvent::Lost };
        assert!((0..MESSAGES_WAITING_MAX).all(|_| sender.offer(lost())));
        assert!(!sender.offer(lost()));
        sender.say(WorkerMessage::Gone);
        drop(receiver.recv().unwrap());
        assert!(sender.offer(lost()), "one was received");
        assert!(!sender.offer(lost()));
        assert_eq!(
            receiver.try_iter().filter(|queued| matches!(queued.message, WorkerMessage::Gone)).count(),
            1
        );
        assert!(sender.offer(lost()), "all were received");
    }

    #[test]
    fn rows_have_a_limit_of_their_own() {
        let (sender, receiver) = sender();
        let row = Row {
            due: 0,
            ready: 0,
            sent: 0,
            arrived: 0,
            read: 0,
            verb: Verb::Get,
            outcome: Outcome::Hit,
            key: 0,
            client: 0,
            group: 0,
        };
        let rows = || WorkerMessage::Rows(vec![row; ROWS_WAITING_MAX / 2]);
        assert!(sender.offer(rows()) && sender.offer(rows()) && !sender.offer(rows()));
        assert!(sender.offer(WorkerMessage::Gone));
        drop(receiver.recv().unwrap());
        assert!(sender.offer(rows()) && !sender.offer(rows()));
    }
}
