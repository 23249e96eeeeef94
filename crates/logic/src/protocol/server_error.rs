//! Kinds of the errors that servers send, as far as users can change something about them.

use serde::{Deserialize, Serialize};

/// Kind of an error that a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerError {
    /// The server requires a login; by the binary protocol it says the same of a wrong one.
    LoginRequired,
    /// The login is wrong.
    LoginWrong,
    /// The user may not run the command.
    NotPermitted,
    /// The value is larger than the server allows.
    TooLarge,
    /// The server does not know the command.
    UnknownCommand,
    /// An error of any other kind.
    Other,
}

impl ServerError {
    /// Kind of an error of RESP, by the code in front of its message.
    pub fn of_resp(message: &[u8]) -> ServerError {
        match message.split(|byte| *byte == b' ').next() {
            Some(b"NOAUTH") => ServerError::LoginRequired,
            Some(b"WRONGPASS") => ServerError::LoginWrong,
            Some(b"NOPERM") => ServerError::NotPermitted,
            _ => ServerError::Other,
        }
    }

    /// Kind of an error of memcached's text and meta protocols, by its line.
    pub fn of_text(line: &[u8]) -> ServerError {
        match line {
            b"CLIENT_ERROR unauthenticated" => ServerError::LoginRequired,
            b"CLIENT_ERROR authentication failure" => ServerError::LoginWrong,
            b"SERVER_ERROR object too large for cache" => ServerError::TooLarge,
            b"ERROR" => ServerError::UnknownCommand,
            _ => ServerError::Other,
        }
    }

    /// Kind of an error of memcached's binary protocol, by the text that memcached has for each status.
    pub fn of_binary(text: &[u8]) -> ServerError {
        match text {
            b"Auth failure." => ServerError::LoginRequired,
            b"Too large." => ServerError::TooLarge,
            b"Unknown command" => ServerError::UnknownCommand,
            _ => ServerError::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way to find the kind of an error, its message, and its kind.
    type Row<'a> = (fn(&[u8]) -> ServerError, &'a str, ServerError);

    #[test]
    fn an_error_has_the_kind_that_its_protocol_gives_it() {
        let (resp, text, binary) = (ServerError::of_resp, ServerError::of_text, ServerError::of_binary);
        let rows: [Row<'_>; 11] = [
            (resp, "NOAUTH Authentication required.", ServerError::LoginRequired),
            (resp, "WRONGPASS invalid username-password pair", ServerError::LoginWrong),
            (resp, "NOPERM this user has no permissions", ServerError::NotPermitted),
            (resp, "ERR this command is not NOAUTH", ServerError::Other),
            (binary, "Auth failure.", ServerError::LoginRequired),
            (binary, "Too large.", ServerError::TooLarge),
            (binary, "Unknown command", ServerError::UnknownCommand),
            (text, "CLIENT_ERROR unauthenticated", ServerError::LoginRequired),
            (text, "CLIENT_ERROR authentication failure", ServerError::LoginWrong),
            (text, "SERVER_ERROR object too large for cache", ServerError::TooLarge),
            (text, "SERVER_ERROR out of memory", ServerError::Other),
        ];
        for (of, message, kind) in rows {
            assert_eq!(of(message.as_bytes()), kind, "{message}");
        }
    }
}
