//! The question for the map of a cluster, and its answer.

use std::io;
use std::sync::Arc;

use pummel_logic::cluster::nodes::NodeName;
use pummel_logic::cluster::slots_reply::{SlotsError, SlotsReply, read_slots_reply};
use pummel_logic::plan::{ClusterOptions, Plan};
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::{NEVER, Nanos};

use super::{CLUSTER_SLOTS, REPLY_MAX_BYTES, rewritten};
use crate::backend::tls::Setup;
use crate::resolve::{self, Server};
use crate::side_connections::{Failure, SideConnections, SideEvent, SideOptions};
use pummel_measure::trouble::Trouble;

/// Why a node did not say what the cluster looks like.
#[derive(Debug)]
pub enum Unanswered {
    /// The server is no node of a cluster.
    NotACluster,
    /// The node cannot be reached, or answers something else; as a sentence without its full stop and without its subject.
    Failed(String),
}

/// The connections on which nodes are asked for the map.
pub struct SlotsQuestions<'a> {
    connections: SideConnections,
    options: &'a ClusterOptions,
    wait_ns: Nanos,
}

impl<'a> SlotsQuestions<'a> {
    /// Questions to these servers, on the calling thread. A node has `wait_ns` to take the connection, and again to answer.
    ///
    /// # Errors
    /// Returns the error of the kernel when it gives no backend.
    pub fn new(
        plan: &'a Plan,
        servers: Arc<[Server]>,
        tls: Option<&Setup>,
        handshake: Arc<Handshake>,
        wait_ns: Nanos,
    ) -> io::Result<SlotsQuestions<'a>> {
        resolve::allow_descriptors(1, 1);
        let side = SideOptions {
            socket: &plan.socket,
            tls,
            handshake,
            open_ns: wait_ns,
            received_bytes: REPLY_MAX_BYTES,
        };
        Ok(SlotsQuestions {
            connections: SideConnections::new(servers, side)?,
            options: &plan.cluster,
            wait_ns,
        })
    }

    /// Asks server number `number` for the map; returns `None` when `goes_on` has returned false. The names in the answer are
    /// those at which the nodes are reached.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn ask(
        &mut self,
        number: usize,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Result<SlotsReply, Unanswered>>> {
        let asked = asked_name(self.connections.server(number));
        self.connections.dial(number);
        let answer = self.await_answer(number, &asked, goes_on);
        self.connections.close(number);
        answer
    }

    fn await_answer(
        &mut self,
        number: usize,
        asked: &NodeName,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Result<SlotsReply, Unanswered>>> {
        let failed = |why: String| Ok(Some(Err(Unanswered::Failed(why))));
        loop {
            if !goes_on() {
                return Ok(None);
            }
            let connections = &mut self.connections;
            connections.wait(NEVER)?;
            while let Some((from, event)) = connections.poll() {
                match event {
                    _ if from != number => {}
                    SideEvent::Open => {
                        connections.send(number, CLUSTER_SLOTS);
                        connections.expect(number, self.wait_ns);
                    }
                    SideEvent::Received(_) => {
                        match read_slots_reply(connections.received(number), asked, self.options.by_ip) {
                            Ok(None) => {}
                            Ok(Some((reply, _))) => return Ok(Some(Ok(self.reached(reply)))),
                            Err(SlotsError::NotACluster) => return Ok(Some(Err(Unanswered::NotACluster))),
                            Err(SlotsError::Refused(words)) => return failed(format!("said \"{words}\"")),
                            Err(SlotsError::Malformed(what)) => return failed(format!("answered {what}")),
                        }
                    }
                    SideEvent::Late => return failed("did not answer CLUSTER SLOTS in time".to_owned()),
                    SideEvent::Closed(failure, _) => return failed(words_of(failure)),
                }
            }
        }
    }

    /// The reply with the names at which the nodes are reached from here.
    fn reached(&self, mut reply: SlotsReply) -> SlotsReply {
        for range in &mut reply.ranges {
            for node in range.master.iter_mut().chain(&mut range.replicas) {
                let name = std::mem::replace(&mut node.name, NodeName { host: String::new(), port: 0 });
                node.name = rewritten(self.options, name);
            }
        }
        reply
    }
}

/// The reason of a failure, as the end of a sentence whose subject is the server.
fn words_of(failure: Failure) -> String {
    match failure {
        Failure::NotOpened(reason) => format!("cannot be reached: {}", Trouble::NotOpened(reason)),
        Failure::Lost(reason) => format!("closed the connection: {}", Trouble::Lost(reason)),
        Failure::Refused(refused) => format!("refused the login: {refused}"),
        Failure::TooLong => "answered CLUSTER SLOTS with more than 16 MiB".to_owned(),
    }
}

/// The name of a server as a node of a cluster; a host that is no name of a node stands for itself.
pub fn asked_name(server: &Server) -> NodeName {
    NodeName::parse(server.name()).unwrap_or_else(|| NodeName { host: server.name().to_owned(), port: 1 })
}
