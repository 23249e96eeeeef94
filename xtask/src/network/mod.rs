//! Networks of a client and a server on this machine: namespaces, and the way between them.

mod relay;

use std::io;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use relay::{Relay, Trouble};
use serde::Deserialize;

use crate::programs::said_by;

/// The first local port of a way with few of them, and most of them.
const PORTS_FROM: u32 = 32_768;
const PORTS_MAX: u32 = 28_000;

/// The port of VXLAN.
const TUNNEL_PORT: u16 = 4789;

/// The way from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Loopback of this namespace.
    Loopback,
    /// Loopback in a namespace of client and server, in which clients have only so many local ports.
    FewPorts(u32),
    /// A pair of cards, of which the client's stays in this namespace.
    Beside,
    /// A pair of cards, each in a namespace of its own; the server's sends at most this, in megabits per second.
    Limited(u32),
    /// A pair of cards, each in a namespace of its own; the client's queueing discipline lets a packet of 1,600 bytes go and
    /// then so many megabits per second.
    Queued(u32),
    /// A pair of cards, and a server with receive buffers of at most 64 KiB.
    SmallWindow,
    /// A tunnel through a relay that delays frames, and loses segments.
    Far(Trouble),
}

/// The networks of one scenario; dropping them removes them.
#[derive(Default)]
pub struct Network {
    client: Option<String>,
    server: Option<String>,
    /// Cards of this namespace to the others.
    cards: Vec<String>,
    relay: Option<Relay>,
}

/// Numbers of networks: the kernel removes one only some time after it was asked to.
static MADE: AtomicU32 = AtomicU32::new(0);

impl Network {
    /// Makes the networks that a way needs. Whatever is not loopback needs the right to make namespaces.
    pub fn make(way: Way) -> io::Result<Network> {
        let mut network = Network::default();
        if way == Way::Loopback {
            return Ok(network);
        }
        let name = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        if way == Way::Beside {
            let server = format!("pummel-s{name}");
            ip(&format!("netns add {server}"))?;
            network.server = Some(server.clone());
            let card = format!("p1-{name}");
            ip(&format!("link add {card} type veth peer name eth0 netns {server}"))?;
            network.cards.push(card.clone());
            open(None, &card, "10.231.3.1/24")?;
            open(Some(&server), "eth0", "10.231.3.2/24")?;
            return Ok(network);
        }
        if let Way::FewPorts(ports) = way {
            let both = format!("pummel-b{name}");
            ip(&format!("netns add {both}"))?;
            network.client = Some(both.clone());
            ip(&format!("-n {both} link set lo up"))?;
            let last = PORTS_FROM + ports.clamp(1, PORTS_MAX) - 1;
            set(&both, "/proc/sys/net/ipv4/ip_local_port_range", &format!("{PORTS_FROM} {last}"))?;
            return Ok(network);
        }
        let (client, server) = (format!("pummel-c{name}"), format!("pummel-s{name}"));
        for (name, place) in [(&client, &mut network.client), (&server, &mut network.server)] {
            ip(&format!("netns add {name}"))?;
            *place = Some(name.clone());
            ip(&format!("-n {name} link set lo up"))?;
        }
        match way {
            Way::Loopback | Way::FewPorts(_) | Way::Beside => {}
            Way::Limited(megabits) => {
                cards(&client, &server)?;
                limit(&server, &format!("rate {megabits}mbit burst 2mb limit 64mb"))?;
            }
            Way::Queued(megabits) => {
                cards(&client, &server)?;
                limit(&client, &format!("rate {megabits}mbit burst 1600 limit 1mb"))?;
            }
            Way::SmallWindow => {
                cards(&client, &server)?;
                set(&server, "/proc/sys/net/ipv4/tcp_rmem", "4096 16384 65536")?;
            }
            Way::Far(trouble) => {
                // A name of a card has at most 15 bytes.
                network.cards = [1, 2].map(|number| format!("p{number}-{name}")).to_vec();
                network.relay = Some(tunnel(&network.cards, [&client, &server], trouble)?);
            }
        }
        Ok(network)
    }

    /// The address on which the server listens.
    pub fn address(&self) -> &'static str {
        if self.is_loopback() { "127.0.0.1" } else { "10.231.3.2" }
    }

    /// The card of this namespace that leads to the server.
    pub fn card(&self) -> &str {
        self.cards.first().map_or("lo", String::as_str)
    }

    /// The namespace of the client.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// The namespace of the server: on loopback that of the client.
    pub fn server(&self) -> Option<&str> {
        match self.is_loopback() {
            true => self.client.as_deref(),
            false => self.server.as_deref(),
        }
    }

    /// Whether client and server share a namespace, and so its loopback.
    fn is_loopback(&self) -> bool {
        self.server.is_none()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.relay.take());
        // What cannot be removed disturbs no other network, which has names of its own.
        for card in &self.cards {
            let _ = ip(&format!("link delete {card}"));
        }
        for name in [&self.client, &self.server].into_iter().flatten() {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// A pair of cards, called `eth0` on both sides.
fn cards(client: &str, server: &str) -> io::Result<()> {
    ip(&format!("link add eth0 netns {client} type veth peer name eth0 netns {server}"))?;
    for (name, address) in [(client, "10.231.3.1/24"), (server, "10.231.3.2/24")] {
        open(Some(name), "eth0", address)?;
    }
    Ok(())
}

/// Gives a card of a namespace its address and lets it work; without a namespace it is one of this program's.
fn open(namespace: Option<&str>, card: &str, address: &str) -> io::Result<()> {
    let place = namespace.map_or(String::new(), |name| format!("-n {name} "));
    ip(&format!("{place}address add {address} dev {card}"))?;
    ip(&format!("{place}link set {card} up"))
}

/// Lets a bucket of tokens decide what the card of a namespace may send.
fn limit(namespace: &str, bucket: &str) -> io::Result<()> {
    let words = format!("-n {namespace} qdisc add dev eth0 root tbf {bucket}");
    call("tc", &words.split_whitespace().collect::<Vec<&str>>())
}

/// Writes a setting of the kernel in a namespace.
fn set(namespace: &str, file: &str, text: &str) -> io::Result<()> {
    call("ip", &["netns", "exec", namespace, "sh", "-c", &format!("echo {text} > {file}")])
}

/// Two ends of a tunnel, each with a card to this namespace, where the relay is.
fn tunnel(outer: &[String], names: [&str; 2], trouble: Trouble) -> io::Result<Relay> {
    let mut sockets = Vec::new();
    for ((number, outer), name) in (1..).zip(outer).zip(names) {
        ip(&format!("link add {outer} type veth peer name eth0 netns {name}"))?;
        open(None, outer, &format!("10.231.{number}.1/30"))?;
        open(Some(name), "eth0", &format!("10.231.{number}.2/30"))?;
        ip(&format!(
            "-n {name} link add wan0 address 02:00:00:00:00:0{number} mtu 1400 gso_max_segs 1 type vxlan id 23 \
             remote 10.231.{number}.1 dstport {TUNNEL_PORT} srcport {TUNNEL_PORT} {} nolearning",
            TUNNEL_PORT + 1
        ))?;
        open(Some(name), "wan0", &format!("10.231.3.{number}/24"))?;
        let other = 3 - number;
        ip(&format!("-n {name} neighbour add 10.231.3.{other} lladdr 02:00:00:00:00:0{other} dev wan0"))?;
        let socket = UdpSocket::bind(&*format!("10.231.{number}.1:{TUNNEL_PORT}"))?;
        socket.connect(&*format!("10.231.{number}.2:{TUNNEL_PORT}"))?;
        sockets.push(socket);
    }
    let [one, other] = <[_; 2]>::try_from(sockets).map_err(|_| io::Error::other("a tunnel has two ends"))?;
    Relay::start(one, other, trouble)
}

fn ip(words: &str) -> io::Result<()> {
    call("ip", &words.split_whitespace().collect::<Vec<&str>>())
}

fn call(program: &str, words: &[&str]) -> io::Result<()> {
    said_by(Command::new(program).args(words)).map(drop)
}
