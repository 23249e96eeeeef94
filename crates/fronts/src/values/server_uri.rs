//! The grammar of servers as URIs: `redis://user@host:6379/2` and the like.

use std::path::Path;

use pummel_logic::plan::address::{PORT, RESP_PORT, server_at};

use super::ValueError;

/// Between the scheme of a URI and the rest.
const SCHEME_END: &str = "://";

/// A scheme of URIs, and its meaning.
struct Scheme {
    name: &'static str,
    /// The port of a server that names none; `None` where the rest is the path of a unix socket.
    port: Option<u16>,
    is_resp: bool,
    is_encrypted: bool,
}

const SCHEMES: [Scheme; 6] = [
    Scheme { name: "redis", port: Some(RESP_PORT), is_resp: true, is_encrypted: false },
    Scheme { name: "rediss", port: Some(RESP_PORT), is_resp: true, is_encrypted: true },
    Scheme { name: "valkey", port: Some(RESP_PORT), is_resp: true, is_encrypted: false },
    Scheme { name: "valkeys", port: Some(RESP_PORT), is_resp: true, is_encrypted: true },
    Scheme { name: "memcached", port: Some(PORT), is_resp: false, is_encrypted: false },
    Scheme { name: "unix", port: None, is_resp: false, is_encrypted: false },
];

/// The parts of a URI beside its address, which hold for all servers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UriFacts {
    /// Whether the servers speak RESP; `None` where the scheme leaves it open.
    pub is_resp: Option<bool>,
    /// Whether connections are encrypted.
    pub is_encrypted: bool,
    /// The user to log in as.
    pub user: Option<String>,
    /// The database to select.
    pub database: Option<u32>,
}

/// Whether text, which may be a list of servers, has a URI in it.
pub fn is_in(text: &str) -> bool {
    text.contains(SCHEME_END)
}

/// The address of a server, `HOST:PORT` or a path, and the facts of its URI. Text that is no URI is its own address, without facts.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for a URI that is refused, one with a password among them.
pub fn address_and_facts(server: &str) -> Result<(String, UriFacts), ValueError> {
    read(server).map_err(ValueError)
}

fn read(server: &str) -> Result<(String, UriFacts), String> {
    let Some((name, rest)) = server.split_once(SCHEME_END) else {
        return Ok((server.to_owned(), UriFacts::default()));
    };
    let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name)) else {
        let names: Vec<String> = SCHEMES.iter().map(|scheme| format!("{}://", scheme.name)).collect();
        return Err(format!("expected one of {}, or HOST:PORT", names.join(", ")));
    };
    let mut facts = UriFacts {
        is_resp: scheme.port.map(|_| scheme.is_resp),
        is_encrypted: scheme.is_encrypted,
        ..UriFacts::default()
    };
    // The path of a socket begins at the first slash, and a user may stand before it.
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            facts.user = Some(user_of(user)?);
            host
        }
        None => authority,
    };
    if rest.contains(['?', '#']) {
        return Err("expected a URI without '?' and '#': options say the rest".to_owned());
    }
    let Some(port) = scheme.port else {
        return match host.is_empty() && Path::new(path).is_absolute() {
            true => Ok((server_at(path, PORT).map_err(|error| error.to_string())?, facts)),
            false => Err("expected unix:///path, with three slashes".to_owned()),
        };
    };
    facts.database = match path.trim_start_matches('/') {
        "" => None,
        _ if !scheme.is_resp => return Err(format!("expected {name}://HOST:PORT: only RESP servers have databases")),
        number => Some(number.parse().map_err(|_| {
            format!("expected {name}://[USER@]HOST[:PORT][/DATABASE], and '{number}' is not the number of a database")
        })?),
    };
    Ok((server_at(host, port).map_err(|error| error.to_string())?, facts))
}

/// The user of a URI, without its `%40` and the like.
fn user_of(typed: &str) -> Result<String, String> {
    if typed.contains(':') {
        return Err("a password in a command line can be read by every user of the machine: expected none in the URI, and \
                    --password-file FILE"
            .to_owned());
    }
    let user = percent_decoded(typed).filter(|user| !user.is_empty());
    user.ok_or_else(|| "expected a user of text, with %XX for special characters, before the @".to_owned())
}

/// Text in which `%HH` stands for a byte; `None` where no two hexadecimal digits follow a `%`, or the bytes are no text.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        bytes.push(u8::from_str_radix(str::from_utf8(digits).ok().filter(|_| is_hex)?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}
