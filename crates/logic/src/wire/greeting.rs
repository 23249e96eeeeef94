//! What is said on a new connection before the first request: who we are, which version of the protocol, which database.

use std::fmt;
use std::io::IoSlice;

use super::binary::Binary;
use super::resp::{Resp2, Resp3};
use super::text::Text;
use super::{Codec, Malformed, Outcome, Refused, Step};
use crate::outbox::Outbox;

/// A user and a password.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// The user; empty where the server has only a password (`requirepass` of Redis).
    pub user: &'a [u8],
    /// The password.
    pub password: &'a [u8],
}

/// What is said on every new connection of a run, all of it at once, and what answers it.
///
/// It is the engine's to send [`Greeting::bytes`] as soon as a connection is open, and to give [`Hearing`] what arrives
/// until that is done; the time of it belongs to no request. Bytes of a greeting are secret: they are not shown.
#[derive(Clone, Default)]
pub struct Greeting {
    bytes: Vec<u8>,
    replies: u32,
    dialect: Dialect,
}

/// Whose replies answer a greeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Dialect {
    #[default]
    Resp2,
    Resp3,
    /// memcached's text and meta protocols.
    Text,
    Binary,
}

/// Whether a greeting is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The server has agreed to everything.
    Done,
    /// All input was taken; more is needed.
    NeedMore,
}

/// Why a connection cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWelcome {
    /// The server refused; its own words.
    Refused(String),
    /// What it said is none of the protocol's.
    Malformed(Malformed),
}

impl fmt::Display for NotWelcome {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotWelcome::Refused(words) if words.is_empty() => to.write_str("the server refused without a word"),
            NotWelcome::Refused(words) => write!(to, "the server said: {words}"),
            NotWelcome::Malformed(Malformed(why)) => to.write_str(why),
        }
    }
}

impl std::error::Error for NotWelcome {}

impl fmt::Debug for Greeting {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Greeting")
            .field("len_bytes", &self.bytes.len())
            .field("replies", &self.replies)
            .field("dialect", &self.dialect)
            .finish()
    }
}

impl fmt::Debug for Login<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Greeting {
    /// Nothing: the connection is ready as soon as it is open.
    pub fn none() -> Greeting {
        Greeting::default()
    }

    /// RESP2: AUTH with a login, SELECT of a database other than 0. An AUTH without user is understood by every version
    /// of Redis, one with a user since 6.0.
    pub fn resp2(login: Option<Login<'_>>, database: u32) -> Greeting {
        let mut codec = Resp2::new();
        let mut out = Outbox::default();
        let mut replies = 0;
        if let Some(Login { user, password }) = login {
            let words: &[&[u8]] =
                if user.is_empty() { &[b"AUTH", password] } else { &[b"AUTH", user, password] };
            codec.encode_command(words, &mut out);
            replies += 1;
        }
        if database != 0 {
            codec.encode_command(&[b"SELECT", database.to_string().as_bytes()], &mut out);
            replies += 1;
        }
        Greeting { bytes: bytes_of(&out), replies, dialect: Dialect::Resp2 }
    }

    /// RESP3: HELLO 3, with the login in it, SELECT of a database other than 0. A login without user is that of the user
    /// `default`.
    pub fn resp3(login: Option<Login<'_>>, database: u32) -> Greeting {
        let mut codec = Resp3::new();
        let mut out = Outbox::default();
        match login {
            None => codec.encode_command(&[b"HELLO", b"3"], &mut out),
            Some(Login { user, password }) => {
                let user = if user.is_empty() { b"default" } else { user };
                codec.encode_command(&[b"HELLO", b"3", b"AUTH", user, password], &mut out)
            }
        };
        if database != 0 {
            codec.encode_command(&[b"SELECT", database.to_string().as_bytes()], &mut out);
        }
        Greeting { bytes: bytes_of(&out), replies: 1 + u32::from(database != 0), dialect: Dialect::Resp3 }
    }

    /// memcached's text and meta protocols: a set that carries the login, to a server with a file of users (`-Y`;
    /// `protocol.txt`, "Authentication").
    ///
    /// # Errors
    /// When the user or the password have bytes that the protocol cannot carry.
    pub fn text(login: Login<'_>) -> Result<Greeting, Refused> {
        let mut out = Outbox::default();
        Text::new().encode_auth(login.user, login.password, 0, &mut out)?;
        Ok(Greeting { bytes: bytes_of(&out), replies: 1, dialect: Dialect::Text })
    }

    /// memcached's binary protocol: SASL's PLAIN (RFC 4616), to a server with `-S`.
    ///
    /// # Errors
    /// When the user or the password have bytes that the mechanism cannot carry.
    pub fn binary(login: Login<'_>) -> Result<Greeting, Refused> {
        let mut out = Outbox::default();
        Binary::new().encode_auth(login.user, login.password, 0, &mut out)?;
        Ok(Greeting { bytes: bytes_of(&out), replies: 1, dialect: Dialect::Binary })
    }

    /// Whether nothing is to be said, and nothing comes.
    pub fn is_none(&self) -> bool {
        self.replies == 0
    }

    /// What to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What waits for the answers on one connection.
    pub fn hearing(&self) -> Hearing {
        let ears = match self.dialect {
            Dialect::Resp2 => Ears::Resp2(Resp2::new()),
            Dialect::Resp3 => Ears::Resp3(Resp3::new()),
            Dialect::Text => Ears::Text(Text::new()),
            Dialect::Binary => Ears::Binary(Binary::new()),
        };
        Hearing { ears, left: self.replies }
    }
}

/// What waits for the answers to a greeting on one connection.
#[derive(Debug)]
pub struct Hearing {
    ears: Ears,
    /// Answers that are still to come.
    left: u32,
}

#[derive(Debug)]
enum Ears {
    Resp2(Resp2),
    Resp3(Resp3),
    Text(Text),
    Binary(Binary),
}

impl Hearing {
    /// Takes the answers off the front of `input`, which may end anywhere. Where they are complete, what follows them is
    /// left in `input` for whoever reads the connection from then on.
    ///
    /// # Errors
    /// When the server refuses, or does not speak the protocol: the connection cannot be used.
    pub fn handle_received(&mut self, input: &mut &[u8]) -> Result<Heard, NotWelcome> {
        while self.left > 0 {
            let step = match &mut self.ears {
                Ears::Resp2(codec) => codec.decode(input),
                Ears::Resp3(codec) => codec.decode(input),
                Ears::Text(codec) => codec.decode(input),
                Ears::Binary(codec) => codec.decode(input),
            };
            match step.map_err(NotWelcome::Malformed)? {
                Step::Need => return Ok(Heard::NeedMore),
                Step::Item { .. } | Step::Body(_) => {
                    return Err(NotWelcome::Malformed(Malformed("a value answers a greeting")));
                }
                Step::Reply { outcome: Outcome::Ok | Outcome::Stored, .. } => self.left -= 1,
                Step::Reply { message, .. } => {
                    return Err(NotWelcome::Refused(String::from_utf8_lossy(message).into_owned()));
                }
            }
        }
        Ok(Heard::Done)
    }
}

/// All bytes that wait in `out`; none of a greeting is shared.
fn bytes_of(out: &Outbox) -> Vec<u8> {
    let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
    let count = out.parts(&[], &mut parts);
    parts[..count].iter().flat_map(|part| part.iter().copied()).collect()
}
