//! Floor 2: threads, sockets and the clock.
//!
//! The only floor that talks to the kernel. A [`Plan`](pummel_logic::plan::Plan) comes in, a measurement goes out; all
//! unsafe code is in [`io`].

pub mod clock;
pub mod connect;
pub mod departures;
pub mod feed;
pub mod io;
mod ledger;
mod log;
pub mod meeting;
pub mod opening;
pub mod run;
pub mod silence;
pub mod tls;
pub mod wheel;
pub mod worker;
