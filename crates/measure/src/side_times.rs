//! The histograms that are kept beside the times of the requests by their operations.

use crate::histogram::Histogram;
use crate::parts::ServerRecord;
use crate::transmit::TransmitTimes;
use pummel_logic::merged;

merged! {
    /// The histograms that are kept beside the times of the requests by their operations: dense in the slices of workers and in the
    /// measurement, and sparse on their way to another process. They are boxed, since most runs have none of them.
    #[serde(deny_unknown_fields)]
    pub struct SideTimes<H = Histogram> {
        /// Number of requests that a client had outstanding with each new one, that one included; `None` where this is not
        /// counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outstanding: Option<Box<H>>,
        /// Times of pairs of a read and the store that follows it, from when the read was due to the arrival of the store's
        /// reply; `None` where the Plan has no pairs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pairs: Option<Box<H>>,
        /// Times from the first to the last sending of requests that a cluster's nodes sent on, and that were answered in the end;
        /// `None` where the servers are no cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hops: Option<Box<H>>,
        /// Times of sampled requests that left this machine; `None` where no request is stamped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub transmit: Option<Box<TransmitTimes<H>>>,
        /// The requests by server, by the number of the server in the Plan: the first
        /// [`SERVERS_TIMED_MAX`](crate::connections::SERVERS_TIMED_MAX) of them; empty with one server.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub servers: Vec<ServerRecord>,
    }
}
