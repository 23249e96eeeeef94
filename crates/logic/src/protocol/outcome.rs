//! Outcomes of requests, the faults among them, and the outcomes that each verb can have.

use super::verb::Verb;

crate::words! {
    /// Why a request has no good answer.
    #[repr(u8)]
    pub enum Fault {
        /// The server said that it failed (`SERVER_ERROR`).
        Server = "server",
        /// The server said that the request was wrong, or not allowed (`CLIENT_ERROR`).
        Client = "client",
        /// The server does not know the command (`ERROR`), or answered what the protocol does not allow.
        Protocol = "protocol",
        /// No answer came in time.
        Timeout = "timeout",
        /// The connection was refused.
        Refused = "refused",
        /// The connection was reset.
        Reset = "reset",
        /// The peer closed the connection, or it was given up because the peer broke the protocol.
        Closed = "closed",
        /// The server said that another one has the key (`MOVED` and `ASK` of a Redis cluster).
        Moved = "moved",
        /// The request was in time, but the run closed its connection because another request on it was not answered in time.
        Abandoned = "abandoned",
        /// The cluster or the server serves nothing at the moment (`CLUSTERDOWN`, `MASTERDOWN` and `LOADING`).
        Down = "down",
        /// The server asked for the request again later (`TRYAGAIN`: its keys are on both sides of a migration).
        Again = "again",
        /// The server answered a command with something, where the user says that its replies are nil.
        Unexpected = "unexpected",
    }
}

impl Fault {
    /// Whether the request ended without any answer, so that its true duration is not known.
    pub fn unanswered(self) -> bool {
        matches!(self, Fault::Timeout | Fault::Refused | Fault::Reset | Fault::Closed | Fault::Abandoned)
    }
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A read found at least one key.
    Hit,
    /// A read found nothing.
    Miss,
    /// The value is stored.
    Stored,
    /// Nothing is stored, because the verb's condition did not hold.
    NotStored,
    /// Nothing is stored, because another client stored since the CAS unique was read.
    Exists,
    /// The key does not exist.
    NotFound,
    /// The key is removed.
    Deleted,
    /// A new expiry is set.
    Touched,
    /// The value after incr or decr.
    Number(u64),
    /// Done; also a request without reply that was handed over.
    Ok,
    /// The request failed.
    Error(Fault),
    /// A command of the user found so many of what it looked up; a session makes a hit or a miss of it.
    Found {
        /// Number of keys or elements that were there.
        hits: u16,
        /// Number of keys or elements that were asked for.
        of: u16,
    },
    /// A transaction was not carried out, because another client had changed what it watches.
    Conflict,
    /// A sequence of commands failed; a session makes an error of it.
    Failed {
        /// Why it failed.
        fault: Fault,
        /// The commands that may be asked again elsewhere or later, bit n for command n; 0 where none may be.
        commands: u32,
    },
    /// A read found a value that was marked as stale, and another client was asked to renew it.
    Stale,
    /// A read won the right to renew what it found, or to make what it did not find.
    Win,
    /// A read found a value, or a place for one, that another client was asked to renew.
    Recaching,
}

impl Outcome {
    /// The outcomes of requests that were answered without an error and stored or found nothing, but for reads.
    pub const WITHOUT_EFFECT: [Outcome; 4] =
        [Outcome::NotStored, Outcome::Exists, Outcome::NotFound, Outcome::Conflict];

    /// The word of result files for the outcome.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Hit => "hit",
            Outcome::Miss => "miss",
            Outcome::Stored => "stored",
            Outcome::NotStored => "not_stored",
            Outcome::Exists => "exists",
            Outcome::NotFound => "not_found",
            Outcome::Deleted => "deleted",
            Outcome::Touched => "touched",
            Outcome::Number(_) => "number",
            Outcome::Ok => "ok",
            Outcome::Found { .. } => "found",
            Outcome::Conflict => "conflict",
            Outcome::Stale => "stale",
            Outcome::Win => "win",
            Outcome::Recaching => "recaching",
            Outcome::Error(fault) | Outcome::Failed { fault, .. } => fault.name(),
        }
    }

    /// The number of the outcome's variant, without regard to what the variant carries.
    #[inline]
    const fn kind(&self) -> u32 {
        match self {
            Outcome::Hit => 0,
            Outcome::Miss => 1,
            Outcome::Stored => 2,
            Outcome::NotStored => 3,
            Outcome::Exists => 4,
            Outcome::NotFound => 5,
            Outcome::Deleted => 6,
            Outcome::Touched => 7,
            Outcome::Number(_) => 8,
            Outcome::Ok => 9,
            Outcome::Error(_) | Outcome::Failed { .. } => 10,
            Outcome::Stale => 11,
            Outcome::Win => 12,
            Outcome::Recaching => 13,
            Outcome::Found { .. } => 14,
            Outcome::Conflict => 15,
        }
    }
}

impl Verb {
    /// Whether a request of this verb can end with `outcome`. An answer with another outcome belongs to another
    /// request, or to none.
    #[inline]
    pub fn can_end(self, outcome: &Outcome) -> bool {
        ENDS[self as usize] >> outcome.kind() & 1 != 0
    }
}

/// The outcomes that requests of each verb can have: bit k stands for the outcome of kind k.
const ENDS: [u16; Verb::COUNT] = {
    const READ: &[Outcome] = &[Outcome::Hit, Outcome::Miss, Outcome::Stale, Outcome::Win, Outcome::Recaching];
    const STORE: &[Outcome] = &[Outcome::Stored, Outcome::NotStored, Outcome::Exists, Outcome::NotFound];
    const COUNT: &[Outcome] =
        &[Outcome::Number(0), Outcome::Ok, Outcome::NotFound, Outcome::NotStored, Outcome::Exists];
    const COMMAND: &[Outcome] = &[
        Outcome::Ok,
        Outcome::Number(0),
        Outcome::NotFound,
        Outcome::Found { hits: 0, of: 0 },
        Outcome::Conflict,
    ];
    let mut all = [0; Verb::COUNT];
    let mut v = 0;
    while v < Verb::COUNT {
        let ends = match Verb::ALL[v] {
            Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget => READ,
            Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas => STORE,
            Verb::Hset | Verb::Mset => STORE,
            Verb::Incr | Verb::Decr => COUNT,
            Verb::Delete => &[Outcome::Deleted, Outcome::NotFound, Outcome::Exists],
            Verb::Touch => &[Outcome::Touched, Outcome::NotFound],
            Verb::Version => &[Outcome::Ok],
            verb if verb.is_command() => COMMAND,
            _ => unreachable!(),
        };
        all[v] = 1 << Outcome::Error(Fault::Server).kind();
        let mut n = 0;
        while n < ends.len() {
            all[v] |= 1 << ends[n].kind();
            n += 1;
        }
        v += 1;
    }
    all
};
