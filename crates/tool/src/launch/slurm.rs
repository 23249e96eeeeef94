//! Agents by Slurm: inside an allocation, one on each of some of its nodes, started by one `srun`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::Path;

use crate::launch::launched::{PlaceError, Placed, Placement, chance};
use crate::launch::process::{Errand, SILENCE_MAX};
use crate::launch::wait::{MARK, Manner, Stopped, Wait, address_of, lines_of};

/// What runs on each node. Its words are our program, how long the agent bears silence, and `NODE=ADDRESS` of every node.
/// The agent reads every file that a plan names: only the controller knows its token, and its user has a shell on the node.
const SCRIPT: &str = r#"echo "pummel: node $SLURMD_NODENAME"; s=$1; for pair in "$@"; do case $pair in "$SLURMD_NODENAME="*) a=${pair#*=};; esac; done; if [ -x "$0" ]; then "$0" agent --listen "$a:0" --token-file - --allow-file / --exit-with-stdin="$s"; echo "pummel: end it ended with status $?"; else echo "pummel: end there is no $0; a program on a file system that all nodes share is wanted"; fi"#;

/// A node of the allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: String,
    address: IpAddr,
}

/// Starts one agent on each of so many nodes.
pub(super) fn place(count: NonZeroU32, manner: Manner<'_>) -> Result<Placement, PlaceError> {
    let nodes = nodes(count, manner).map_err(here)?;
    let program = std::env::current_exe()
        .map_err(|error| PlaceError::Here(format!("it is not known where this program is: {error}")))?;
    let token = chance().map_err(|error| PlaceError::Here(format!("no token can be made: {error}")))?;
    let argv = srun_argv(&nodes, &program);
    let mut errand =
        Errand::start(&argv).map_err(|error| PlaceError::Here(format!("cannot run srun: {error}")))?;
    errand.give(format!("{token}\n").into_bytes().into());
    errand.pulse();
    let addresses = listening(&mut errand, &nodes, manner)?;
    let placed = nodes.into_iter().zip(addresses);
    let placed = placed.map(|(node, address)| Placed { name: node.name, address, token: token.clone() });
    Ok(Placement { placed: placed.collect(), errands: vec![errand] })
}

fn here(stopped: Stopped) -> PlaceError {
    match stopped {
        Stopped::Unwanted => PlaceError::Interrupted,
        Stopped::Because(why) => PlaceError::Here(why),
    }
}

/// The nodes that agents go to. Those at the end of the list: a batch script, and the controller with it, runs on the
/// first, which stays free of agents when there are nodes enough.
fn nodes(count: NonZeroU32, manner: Manner<'_>) -> Result<Vec<Node>, Stopped> {
    let list = std::env::var("SLURM_JOB_NODELIST").ok().filter(|list| !list.is_empty());
    let Some(list) = list else {
        return Err(Stopped::Because(format!(
            "slurm://{count} is for the inside of a Slurm allocation, and this is none: SLURM_JOB_NODELIST is not set. \
             `salloc -N {count} pummel ...`, or a batch script, makes one"
        )));
    };
    let names = lines_of(&["scontrol", "show", "hostnames", &list], manner)?;
    let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
    let Some(first) = names.len().checked_sub(wanted) else {
        let has = names.len();
        return Err(Stopped::Because(format!("slurm://{count}: this allocation has {has} nodes ({list})")));
    };
    let names = &names[first..];
    let lines = lines_of(&["scontrol", "show", "node", "--oneliner", &names.join(",")], manner)?;
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
fn srun_argv(nodes: &[Node], program: &Path) -> Vec<OsString> {
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
    argv.push(format!("{}s", SILENCE_MAX.as_secs()).into());
    argv.extend(nodes.iter().map(|node| match node.address {
        IpAddr::V4(address) => format!("{}={address}", node.name).into(),
        IpAddr::V6(address) => format!("{}=[{address}]", node.name).into(),
    }));
    argv
}

/// Waits until all agents listen; returns their addresses in the order of the nodes.
fn listening(errand: &mut Errand, nodes: &[Node], manner: Manner<'_>) -> Result<Vec<SocketAddr>, PlaceError> {
    let mut roll = Roll::new(nodes);
    let mut wait = Wait::new(errand, manner);
    while !roll.is_complete() {
        let line = wait.line().and_then(|line| line.ok_or_else(|| wait.epitaph("srun")));
        match line {
            Ok(line) => match roll.hear(&line) {
                Heard::Nothing => {}
                Heard::Listening => wait.renew(),
                Heard::Ended { node, why } => {
                    return Err(PlaceError::There(vec![(node, wait.with_last_words(why))]));
                }
            },
            Err(Stopped::Unwanted) => return Err(PlaceError::Interrupted),
            Err(Stopped::Because(why)) => return Err(roll.missing(&why)),
        }
    }
    Ok(roll.addresses.into_iter().flatten().collect())
}

/// Who has answered.
struct Roll<'a> {
    nodes: &'a [Node],
    /// Of each task of the step, the index of its node: the step may order them in its own way.
    node_of: Vec<Option<usize>>,
    /// Of each node.
    addresses: Vec<Option<SocketAddr>>,
}

/// What a line of `srun --label` meant.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Listening,
    Ended { node: String, why: String },
}

impl<'a> Roll<'a> {
    fn new(nodes: &'a [Node]) -> Roll<'a> {
        Roll { nodes, node_of: vec![None; nodes.len()], addresses: vec![None; nodes.len()] }
    }

    fn is_complete(&self) -> bool {
        !self.addresses.contains(&None)
    }

    fn hear(&mut self, line: &str) -> Heard {
        let Some((task, said)) = labelled(line).filter(|(task, _)| *task < self.nodes.len()) else {
            return Heard::Nothing;
        };
        let words = said.strip_prefix(MARK).and_then(|said| said.split_once(' '));
        if let Some(("node", name)) = words {
            self.node_of[task] = self.nodes.iter().position(|node| node.name == name);
            return Heard::Nothing;
        }
        let Some(node) = self.node_of[task] else { return Heard::Nothing };
        if let Some(("end", why)) = words {
            return Heard::Ended { node: self.nodes[node].name.clone(), why: why.to_owned() };
        }
        match address_of(said) {
            Some(address) => {
                self.addresses[node] = Some(address);
                Heard::Listening
            }
            None => Heard::Nothing,
        }
    }

    /// All that have not answered, for this reason.
    fn missing(&self, why: &str) -> PlaceError {
        let silent = self.nodes.iter().zip(&self.addresses).filter(|(_, address)| address.is_none());
        PlaceError::There(silent.map(|(node, _)| (node.name.clone(), why.to_owned())).collect())
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
        let argv = srun_argv(&nodes(), Path::new("/shared/pummel"));
        let argv: Vec<_> = argv.iter().map(|word| word.to_str().expect("UTF-8")).collect();
        assert_eq!(argv[0], "srun");
        for option in ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n7,n8"] {
            assert!(argv.contains(&option), "{option}");
        }
        let script = ["sh", "-c", SCRIPT, "/shared/pummel", "20s", "n7=10.0.0.7", "n8=[fd00::8]"];
        assert_eq!(argv[argv.len() - script.len()..], script);
    }

    #[test]
    fn a_task_is_known_by_the_node_that_it_names() {
        let nodes = nodes();
        let mut roll = Roll::new(&nodes);
        assert_eq!(roll.hear("0: listening on 10.0.0.9:1"), Heard::Nothing);
        assert_eq!(roll.hear("1: pummel: node n7"), Heard::Nothing);
        assert_eq!(roll.hear("0: pummel: node n8"), Heard::Nothing);
        assert_eq!(roll.hear("1: welcome"), Heard::Nothing);
        assert_eq!(roll.hear("9: pummel: node n7"), Heard::Nothing);
        assert_eq!(roll.hear("1: listening on 10.0.0.7:5001"), Heard::Listening);
        let missing = PlaceError::There(vec![("n8".to_owned(), "late".to_owned())]);
        assert_eq!(roll.missing("late"), missing);
        assert!(!roll.is_complete());
        assert_eq!(roll.hear(" 0: listening on [fd00::8]:5002"), Heard::Listening);
        assert!(roll.is_complete());
        let ended = Heard::Ended { node: "n8".to_owned(), why: "it ended with status 2".to_owned() };
        assert_eq!(roll.hear("0: pummel: end it ended with status 2"), ended);
    }

    #[test]
    fn the_address_of_a_node_is_the_one_that_slurm_uses() {
        let line = "NodeName=n1 Arch=x86_64 CPUTot=2 NodeAddr=127.0.0.2 NodeHostName=vm Port=17001";
        assert_eq!(name_and_address(line), Some(("n1", "127.0.0.2")));
        assert_eq!(name_and_address("Node n3 not found"), None);
    }
}
