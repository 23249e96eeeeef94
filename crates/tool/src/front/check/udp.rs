//! Whether a Plan can be carried out over UDP: by protocol and sockets, and by the length of its requests.

use std::fmt::Display;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Mix, Plan, Protocol, Window, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use pummel_logic::workload::value::{COUNTER_MAX_BYTES, HEADER_BYTES, PIECE_MAX_BYTES, largest};

use super::{Wrong, longest_key, wrong};

const UDP: (&str, &str) = ("--udp", "transport");

/// Digits of the longest CAS unique.
const CAS_DIGITS: u64 = 20;

/// Digits of what counters are changed by, at most.
const DELTA_DIGITS: u64 = 20;

/// Refuses what UDP cannot do, and requests that may not fit in one datagram: memcached takes no others.
pub(super) fn fits(plan: &Plan) -> Result<(), Wrong> {
    let refused = |accepted: &str| wrong(UDP, "udp", accepted);
    if plan.protocol != Protocol::Text {
        return refused("UDP is accepted only with --protocol text: memcached has it for no other protocol");
    }
    if let Some(path) = plan.servers.iter().find(|server| server.starts_with('/')) {
        return wrong(
            ("--server", "servers"),
            path,
            "with --udp HOST:PORT is accepted: UDP has no unix sockets",
        );
    }
    if plan.tls.is_some() {
        return refused("UDP is accepted only without --tls, which needs a stream");
    }
    if plan.login.is_some() {
        return refused("UDP is accepted only without --user: memcached has nobody log in over UDP");
    }
    if plan.socket.linger_s.is_some() {
        return refused("UDP is accepted only without --linger: it has no connection that could linger");
    }
    plan.phases.iter().try_for_each(|phase| match &phase.work {
        Work::Load(load) => {
            store_fits(plan, Verb::Set, false, value_bytes(plan))?;
            if load.pieces {
                store_fits(plan, Verb::Set, false, piece_bytes(plan))?;
            }
            store_fits(plan, Verb::Set, false, COUNTER_MAX_BYTES as u64)
        }
        Work::Mix(mix) => mix_fits(plan, mix),
        Work::Window(window) => window_fits(window),
        Work::Pause(_) => Ok(()),
        Work::Replay(_) | Work::Delete(_) => {
            refused("UDP is accepted only where nothing is replayed and no records are deleted at once")
        }
    })
}

/// Whether sets and gets of a window fit.
fn window_fits(window: &Window) -> Result<(), Wrong> {
    let whole = |bytes: usize| bytes <= DATAGRAM_MAX_BYTES;
    if whole(window.longest_get_bytes()) && whole(window.longest_set_bytes()) {
        return Ok(());
    }
    let accepted =
        format!("requests of up to {DATAGRAM_MAX_BYTES} bytes with their frame are accepted over UDP");
    wrong(
        ("--plan", "phases.work.window"),
        window.longest_get_bytes().max(window.longest_set_bytes()),
        accepted,
    )
}

fn mix_fits(plan: &Plan, mix: &Mix) -> Result<(), Wrong> {
    for &(verb, _) in &mix.ops {
        match verb {
            Verb::Append | Verb::Prepend => {
                store_fits(plan, Verb::Set, mix.noreply, piece_bytes(plan))?;
                store_fits(plan, verb, mix.noreply, piece_bytes(plan))?;
            }
            verb if verb.reads() => read_fits(plan, verb, mix.multiget)?,
            verb if verb.stores() => store_fits(plan, verb, mix.noreply, value_bytes(plan))?,
            Verb::Version => {}
            verb => {
                let words = [" ".len() as u64, longest_key(plan), " ".len() as u64, DELTA_DIGITS];
                fit(plan, verb, mix.noreply, words.iter().sum(), 0)?;
            }
        }
    }
    match mix.read_through_ns {
        Some(_) => store_fits(plan, Verb::Set, mix.noreply, value_bytes(plan)),
        None => Ok(()),
    }
}

fn read_fits(plan: &Plan, verb: Verb, keys: u32) -> Result<(), Wrong> {
    let touches = matches!(verb, Verb::Gat | Verb::Gats);
    let expiry = if touches { 1 + expiry_digits(plan) } else { 0 };
    let around = Frame::LEN_BYTES as u64 + verb.name().len() as u64 + expiry + "\r\n".len() as u64;
    let most = (DATAGRAM_MAX_BYTES as u64 - around) / (1 + longest_key(plan));
    if u64::from(keys) <= most {
        return Ok(());
    }
    let accepted = format!(
        "at most {most} is accepted with --udp, where keys are up to {} bytes: a request has to fit in one datagram of \
         {DATAGRAM_MAX_BYTES} bytes",
        longest_key(plan)
    );
    wrong(("--multiget", "phases.work.mix.multiget"), keys, accepted)
}

fn store_fits(plan: &Plan, verb: Verb, noreply: bool, value_bytes: u64) -> Result<(), Wrong> {
    let cas = if verb == Verb::Cas { 1 + CAS_DIGITS } else { 0 };
    let line = [1, longest_key(plan), " 0 ".len() as u64, expiry_digits(plan), 1, digits(value_bytes), cas];
    fit(plan, verb, noreply, line.iter().sum(), value_bytes + "\r\n".len() as u64)
}

/// Whether a request fits whose words behind the first take `words_bytes`, and what follows its line `rest_bytes`.
fn fit(plan: &Plan, verb: Verb, noreply: bool, words_bytes: u64, rest_bytes: u64) -> Result<(), Wrong> {
    let noreply = if noreply { " noreply".len() as u64 } else { 0 };
    let line = verb.name().len() as u64 + words_bytes + noreply + "\r\n".len() as u64;
    let whole = Frame::LEN_BYTES as u64 + line + rest_bytes;
    if whole <= DATAGRAM_MAX_BYTES as u64 {
        return Ok(());
    }
    let (over, value) = (whole - DATAGRAM_MAX_BYTES as u64, value_bytes(plan));
    let accepted = format!(
        "with --udp values up to {} bytes are accepted where keys are up to {} bytes: the longest {} takes {whole} bytes \
         with a value of {value}, and has to fit in one datagram of {DATAGRAM_MAX_BYTES} (--key-size, --key-prefix and \
         --ttl are part of it)",
        value.saturating_sub(over),
        longest_key(plan),
        verb.name(),
    );
    wrong(("--value-size", "data.value_size"), &plan.data.value_size, accepted)
}

fn value_bytes(plan: &Plan) -> u64 {
    largest(&plan.data.value_size)
}

fn piece_bytes(plan: &Plan) -> u64 {
    value_bytes(plan).clamp(HEADER_BYTES as u64, PIECE_MAX_BYTES)
}

fn expiry_digits(plan: &Plan) -> u64 {
    match &plan.data.expiry_s {
        Dist::Fixed(seconds) => digits(*seconds as u64),
        dist => digits(super::EXPIRY_MAX_S.min(dist.support().1.max(0.0).round() as u64)),
    }
}

fn digits(number: impl Display) -> u64 {
    number.to_string().len() as u64
}
