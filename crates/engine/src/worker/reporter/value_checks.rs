//! The values that are checked as they pass by on the connections of a worker.

use pummel_logic::connection::inflight::CheckState;
use pummel_logic::workload::key::KEY_MAX_BYTES;
use pummel_logic::workload::request::RequestMaker;
use pummel_logic::workload::value::Version;
use pummel_logic::workload::verify::check::{Check, ValueVerdict};
use pummel_measure::measurement::Verify;

/// The checks that are under way: at most one for each connection.
#[derive(Debug)]
pub struct ValueChecks {
    /// The value that passes by on the connection in each slot; empty where no values are checked.
    passing: Vec<Option<PassingValue>>,
    /// Whether slots are added as they are needed.
    grows: bool,
}

/// A value that is being checked as it passes by.
#[derive(Clone, Copy, Debug)]
struct PassingValue {
    /// Index of the value's key.
    key: u64,
    check: Check,
    /// State of the read that asked for the value, from when it was sent.
    check_state: CheckState,
}

impl PassingValue {
    /// The version of the value, which has passed by; `None` for a wrong one, and for one that has none. Adds the verdict to `verify`.
    fn version(&self, maker: &RequestMaker, verify: &mut Verify) -> Option<Version> {
        verify.checked += 1;
        match self.check.end(maker.values()) {
            ValueVerdict::Good(version) => return Some(version),
            ValueVerdict::Pieces | ValueVerdict::Counter => {}
            ValueVerdict::Short => verify.short += 1,
            ValueVerdict::Bad(damage) => {
                let mut key = [0; KEY_MAX_BYTES];
                verify.fail(maker.keys().key(self.key, &mut key), damage);
            }
        }
        None
    }
}

impl ValueChecks {
    /// Checks of no value, on the connections in `slots` slots. Slots are added later where `grows` is set.
    pub fn new(slots: usize, grows: bool) -> ValueChecks {
        ValueChecks { passing: vec![None; slots], grows }
    }

    /// Makes room for the connections in `slots` slots, if values are checked at all.
    pub fn make_room(&mut self, slots: usize) {
        if !self.passing.is_empty() || self.grows {
            self.passing.resize(slots, None);
        }
    }

    /// Begins the check of a value of `size` bytes on the connection in `slot`. `key` is the index of its key, and
    /// `check_state` belongs to the read that asked for it.
    pub fn begin(&mut self, slot: usize, key: u64, check_state: CheckState, size: u64, maker: &RequestMaker) {
        let check = Check::begin(maker.values(), key, size);
        self.passing[slot] = Some(PassingValue { key, check, check_state });
    }

    /// Checks the next bytes of the value on the connection in `slot`.
    #[inline]
    pub fn check(&mut self, slot: usize, bytes: &[u8], maker: &RequestMaker) {
        if let Some(value) = &mut self.passing[slot] {
            value.check.body(maker.values(), bytes);
        }
    }

    /// Ends the check on the connection in `slot`, if there is one, and adds its verdict to `verify`. `is_stale` says
    /// whether a version of a value was certainly overwritten when the read of it was sent.
    pub fn end(
        &mut self,
        slot: usize,
        maker: &RequestMaker,
        is_stale: impl Fn(CheckState, u64, Version) -> bool,
        verify: &mut Verify,
    ) {
        let Some(value) = self.passing.get_mut(slot).and_then(Option::take) else { return };
        if let Some(version) = value.version(maker, verify) {
            verify.stale += u64::from(is_stale(value.check_state, value.key, version));
        }
    }

    /// Ends the check on the connection in `slot` of a value that is read back. Returns its version; `None` where none passed by, and
    /// for a wrong value, which alone is added to `verify`.
    pub fn end_audited(&mut self, slot: usize, maker: &RequestMaker, verify: &mut Verify) -> Option<Version> {
        let value = self.passing.get_mut(slot)?.take()?;
        let mut own = Verify::default();
        let version = value.version(maker, &mut own);
        if own.failed > 0 {
            verify.merge(&own);
        }
        version
    }

    /// Drops the check on the connection in `slot`, if there is one, since its value has no end.
    pub fn drop_check(&mut self, slot: usize) {
        if let Some(value) = self.passing.get_mut(slot) {
            *value = None;
        }
    }
}
