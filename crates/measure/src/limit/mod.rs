//! The table of limits: what set the rate of a run, or the waiting in it, judged from a [`Case`].
//!
//! Whether the times are reliable is another question, which [`trust`](crate::trust) answers: lag makes times
//! doubtful and limits nothing by itself. In closed loop replies that arrive together are read together, and the later
//! ones wait for their turn while the server is busy.

mod case;
mod cause;
mod cpu_time;
mod generator_rows;
mod lateness;
mod load_rows;
mod network_rows;
mod observations;
mod occupied_rows;
mod overload_rows;
mod server_rows;
mod server_use;
mod shared_cpu;
mod shares;
mod standstills;
mod table;
mod worker_loss;

#[cfg(test)]
mod tests;

pub use self::case::{BODY, Case, SLIP_MIN_NS, VISIBLE_SHARE, Visible};
pub use self::cause::{
    CardBound, Cause, Clients, DelayTaker, InFlight, LostCpu, LostWhy, MoreInFlight, NextLimit, Occupied,
    Outpaced, SharedMachine, Side, Spare, Standstill, StartedAnew, TakenCpu, ThreadAdvice, ThreadTime,
    TimeAt, TurnedAwayBy, WaitedFor,
};
pub use self::generator_rows::KeptBack;
pub use self::lateness::{CpuSharers, LagCause, Stalls};
pub use self::load_rows::MISSES_SHARE;
pub use self::network_rows::card_share;
pub use self::observations::{Observation, Subject};
pub use self::overload_rows::Overload;
pub use self::server_use::{ServerUse, ThreadShare};
pub use self::shares::{FULL_SHARE, Judged};
pub use self::standstills::standstills;
pub use self::table::{Limit, ROWS, Row, Verdict};
pub use self::worker_loss::{CpuTaker, WorkerLoss};
