//! The exchange on a new connection before the first request: login, version of the protocol, database.

use std::fmt;
use std::sync::Arc;

use super::binary::{self, Binary};
use super::lines;
use super::resp::{Resp2, Resp3};
use super::text::Text;
use super::{Aside, Codec, Malformed, Outcome, Refused, ServerError, Step};
use crate::connection::outbox::Outbox;

/// A login: a user and a password.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The user; empty if the server has only a password (`requirepass` of Redis).
    pub user: &'a [u8],
    /// The password itself.
    pub password: &'a [u8],
}

/// The bytes that are sent on every new connection of a run, all at once, and the replies that they get.
///
/// The engine sends [`Handshake::bytes`] as soon as a connection is open, and gives [`HandshakeReader`] what arrives
/// until the handshake is done. The time of a handshake belongs to no request. The bytes are secret and are not shown
/// by `Debug`.
#[derive(Clone, Default)]
pub struct Handshake {
    bytes: Vec<u8>,
    replies: u32,
    dialect: Dialect,
    /// A command asks for messages that come by themselves.
    tracks: bool,
    /// The file of the script that the last command loads; `None` without one.
    script_path: Option<Arc<str>>,
}

/// The protocol of the replies to a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Dialect {
    #[default]
    Resp2,
    Resp3,
    /// memcached's text and meta protocols.
    Text,
    Binary,
}

/// Progress of a handshake that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeProgress {
    /// The server has agreed to everything.
    Done,
    /// All input was taken, and more is needed.
    NeedMore,
}

/// The reason why a connection cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeRefused {
    /// The server refused the handshake with this message of this kind.
    Refused(String, ServerError),
    /// The server refused, with this message of this kind, to load the script from the file of this name.
    Script(String, ServerError, Arc<str>),
    /// The server sent bytes that the protocol does not allow.
    Malformed(Malformed),
}

impl fmt::Display for HandshakeRefused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeRefused::Refused(words, _) if words.is_empty() => {
                to.write_str("the server refused without a word")
            }
            HandshakeRefused::Refused(words, _) => write!(to, "the server said: {words}"),
            HandshakeRefused::Script(words, _, path) => {
                write!(to, "the script '{}' was not loaded, the server said: {words}", path.escape_debug())
            }
            HandshakeRefused::Malformed(Malformed(why)) => to.write_str(why),
        }
    }
}

impl std::error::Error for HandshakeRefused {}

impl fmt::Debug for Handshake {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Handshake")
            .field("len_bytes", &self.bytes.len())
            .field("replies", &self.replies)
            .field("dialect", &self.dialect)
            .finish()
    }
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Handshake {
    /// The empty handshake: a connection is ready as soon as it is open.
    pub fn none() -> Handshake {
        Handshake::default()
    }

    /// The handshake of these commands, which have so many replies.
    fn of(commands: &Outbox, replies: u32, dialect: Dialect) -> Handshake {
        Handshake { bytes: bytes_of(commands), replies, dialect, ..Handshake::default() }
    }

    /// The handshake of RESP2: AUTH if there is a login, and SELECT of a database other than 0. All versions of Redis
    /// understand AUTH without user; with a user, Redis 6.0 or later is needed.
    pub fn resp2(login: Option<Credentials<'_>>, database: u32) -> Handshake {
        let mut codec = Resp2::new();
        let mut out = Outbox::default();
        let mut replies = 0;
        if let Some(Credentials { user, password }) = login {
            let words: &[&[u8]] =
                if user.is_empty() { &[b"AUTH", password] } else { &[b"AUTH", user, password] };
            codec.encode_command(words, &mut out);
            replies += 1;
        }
        if database != 0 {
            codec.encode_command(&[b"SELECT", database.to_string().as_bytes()], &mut out);
            replies += 1;
        }
        Handshake::of(&out, replies, Dialect::Resp2)
    }

    /// The handshake of RESP3: HELLO 3, with the login if there is one, and SELECT of a database other than 0. A
    /// login without user is sent as that of the user `default`.
    pub fn resp3(login: Option<Credentials<'_>>, database: u32) -> Handshake {
        let mut codec = Resp3::new();
        let mut out = Outbox::default();
        match login {
            None => codec.encode_command(&[b"HELLO", b"3"], &mut out),
            Some(Credentials { user, password }) => {
                let user = if user.is_empty() { b"default" } else { user };
                codec.encode_command(&[b"HELLO", b"3", b"AUTH", user, password], &mut out)
            }
        };
        if database != 0 {
            codec.encode_command(&[b"SELECT", database.to_string().as_bytes()], &mut out);
        }
        Handshake::of(&out, 1 + u32::from(database != 0), Dialect::Resp3)
    }

    /// The handshake of memcached's text and meta protocols, for servers with a file of users (`-Y`): a set that
    /// carries the login (`protocol.txt`, "Authentication").
    ///
    /// # Errors
    /// Returns [`Refused`] for a user that is empty or has blanks, control characters or colons, and for a password
    /// with control characters.
    pub fn text(login: Credentials<'_>) -> Result<Handshake, Refused> {
        let mut out = Outbox::default();
        lines::push_auth(login.user, login.password, &mut out)?;
        Ok(Handshake::of(&out, 1, Dialect::Text))
    }

    /// The handshake of memcached's binary protocol, for servers with `-S`: an authentication with SASL's PLAIN (RFC
    /// 4616).
    ///
    /// # Errors
    /// Returns [`Refused`] for a user or a password with a zero byte.
    pub fn binary(login: Credentials<'_>) -> Result<Handshake, Refused> {
        let mut out = Outbox::default();
        binary::push_auth(login.user, login.password, &mut out)?;
        Ok(Handshake::of(&out, 1, Dialect::Binary))
    }

    /// The handshake of RESP3 with `CLIENT TRACKING ON` behind it, of the keys that the connection reads or of all.
    #[must_use]
    pub fn with_tracking(mut self, of_all: bool) -> Handshake {
        let (mut codec, mut out) = (Resp3::new(), Outbox::default());
        let words: [&[u8]; 4] = [b"CLIENT", b"TRACKING", b"ON", b"BCAST"];
        let count = if of_all { 4 } else { 3 };
        codec.encode_command(&words[..count], &mut out);
        self.bytes.extend_from_slice(&bytes_of(&out));
        self.replies += 1;
        self.tracks = true;
        self
    }

    /// The handshake of RESP with READONLY behind it, which lets the replicas of a cluster answer reads. It changes nothing on a master.
    #[must_use]
    pub fn reading_replicas(mut self) -> Handshake {
        self.bytes.extend_from_slice(b"*1\r\n$8\r\nREADONLY\r\n");
        self.replies += 1;
        self
    }

    /// The handshake of RESP with the loading of a script of this text behind it, which was read from the file `path`.
    #[must_use]
    pub fn loading_script(mut self, path: &str, text: &str) -> Handshake {
        let mut out = Outbox::default();
        Resp2::new().encode_aside(Aside::LoadScript(text), &mut out);
        self.bytes.extend_from_slice(&bytes_of(&out));
        self.replies += 1;
        self.script_path = Some(path.into());
        self
    }

    /// Whether the handshake is empty: nothing is sent, and no reply comes.
    pub fn is_none(&self) -> bool {
        self.replies == 0
    }

    /// Whether the server may send messages behind its replies that no request asks for.
    pub fn asks_for_messages(&self) -> bool {
        self.tracks
    }

    /// Number of replies that the server sends, one for each command.
    pub fn replies(&self) -> u32 {
        self.replies
    }

    /// The bytes that are sent on a new connection.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A reader of the replies on one connection.
    pub fn reader(&self) -> HandshakeReader {
        let state = match self.dialect {
            Dialect::Resp2 => ReaderState::Resp2(Resp2::new()),
            Dialect::Resp3 => ReaderState::Resp3(Resp3::new()),
            Dialect::Text => ReaderState::Text(Text::new()),
            Dialect::Binary => ReaderState::Binary(Binary::new()),
        };
        HandshakeReader { state, left: self.replies, script_path: self.script_path.clone() }
    }
}

/// Reader of the replies to a handshake on one connection.
#[derive(Debug)]
pub struct HandshakeReader {
    state: ReaderState,
    /// Number of replies that are still to come.
    left: u32,
    /// The file of the script that the last command loads; `None` without one.
    script_path: Option<Arc<str>>,
}

#[derive(Debug)]
enum ReaderState {
    Resp2(Resp2),
    Resp3(Resp3),
    Text(Text),
    Binary(Binary),
}

impl HandshakeReader {
    /// Takes the replies off the front of `input`, which may end anywhere. Bytes after the last reply are left in
    /// `input`.
    ///
    /// # Errors
    /// Returns [`HandshakeRefused::Refused`] when the server refuses, and [`HandshakeRefused::Malformed`] for bytes
    /// that the protocol does not allow. The connection cannot be used then.
    pub fn handle_received(&mut self, input: &mut &[u8]) -> Result<HandshakeProgress, HandshakeRefused> {
        while self.left > 0 {
            let (step, kind_of): (_, fn(&[u8]) -> ServerError) = match &mut self.state {
                ReaderState::Resp2(codec) => (codec.decode(input), ServerError::of_resp),
                ReaderState::Resp3(codec) => (codec.decode(input), ServerError::of_resp),
                ReaderState::Text(codec) => (codec.decode(input), ServerError::of_text),
                ReaderState::Binary(codec) => (codec.decode(input), ServerError::of_binary),
            };
            match step.map_err(HandshakeRefused::Malformed)? {
                Step::Need => return Ok(HandshakeProgress::NeedMore),
                // The commands of a handshake are sent together, and an earlier one may have asked for such messages.
                Step::Push { .. } => {}
                Step::Item { .. } | Step::Body(_) | Step::Absent | Step::QuietError { .. } => {
                    return Err(HandshakeRefused::Malformed(Malformed("a value answers a handshake")));
                }
                Step::Reply { outcome: Outcome::Ok | Outcome::Stored, .. } => self.left -= 1,
                Step::Reply { message, .. } => {
                    let words = String::from_utf8_lossy(message).into_owned();
                    // A server that is full says so to whatever is sent first.
                    let is_full = message.starts_with(b"ERR max number of clients");
                    if let Some(path) = self.script_path.take().filter(|_| self.left == 1 && !is_full) {
                        return Err(HandshakeRefused::Script(words, kind_of(message), path));
                    }
                    return Err(HandshakeRefused::Refused(words, kind_of(message)));
                }
            }
        }
        Ok(HandshakeProgress::Done)
    }
}

/// All bytes of `out`: a handshake has no long values.
fn bytes_of(out: &Outbox) -> Vec<u8> {
    out.plain().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const LOGIN: Credentials<'_> = Credentials { user: b"user", password: b"secret" };
    const NO_USER: Credentials<'_> = Credentials { user: b"", password: b"secret" };

    /// The answer of Redis 7 to HELLO 3.
    const HELLO: &[u8] = b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
        $2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";

    /// The answer of memcached to a right SASL PLAIN.
    fn authenticated(status: u16, words: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x81, 0x21, 0, 0, 0, 0];
        packet.extend(status.to_be_bytes());
        packet.extend((words.len() as u32).to_be_bytes());
        packet.extend([0; 12]);
        packet.extend(words);
        packet
    }

    /// Returns the end of a handshake when `stream` arrives, and the number of bytes left; the same for every cut in
    /// three.
    fn progress(
        handshake: &Handshake,
        stream: &[u8],
    ) -> (Result<HandshakeProgress, HandshakeRefused>, usize) {
        let take = |pieces: &[&[u8]]| {
            let mut reader = handshake.reader();
            let mut last = Ok(HandshakeProgress::NeedMore);
            for (n, piece) in pieces.iter().enumerate() {
                let mut input = *piece;
                last = reader.handle_received(&mut input);
                if last != Ok(HandshakeProgress::NeedMore) {
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

    fn refused(words: &str, kind: ServerError) -> Result<HandshakeProgress, HandshakeRefused> {
        Err(HandshakeRefused::Refused(words.to_string(), kind))
    }

    #[test]
    fn an_empty_handshake_is_done_at_once() {
        for handshake in [Handshake::none(), Handshake::resp2(None, 0)] {
            assert!(handshake.is_none() && handshake.bytes().is_empty());
            assert_eq!(
                progress(&handshake, b"+OK\r\n"),
                (Ok(HandshakeProgress::Done), 5),
                "all is left to the session"
            );
        }
    }

    #[test]
    fn resp2_says_auth_and_select() {
        for (handshake, bytes) in [
            (Handshake::resp2(Some(NO_USER), 0), &b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"[..]),
            (Handshake::resp2(Some(LOGIN), 0), b"*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n"),
            (Handshake::resp2(None, 15), b"*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n"),
        ] {
            assert_eq!(handshake.bytes(), bytes);
            assert_eq!(progress(&handshake, b"+OK\r\n$-1\r\n"), (Ok(HandshakeProgress::Done), 5));
        }
        let both = Handshake::resp2(Some(NO_USER), 3);
        let bytes = b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
        assert_eq!(both.bytes(), bytes);
        assert_eq!(progress(&both, b"+OK\r\n").0, Ok(HandshakeProgress::NeedMore));
        assert_eq!(progress(&both, b"+OK\r\n+OK\r\n"), (Ok(HandshakeProgress::Done), 0));
        let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
        let stream = format!("-{wrong}\r\n-NOAUTH Authentication required.\r\n");
        assert_eq!(
            progress(&both, stream.as_bytes()).0,
            refused(wrong, ServerError::LoginWrong),
            "the first refusal is the reason"
        );
        let range = "ERR DB index is out of range";
        assert_eq!(
            progress(&both, format!("+OK\r\n-{range}\r\n").as_bytes()).0,
            refused(range, ServerError::Other)
        );
    }

    #[test]
    fn tracking_comes_last_and_what_it_brings_is_passed_over() {
        let own = b"*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n";
        let all = b"*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nBCAST\r\n";
        for (of_all, words) in [(false, &own[..]), (true, &all[..])] {
            let hello = Handshake::resp3(None, 0);
            let tracking = hello.clone().with_tracking(of_all);
            assert_eq!(tracking.bytes(), [hello.bytes(), words].concat());
            assert!(tracking.asks_for_messages() && !hello.asks_for_messages());
            let push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
            let stream = [HELLO, push, b"+OK\r\n"].concat();
            assert_eq!(progress(&tracking, &stream), (Ok(HandshakeProgress::Done), 0));
            let stream = [HELLO, b"-ERR Client tracking is not possible\r\n"].concat();
            assert!(matches!(progress(&tracking, &stream).0, Err(HandshakeRefused::Refused(..))));
        }
    }

    #[test]
    fn a_script_that_is_not_loaded_is_told_with_its_file() {
        let load = b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$6\r\nreturn\r\n";
        let handshake = Handshake::resp2(None, 1).loading_script("a.lua", "return");
        assert!(handshake.bytes().ends_with(load));
        let name = b"+OK\r\n$40\r\n0123456789012345678901234567890123456789\r\n";
        assert_eq!(progress(&handshake, name), (Ok(HandshakeProgress::Done), 0));
        let (words, path) = ("ERR Error compiling script", Arc::from("a.lua"));
        let wrong = HandshakeRefused::Script(words.to_owned(), ServerError::Other, path);
        assert!(wrong.to_string().contains("'a.lua'") && wrong.to_string().ends_with(words), "{wrong}");
        assert_eq!(progress(&handshake, format!("+OK\r\n-{words}\r\n").as_bytes()).0, Err(wrong));
        let range = "ERR DB index is out of range";
        let of_database = refused(range, ServerError::Other);
        assert_eq!(progress(&handshake, format!("-{range}\r\n").as_bytes()).0, of_database);
        let full = "ERR max number of clients reached";
        let alone = Handshake::resp2(None, 0).loading_script("a.lua", "return");
        assert_eq!(progress(&alone, format!("-{full}\r\n").as_bytes()).0, refused(full, ServerError::Other));
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
            let handshake = Handshake::resp3(login, database);
            assert_eq!(handshake.bytes(), bytes);
            let replies = if database == 0 { HELLO.to_vec() } else { [HELLO, b"+OK\r\n"].concat() };
            assert_eq!(
                progress(&handshake, &replies[..replies.len() - 1]).0,
                Ok(HandshakeProgress::NeedMore)
            );
            assert_eq!(progress(&handshake, &replies), (Ok(HandshakeProgress::Done), 0));
        }
        let old = "ERR unknown command `HELLO`, with args beginning with: `3`, ";
        let handshake = Handshake::resp3(None, 0);
        assert_eq!(
            progress(&handshake, format!("-{old}\r\n").as_bytes()).0,
            refused(old, ServerError::Other)
        );
    }

    #[test]
    fn readonly_comes_last_in_both_versions_and_its_error_is_a_refusal() {
        let word = b"*1\r\n$8\r\nREADONLY\r\n";
        for (handshake, before) in [
            (Handshake::resp2(None, 0), &b""[..]),
            (Handshake::resp2(Some(LOGIN), 0), b"+OK\r\n"),
            (Handshake::resp3(None, 0), HELLO),
        ] {
            let reading = handshake.clone().reading_replicas();
            assert_eq!(reading.bytes(), [handshake.bytes(), word].concat());
            assert_eq!(reading.replies(), handshake.replies() + 1);
            let stream = [before, b"+OK\r\n"].concat();
            assert_eq!(progress(&reading, &stream), (Ok(HandshakeProgress::Done), 0));
            let stream = [before, b"-ERR This instance has cluster support disabled\r\n"].concat();
            assert!(matches!(progress(&reading, &stream).0, Err(HandshakeRefused::Refused(..))));
        }
    }

    #[test]
    fn text_says_a_set() {
        let handshake = Handshake::text(LOGIN).expect("the login can be written");
        assert_eq!(handshake.bytes(), b"set auth 0 0 11\r\nuser secret\r\n");
        assert_eq!(progress(&handshake, b"STORED\r\nEND\r\n"), (Ok(HandshakeProgress::Done), 5));
        let words = "CLIENT_ERROR authentication failure";
        assert_eq!(
            progress(&handshake, format!("{words}\r\n").as_bytes()).0,
            refused(words, ServerError::LoginWrong)
        );
        for (user, password) in [(&b""[..], &b"p"[..]), (b"a b", b"p"), (b"a:b", b"p"), (b"a", b"p\r\n")] {
            assert!(Handshake::text(Credentials { user, password }).is_err());
        }
    }

    #[test]
    fn binary_says_sasl_plain() {
        let handshake = Handshake::binary(LOGIN).expect("the login can be written");
        let head = [0x80, 0x21, 0, 5, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(handshake.bytes(), [&head[..], b"PLAIN\0user\0secret"].concat());
        assert_eq!(
            progress(&handshake, &authenticated(0, b"Authenticated")),
            (Ok(HandshakeProgress::Done), 0)
        );
        assert_eq!(
            progress(&handshake, &authenticated(0x20, b"Auth failure.")).0,
            refused("Auth failure.", ServerError::LoginRequired)
        );
        assert!(Handshake::binary(Credentials { user: b"a\0b", password: b"" }).is_err());
    }

    #[test]
    fn a_reply_of_another_dialect_ends_the_handshake() {
        let text = Handshake::text(LOGIN).expect("the login can be written");
        for (handshake, stream, part) in [
            (Handshake::resp3(None, 0), &b"ERROR\r\n"[..], "memcached's text"),
            (Handshake::resp2(Some(LOGIN), 0), b"HTTP/1.1 400\r\n", "HTTP"),
            (text.clone(), b"-ERR unknown command 'set'\r\n", "RESP"),
            (text, b"VALUE a 0 0\r\n", "a value answers"),
        ] {
            let (end, _) = progress(&handshake, stream);
            let why = end.expect_err("the handshake fails").to_string();
            assert!(why.contains(part), "{stream:?}: {why}");
        }
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let handshake = Handshake::resp2(Some(LOGIN), 0);
        for shown in [format!("{handshake:?}"), format!("{LOGIN:?}"), format!("{:?}", handshake.reader())] {
            assert!(!shown.contains("secret") && !shown.contains("115, 101"), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>, database in any::<u32>()) {
            let (text, binary) = (Handshake::text(LOGIN), Handshake::binary(LOGIN));
            let resp = [Handshake::resp2(Some(LOGIN), database), Handshake::resp3(None, database)];
            for handshake in resp.iter().chain(&text).chain(&binary) {
                let _ = handshake.reader().handle_received(&mut &data[..]);
            }
        }
    }
}
