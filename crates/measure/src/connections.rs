//! The account of connections: how many were opened, failed and were lost, and how long opening took.

use serde::{Deserialize, Serialize};

use crate::churn::Churn;
use crate::histogram::{CoarseHistogram, Histogram};
use crate::parts::renumbered;
use pummel_logic::merged;
use pummel_logic::protocol::ServerError;

/// Most servers whose connections are timed one by one.
pub const SERVERS_TIMED_MAX: usize = 64;

merged! {
    /// The account of the connections of a run.
    #[serde(deny_unknown_fields)]
    pub struct Connections {
        /// Number of connections that the Plan asks for.
        pub asked: u64,
        /// Number of connections that were open when the measured phase began.
        pub open: u64,
        /// Connections that were open when a measured phase began and on which their server had sent nothing yet, so that it may
        /// have counted them as new ones later. One that had been opened anew counts in each such phase.
        #[serde(default)]
        pub unheard: u64,
        /// Attempts to open a connection that failed.
        pub failed: u64,
        /// Failed attempts that the peer refused or reset.
        #[serde(default)]
        pub turned_away: u64,
        /// Failed attempts for which no local port was free.
        #[serde(default)]
        pub no_port: u64,
        /// Open connections that broke, or had to be closed.
        pub lost: u64,
        /// Lost connections that were opened again.
        pub reconnected: u64,
        /// The servers that took connections and then refused them, by their numbers in the Plan. A refused connection is a failed
        /// attempt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub refusals: Vec<Refusal> => merge_refusals,
        /// The first failure of a connection; absent where none failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub trouble: Option<FirstTrouble> => merge_trouble,
        /// Time that opening a connection took; with TLS, until the handshake was over.
        pub connect: Histogram,
        /// Time that opening a connection took, by the number of the server in the Plan; the first [`SERVERS_TIMED_MAX`] of them.
        /// Empty in results of older versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub connect_by_server: Vec<CoarseHistogram>,
        /// Time that TLS handshakes took, which is a part of opening; empty without TLS.
        #[serde(default)]
        pub handshake: Histogram,
        /// Number of TLS handshakes that resumed a session.
        #[serde(default)]
        pub resumed: u64,
        /// The account of clients that come and go; `None` where all clients stay.
        #[serde(default)]
        pub churn: Option<Box<Churn>>,
    }
}

/// The first failure of a connection of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstTrouble {
    /// Index of the server in the Plan.
    pub server: u32,
    /// Kind of the failure.
    pub kind: TroubleKind,
}

/// Kind of the failure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Nothing listens at the server's address.
    Refused,
    /// No unix socket has the server's name.
    NoSocket,
    /// The server's machine cannot be reached.
    Unreachable,
    /// The server did not take the connection in time.
    NotTaken,
    /// The server closed the connection.
    Closed,
    /// The server reset the connection.
    Reset,
    /// A request took longer than the timeout.
    RequestTimedOut,
    /// The server takes no more connections, and said so.
    Full,
    /// The server refuses clients of other machines, and said so.
    ProtectedMode,
    /// The server refused the login or the protocol's handshake, with an error of this kind.
    HandshakeRefused(ServerError),
    /// The server's first bytes are those of TLS, and the connection had none.
    SpeaksTls,
    /// The server's first bytes are those of HTTP.
    SpeaksHttp,
    /// The server's first bytes are not of the protocol of the run.
    SpeaksOther,
    /// TLS with the server failed.
    Tls(TlsTrouble),
    /// Trouble of any other kind.
    Other,
}

/// Reason why TLS with a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TlsTrouble {
    /// The server does not speak TLS.
    NotSpoken,
    /// No trusted authority has signed the server's certificate.
    Untrusted,
    /// The server's certificate is for another name.
    WrongName,
    /// The server does not accept the client's certificate, or wants one.
    ClientCertificate,
    /// The handshake was not over in time.
    Slow,
    /// The server closed or reset the connection in the handshake.
    CutOff,
    /// Trouble of any other kind.
    Other,
}

impl Connections {
    /// Gives the servers other numbers. What is known of a server without a number is left out.
    pub(crate) fn renumber(&mut self, numbers: &[Option<u16>]) {
        let number_of = |server: u32| numbers.get(server as usize).copied().flatten().map(u32::from);
        self.connect_by_server = renumbered(&self.connect_by_server, numbers);
        self.trouble = self
            .trouble
            .and_then(|trouble| Some(FirstTrouble { server: number_of(trouble.server)?, ..trouble }));
        self.refusals.retain_mut(|refusal| match number_of(refusal.server) {
            Some(number) => {
                refusal.server = number;
                true
            }
            None => false,
        });
        self.refusals.sort_by_key(|refusal| refusal.server);
    }
}

/// Keeps the first failure of two parts of a run.
fn merge_trouble(first: &mut Option<FirstTrouble>, other: &Option<FirstTrouble>) {
    *first = first.or(*other);
}

/// Connections that one server took and then refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Index of the server in the Plan.
    pub server: u32,
    /// Connections to the server that were opened or refused.
    pub connections: u64,
    /// Connections that the server refused the last time, and has not taken since.
    pub refused: u64,
    /// Connections that the server took and then refused.
    pub attempts: u64,
    /// The server's words.
    pub words: String,
    /// The server's limit of connections; `None` where it is not known.
    pub limit: Option<u64>,
    /// Connections that the server has refused since its start, by its own count.
    pub counted: Option<u64>,
}

impl Refusal {
    /// Number of connections that the server took and kept.
    pub fn taken(&self) -> u64 {
        self.connections.saturating_sub(self.refused)
    }

    /// Adds another worker's account of the server.
    fn merge(&mut self, other: &Refusal) {
        self.connections = self.connections.saturating_add(other.connections);
        self.refused = self.refused.saturating_add(other.refused);
        self.attempts = self.attempts.saturating_add(other.attempts);
        if self.words.is_empty() {
            self.words.clone_from(&other.words);
        }
        self.limit = self.limit.or(other.limit);
        self.counted = self.counted.max(other.counted);
    }
}

/// Adds the refusals that another worker met; those of either are in the order of the servers.
fn merge_refusals(all: &mut Vec<Refusal>, others: &Vec<Refusal>) {
    for other in others {
        match all.binary_search_by_key(&other.server, |known| known.server) {
            Ok(at) => all[at].merge(other),
            Err(at) => all.insert(at, other.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(server: u32, connections: u64, refused: u64) -> Refusal {
        Refusal { server, connections, refused, attempts: refused, ..Refusal::default() }
    }

    #[test]
    fn the_refusals_of_one_server_are_added_up_and_those_of_others_stand_beside_them() {
        let mut all = Connections::default();
        all.merge(&Connections { refusals: vec![refusal(3, 10, 4)], ..Connections::default() });
        let known = Refusal { limit: Some(40), words: "ERROR".to_owned(), ..refusal(3, 6, 6) };
        all.merge(&Connections { refusals: vec![refusal(1, 5, 0), known], ..Connections::default() });
        let sums: Vec<_> = all.refusals.iter().map(|one| (one.server, one.taken(), one.refused)).collect();
        assert_eq!(sums, [(1, 5, 0), (3, 6, 10)]);
        assert_eq!((all.refusals[1].limit, all.refusals[1].words.as_str()), (Some(40), "ERROR"));
    }
}
