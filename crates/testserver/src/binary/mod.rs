//! memcached's binary protocol from the server's side: bytes become requests, and requests become replies.

mod answer;
mod request;

pub(super) use self::answer::{answer, fail, foreign};
pub(super) use self::request::{Parser, REQUEST, Request};
