//! Policy of an agent: the controllers that it serves, the servers that it sends load to, the files that it reads.

use std::sync::Arc;

use pummel_logic::plan::Plan;

use crate::agent::files::AllowedFiles;
use crate::agent::limits::Limits;
use crate::agent::listener::Token;
use crate::agent::network::Network;

/// The controllers that an agent serves, and what it does for them.
#[derive(Debug, Default)]
pub struct AccessPolicy {
    /// Encryption, with a certificate asked of controllers; absent: connections are not encrypted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The word that controllers have to show; absent: none is asked for.
    pub token: Option<Token>,
    /// The networks of the servers that the agent sends load to.
    pub targets: Vec<Network>,
    /// The files that the agent reads for a plan that names them.
    pub files: AllowedFiles,
    /// Limits of what a plan may take of the agent's machine.
    pub limits: Limits,
    /// For options of `pummel agent` what stands in their place on the command line that the agent was started by.
    pub option_names: &'static [(&'static str, &'static str)],
}

impl AccessPolicy {
    /// Whether controllers have to show a token or a certificate.
    pub fn knows_callers(&self) -> bool {
        self.tls.is_some() || self.token.is_some()
    }

    /// Words to a controller with the names of options that the agent's own command line has.
    pub fn reworded(&self, words: String) -> String {
        self.option_names.iter().fold(words, |words, (option, name)| words.replace(option, name))
    }

    /// Refuses what only a known controller may ask for: the agent's own password, which PUMMEL_PASSWORD holds, and unix
    /// sockets, behind which are services of the agent's machine that trust every process that reaches them. `is_given` says that
    /// the controller sends the password itself.
    ///
    /// # Errors
    /// Returns what the plan asks for, and the option that would allow it.
    pub fn check_secrets(&self, plan: &Plan, is_given: bool) -> Result<(), String> {
        if self.knows_callers() {
            return Ok(());
        }
        let wants_own = plan.login.as_ref().is_some_and(|login| login.password_file.is_none());
        if wants_own && !is_given {
            return Err(
                "the plan logs in with the password of this agent (PUMMEL_PASSWORD), which only an agent with --token-file \
                 or TLS gives away"
                    .to_owned(),
            );
        }
        let mut servers = plan.servers.iter().chain(&plan.server_stats_at);
        if let Some(path) = servers.find(|server| server.starts_with('/')) {
            return Err(format!(
                "server {path} is a unix socket, and only an agent with --token-file or TLS connects to those"
            ));
        }
        Ok(())
    }
}
