//! Names of servers in a Plan, and the addresses that connections are made from.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The port of a server that names none: memcached's own.
pub const PORT: u16 = 11211;

/// The port of RESP servers, where none is given.
pub const RESP_PORT: u16 = 6379;

/// Longest path of a unix socket in bytes: `sun_path` of unix(7) without the closing zero.
const UNIX_PATH_MAX: usize = 107;

/// Text that names no server or no address; it says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

fn accepted<T>(text: impl Into<String>) -> Result<T, AddressError> {
    Err(AddressError(text.into()))
}

/// One server as a Plan names it: `host`, `host:port`, `1.2.3.4:port`, `[v6]`, `[v6]:port`, or the absolute path of a
/// unix socket. The port is added where it is missing. An IPv6 address without brackets is refused, since its end may be
/// meant as a port.
///
/// # Errors
/// Returns [`AddressError`] for text that is no host, for a port that is not from 1 to 65535, and for a path that is too
/// long for a unix socket.
pub fn server_at(text: &str, default_port: u16) -> Result<String, AddressError> {
    if text.starts_with('/') {
        return unix_path(text);
    }
    if let Some(rest) = text.strip_prefix('[') {
        return bracketed(rest, default_port);
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, self::port(port)),
        None => (text, Some(default_port)),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match port {
        _ if text.matches(':').count() > 1 => accepted(match text.parse::<Ipv6Addr>() {
            Ok(_) => format!("expected an IPv6 address in brackets: [{text}] or [{text}]:{PORT}"),
            Err(_) => "expected HOST, HOST:PORT, [IPV6], [IPV6]:PORT or /unix/path".to_string(),
        }),
        Some(port) if !host.is_empty() && host.bytes().all(plain) => Ok(format!("{host}:{port}")),
        _ => accepted(
            "expected HOST, HOST:PORT, [IPV6], [IPV6]:PORT or /unix/path, with ports from 1 to 65535",
        ),
    }
}

fn unix_path(text: &str) -> Result<String, AddressError> {
    if text.len() > UNIX_PATH_MAX {
        return accepted(format!("expected the path of a unix socket up to {UNIX_PATH_MAX} bytes"));
    }
    Ok(text.to_string())
}

/// Reads what stands behind the opening bracket of `[v6]:port`; a zone such as `%eth0` may follow the address.
fn bracketed(rest: &str, default_port: u16) -> Result<String, AddressError> {
    let parsed = rest.split_once(']').and_then(|(address, after)| {
        let bare = address.split('%').next()?;
        bare.parse::<Ipv6Addr>().ok()?;
        let port = if after.is_empty() { default_port } else { port(after.strip_prefix(':')?)? };
        Some(format!("[{address}]:{port}"))
    });
    parsed.map_or_else(
        || {
            accepted(
                "expected an IPv6 address in brackets as [::1] or [::1]:11211, with ports from 1 to 65535",
            )
        },
        Ok,
    )
}

fn port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port != 0)
}

/// Addresses to connect from, separated by commas.
///
/// # Errors
/// Returns [`AddressError`] for text that is no list of IP addresses.
pub fn sources(text: &str) -> Result<Vec<String>, AddressError> {
    let parsed: Result<Vec<IpAddr>, _> = text.split(',').map(str::parse).collect();
    match parsed {
        Ok(addresses) => Ok(addresses.iter().map(IpAddr::to_string).collect()),
        Err(_) => accepted("expected IP addresses of this machine, such as 10.0.0.5,10.0.0.6 or ::1"),
    }
}

/// Whether a word is an address of IP, alone or with a port.
pub fn is_of_ip(word: &str) -> bool {
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
    let bare = |host: &str| host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_ip);
    let with_port = |(host, port): (&str, &str)| {
        port.parse::<u16>().is_ok() && (bare(host) || host.contains('.') && is_ip(host))
    };
    is_ip(word) || bare(word) || word.rsplit_once(':').is_some_and(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_addresses_of_ip_are_known_from_other_words() {
        for word in ["10.0.0.1", "10.0.0.1:80", "::1", "[::1]", "[fe80::1]:5", "fe80::1"] {
            assert!(is_of_ip(word), "{word}");
        }
        for word in ["", "7.0.15", "12:30:05", "a:1", "1.2.3.4:99999", "1.2.3.4.5", "[::1", "dead", "3:4"] {
            assert!(!is_of_ip(word), "{word}");
        }
    }

    #[test]
    fn servers_get_the_port_that_they_lack() {
        for (text, server) in [
            ("localhost", "localhost:11211"),
            ("cache-1.example.net:4000", "cache-1.example.net:4000"),
            ("127.0.0.1", "127.0.0.1:11211"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:4000", "[::1]:4000"),
            ("[fe80::1%eth0]:4000", "[fe80::1%eth0]:4000"),
            ("/run/memcached.sock", "/run/memcached.sock"),
        ] {
            assert_eq!(server_at(text, PORT).as_deref(), Ok(server), "{text}");
        }
        assert_eq!(server_at("a", RESP_PORT).as_deref(), Ok("a:6379"));
    }

    #[test]
    fn servers_that_cannot_be_meant_are_refused() {
        for text in [
            "",
            ":11211",
            "a:",
            "a:0",
            "a:65536",
            "a:+5",
            "a:b",
            "a b",
            "::1",
            "::1:11211",
            "[::1",
            "[::1]4000",
            "[localhost]",
            "[]",
            "./socket",
            "a/b",
        ] {
            assert!(server_at(text, PORT).is_err(), "{text}");
        }
        assert!(server_at(&format!("/{}", "x".repeat(107)), PORT).is_err());
        let error = server_at("::1", PORT).expect_err("no brackets");
        assert!(error.to_string().contains("[::1]:11211"), "{error}");
    }

    #[test]
    fn sources_are_addresses() {
        assert_eq!(sources("10.0.0.1,::1"), Ok(vec!["10.0.0.1".to_string(), "::1".to_string()]));
        for text in ["", "localhost", "10.0.0.1:5", "10.0.0"] {
            assert!(sources(text).is_err(), "{text}");
        }
    }
}
