//! The newest interval of each server on its way from the observer to the collecting thread.

use std::sync::{Mutex, PoisonError};

use pummel_measure::evidence::server_stats::ServerInterval;

/// The newest interval of each server that is asked within the measured phases, by its number. A newer interval
/// replaces one that was not taken, so there is at most one of each.
#[derive(Debug, Default)]
pub struct Newest(Mutex<Option<Vec<Option<ServerInterval>>>>);

impl Newest {
    /// Leaves intervals for the collecting thread.
    pub fn leave(&self, intervals: Vec<Option<ServerInterval>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(intervals);
    }

    /// Takes the statistics that were left since the last call; `None` if there are none.
    pub fn take(&self) -> Option<Vec<Option<ServerInterval>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_intervals_replace_those_that_nobody_took_and_each_is_taken_once() {
        let newest = Newest::default();
        assert_eq!(newest.take(), None);
        let ending_at = |end_ns| vec![Some(ServerInterval { end_ns, ..ServerInterval::default() }), None];
        newest.leave(ending_at(1));
        newest.leave(ending_at(2));
        assert_eq!(newest.take(), Some(ending_at(2)));
        assert_eq!(newest.take(), None);
    }
}
