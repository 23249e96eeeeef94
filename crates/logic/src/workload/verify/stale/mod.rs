//! Finds reads that returned a value which was certainly overwritten before the read was sent.
//!
//! A verdict on a value with version n of a writer, by its acknowledged write m of the same key on the same server,
//! needs this order of events, all seen by one worker:
//!
//! 1. write n was answered;
//! 2. write m was sent, and later answered: stored;
//! 3. the read was sent, and returned n.
//!
//! A server that applies a request between taking it and answering it stored n before m, and m before it looked for the
//! read: n was gone, and since no two writes have the same version, no write brought it back. What happens to the key
//! besides (other writers' values, removal, expiry, eviction, requests whose condition did not hold) can remove m but
//! not restore n.
//!
//! * That n was answered before m was sent is known without a list of writes: n is below the oldest write of the client
//!   that had no answer when m was sent, over all its sockets, and not among the lost ones. Lost writes are those that
//!   never get an answer (timed out, without reply, on a connection that broke) or one that does not say what became of
//!   them (errors); they may be applied at any later time, so that nothing is said about any count from the first lost
//!   one to the last.
//! * That the read was sent after m was answered is known from a [`Mark`], which the read takes along.
//! * That n is ours is known from the run's mark: all counts of a run begin at the same random place among 2^39, and the
//!   numbers of its writers at a random one among 2^24 ([`RunMark`]). Another process with the same data seed writes
//!   versions that this run could have written only if both places of both runs lie within the number of writes and of
//!   clients of each other: for a million writes by 50 clients, once in 10^11 pairs of runs.

mod witness;
mod writer;

#[cfg(test)]
mod tests;

pub use self::witness::{Mark, RecordPlace, Witness};
pub use self::writer::{RunMark, Writer};
