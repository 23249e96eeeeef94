//! Commands about the cluster: the owners of its slots, and what a client says before a redirected request.

use super::call::{Call, NOT_A_NUMBER};
use crate::cluster::{Cluster, Endpoint};
use pummel_logic::client::route::crc16::{self, SLOTS};

const DISABLED: &str = "ERR This instance has cluster support disabled";

pub(super) fn cluster(call: &mut Call<'_, '_, '_>) {
    let Some(cluster) = call.context.cluster else { return call.error(DISABLED) };
    match call.words.count() {
        2 if call.is(1, "slots") => slots(call, cluster),
        2 if call.is(1, "info") => info(call, cluster),
        2 if call.is(1, "myid") => call.bulk(cluster.id(call.context.session.node).as_bytes()),
        3 if call.is(1, "keyslot") => call.integer(crc16::slot(call.word(2)).into()),
        3 if call.is(1, "countkeysinslot") => count_keys(call),
        _ => call.error("ERR unknown subcommand or wrong number of arguments. Try CLUSTER SLOTS."),
    }
}

/// Lets the next command of the connection be served by the node that the command's slot is on the way to.
pub(super) fn asking(call: &mut Call<'_, '_, '_>) {
    call.context.session.is_asking = call.context.cluster.is_some();
    accept_in_cluster(call);
}

/// Answers READONLY and READWRITE, which say whether a replica may answer the reads of the connection.
pub(super) fn read_only(call: &mut Call<'_, '_, '_>, is_readonly: bool) {
    call.context.session.is_readonly = is_readonly;
    accept_in_cluster(call);
}

fn accept_in_cluster(call: &mut Call<'_, '_, '_>) {
    if call.context.cluster.is_some() { call.ok() } else { call.error(DISABLED) }
}

fn slots(call: &mut Call<'_, '_, '_>, cluster: &Cluster) {
    let ranges = cluster.ranges();
    call.head(b'*', ranges.len());
    for (first, last, owner) in ranges {
        let replicas = cluster.replicas_of(owner);
        call.head(b'*', 3 + replicas.len());
        call.integer(first as i64);
        call.integer(last as i64);
        node(call, cluster, owner);
        replicas.for_each(|replica| node(call, cluster, replica));
    }
}

/// Writes a node as CLUSTER SLOTS lists it.
fn node(call: &mut Call<'_, '_, '_>, cluster: &Cluster, node: usize) {
    let address = cluster.address(node);
    call.head(b'*', 4);
    match cluster.endpoint() {
        Endpoint::Ip => call.bulk(address.ip.as_bytes()),
        Endpoint::Name(name) => call.bulk(name.as_bytes()),
        Endpoint::Unset => call.bulk(b"?"),
        Endpoint::Empty => call.bulk(b""),
        Endpoint::Null => call.null(),
    }
    call.integer(address.port.into());
    call.bulk(cluster.id(node).as_bytes());
    if *cluster.endpoint() == Endpoint::Ip {
        call.map(0);
    } else {
        call.map(1);
        call.pairs(&[("ip", &address.ip)]);
    }
}

fn info(call: &mut Call<'_, '_, '_>, cluster: &Cluster) {
    let state = if cluster.is_up() { "ok" } else { "fail" };
    let mut masters: Vec<usize> = cluster.ranges().into_iter().map(|(_, _, owner)| owner).collect();
    masters.sort_unstable();
    masters.dedup();
    let text = format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:{SLOTS}\r\ncluster_slots_ok:{SLOTS}\r\n\
         cluster_known_nodes:{}\r\ncluster_size:{}\r\n",
        cluster.nodes(),
        masters.len()
    );
    call.text(&text);
}

fn count_keys(call: &mut Call<'_, '_, '_>) {
    let slot = call.number(2).and_then(|slot| u16::try_from(slot).ok());
    let Some(slot) = slot.filter(|&slot| usize::from(slot) < SLOTS) else { return call.error(NOT_A_NUMBER) };
    let items = call.context.store.living(call.context.now);
    let count = items.filter(|item| crc16::slot(item.key()) == slot).count();
    call.integer(count as i64);
}
