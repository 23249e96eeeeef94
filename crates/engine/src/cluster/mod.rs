//! The map of a Redis or Valkey cluster: found before a run, asked for again while it goes on, and published to the workers.

pub(crate) mod discovery;
pub(crate) mod published;
pub(crate) mod refresher;

use pummel_logic::cluster::nodes::NodeName;
use pummel_logic::plan::ClusterOptions;

/// Longest reply to `CLUSTER SLOTS` that is kept, in bytes.
const REPLY_MAX_BYTES: usize = 16 << 20;

/// `CLUSTER SLOTS`, which all versions answer.
const CLUSTER_SLOTS: &[u8] = b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

/// The name at which a node is reached that the cluster gives this name.
fn rewritten(options: &ClusterOptions, name: NodeName) -> NodeName {
    let whole = name.to_string();
    for rewrite in &options.rewrite {
        if rewrite.from != whole && rewrite.from != name.host {
            continue;
        }
        return NodeName::parse(&rewrite.to)
            .unwrap_or_else(|| NodeName { host: rewrite.to.clone(), port: name.port });
    }
    name
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Rewrite;

    use super::*;

    #[test]
    fn names_are_rewritten_by_host_and_port_or_by_host() {
        let rewrite = |from: &str, to: &str| Rewrite { from: from.to_owned(), to: to.to_owned() };
        let rewrites = vec![rewrite("10.0.0.1:7001", "127.0.0.1:8001"), rewrite("10.0.0.2", "localhost")];
        let options = ClusterOptions { rewrite: rewrites, ..ClusterOptions::default() };
        for (given, reached) in [
            ("10.0.0.1:7001", "127.0.0.1:8001"),
            ("10.0.0.1:7002", "10.0.0.1:7002"),
            ("10.0.0.2:7003", "localhost:7003"),
        ] {
            let name = NodeName::parse(given).expect("it is a name");
            assert_eq!(rewritten(&options, name).to_string(), reached);
        }
    }
}
