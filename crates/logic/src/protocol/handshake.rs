//! What is said on a new connection before the first request: who we are, which version of the protocol, which database.

use std::fmt;
use std::io::IoSlice;

use super::binary::Binary;
use super::resp::{Resp2, Resp3};
use super::text::Text;
use super::{Codec, Malformed, Outcome, Refused, Step};
use crate::connection::outbox::Outbox;

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
            NotWelcome::Refused(words) if words.is_empty() => {
                to.write_str("the server refused without a word")
            }
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
    /// Returns [`Refused`] for a user that is empty or has blanks, control characters or colons, and for a password
    /// with control characters.
    pub fn text(login: Login<'_>) -> Result<Greeting, Refused> {
        let mut out = Outbox::default();
        Text::new().encode_auth(login.user, login.password, 0, &mut out)?;
        Ok(Greeting { bytes: bytes_of(&out), replies: 1, dialect: Dialect::Text })
    }

    /// memcached's binary protocol: SASL's PLAIN (RFC 4616), to a server with `-S`.
    ///
    /// # Errors
    /// Returns [`Refused`] for a user or a password with a zero byte.
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
    /// Returns [`NotWelcome::Refused`] when the server refuses, and [`NotWelcome::Malformed`] for bytes that the
    /// protocol does not allow. The connection cannot be used then.
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
                Step::Item { .. } | Step::Body(_) | Step::QuietError { .. } => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const LOGIN: Login<'_> = Login { user: b"user", password: b"secret" };
    const NO_USER: Login<'_> = Login { user: b"", password: b"secret" };

    /// What Redis 7 answers HELLO 3 with.
    const HELLO: &[u8] = b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
        $2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";

    /// What memcached answers a right SASL PLAIN with.
    fn authenticated(status: u16, words: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x81, 0x21, 0, 0, 0, 0];
        packet.extend(status.to_be_bytes());
        packet.extend((words.len() as u32).to_be_bytes());
        packet.extend([0; 12]);
        packet.extend(words);
        packet
    }

    /// How a greeting ends when `stream` arrives, and what is left of it; the same for every cut in three.
    fn heard(greeting: &Greeting, stream: &[u8]) -> (Result<Heard, NotWelcome>, usize) {
        let take = |pieces: &[&[u8]]| {
            let mut hearing = greeting.hearing();
            let mut last = Ok(Heard::NeedMore);
            for (n, piece) in pieces.iter().enumerate() {
                let mut input = *piece;
                last = hearing.handle_received(&mut input);
                if last != Ok(Heard::NeedMore) {
                    return (last, input.len() + pieces[n + 1..].concat().len());
                }
                assert!(input.is_empty(), "more is needed, and {} bytes are left", input.len());
            }
            (last, 0)
        };
        let expected = take(&[stream]);
        for second in 0..=stream.len() {
            for first in 0..=second {
                let got = take(&[&stream[..first], &stream[first..second], &stream[second..]]);
                if expected.0.is_err() {
                    assert_eq!(got.0, expected.0, "cut at {first} and {second}");
                } else {
                    assert_eq!(got, expected, "cut at {first} and {second}");
                }
            }
        }
        expected
    }

    fn refused(words: &str) -> Result<Heard, NotWelcome> {
        Err(NotWelcome::Refused(words.to_string()))
    }

    #[test]
    fn nothing_is_said_where_nothing_has_to_be() {
        for greeting in [Greeting::none(), Greeting::resp2(None, 0)] {
            assert!(greeting.is_none() && greeting.bytes().is_empty());
            assert_eq!(heard(&greeting, b"+OK\r\n"), (Ok(Heard::Done), 5), "all is left to the session");
        }
    }

    #[test]
    fn resp2_says_auth_and_select() {
        for (greeting, bytes) in [
            (Greeting::resp2(Some(NO_USER), 0), &b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"[..]),
            (Greeting::resp2(Some(LOGIN), 0), b"*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n"),
            (Greeting::resp2(None, 15), b"*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n"),
        ] {
            assert_eq!(greeting.bytes(), bytes);
            assert_eq!(heard(&greeting, b"+OK\r\n$-1\r\n"), (Ok(Heard::Done), 5));
        }
        let both = Greeting::resp2(Some(NO_USER), 3);
        let bytes = b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
        assert_eq!(both.bytes(), bytes);
        assert_eq!(heard(&both, b"+OK\r\n").0, Ok(Heard::NeedMore));
        assert_eq!(heard(&both, b"+OK\r\n+OK\r\n"), (Ok(Heard::Done), 0));
        let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
        let stream = format!("-{wrong}\r\n-NOAUTH Authentication required.\r\n");
        assert_eq!(heard(&both, stream.as_bytes()).0, refused(wrong), "the first refusal is the reason");
        let range = "ERR DB index is out of range";
        assert_eq!(heard(&both, format!("+OK\r\n-{range}\r\n").as_bytes()).0, refused(range));
    }

    #[test]
    fn resp3_says_hello() {
        for (login, database, bytes) in [
            (None, 0, &b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"[..]),
            (Some(LOGIN), 0, b"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n"),
            (
                Some(NO_USER),
                0,
                b"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n",
            ),
            (None, 2, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n"),
        ] {
            let greeting = Greeting::resp3(login, database);
            assert_eq!(greeting.bytes(), bytes);
            let replies = if database == 0 { HELLO.to_vec() } else { [HELLO, b"+OK\r\n"].concat() };
            assert_eq!(heard(&greeting, &replies[..replies.len() - 1]).0, Ok(Heard::NeedMore));
            assert_eq!(heard(&greeting, &replies), (Ok(Heard::Done), 0));
        }
        let old = "ERR unknown command `HELLO`, with args beginning with: `3`, ";
        let greeting = Greeting::resp3(None, 0);
        assert_eq!(heard(&greeting, format!("-{old}\r\n").as_bytes()).0, refused(old));
    }

    #[test]
    fn text_says_a_set() {
        let greeting = Greeting::text(LOGIN).expect("this can be said");
        assert_eq!(greeting.bytes(), b"set auth 0 0 11\r\nuser secret\r\n");
        assert_eq!(heard(&greeting, b"STORED\r\nEND\r\n"), (Ok(Heard::Done), 5));
        let words = "CLIENT_ERROR authentication failure";
        assert_eq!(heard(&greeting, format!("{words}\r\n").as_bytes()).0, refused(words));
        assert!(Greeting::text(NO_USER).is_err());
    }

    #[test]
    fn binary_says_sasl_plain() {
        let greeting = Greeting::binary(LOGIN).expect("this can be said");
        let head = [0x80, 0x21, 0, 5, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(greeting.bytes(), [&head[..], b"PLAIN\0user\0secret"].concat());
        assert_eq!(heard(&greeting, &authenticated(0, b"Authenticated")), (Ok(Heard::Done), 0));
        assert_eq!(heard(&greeting, &authenticated(0x20, b"Auth failure.")).0, refused("Auth failure."));
        assert!(Greeting::binary(Login { user: b"a\0b", password: b"" }).is_err());
    }

    #[test]
    fn another_dialect_is_no_welcome() {
        let text = Greeting::text(LOGIN).expect("this can be said");
        for (greeting, stream, part) in [
            (Greeting::resp3(None, 0), &b"ERROR\r\n"[..], "memcached's text"),
            (Greeting::resp2(Some(LOGIN), 0), b"HTTP/1.1 400\r\n", "HTTP"),
            (text.clone(), b"-ERR unknown command 'set'\r\n", "RESP"),
            (text, b"VALUE a 0 0\r\n", "a value answers"),
        ] {
            let (end, _) = heard(&greeting, stream);
            let why = end.expect_err("this is no welcome").to_string();
            assert!(why.contains(part), "{stream:?}: {why}");
        }
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let greeting = Greeting::resp2(Some(LOGIN), 0);
        for shown in [format!("{greeting:?}"), format!("{LOGIN:?}"), format!("{:?}", greeting.hearing())] {
            assert!(!shown.contains("secret") && !shown.contains("115, 101"), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>, database in any::<u32>()) {
            let (text, binary) = (Greeting::text(LOGIN), Greeting::binary(LOGIN));
            let resp = [Greeting::resp2(Some(LOGIN), database), Greeting::resp3(None, database)];
            for greeting in resp.iter().chain(&text).chain(&binary) {
                let _ = greeting.hearing().handle_received(&mut &data[..]);
            }
        }
    }
}
