//! The acknowledged writes of all workers, which they hand in when the last measured phase is over and take to read them back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pummel_logic::time::Nanos;
use pummel_logic::workload::verify::ledger::Ledger;
use pummel_measure::audit::{Audit, AuditCounts};

/// The acknowledged writes of all workers.
#[derive(Debug, Default)]
pub(super) struct AuditDesk {
    ledgers: Mutex<Ledgers>,
}

/// The acknowledged writes that were handed in.
#[derive(Debug, Default)]
struct Ledgers {
    merged: Arc<Ledger>,
    /// Whether the workers have begun to read them back.
    is_closed: bool,
}

impl AuditDesk {
    fn ledgers(&self) -> MutexGuard<'_, Ledgers> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the writes of a worker.
    pub(super) fn add(&self, ledger: Ledger) {
        Arc::make_mut(&mut self.ledgers().merged).merge(ledger);
    }

    /// The writes of all workers, each of which has handed in its own.
    pub(super) fn closed(&self) -> Arc<Ledger> {
        let mut ledgers = self.ledgers();
        if !ledgers.is_closed {
            Arc::make_mut(&mut ledgers.merged).close();
            ledgers.is_closed = true;
        }
        Arc::clone(&ledgers.merged)
    }

    /// The audit of a run whose measured phase began at `measured_at`, with the records that workers read.
    pub(super) fn audit(&self, counts: AuditCounts, measured_at: Nanos) -> Audit {
        let ledgers = self.ledgers();
        let (written, unknown_beyond) = (ledgers.merged.written(), ledgers.merged.unknown_beyond());
        Audit { begun: ledgers.is_closed, written, counts, unknown_beyond }.since(measured_at)
    }
}
