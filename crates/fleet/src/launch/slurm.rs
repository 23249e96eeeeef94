//! Agents by Slurm: inside an allocation, one on each of some of its nodes, started by one `srun`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::Path;

use pummel_logic::secrets::Secret;

use crate::launch::launched::{LaunchError, LaunchedAgent, LaunchedAgents, random_token};
use crate::launch::process::{ChildProcess, SILENCE_MAX};
use crate::launch::wait::{LaunchOptions, MARK, Stopped, Wait, address_of, lines_of};

/// Script that runs on each node. Its words are our program, how long the agent bears silence, how many nodes there are, `NODE=ADDRESS`
/// of every node, and an option `--allow-file` for each file that the plan names.
const SCRIPT: &str = r#"echo "pummel: node $SLURMD_NODENAME"; s=$1; n=$2; shift 2; while [ "$n" -gt 0 ]; do case $1 in "$SLURMD_NODENAME="*) a=${1#*=};; esac; n=$((n-1)); shift; done; if [ -x "$0" ]; then "$0" agent --listen "$a:0" --token-file - --exit-with-stdin="$s" "$@"; echo "pummel: end it ended with status $?"; else echo "pummel: end there is no $0; a program on a file system that all nodes share is wanted"; fi"#;

/// A node of the allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: String,
    address: IpAddr,
}

/// Starts one agent on each of so many nodes.
pub(super) fn launch(count: NonZeroU32, options: LaunchOptions<'_>) -> Result<LaunchedAgents, LaunchError> {
    let nodes = nodes(count, options).map_err(here)?;
    let program = std::env::current_exe()
        .map_err(|error| LaunchError::Here(format!("it is not known where this program is: {error}")))?;
    let token =
        random_token().map_err(|error| LaunchError::Here(format!("no token can be made: {error}")))?;
    let argv = srun_argv(&nodes, &program, options.files);
    let mut process =
        ChildProcess::start(&argv).map_err(|error| LaunchError::Here(format!("cannot run srun: {error}")))?;
    process.give(format!("{token}\n").into_bytes().into());
    process.pulse();
    let addresses = listening(&mut process, &nodes, options)?;
    let agents = nodes.into_iter().zip(addresses);
    let agents = agents.map(|(node, address)| LaunchedAgent {
        name: node.name,
        address,
        token: Secret::new(token.as_str()),
    });
    Ok(LaunchedAgents { agents: agents.collect(), processes: vec![process] })
}

fn here(stopped: Stopped) -> LaunchError {
    match stopped {
        Stopped::Unwanted => LaunchError::Interrupted,
        Stopped::Because(why) => LaunchError::Here(why),
    }
}

/// The nodes that agents go to. Those at the end of the list: a batch script, and the controller with it, runs on the
/// first, which stays free of agents when there are nodes enough.
fn nodes(count: NonZeroU32, options: LaunchOptions<'_>) -> Result<Vec<Node>, Stopped> {
    let list = std::env::var("SLURM_JOB_NODELIST").ok().filter(|list| !list.is_empty());
    let Some(list) = list else {
        return Err(Stopped::Because(format!(
            "slurm://{count} is for the inside of a Slurm allocation, and this is none: SLURM_JOB_NODELIST is not set. \
             `salloc -N {count} pummel ...`, or a batch script, makes one"
        )));
    };
    let names = lines_of(&["scontrol", "show", "hostnames", &list], options)?;
    let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
    let Some(first) = names.len().checked_sub(wanted) else {
        let has = names.len();
        return Err(Stopped::Because(format!("slurm://{count}: this allocation has {has} nodes ({list})")));
    };
    let names = &names[first..];
    let lines = lines_of(&["scontrol", "show", "node", "--oneliner", &names.join(",")], options)?;
    let known: BTreeMap<&str, &str> = lines.iter().filter_map(|line| name_and_address(line)).collect();
    names
        .iter()
        .map(|name| {
            // Slurm's own word for where a node is reached; it may be a name of the network.
            let place = known.get(name.as_str()).copied().unwrap_or(name);
            let address = resolve(place).map_err(|error| {
                Stopped::Because(format!("the address of node {name}, '{place}', is not known: {error}"))
            })?;
            Ok(Node { name: name.clone(), address })
        })
        .collect()
}

fn resolve(place: &str) -> io::Result<IpAddr> {
    let mut found = (place, 0).to_socket_addrs()?;
    found.next().map(|found| found.ip()).ok_or_else(|| io::Error::other("the name has no address"))
}

/// Of a line of `scontrol show node --oneliner`.
fn name_and_address(line: &str) -> Option<(&str, &str)> {
    let of = |field: &str| line.split(' ').find_map(|word| word.strip_prefix(field));
    Some((of("NodeName=")?, of("NodeAddr=")?))
}

/// The command line of the one `srun`. An agent may use what the job has of its node, beside the batch script, and one
/// that is lost takes no other with it.
fn srun_argv(nodes: &[Node], program: &Path, files: &BTreeSet<String>) -> Vec<OsString> {
    let count = nodes.len();
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let options = [
        &format!("--nodes={count}"),
        &format!("--ntasks={count}"),
        "--ntasks-per-node=1",
        &format!("--nodelist={}", names.join(",")),
        "--job-name=pummel-agent",
        "--overlap",
        "--cpu-bind=none",
        "--mpi=none",
        "--label",
        "--input=all",
        "--no-kill",
        "--kill-on-bad-exit=0",
        "--wait=0",
    ];
    let mut argv = vec![OsString::from("srun")];
    argv.extend(options.map(OsString::from));
    argv.extend(["sh".into(), "-c".into(), SCRIPT.into(), program.into()]);
    argv.extend([format!("{}s", SILENCE_MAX.as_secs()).into(), count.to_string().into()]);
    argv.extend(nodes.iter().map(|node| match node.address {
        IpAddr::V4(address) => format!("{}={address}", node.name).into(),
        IpAddr::V6(address) => format!("{}=[{address}]", node.name).into(),
    }));
    argv.extend(files.iter().map(|file| format!("--allow-file={file}").into()));
    argv
}

/// Waits until all agents listen; returns their addresses in the order of the nodes.
fn listening(
    process: &mut ChildProcess,
    nodes: &[Node],
    options: LaunchOptions<'_>,
) -> Result<Vec<SocketAddr>, LaunchError> {
    let mut table = NodeTable::new(nodes);
    let mut wait = Wait::new(process, options);
    while !table.is_complete() {
        let line = wait.line().and_then(|line| line.ok_or_else(|| wait.unexpected_end("srun")));
        match line {
            Ok(line) => match table.handle_line(&line) {
                LineMeaning::Nothing => {}
                LineMeaning::Listening => wait.renew(),
                LineMeaning::Ended { node, why } => {
                    return Err(LaunchError::There(vec![(node, wait.with_last_words(why))]));
                }
            },
            Err(Stopped::Unwanted) => return Err(LaunchError::Interrupted),
            Err(Stopped::Because(why)) => return Err(table.missing(&why)),
        }
    }
    Ok(table.addresses.into_iter().flatten().collect())
}

/// Nodes that have answered, and where their agents listen.
struct NodeTable<'a> {
    nodes: &'a [Node],
    /// Of each task of the step, the index of its node: the step may order them in its own way.
    node_of: Vec<Option<usize>>,
    /// Of each node.
    addresses: Vec<Option<SocketAddr>>,
}

/// Meaning of a line of `srun --label`.
#[derive(Debug, PartialEq, Eq)]
enum LineMeaning {
    Nothing,
    Listening,
    Ended { node: String, why: String },
}

impl<'a> NodeTable<'a> {
    fn new(nodes: &'a [Node]) -> NodeTable<'a> {
        NodeTable { nodes, node_of: vec![None; nodes.len()], addresses: vec![None; nodes.len()] }
    }

    fn is_complete(&self) -> bool {
        !self.addresses.contains(&None)
    }

    fn handle_line(&mut self, line: &str) -> LineMeaning {
        let Some((task, said)) = labelled(line).filter(|(task, _)| *task < self.nodes.len()) else {
            return LineMeaning::Nothing;
        };
        let words = said.strip_prefix(MARK).and_then(|said| said.split_once(' '));
        if let Some(("node", name)) = words {
            self.node_of[task] = self.nodes.iter().position(|node| node.name == name);
            return LineMeaning::Nothing;
        }
        let Some(node) = self.node_of[task] else { return LineMeaning::Nothing };
        if let Some(("end", why)) = words {
            return LineMeaning::Ended { node: self.nodes[node].name.clone(), why: why.to_owned() };
        }
        match address_of(said) {
            Some(address) => {
                self.addresses[node] = Some(address);
                LineMeaning::Listening
            }
            None => LineMeaning::Nothing,
        }
    }

    /// The error that names every node that has not answered, with this reason.
    fn missing(&self, why: &str) -> LaunchError {
        let silent = self.nodes.iter().zip(&self.addresses).filter(|(_, address)| address.is_none());
        LaunchError::There(silent.map(|(node, _)| (node.name.clone(), why.to_owned())).collect())
    }
}

/// Number of the task, and what it said, of a line of `srun --label`.
fn labelled(line: &str) -> Option<(usize, &str)> {
    let (task, said) = line.split_once(": ")?;
    Some((task.trim().parse().ok()?, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Node> {
        let node = |name: &str, address: &str| Node {
            name: name.to_owned(),
            address: address.parse().expect("an address"),
        };
        vec![node("n7", "10.0.0.7"), node("n8", "fd00::8")]
    }

    #[test]
    fn one_srun_starts_an_agent_on_each_node_at_its_address() {
        let files = ["/data/a trace".to_owned()].into();
        let argv = srun_argv(&nodes(), Path::new("/shared/pummel"), &files);
        let argv: Vec<_> = argv.iter().map(|word| word.to_str().expect("UTF-8")).collect();
        assert_eq!(argv[0], "srun");
        for option in ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n7,n8"] {
            assert!(argv.contains(&option), "{option}");
        }
        let words = ["20s", "2", "n7=10.0.0.7", "n8=[fd00::8]", "--allow-file=/data/a trace"];
        let script = [&["sh", "-c", SCRIPT, "/shared/pummel"][..], &words].concat();
        assert_eq!(argv[argv.len() - script.len()..], script);
    }

    #[test]
    fn an_agent_on_a_node_is_told_its_address_and_the_files_of_the_plan() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("pummel");
        std::fs::write(&program, "#!/bin/sh\nfor word in \"$@\"; do echo \"<$word>\"; done\n")
            .expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it is ours");
        let files = ["/data/a trace".to_owned(), "b".to_owned()].into();
        let argv = srun_argv(&nodes(), &program, &files);
        let script = argv.iter().position(|word| word == "sh").expect("a shell");
        let mut command = std::process::Command::new("sh");
        let out = command.args(&argv[script + 1..]).env("SLURMD_NODENAME", "n8").output().expect("a shell");
        let said = String::from_utf8(out.stdout).expect("UTF-8");
        let words = [
            "pummel: node n8",
            "<agent>",
            "<--listen>",
            "<[fd00::8]:0>",
            "<--token-file>",
            "<->",
            "<--exit-with-stdin=20s>",
            "<--allow-file=/data/a trace>",
            "<--allow-file=b>",
            "pummel: end it ended with status 0",
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), words);
    }

    #[test]
    fn a_task_is_known_by_the_node_that_it_names() {
        let nodes = nodes();
        let mut table = NodeTable::new(&nodes);
        assert_eq!(table.handle_line("0: listening on 10.0.0.9:1"), LineMeaning::Nothing);
        assert_eq!(table.handle_line("1: pummel: node n7"), LineMeaning::Nothing);
        assert_eq!(table.handle_line("0: pummel: node n8"), LineMeaning::Nothing);
        assert_eq!(table.handle_line("1: welcome"), LineMeaning::Nothing);
        assert_eq!(table.handle_line("9: pummel: node n7"), LineMeaning::Nothing);
        assert_eq!(table.handle_line("1: listening on 10.0.0.7:5001"), LineMeaning::Listening);
        let missing = LaunchError::There(vec![("n8".to_owned(), "late".to_owned())]);
        assert_eq!(table.missing("late"), missing);
        assert!(!table.is_complete());
        assert_eq!(table.handle_line(" 0: listening on [fd00::8]:5002"), LineMeaning::Listening);
        assert!(table.is_complete());
        let ended = LineMeaning::Ended { node: "n8".to_owned(), why: "it ended with status 2".to_owned() };
        assert_eq!(table.handle_line("0: pummel: end it ended with status 2"), ended);
    }

    #[test]
    fn the_address_of_a_node_is_the_one_that_slurm_uses() {
        let line = "NodeName=n1 Arch=x86_64 CPUTot=2 NodeAddr=127.0.0.2 NodeHostName=vm Port=17001";
        assert_eq!(name_and_address(line), Some(("n1", "127.0.0.2")));
        assert_eq!(name_and_address("Node n3 not found"), None);
    }
}
