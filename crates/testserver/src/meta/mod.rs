//! memcached's meta commands from the server's side.

mod answer;
mod request;

pub(super) use self::answer::answer;
pub(super) use self::request::{Meta, Payload, announced};
