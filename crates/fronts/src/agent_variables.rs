//! The variables of the environment about agents, in one table: how fronts that take agents know how to speak to them, and
//! what an agent does whose command line has no options for it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::fleet::{AgentAddress, Fleet, FleetTls};

/// A variable: its name, and the older name that is read where the variable is not set.
struct Variable {
    name: &'static str,
    older: Option<&'static str>,
}

/// The variables that every front reads which takes agents, each with the option of pummel's own front in its place.
pub const OF_CONTROLLERS: [(&str, &str); 5] = [
    ("--agent-token-file", TOKEN_FILE.name),
    ("--agent-tls-ca", TLS_CA.name),
    ("--agent-tls-cert", TLS_CERT.name),
    ("--agent-tls-key", TLS_KEY.name),
    ("--allow-version-mismatch", ALLOW_VERSION_MISMATCH.name),
];

/// The variables that an agent reads which is started by a front without options for it, each with the option of `pummel
/// agent` in its place.
pub const OF_AGENTS: [(&str, &str); 9] = [
    ("--token-file", TOKEN_FILE.name),
    ("--tls-ca", TLS_CA.name),
    ("--tls-cert", TLS_CERT.name),
    ("--tls-key", TLS_KEY.name),
    ("--listen", LISTEN.name),
    ("--allow-target", ALLOW_TARGET.name),
    ("--allow-file", ALLOW_FILE.name),
    ("--max-memory", MAX_MEMORY.name),
    ("--max-connections", MAX_CONNECTIONS.name),
];

const TOKEN_FILE: Variable = Variable { name: "PUMMEL_AGENT_TOKEN_FILE", older: Some("PUMMEL_TOKEN_FILE") };
const TLS_CA: Variable = Variable { name: "PUMMEL_AGENT_TLS_CA", older: Some("PUMMEL_TLS_CA") };
const TLS_CERT: Variable = Variable { name: "PUMMEL_AGENT_TLS_CERT", older: Some("PUMMEL_TLS_CERT") };
const TLS_KEY: Variable = Variable { name: "PUMMEL_AGENT_TLS_KEY", older: Some("PUMMEL_TLS_KEY") };
const ALLOW_VERSION_MISMATCH: Variable =
    Variable { name: "PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", older: None };
const LISTEN: Variable = Variable { name: "PUMMEL_AGENT_LISTEN", older: None };
const ALLOW_TARGET: Variable = Variable { name: "PUMMEL_ALLOW_TARGET", older: None };
const ALLOW_FILE: Variable = Variable { name: "PUMMEL_ALLOW_FILE", older: None };
const MAX_MEMORY: Variable = Variable { name: "PUMMEL_AGENT_MAX_MEMORY", older: None };
const MAX_CONNECTIONS: Variable = Variable { name: "PUMMEL_AGENT_MAX_CONNECTIONS", older: None };

/// What the variables say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentVariables {
    /// File with the word that agents and controllers share.
    pub token_file: Option<PathBuf>,
    /// Files of TLS between them.
    pub tls: Option<FleetTls>,
    /// Agents of other builds are accepted.
    pub allow_version_mismatch: bool,
    /// What an agent does.
    pub serving: ServingVariables,
}

/// What the variables say of an agent's own work: values as they stand there, which its front reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingVariables {
    /// Where it listens.
    pub listen: Option<String>,
    /// Networks that it sends load to, with commas between them.
    pub targets: Option<String>,
    /// A directory below which it reads files that a plan names.
    pub directory: Option<PathBuf>,
    /// Most memory that its part of a plan may need.
    pub memory: Option<String>,
    /// Most connections that its part of a plan may have.
    pub connections: Option<String>,
}

impl AgentVariables {
    /// Variables of an environment. A variable that is empty is none.
    ///
    /// # Errors
    /// Returns the variable that is missing, or whose value is refused, with what is accepted.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<AgentVariables, String> {
        let value = |of: &Variable| {
            let names = [Some(of.name), of.older].into_iter().flatten();
            names.filter_map(&variable).find(|value| !value.is_empty())
        };
        let file = |of: &Variable| value(of).map(PathBuf::from);
        let tls = match [TLS_CA, TLS_CERT, TLS_KEY].map(|of| file(&of)) {
            [Some(ca), Some(cert), Some(key)] => Some(FleetTls { ca, cert, key }),
            [None, None, None] => None,
            _ => {
                let [ca, cert, key] = [TLS_CA, TLS_CERT, TLS_KEY].map(|of| of.name);
                return Err(format!("{ca}, {cert} and {key} are accepted only together"));
            }
        };
        let allow_version_mismatch = match value(&ALLOW_VERSION_MISMATCH) {
            None => false,
            Some(value) => switch(&ALLOW_VERSION_MISMATCH, &value.to_string_lossy())?,
        };
        let text = |of: &Variable| match value(of).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(format!("invalid value for '{}': expected UTF-8", of.name)),
        };
        let serving = ServingVariables {
            listen: text(&LISTEN)?,
            targets: text(&ALLOW_TARGET)?,
            directory: file(&ALLOW_FILE),
            memory: text(&MAX_MEMORY)?,
            connections: text(&MAX_CONNECTIONS)?,
        };
        Ok(AgentVariables { token_file: file(&TOKEN_FILE), tls, allow_version_mismatch, serving })
    }
}

fn switch(variable: &Variable, value: &str) -> Result<bool, String> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("invalid value '{value}' for '{}': expected 1 or 0", variable.name)),
    }
}

impl Fleet {
    /// The fleet, with what its command line does not say from the variables. Agents that are started for the run are
    /// known by the way they were started, and need neither token nor TLS.
    pub fn completed_by(mut self, variables: AgentVariables) -> Fleet {
        let AgentVariables { token_file, tls, allow_version_mismatch, .. } = variables;
        if self.addresses.iter().any(|address| !matches!(address, AgentAddress::Started(_))) {
            self.token_file = self.token_file.or(token_file);
            self.tls = self.tls.or(tls);
        }
        self.allow_version_mismatch |= allow_version_mismatch;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet;

    fn read(set: &[(&str, &str)]) -> Result<AgentVariables, String> {
        AgentVariables::read(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    fn tls(name: &str) -> FleetTls {
        let file = |of: &str| PathBuf::from(format!("{name}.{of}"));
        FleetTls { ca: file("ca"), cert: file("cert"), key: file("key") }
    }

    #[test]
    fn variables_are_read_by_their_names_and_by_their_older_names() {
        assert_eq!(read(&[]), Ok(AgentVariables::default()));
        let new = [
            ("PUMMEL_AGENT_TOKEN_FILE", "new"),
            ("PUMMEL_AGENT_TLS_CA", "new.ca"),
            ("PUMMEL_AGENT_TLS_CERT", "new.cert"),
            ("PUMMEL_AGENT_TLS_KEY", "new.key"),
            ("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", "1"),
        ];
        let old = [
            ("PUMMEL_TOKEN_FILE", "old"),
            ("PUMMEL_TLS_CA", "old.ca"),
            ("PUMMEL_TLS_CERT", "old.cert"),
            ("PUMMEL_TLS_KEY", "old.key"),
        ];
        let of = |name: &str, allow_version_mismatch| {
            Ok(AgentVariables {
                token_file: Some(PathBuf::from(name)),
                tls: Some(tls(name)),
                allow_version_mismatch,
                serving: ServingVariables::default(),
            })
        };
        assert_eq!(read(&new), of("new", true));
        assert_eq!(read(&old), of("old", false));
        assert_eq!(read(&[&old[..], &new[..]].concat()), of("new", true));
        let empty = [("PUMMEL_AGENT_TOKEN_FILE", "")];
        assert_eq!(read(&[&empty[..], &old[..]].concat()), of("old", false));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_name_of_the_variable() {
        for (set, part) in [
            (("PUMMEL_AGENT_TLS_CA", "x"), "PUMMEL_AGENT_TLS_KEY are accepted only together"),
            (("PUMMEL_TLS_KEY", "x"), "PUMMEL_AGENT_TLS_KEY are accepted only together"),
            (
                ("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", "maybe"),
                "'PUMMEL_AGENT_ALLOW_VERSION_MISMATCH': expected 1 or 0",
            ),
        ] {
            let refused = read(&[set]).expect_err("it is refused");
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(
            read(&[("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", "0")]).map(|read| read.allow_version_mismatch),
            Ok(false)
        );
    }

    #[test]
    fn what_an_agent_does_is_read_by_every_name_of_the_table() {
        let serving = |name: &str| {
            let read = read(&[(name, "here")]).expect("text is accepted");
            let ServingVariables { listen, targets, directory, memory, connections } = read.serving;
            let directory = directory.map(|path| path.display().to_string());
            [listen, targets, directory, memory, connections].into_iter().flatten().collect::<Vec<_>>()
        };
        let names = OF_AGENTS
            .iter()
            .map(|(_, name)| *name)
            .filter(|name| !name.contains("TOKEN") && !name.contains("TLS"));
        assert_eq!(names.clone().count(), 5);
        for name in names {
            assert_eq!(serving(name), ["here"], "{name}");
        }
    }

    #[test]
    fn a_command_line_comes_before_the_variables() {
        let fleet = |agents: &str, token_file: Option<&str>| Fleet {
            addresses: fleet::addresses(agents).expect("agents"),
            patience_ns: 1,
            tls: None,
            token_file: token_file.map(PathBuf::from),
            stop_on_loss: false,
            allow_version_mismatch: false,
        };
        let variables = || AgentVariables {
            token_file: Some(PathBuf::from("variable")),
            tls: Some(tls("variable")),
            allow_version_mismatch: true,
            serving: ServingVariables::default(),
        };
        let named = fleet("a", Some("option")).completed_by(variables());
        assert_eq!(named.token_file, Some(PathBuf::from("option")));
        assert_eq!((named.tls, named.allow_version_mismatch), (Some(tls("variable")), true));
        let unnamed = fleet("a", None).completed_by(variables());
        assert_eq!(unnamed.token_file, Some(PathBuf::from("variable")));
        let started = fleet("ssh://a", None).completed_by(variables());
        assert_eq!((started.token_file, started.tls), (None, None));
    }
}
