//! Detection of a server's protocol and software, from its answers to questions that change nothing at a server.

use super::Protocol;

/// Longest line of an answer in bytes; a longer one is no answer to a question. Redis explains its protected mode in a line of
/// about 1,000 bytes.
const LINE_MAX_BYTES: usize = 2048;

/// Longest section in which a RESP server describes itself, in bytes.
const SECTION_MAX_BYTES: usize = 64 * 1024;

/// Most bytes of an answer that are quoted.
const QUOTED_MAX_BYTES: usize = 60;

/// Bytes of the header of memcached's binary protocol.
const HEADER_BYTES: usize = 24;

/// A question to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `version` of memcached's text protocol. A RESP server answers it as an unknown command.
    Version,
    /// `PING` of RESP.
    Ping,
    /// `version` of memcached's binary protocol, for servers that close a connection with text.
    BinaryVersion,
    /// `INFO server` of RESP, which returns the software of the server. The question is only put to servers that are
    /// known to speak RESP.
    Info,
}

impl Question {
    /// The questions that find out what is spoken, each on a connection of its own, in this order, until one is answered.
    pub const ALL: [Question; 3] = [Question::Version, Question::Ping, Question::BinaryVersion];

    /// The bytes of the question.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Question::Version => b"version\r\n",
            Question::Ping => b"*1\r\n$4\r\nPING\r\n",
            Question::Info => b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n",
            Question::BinaryVersion => b"\x80\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        }
    }
}

/// The protocol and the software of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The protocol that a run uses.
    pub protocol: Protocol,
    /// The name of the software and its version, where the server sends them.
    pub software: Option<String>,
    /// The server's message if it requires a login before anything else.
    pub login: Option<String>,
    /// Whether the server says that it is a node of a cluster.
    pub is_cluster: bool,
}

impl Spoken {
    /// The software and the protocol, such as `memcached 1.6.18, text`.
    pub fn words(&self) -> String {
        let software = self.software.as_deref().unwrap_or(if self.protocol.is_resp() {
            "a RESP server"
        } else {
            "memcached"
        });
        format!("{software}, {}", self.protocol.name())
    }
}

/// Result of reading the bytes of an answer so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The answer is not complete.
    More,
    /// The server speaks this.
    Spoken(Spoken),
    /// The server refuses this client whatever it is asked, in these words.
    Refused(String),
    /// The bytes are of no protocol that pummel speaks.
    Foreign,
}

/// Reads the bytes that came after a question of [`Question::ALL`].
pub fn read(question: Question, bytes: &[u8]) -> Reading {
    match question {
        Question::BinaryVersion => binary(bytes),
        Question::Version | Question::Ping | Question::Info => line(bytes),
    }
}

/// The first line of an answer.
fn line(bytes: &[u8]) -> Reading {
    let Some(end) = bytes.iter().take(LINE_MAX_BYTES).position(|&byte| byte == b'\n') else {
        return if bytes.len() >= LINE_MAX_BYTES { Reading::Foreign } else { Reading::More };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let spoken = |protocol, software, wants_login: bool| {
        let login = wants_login.then(|| quoted(line));
        Reading::Spoken(Spoken { protocol, software, login, is_cluster: false })
    };
    if let Some(version) = line.strip_prefix(b"VERSION ") {
        let is_number = version.first().is_some_and(u8::is_ascii_digit);
        let name = if is_number { "memcached " } else { "" };
        return spoken(Protocol::Text, Some(format!("{name}{}", quoted(version))), false);
    }
    let is_error =
        [&b"ERROR"[..], b"CLIENT_ERROR", b"SERVER_ERROR"].iter().any(|word| line.starts_with(word));
    if is_error {
        return spoken(Protocol::Text, None, line.ends_with(b"unauthenticated"));
    }
    if line.starts_with(b"-DENIED") {
        return Reading::Refused(line.escape_ascii().to_string());
    }
    match line.first() {
        Some(b'-') => spoken(Protocol::Resp2, None, line.starts_with(b"-NOAUTH")),
        Some(b'+') => spoken(Protocol::Resp2, None, false),
        _ => Reading::Foreign,
    }
}

/// A reply of memcached's binary protocol to a question for its version.
fn binary(bytes: &[u8]) -> Reading {
    const BEGIN: [u8; 2] = [0x81, 0x0b];
    if !BEGIN.starts_with(&bytes[..bytes.len().min(BEGIN.len())]) {
        return Reading::Foreign;
    }
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else { return Reading::More };
    let body_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    if body_bytes > LINE_MAX_BYTES {
        return Reading::Foreign;
    }
    let Some(body) = body.get(..body_bytes) else { return Reading::More };
    let is_refused = header[6..8] != [0, 0];
    Reading::Spoken(Spoken {
        protocol: Protocol::Binary,
        software: (!is_refused).then(|| format!("memcached {}", quoted(body))),
        login: is_refused.then(|| quoted(body)),
        is_cluster: false,
    })
}

/// The software of a RESP server by the bytes that came after [`Question::Info`]; `None` while they are not complete. The
/// inner value is `None` for a server that does not name it.
pub fn software(bytes: &[u8]) -> Option<Option<String>> {
    let Some(end) = bytes.iter().take(LINE_MAX_BYTES).position(|&byte| byte == b'\n') else {
        return (bytes.len() >= LINE_MAX_BYTES).then_some(None);
    };
    let count = bytes[..end].strip_prefix(b"$").and_then(|count| std::str::from_utf8(count).ok());
    let Some(count) = count.and_then(|count| count.trim_end().parse::<usize>().ok()) else {
        return Some(None);
    };
    if count > SECTION_MAX_BYTES {
        return Some(None);
    }
    let section = bytes[end + 1..].get(..count)?;
    let version_of = |name: &str| {
        let mut lines = section.split(|&byte| byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"_version:")).map(quoted)
    };
    // Valkey also reports the version of Redis that it is compatible with.
    let named =
        ["valkey", "redis"].into_iter().find_map(|name| Some(format!("{name} {}", version_of(name)?)));
    Some(named)
}

/// Whether a RESP server is a node of a cluster, by the whole section that came after [`Question::Info`]. Valkey says `server_mode`,
/// and also `redis_mode` as long as it says what Redis says.
pub fn is_cluster(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.any(|line| line == b"redis_mode:cluster" || line == b"server_mode:cluster")
}

/// The whole first line of what a server sent, without the blanks around it, where it is in words: printable ASCII, and not
/// without end.
pub fn words(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(LINE_MAX_BYTES).position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let line = bytes[..end].trim_ascii();
    let is_printable = line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let has_a_letter = line.iter().any(u8::is_ascii_alphabetic);
    let is_in_words = is_printable && has_a_letter && line.len() <= LINE_MAX_BYTES;
    is_in_words.then(|| line.escape_ascii().to_string())
}

/// The first bytes of what a server sent, with what cannot be printed escaped.
pub fn quoted(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    let shown = bytes[..bytes.len().min(QUOTED_MAX_BYTES)].escape_ascii().to_string();
    if bytes.len() > QUOTED_MAX_BYTES { format!("{shown}...") } else { shown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    fn spoken(question: Question, bytes: &[u8]) -> Spoken {
        match read(question, bytes) {
            Reading::Spoken(spoken) => spoken,
            other => panic!("{other:?} of {}", bytes.escape_ascii()),
        }
    }

    /// A refusal of memcached's binary protocol: status 0x20, with its words.
    const UNAUTHENTICATED: &[u8] = b"\x81\x0b\0\0\0\0\0\x20\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0\0Auth failur";

    const VERSION: &[u8] = b"\x81\x0b\0\0\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0\x001.6.18";

    #[test]
    fn each_answer_names_its_protocol_and_its_software() {
        let table: [(Question, &[u8], &str); 8] = [
            (Question::Version, b"VERSION 1.6.18\r\n", "memcached 1.6.18, text"),
            (Question::Version, b"VERSION mcrouter 37.0\r\n", "mcrouter 37.0, text"),
            (Question::Version, b"ERROR\r\n", "memcached, text"),
            (Question::Version, b"SERVER_ERROR out of memory\r\n", "memcached, text"),
            (Question::Version, b"-ERR unknown command 'version'\r\n", "a RESP server, resp2"),
            (Question::Ping, b"+PONG\r\n", "a RESP server, resp2"),
            (Question::Ping, b"ERROR\r\nERROR\r\n", "memcached, text"),
            (Question::BinaryVersion, VERSION, "memcached 1.6.18, binary"),
        ];
        for (question, bytes, words) in table {
            let spoken = spoken(question, bytes);
            assert_eq!((spoken.words().as_str(), spoken.login), (words, None));
        }
    }

    #[test]
    fn a_server_that_wants_a_login_is_known_with_what_it_said() {
        let table: [(Question, &[u8], Protocol, &str); 3] = [
            (
                Question::Version,
                b"-NOAUTH Authentication required.\r\n",
                Protocol::Resp2,
                "-NOAUTH Authentication required.",
            ),
            (
                Question::Version,
                b"CLIENT_ERROR unauthenticated\r\n",
                Protocol::Text,
                "CLIENT_ERROR unauthenticated",
            ),
            (Question::BinaryVersion, UNAUTHENTICATED, Protocol::Binary, "Auth failur"),
        ];
        for (question, bytes, protocol, said) in table {
            let spoken = spoken(question, bytes);
            assert_eq!((spoken.protocol, spoken.login.as_deref()), (protocol, Some(said)));
        }
    }

    #[test]
    fn a_refusal_of_protected_mode_is_read_whole_and_other_errors_are_answers() {
        let denied = format!("-DENIED Redis is running in protected mode {}", "because ".repeat(120));
        let line = format!("{}\r\n", denied.trim_end());
        for question in [Question::Version, Question::Ping] {
            let whole = denied.trim_end().to_owned();
            assert_eq!(read(question, line.as_bytes()), Reading::Refused(whole));
            assert_eq!(read(question, &line.as_bytes()[..900]), Reading::More);
        }
        assert_eq!(spoken(Question::Ping, b"-NOPERM no\r\n").protocol, Protocol::Resp2);
    }

    #[test]
    fn words_are_quoted_whole_and_the_bytes_of_tls_are_none() {
        let greeting = "220 mail.example ESMTP ready, a greeting that is a good deal longer than sixty bytes";
        assert_eq!(words(format!("{greeting}\r\nmore").as_bytes()).as_deref(), Some(greeting));
        assert_eq!(words(greeting.as_bytes()).as_deref(), Some(greeting));
        let endless = vec![b'x'; LINE_MAX_BYTES + 1];
        for bytes in [&b"\x15\x03\x01\0\x02\x02\x46"[..], b"\r\n", b"", b"12\r\n", b"a\0b\n", &endless] {
            assert_eq!(words(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_waited_for() {
        let table: [(Question, &[u8]); 4] = [
            (Question::Version, b"VERSION 1.6.18\r\n"),
            (Question::Ping, b"+PONG\r\n"),
            (Question::BinaryVersion, VERSION),
            (Question::BinaryVersion, UNAUTHENTICATED),
        ];
        for (question, bytes) in table {
            for cut in 0..bytes.len() {
                assert_eq!(read(question, &bytes[..cut]), Reading::More, "{cut} of {}", bytes.escape_ascii());
            }
            spoken(question, bytes);
        }
        let told = b"$50\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\ntcp:1\r\n\r\n";
        for cut in 0..told.len() - 2 {
            assert_eq!(software(&told[..cut]), None, "{cut}");
        }
        assert_eq!(software(told), Some(Some("valkey 8.0.1".to_owned())));
    }

    #[test]
    fn a_section_says_whether_the_server_is_a_node_of_a_cluster() {
        for (section, expected) in [
            (&b"$9\r\nredis_mode:cluster\r\nos:x\r\n\r\n"[..], true),
            (b"$9\r\nvalkey_version:8.0.1\r\nserver_mode:cluster\r\n\r\n", true),
            (b"$9\r\nredis_mode:standalone\r\n\r\n", false),
            (b"$9\r\nredis_mode:sentinel\r\nold_redis_mode:cluster\r\n\r\n", false),
            (b"-NOAUTH Authentication required.\r\n", false),
        ] {
            assert_eq!(is_cluster(section), expected, "{}", section.escape_ascii());
        }
    }

    #[test]
    fn a_section_without_a_version_and_a_refusal_name_no_software() {
        for bytes in [&b"$4\r\na:b\n\r\n"[..], b"-NOPERM no\r\n", b"$-1\r\n", b"$99999999\r\n", b"+OK\r\n"] {
            assert_eq!(software(bytes), Some(None), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn other_bytes_are_foreign_and_without_end_as_well() {
        let endless = vec![b'x'; LINE_MAX_BYTES];
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"\r\n", b"220 mail\n", &endless] {
            assert_eq!(read(Question::Version, bytes), Reading::Foreign);
        }
        assert_eq!(software(&endless), Some(None));
        let long = [&VERSION[..8], &[1, 0, 0, 0], &VERSION[12..]].concat();
        for bytes in [&b"x"[..], b"\x81x", &long] {
            assert_eq!(read(Question::BinaryVersion, bytes), Reading::Foreign);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), flip in 0..30_usize) {
            for question in Question::ALL {
                read(question, &bytes);
                let mut like = VERSION.to_vec();
                like[flip] = bytes.first().copied().unwrap_or(0xff);
                read(question, &like);
            }
            software(&bytes);
            let mut section = b"$20\r\n".to_vec();
            section.extend_from_slice(&bytes);
            software(&section);
        }
    }
}
