//! The window of objects of one client (memaslap): what is known of each object, and what is set and got next.

use std::sync::Arc;

use crate::plan::Window;
use crate::rng::below;
use crate::time::Nanos;
use crate::workload::request::RequestMaker;
use crate::workload::window::{Finding, Flaw, WindowMaker, WindowSlot, advance, judge_expiry};

/// A smaller weight of sets counts as 0.
pub(super) const LEAST_WEIGHT: f64 = 0.001;

/// The largest share of the sets that overwrite while the window is not full.
const FILLING_MAX: f64 = 0.999;

/// A client's window, and how far the client's work on it is.
#[derive(Debug)]
pub(super) struct WindowState {
    /// The part of the Plan that has the rules of windows.
    pub(super) plan: Arc<Window>,
    /// Number of clients that have windows.
    pub(super) clients: u64,
    pub(super) objects: Vec<Object>,
    /// Number of sets that gave an object its first value under a key. The next such set is of the object at this place, modulo
    /// the number of objects.
    pub(super) filled: u64,
    /// Objects that hold a value.
    pub(super) present: u64,
    /// Gets and sets that were chosen.
    pub(super) gets: u64,
    pub(super) sets: u64,
    /// Sets that were stored, and how many of them stored another value under the same key.
    pub(super) stored: u64,
    pub(super) overwritten: u64,
    /// Gets that are to be verified.
    pub(super) verified: u64,
    /// Objects that got another key.
    pub(super) renewed: u64,
    /// Number of the next draw.
    pub(super) draw: u64,
    /// The lane whose turn it is.
    pub(super) turn: usize,
    /// Gets that wait until a request has all its keys.
    pub(super) collected: Vec<Pick>,
    pub(super) asked: Asked,
    /// The gets that are asked.
    pub(super) picks: Vec<Pick>,
    /// Place in `picks` at which the next item is expected.
    pub(super) cursor: usize,
    /// Place in `picks` of the item that is being received.
    pub(super) passing: Option<usize>,
    /// All lanes were open at one time.
    pub(super) began: bool,
}

/// One object of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// Number of the object's key among those of all clients.
    pub(super) number: u64,
    /// When the object's last set began.
    pub(super) set_at: Nanos,
    pub(super) key_at: u32,
    pub(super) value_at: u32,
    /// The server that took the object.
    pub(super) server: u32,
    pub(super) state: ObjectState,
    /// Whether another value was stored under its key before.
    pub(super) overwritten: bool,
}

/// State of an object at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectState {
    /// No set under the object's key was sent.
    Fresh,
    /// The server holds it, unless it was thrown out or has expired.
    Present,
    /// The server may hold it or not.
    Unknown,
}

/// The request that is outstanding, or was the last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Set { slot: u32, value_at: u32, overwrites: bool },
    Get,
}

/// A get that was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Pick {
    pub(super) slot: u32,
    /// Whether its value is to be compared.
    pub(super) verify: bool,
    pub(super) found: bool,
    /// The value that came in its place has the key of another object.
    pub(super) foreign: bool,
    /// The bytes that came so far are those of the value.
    pub(super) right: bool,
    /// The bytes that came so far are those of the value before.
    pub(super) right_before: bool,
    /// Number of bytes of the value that came so far.
    pub(super) passed: u32,
    /// The bytes of the value, where failed checks are reported in full.
    pub(super) received: Vec<u8>,
}

/// The next request of a window.
pub(super) enum Command {
    Set { slot: u32, overwrites: bool },
    Get(Pick),
}

impl WindowState {
    pub(super) fn new(maker: &WindowMaker, number: u64, clients: u64) -> WindowState {
        let object = |(at, slot): (usize, &WindowSlot)| Object {
            number: number * maker.slots().len() as u64 + at as u64,
            set_at: 0,
            key_at: slot.key_at,
            value_at: slot.key_at,
            server: 0,
            state: ObjectState::Fresh,
            overwritten: false,
        };
        WindowState {
            plan: Arc::clone(maker.plan()),
            clients,
            objects: maker.slots().iter().enumerate().map(object).collect(),
            filled: 0,
            present: 0,
            gets: 0,
            sets: 0,
            stored: 0,
            overwritten: 0,
            verified: 0,
            renewed: 0,
            draw: 0,
            turn: 0,
            collected: Vec::new(),
            asked: Asked::Get,
            picks: Vec::new(),
            cursor: 0,
            passing: None,
            began: false,
        }
    }

    /// Begins a phase: gets that were collected in the phase before are not asked any more.
    pub(super) fn begin(&mut self) {
        self.collected.clear();
        (self.gets, self.sets, self.verified) = (0, 0, 0);
    }

    /// Gives an object another key, so that sets under its old key do not matter any more.
    pub(super) fn renew(&mut self, slot: u32, client: u64) {
        let objects = self.objects.len() as u64;
        let object = &mut self.objects[slot as usize];
        if object.state == ObjectState::Present {
            self.present -= 1;
        }
        object.number = self.clients * objects + self.renewed * self.clients + client;
        object.key_at = advance(object.key_at);
        object.value_at = object.key_at;
        (object.state, object.set_at, object.overwritten) = (ObjectState::Fresh, 0, false);
        self.renewed += 1;
    }

    /// Takes in that a set of an object was stored on this server.
    pub(super) fn store(&mut self, slot: u32, value_at: u32, server: u32, overwrites: bool) {
        let object = &mut self.objects[slot as usize];
        if object.state != ObjectState::Present {
            self.present += 1;
        }
        (object.state, object.value_at, object.server) = (ObjectState::Present, value_at, server);
        object.overwritten |= overwrites;
        self.stored += 1;
        if overwrites {
            self.overwritten += 1;
        } else {
            self.filled += 1;
        }
    }

    /// Takes in that it is not known what is stored under an object's key.
    pub(super) fn forget(&mut self, slot: u32) {
        let object = &mut self.objects[slot as usize];
        if object.state == ObjectState::Present {
            self.present -= 1;
        }
        object.state = ObjectState::Unknown;
    }

    /// An object that holds a value, searched from a place that is drawn from `bits`; `None` where no object holds one.
    pub(super) fn find_present(&self, bits: u64) -> Option<u32> {
        if self.present == 0 {
            return None;
        }
        let objects = self.objects.len();
        let bound = (self.filled.max(1)).min(objects as u64);
        let first = below(bits, bound) as usize;
        // The object at the drawn place nearly always holds a value.
        if self.objects[first].state == ObjectState::Present {
            return Some(first as u32);
        }
        (0..objects)
            .map(|on| (first + on) % objects)
            .find(|&at| self.objects[at].state == ObjectState::Present)
            .map(|at| at as u32)
    }

    /// Whether the next set gives an object that holds a value another one. As long as some objects of the window never held one,
    /// a set in a thousand is for those: otherwise one object would be overwritten for ever where every set is to overwrite.
    pub(super) fn overwrites_now(&self) -> bool {
        let is_full = self.filled >= self.objects.len() as u64;
        let share = if is_full { self.plan.overwrite } else { self.plan.overwrite.min(FILLING_MAX) };
        (self.overwritten as f64) < share * self.stored as f64 && self.present > 0
    }
}

impl WindowState {
    /// Counts the result of one get, and keeps it where failed checks are reported.
    pub(super) fn judge(&self, pick: &Pick, read: Nanos, maker: &mut RequestMaker) {
        let object = &self.objects[pick.slot as usize];
        let flaw = if pick.foreign {
            Some(Flaw::Differs)
        } else if pick.verify {
            maker.window_mut().counts.verified += u64::from(pick.found);
            // A server that lags behind in replication has the value before.
            let may_lag = self.plan.pool.replication.is_some() && object.overwritten;
            match pick.found {
                false => Some(Flaw::Missing),
                true if pick.right && pick.passed == maker.window().value_bytes(pick.slot) => None,
                true if may_lag && pick.right_before => None,
                true => Some(Flaw::Differs),
            }
        } else if maker.window().expires(pick.slot) {
            let flaw = judge_expiry(pick.found, object.set_at, read);
            maker.window_mut().counts.expired_misses += u64::from(!pick.found && flaw.is_none());
            flaw
        } else {
            None
        };
        let Some(flaw) = flaw else { return };
        let counts = &mut maker.window_mut().counts;
        match flaw {
            Flaw::Differs => counts.verify_failed += 1,
            Flaw::Missing => counts.verify_misses += 1,
            Flaw::Expired => counts.expired_get += 1,
            Flaw::Vanished => counts.unexpired_unget += 1,
        }
        if self.plan.verbose {
            let (prefix, suffix) = maker.window().key_parts(pick.slot, object.number, object.key_at);
            let expected = match flaw {
                Flaw::Expired => Vec::new(),
                _ => {
                    let whole = maker.window().value_bytes(pick.slot) as usize;
                    maker.window().text(object.value_at, whole).to_vec()
                }
            };
            maker.window_mut().findings.push(Finding {
                flaw,
                prefix,
                suffix,
                expected,
                received: pick.found.then(|| pick.received.clone()),
                set_at: object.set_at,
                read_at: read,
            });
        }
    }
}
