//! Checks that a Plan can be carried out over UDP: by protocol and sockets, and by the length of its requests.

use std::fmt::Display;

use super::field::Field;
use super::invalid::{Invalid, refuse, refuse_if};
use super::records::{EXPIRY_MAX_S, longest_key, longest_loaded_key};
use crate::dist::Dist;
use crate::plan::{Mix, Phase, Plan, Protocol, Window, Work};
use crate::protocol::Verb;
use crate::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use crate::workload::value::{COUNTER_MAX_BYTES, HEADER_BYTES, PIECE_MAX_BYTES, largest_of};

/// Digits of the longest CAS unique.
const CAS_DIGITS: u64 = 20;

/// Most digits of the number that a counter is changed by.
const DELTA_DIGITS: u64 = 20;

/// Refuses options that UDP does not have, and requests that may not fit in one datagram: memcached takes no others.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let refuse_where = |is_so, expected| refuse_if(is_so, Field::Transport, "udp", expected);
    let expected = "UDP is accepted only with --protocol text: memcached has it for no other protocol";
    refuse_where(plan.protocol != Protocol::Text, expected)?;
    if let Some(index) = plan.servers.iter().position(|server| server.starts_with('/')) {
        let expected = "expected HOST:PORT with --udp: UDP has no unix sockets";
        return refuse(Field::Server.of(index), &plan.servers[index], expected);
    }
    refuse_where(plan.tls.is_some(), "UDP is accepted only without --tls, which needs a stream")?;
    let expected = "UDP is accepted only without --user: memcached has no login over UDP";
    refuse_where(plan.login.is_some(), expected)?;
    let expected = "UDP is accepted only without --linger: it has no connection that could linger";
    refuse_where(plan.socket.linger_s.is_some(), expected)?;
    // A mix may store under longer keys than a load does, and the bound of its values then holds for both.
    let is_load = |(_, phase): &(usize, &Phase)| matches!(phase.work, Work::Load(_));
    let (loads, others): (Vec<_>, Vec<_>) = plan.phases.iter().enumerate().partition(is_load);
    others.into_iter().chain(loads).try_for_each(|(index, phase)| match &phase.work {
        Work::Load(load) => {
            let key_bytes = longest_loaded_key(&plan.data);
            store_fits(plan, Verb::Set, false, (key_bytes, value_bytes(plan)))?;
            if load.pieces {
                store_fits(plan, Verb::Set, false, (key_bytes, piece_bytes(plan)))?;
            }
            store_fits(plan, Verb::Set, false, (key_bytes, COUNTER_MAX_BYTES as u64))
        }
        Work::Mix(mix) => mix_fits(plan, index, mix),
        Work::Window(window) => window_fits(index, window),
        Work::Pause(_) | Work::Audit(_) => Ok(()),
        Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => {
            let expected =
                "UDP is accepted only where nothing is replayed and no records are deleted at once";
            refuse_where(true, expected)
        }
    })
}

/// Refuses windows whose longest set or get does not fit in one datagram.
fn window_fits(index: usize, window: &Window) -> Result<(), Invalid> {
    let whole = |bytes: usize| bytes <= DATAGRAM_MAX_BYTES;
    if whole(window.longest_get_bytes()) && whole(window.longest_set_bytes()) {
        return Ok(());
    }
    let expected = format!("expected requests of up to {DATAGRAM_MAX_BYTES} bytes with their frame over UDP");
    let longest = window.longest_get_bytes().max(window.longest_set_bytes());
    refuse(Field::Window.of(index), longest, expected)
}

fn mix_fits(plan: &Plan, index: usize, mix: &Mix) -> Result<(), Invalid> {
    let (key_bytes, value_bytes) = (longest_key(plan), value_bytes(plan));
    for &(verb, _) in &mix.ops {
        match verb {
            // Pieces are under keys of their own, all of which are loaded ones.
            Verb::Append | Verb::Prepend => {
                let piece = (longest_loaded_key(&plan.data), piece_bytes(plan));
                store_fits(plan, Verb::Set, mix.noreply, piece)?;
                store_fits(plan, verb, mix.noreply, piece)?;
            }
            verb if verb.reads() => read_fits(plan, index, verb, mix.multiget)?,
            verb if verb.stores() => store_fits(plan, verb, mix.noreply, (key_bytes, value_bytes))?,
            Verb::Version => {}
            verb => {
                let words = [" ".len() as u64, key_bytes, " ".len() as u64, DELTA_DIGITS];
                fit(plan, verb, mix.noreply, (key_bytes, words.iter().sum()), 0)?;
            }
        }
    }
    // Keys are also stored that reads missed, and those of the gets that are the first half of a pair.
    if mix.read_through_ns.is_some() || mix.has_pairs() {
        store_fits(plan, Verb::Set, mix.noreply, (key_bytes, value_bytes))?;
    }
    Ok(())
}

fn read_fits(plan: &Plan, index: usize, verb: Verb, keys: u32) -> Result<(), Invalid> {
    let touches = matches!(verb, Verb::Gat | Verb::Gats);
    let expiry = if touches { 1 + expiry_digits(plan) } else { 0 };
    let around = Frame::LEN_BYTES as u64 + verb.name().len() as u64 + expiry + "\r\n".len() as u64;
    let most = (DATAGRAM_MAX_BYTES as u64 - around) / (1 + longest_key(plan));
    if u64::from(keys) <= most {
        return Ok(());
    }
    let expected = format!(
        "expected at most {most} with --udp, where keys are up to {} bytes: a request has to fit in one datagram of \
         {DATAGRAM_MAX_BYTES} bytes",
        longest_key(plan)
    );
    refuse(Field::MultiGet.of(index), keys, expected)
}

/// Refuses a store that does not fit in one datagram, of a key and a value of up to so many bytes.
fn store_fits(
    plan: &Plan,
    verb: Verb,
    noreply: bool,
    (key_bytes, value_bytes): (u64, u64),
) -> Result<(), Invalid> {
    let cas = if verb == Verb::Cas { 1 + CAS_DIGITS } else { 0 };
    let line = [1, key_bytes, " 0 ".len() as u64, expiry_digits(plan), 1, digits(value_bytes), cas];
    let rest_bytes = value_bytes.saturating_add("\r\n".len() as u64);
    fit(plan, verb, noreply, (key_bytes, line.iter().sum()), rest_bytes)
}

/// Refuses a request that does not fit in one datagram: the words behind its first take `words_bytes` with a key of
/// `key_bytes`, and the part after its line takes `rest_bytes`.
fn fit(
    plan: &Plan,
    verb: Verb,
    noreply: bool,
    (key_bytes, words_bytes): (u64, u64),
    rest_bytes: u64,
) -> Result<(), Invalid> {
    let noreply = if noreply { " noreply".len() as u64 } else { 0 };
    let line = verb.name().len() as u64 + words_bytes + noreply + "\r\n".len() as u64;
    let whole = rest_bytes.saturating_add(Frame::LEN_BYTES as u64 + line);
    if whole <= DATAGRAM_MAX_BYTES as u64 {
        return Ok(());
    }
    let (over, value) = (whole - DATAGRAM_MAX_BYTES as u64, value_bytes(plan));
    let expected = format!(
        "with --udp values up to {} bytes are accepted where keys are up to {key_bytes} bytes: the longest {} takes \
         {whole} bytes with a value of {value}, and has to fit in one datagram of {DATAGRAM_MAX_BYTES} (--key-size, \
         --key-prefix and --ttl are part of it)",
        value.saturating_sub(over),
        verb.name(),
    );
    refuse(Field::ValueSize, &plan.data.value_size, expected)
}

fn value_bytes(plan: &Plan) -> u64 {
    largest_of(&plan.data)
}

fn piece_bytes(plan: &Plan) -> u64 {
    value_bytes(plan).clamp(HEADER_BYTES as u64, PIECE_MAX_BYTES)
}

fn expiry_digits(plan: &Plan) -> u64 {
    match &plan.data.expiry_s {
        Dist::Fixed(seconds) if plan.data.style.expiry_jitter_percent == 0 => digits(*seconds as u64),
        dist => {
            let longer = 1.0 + f64::from(plan.data.style.expiry_jitter_percent) / 100.0;
            // A drawn expiry is rounded before it is made longer.
            let drawn = dist.support().1.max(0.0).round();
            digits(EXPIRY_MAX_S.min((drawn * longer).round() as u64))
        }
    }
}

fn digits(number: impl Display) -> u64 {
    number.to_string().len() as u64
}
