//! A backend around a backend: it ends a run that does not end by itself, and measures what the run took.

use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

use pummel_engine::backend::{Backend, Close, ConnId, Event, Handed, Target, TlsHandshake};
use pummel_logic::time::Nanos;

use crate::memory;

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Simulated time, in nanoseconds.
    pub time_ns: Nanos,
    /// Turns of the worker.
    pub turns: u64,
}

/// Expense of a run.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// Simulated time, in nanoseconds.
    pub time_ns: Nanos,
    /// Turns of the worker.
    pub turns: u64,
    /// Connections that the worker asked for.
    pub opens: u64,
    /// Most bytes of memory that the worker and its simulated servers had taken at one time, beyond the beginning.
    pub memory_bytes: i64,
    /// The limit that ended the run, if one did.
    pub ended_by: Option<&'static str>,
}

/// Most readings of the clock and calls between two waits. A worker with more is in an endless loop.
const CALLS_MAX: u64 = 1_000_000;

/// A bounded backend.
pub struct Bounded<B> {
    inner: B,
    limits: Limits,
    spent: Arc<Mutex<Spent>>,
    began: Nanos,
    calls: std::cell::Cell<u64>,
}

impl<B: Backend> Bounded<B> {
    pub fn new(inner: B, limits: Limits, spent: Arc<Mutex<Spent>>) -> Bounded<B> {
        memory::begin();
        let began = inner.now();
        Bounded { inner, limits, spent, began, calls: std::cell::Cell::new(0) }
    }

    fn count_call(&self) {
        self.calls.set(self.calls.get() + 1);
        assert!(self.calls.get() < CALLS_MAX, "a turn does not end");
    }

    fn count_turn(&mut self, now: Nanos) -> io::Result<()> {
        self.calls.set(0);
        let mut spent = self.spent.lock().expect("nothing panics while it holds the counts");
        spent.turns += 1;
        spent.time_ns = now.saturating_sub(self.began);
        spent.memory_bytes = memory::most();
        let word = match *spent {
            Spent { time_ns, .. } if time_ns > self.limits.time_ns => "its time",
            Spent { turns, .. } if turns > self.limits.turns => "its turns",
            _ => return Ok(()),
        };
        spent.ended_by = Some(word);
        Err(io::Error::other("the run takes more than it may"))
    }
}

impl<B: Backend> Backend for Bounded<B> {
    fn now(&self) -> Nanos {
        self.count_call();
        self.inner.now()
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        self.count_call();
        self.spent.lock().expect("nothing panics while it holds the counts").opens += 1;
        self.inner.open(conn, target);
    }

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        self.count_call();
        self.inner.send(conn, parts)
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        self.inner.close(conn, how);
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        let now = self.inner.wait(until)?;
        self.count_turn(now)?;
        Ok(now)
    }

    fn wait_from(&mut self, now: Nanos, until: Nanos) -> io::Result<Nanos> {
        let now = self.inner.wait_from(now, until)?;
        self.count_turn(now)?;
        Ok(now)
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        self.inner.drain(on);
    }

    fn mend_stamps(&mut self) {
        self.inner.mend_stamps();
    }

    fn why_not_open(&self, conn: ConnId) -> Option<&'static str> {
        self.inner.why_not_open(conn)
    }

    fn handshakes(&mut self, on: &mut impl FnMut(TlsHandshake)) {
        self.inner.handshakes(on);
    }
}
