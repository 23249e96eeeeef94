//! The account of clients that come and go: the bytes of each request and reply, beside what all runs measure.

use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::time::NEVER;
use pummel_logic::workload::request::CheckState;
use pummel_logic::workload::sequence::RequestLength;
use pummel_measure::churn::{Churn, ChurnReply, Ended};

/// The account of one worker.
#[derive(Debug)]
pub struct ChurnAccount {
    /// The counts so far.
    pub churn: Churn,
    /// The sizes of requests, where they are known.
    length: Option<RequestLength>,
    /// Bytes of the reply whose request ends next.
    pub reply_bytes: u64,
    /// The request that ends next was not sent whole.
    pub cut: bool,
}

impl ChurnAccount {
    /// An empty account.
    pub fn new(length: Option<RequestLength>) -> ChurnAccount {
        ChurnAccount { churn: Churn::default(), length, reply_bytes: 0, cut: false }
    }

    /// Counts a request that has ended.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let cut = std::mem::take(&mut self.cut);
        let bytes = std::mem::take(&mut self.reply_bytes);
        let is_sent = answer.sent != NEVER;
        let request_bytes = match (self.length, ticket.check_state) {
            (Some(length), CheckState::Length(size)) if is_sent && !cut => {
                Some(length.of(ticket.verb, ticket.key, size))
            }
            _ => None,
        };
        let reply = (answer.stamp != Stamp::Nothing).then(|| ChurnReply {
            outcome: answer.outcome,
            bytes,
            service_ns: answer.arrived.saturating_sub(answer.sent),
            response_ns: answer.arrived.saturating_sub(ticket.due),
        });
        let late_ns = is_sent.then(|| answer.sent.saturating_sub(ticket.due));
        self.churn.end(&Ended { request_bytes, late_ns, reply });
    }
}
