//! Checks that clients can have windows of objects, as memaslap's have. The front of memaslap checks its options in
//! memaslap's words; these checks are for saved plans.

use super::bounds::{CLIENTS_MAX, refuse, share, within};
use super::field::Field;
use super::invalid::Invalid;
use super::records::KEY_SIZE_MAX;
use crate::client::route::LANES_MAX;
use crate::plan::{Plan, Protocol, Window, Work};
use crate::protocol::udp::DATAGRAM_MAX_BYTES;
use crate::workload::window::VALUE_MAX_BYTES;

/// The greatest weight of a set, a get or a range of lengths.
const WEIGHT_MAX: f64 = 1e12;

/// Longest key of an object in the meta protocol. The number in front of it may have control characters, so the key is sent in
/// base64, which makes four bytes of three.
const META_KEY_MAX_BYTES: u64 = KEY_SIZE_MAX / 4 * 3;

/// Refuses a window whose objects or lengths cannot be drawn.
pub fn window(index: usize, window: &Window) -> Result<(), Invalid> {
    let path = Field::Window.of(index);
    within(path, window.objects.into(), 1, u64::from(u32::MAX))?;
    within(path, window.multiget.into(), 1, u64::from(u16::MAX))?;
    within(path, window.pool.sockets.into(), 1, LANES_MAX as u64)?;
    within(path, window.pool.block.into(), 1, CLIENTS_MAX)?;
    let lists = [(&window.keys, 16, KEY_SIZE_MAX), (&window.values, 1, VALUE_MAX_BYTES as u64)];
    for (list, least, most) in lists {
        if list.is_empty() {
            return refuse(path, "[]", "expected at least one range of lengths");
        }
        for range in list {
            within(path, range.start.into(), least, most)?;
            within(path, range.end.into(), range.start.into(), most)?;
        }
    }
    let shares = [window.overwrite, window.verify, window.expire];
    shares.into_iter().try_for_each(|value| share(path, value))?;
    let ranges = window.keys.iter().chain(&window.values).map(|range| range.share);
    match ranges.chain([window.set, window.get]).find(|weight| !(0.0..=WEIGHT_MAX).contains(weight)) {
        Some(weight) => refuse(path, weight, format!("expected weights from 0 to {WEIGHT_MAX}")),
        None => Ok(()),
    }
}

/// Refuses windows where the rest of the plan excludes them. The clients of a plan have one window or none.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let Some(first) = plan.window() else { return Ok(()) };
    let whole = |window: &Window| Window { preset: false, ..window.clone() };
    for (index, phase) in plan.phases.iter().enumerate() {
        let path = Field::Window.of(index);
        match &phase.work {
            Work::Window(window) if whole(window) == whole(first) => {}
            Work::Window(_) => {
                return refuse(path, "another", "expected the window of the other phases");
            }
            _ => return refuse(path, &phase.name, "windows are accepted only where all phases have them"),
        }
    }
    let path = Field::Window.path();
    let longest_key = first.keys.iter().map(|range| u64::from(range.end)).max().unwrap_or(0);
    if plan.protocol == Protocol::Meta && longest_key > META_KEY_MAX_BYTES {
        let expected = format!(
            "expected keys up to {META_KEY_MAX_BYTES} bytes with --protocol meta, which sends the keys of objects in base64"
        );
        return refuse(path, longest_key, expected);
    }
    let (pool, servers) = (first.pool, plan.servers.len());
    if plan.lanes() > LANES_MAX {
        return refuse(path, plan.lanes(), format!("expected at most {LANES_MAX} sockets for each client"));
    }
    if let Some(replication) = pool.replication {
        within(path, replication.writers.into(), 1, servers as u64)?;
    }
    if !pool.datagrams {
        return Ok(());
    }
    let has_stream_only = plan.tls.is_some()
        || plan.login.is_some()
        || pool.replication.is_some()
        || plan.servers.iter().any(|server| server.starts_with('/'));
    if plan.protocol != Protocol::Text || has_stream_only {
        let expected = "datagrams beside streams are accepted only with HOST:PORT and --protocol text, without TLS, login and \
                        replication";
        return refuse(path, "datagrams", expected);
    }
    let longest = first.longest_get_bytes();
    if longest > DATAGRAM_MAX_BYTES {
        let expected = format!("expected gets of up to {DATAGRAM_MAX_BYTES} bytes with their frame over UDP");
        return refuse(path, longest, expected);
    }
    Ok(())
}
