//! The acknowledged writes of all workers, which add theirs when the last measured phase is over and then read all of them back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pummel_logic::time::Nanos;
use pummel_logic::workload::verify::ledger::Ledger;
use pummel_measure::audit::{Audit, AuditCounts};

/// The acknowledged writes of all workers.
#[derive(Debug, Default)]
pub(super) struct SharedLedger {
    state: Mutex<LedgerState>,
}

/// The acknowledged writes of the workers that have added theirs.
#[derive(Debug, Default)]
struct LedgerState {
    merged: Arc<Ledger>,
    /// Whether the workers have begun to read them back.
    is_closed: bool,
}

impl SharedLedger {
    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the writes of a worker.
    pub(super) fn add(&self, ledger: Ledger) {
        Arc::make_mut(&mut self.lock().merged).merge(ledger);
    }

    /// The writes of all workers, each of which has added its own.
    pub(super) fn closed(&self) -> Arc<Ledger> {
        let mut state = self.lock();
        if !state.is_closed {
            Arc::make_mut(&mut state.merged).close();
            state.is_closed = true;
        }
        Arc::clone(&state.merged)
    }

    /// The audit of a run whose measured phase began at `measured_at`, with the records that workers read.
    pub(super) fn audit(&self, counts: AuditCounts, measured_at: Nanos) -> Audit {
        let state = self.lock();
        let (written, unknown_beyond) = (state.merged.written(), state.merged.unknown_beyond());
        Audit { begun: state.is_closed, written, counts, unknown_beyond }.since(measured_at)
    }
}
