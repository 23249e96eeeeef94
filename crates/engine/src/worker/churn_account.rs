//! The account of clients that come and go: what each request and reply weighed, beside what all runs measure.

use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::measure::churn::{Churn, Ended, Reply};
use pummel_logic::time::NEVER;
use pummel_logic::workload::request::CheckState;
use pummel_logic::workload::sequence::Weight;

/// One worker's account.
#[derive(Debug)]
pub struct ChurnAccount {
    /// What it comes to.
    pub churn: Churn,
    /// What requests weigh, where that is known.
    weight: Option<Weight>,
    /// Bytes of the reply that is handed over next.
    pub reply_bytes: u64,
    /// The request that is handed over next was not sent whole.
    pub cut: bool,
}

impl ChurnAccount {
    /// An empty one.
    pub fn new(weight: Option<Weight>) -> ChurnAccount {
        ChurnAccount { churn: Churn::default(), weight, reply_bytes: 0, cut: false }
    }

    /// A request ended.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let cut = std::mem::take(&mut self.cut);
        let bytes = std::mem::take(&mut self.reply_bytes);
        let is_sent = answer.sent != NEVER;
        let request_bytes = match (self.weight, ticket.check_state) {
            (Some(weight), CheckState::Length(size)) if is_sent && !cut => {
                Some(weight.of(ticket.verb, ticket.key, size))
            }
            _ => None,
        };
        let reply = (answer.stamp != Stamp::Nothing).then(|| Reply {
            outcome: answer.outcome,
            bytes,
            service_ns: answer.arrived.saturating_sub(answer.sent),
            response_ns: answer.arrived.saturating_sub(ticket.due),
        });
        let late_ns = is_sent.then(|| answer.sent.saturating_sub(ticket.due));
        self.churn.end(&Ended { request_bytes, late_ns, reply });
    }
}
