//! The servers of a command line as words alone and as URIs, which say more than an address.

use pummel_logic::plan::Protocol;
use pummel_logic::secrets::masked_text;

use super::options::{List, TargetArgs, TypedProtocol};
use crate::job::UsageError;
use crate::values::server_uri::{UriFacts, address_and_facts, is_in};

/// The option whose values may be URIs, as the parser's errors name it.
const SERVER: &str = "--server <SERVER>";

impl TargetArgs {
    /// Puts the servers that stand alone beside those of `--server`, and addresses in the place of URIs. The user, the database and
    /// the encryption of URIs become those of the options, whose flags are returned.
    ///
    /// # Errors
    /// Returns [`UsageError`] for servers both alone and in `--server`, for a URI that is refused, and for URIs that differ from
    /// each other or from an option.
    pub(super) fn settle_servers(&mut self) -> Result<Vec<&'static str>, UsageError> {
        if let (Some(word), false) = (self.bare_server.first(), self.server.is_empty()) {
            let word = masked_text(&word.0.concat());
            return Err(UsageError::Missing(format!(
                "unexpected word '{word}': the servers are those of --server"
            )));
        }
        self.server.append(&mut self.bare_server);
        let lists = self.server.iter().flat_map(|list| &list.0);
        let typed: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
        if !typed.iter().any(|server| is_in(server)) {
            return Ok(Vec::new());
        }
        let mut agreed: Option<UriFacts> = None;
        let mut servers = Vec::new();
        for server in typed {
            let refused = |accepted: String| refusal(server, accepted);
            let (address, facts) = address_and_facts(server).map_err(|error| refused(error.to_string()))?;
            match &agreed {
                Some(others) if *others != facts => {
                    let accepted = "expected the scheme, the user and the database of the other servers: a run has one of each";
                    return Err(refused(accepted.to_owned()));
                }
                _ => agreed = Some(facts),
            }
            servers.push(address);
        }
        let flags = self.adopt(agreed.unwrap_or_default())?;
        self.server = vec![List(vec![servers.join(",")])];
        Ok(flags)
    }

    /// Takes over what the URIs say.
    fn adopt(&mut self, facts: UriFacts) -> Result<Vec<&'static str>, UsageError> {
        let differs = |flag: &str, said: &str| {
            Err(UsageError::Missing(format!(
                "'{flag}' differs from {said} of the URI in '--server': give one of them"
            )))
        };
        let mut flags = Vec::new();
        match (facts.is_resp, self.protocol) {
            (Some(true), TypedProtocol::Auto) => {
                self.protocol = TypedProtocol::Named(Protocol::Resp2);
                flags.push("--protocol");
            }
            (Some(is_resp), TypedProtocol::Named(protocol)) if protocol.is_resp() != is_resp => {
                return differs("--protocol", "the scheme");
            }
            _ => {}
        }
        if facts.is_encrypted {
            self.tls = true;
            flags.push("--tls");
        }
        if let Some(user) = facts.user {
            if self.user.as_ref().is_some_and(|other| *other != user) {
                return differs("--user", "the user");
            }
            self.user = Some(user);
            flags.push("--user");
        }
        if let Some(database) = facts.database {
            if self.database != 0 && self.database != database {
                return differs("--database", "the database");
            }
            self.database = database;
            flags.push("--database");
        }
        Ok(flags)
    }
}

fn refusal(server: &str, accepted: String) -> UsageError {
    UsageError::Value { flag: SERVER.to_owned(), value: masked_text(server), accepted }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::native::{RunArgs, Typed};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Typed<RunArgs>,
    }

    fn target(words: &str) -> Result<TargetArgs, String> {
        let words = std::iter::once("pummel").chain(words.split(' '));
        match Line::try_parse_from(words) {
            Ok(line) => Ok(line.run.args.target),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The addresses, the protocol's name where it is named, TLS, user and database.
    fn said(words: &str) -> (String, Option<&'static str>, bool, Option<String>, u32) {
        let target = target(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        let protocol = match target.protocol {
            TypedProtocol::Auto => None,
            TypedProtocol::Named(protocol) => Some(protocol.name()),
        };
        let servers: Vec<String> = target.server.iter().flat_map(|list| list.0.clone()).collect();
        (servers.join(","), protocol, target.tls, target.user, target.database)
    }

    #[test]
    fn a_uri_says_address_protocol_encryption_user_and_database() {
        let of = |servers: &str, protocol, tls, user: Option<&str>, database| {
            (servers.to_owned(), protocol, tls, user.map(str::to_owned), database)
        };
        for (words, expected) in [
            ("-s redis://a", of("a:6379", Some("resp2"), false, None, 0)),
            ("-s redis://a:7000/", of("a:7000", Some("resp2"), false, None, 0)),
            ("-s redis://u@a:7000/3", of("a:7000", Some("resp2"), false, Some("u"), 3)),
            ("-s REDIS://[::1]/1", of("[::1]:6379", Some("resp2"), false, None, 1)),
            ("-s rediss://u%40x@a", of("a:6379", Some("resp2"), true, Some("u@x"), 0)),
            ("-s valkeys://a", of("a:6379", Some("resp2"), true, None, 0)),
            ("-s redis://a --protocol resp3", of("a:6379", Some("resp3"), false, None, 0)),
            ("-s redis://a,redis://b:1", of("a:6379,b:1", Some("resp2"), false, None, 0)),
            ("-s memcached://a", of("a:11211", None, false, None, 0)),
            ("-s memcached://u@a:5 --protocol binary", of("a:5", Some("binary"), false, Some("u"), 0)),
            ("-s unix:///run/m.sock", of("/run/m.sock", None, false, None, 0)),
            ("-s unix://u@/run/r.sock", of("/run/r.sock", None, false, Some("u"), 0)),
            ("-s redis://u@a/3 --user u --database 3", of("a:6379", Some("resp2"), false, Some("u"), 3)),
            ("-s a,b", of("a,b", None, false, None, 0)),
            ("redis://a/3", of("a:6379", Some("resp2"), false, None, 3)),
            ("127.0.0.1:5 -t 1s", of("127.0.0.1:5", None, false, None, 0)),
            ("cache1 /run/m.sock", of("cache1,/run/m.sock", None, false, None, 0)),
        ] {
            assert_eq!(said(words), expected, "{words}");
        }
    }

    #[test]
    fn a_uri_that_cannot_be_followed_is_refused_with_what_is_accepted() {
        for (words, part) in [
            ("-s http://a", "expected one of redis://, rediss://"),
            ("-s redis://a/x", "'x' is not the number of a database"),
            ("-s memcached://a/1", "only RESP servers have databases"),
            ("-s redis://a?db=1", "without '?' and '#'"),
            ("-s redis://", "expected HOST"),
            ("-s redis://@a", "expected a user"),
            ("-s redis://%zz@a", "expected a user"),
            ("-s unix://run/m.sock", "three slashes"),
            ("-s redis://a --protocol text", "'--protocol' differs from the scheme"),
            ("-s memcached://a --protocol resp2", "'--protocol' differs from the scheme"),
            ("-s redis://u@a --user v", "'--user' differs"),
            ("-s redis://a/1 --database 2", "'--database' differs"),
            ("-s redis://a,rediss://b", "of the other servers"),
            ("-s redis://a/1,redis://b/2", "of the other servers"),
            ("-s redis://a,b", "of the other servers"),
            ("-s a b", "unexpected word 'b': the servers are those of --server"),
            ("20k", "expected a server"),
            ("127.0.0.1 11211", "expected a server"),
        ] {
            let error = target(words).expect_err(words);
            assert!(error.contains(part), "{words}: {error}");
        }
    }

    #[test]
    fn a_password_in_a_uri_is_refused_and_not_printed() {
        for words in ["-s redis://u:S3CRET@a", "redis://:S3CRET@a/1", "-s unix://u:S3CRET@/run/r.sock"] {
            let error = target(words).expect_err(words);
            assert!(error.contains("--password-file") && !error.contains("S3CRET"), "{error}");
        }
    }
}
