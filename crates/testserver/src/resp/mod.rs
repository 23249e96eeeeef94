//! RESP2 and RESP3 from the server's side: bytes become commands, and commands become replies.

mod answer;
mod call;
mod cluster;
mod command;
mod connection;
mod hash;
mod hashes;
mod kept_scripts;
mod keys;
mod queue;
mod request;
mod scripts;
mod strings;
mod transaction;

pub(super) use self::answer::{answer, fail, verb};
pub(super) use self::kept_scripts::Scripts;
pub(super) use self::queue::Transaction;
pub(super) use self::request::{Parser, Request};
