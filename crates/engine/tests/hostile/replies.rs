//! The messages in a server's bytes, and forged messages in their place.

use crate::features::Draws;

/// The form of a server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// memcached's text and meta protocols: a line, and the value behind it.
    Text,
    /// Packets of memcached's binary protocol.
    Binary,
    /// Replies of RESP, whole ones.
    Resp,
    /// Records of TLS, whatever is in them.
    Records,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The message carries a value.
    Value,
    /// The message ends the values of a read.
    End,
    /// The message is of any other kind.
    Other,
}

/// The first message in `bytes`, by its length and kind; `None` where it is not whole.
pub fn first(wire: Wire, bytes: &[u8]) -> Option<(usize, Kind)> {
    let (len, kind) = match wire {
        Wire::Text => first_of_text(bytes)?,
        Wire::Binary => first_of_binary(bytes)?,
        Wire::Resp => (resp_len(bytes)?, resp_kind(bytes)),
        Wire::Records => {
            let len = bytes.get(3..5)?;
            (5 + usize::from(u16::from_be_bytes([len[0], len[1]])), Kind::Other)
        }
    };
    (len <= bytes.len()).then_some((len, kind))
}

fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some(&bytes[..end])
}

fn first_of_text(bytes: &[u8]) -> Option<(usize, Kind)> {
    let line = line(bytes)?;
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let size = match words[0] {
        b"VALUE" => words.get(3),
        b"VA" => words.get(1),
        b"END" | b"EN" => return Some((line.len() + 2, Kind::End)),
        _ => return Some((line.len() + 2, Kind::Other)),
    };
    let size: usize =
        size.and_then(|size| number(size)).expect("the built-in server says how long its values are");
    Some((line.len() + 2 + size + 2, Kind::Value))
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Codes of the binary protocol whose replies carry values.
const READS: [u8; 8] = [0x00, 0x09, 0x0c, 0x0d, 0x1d, 0x1e, 0x23, 0x24];

fn first_of_binary(bytes: &[u8]) -> Option<(usize, Kind)> {
    let header = bytes.get(..24)?;
    let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let is_value = READS.contains(&header[1]) && header[6..8] == [0, 0] && body > 0;
    let kind = match header[1] {
        _ if is_value => Kind::Value,
        // A noop ends a read of several keys.
        0x0a => Kind::End,
        _ => Kind::Other,
    };
    Some((24 + body as usize, kind))
}

fn resp_kind(bytes: &[u8]) -> Kind {
    match bytes {
        [b'$' | b'*', b'-', ..] | [b'*', b'0', ..] => Kind::Other,
        [b'$' | b'*', ..] => Kind::Value,
        _ => Kind::Other,
    }
}

/// Length of the first reply.
fn resp_len(bytes: &[u8]) -> Option<usize> {
    let line = line(bytes)?;
    let (own, count) = (line.len() + 2, number(&line[1..]));
    match (line[0], count) {
        (b'$' | b'=', Some(len)) => Some(own + len + 2),
        (b'*' | b'~' | b'>', Some(count)) => several(bytes, own, count),
        (b'%', Some(count)) => several(bytes, own, 2 * count),
        _ => Some(own),
    }
}

fn several(bytes: &[u8], own: usize, count: usize) -> Option<usize> {
    (0..count).try_fold(own, |at, _| {
        let len = resp_len(bytes.get(at..)?)?;
        (at + len <= bytes.len()).then_some(at + len)
    })
}

/// An error in the place of the value of `message`.
pub fn error_for(wire: Wire, message: &[u8]) -> Vec<u8> {
    match wire {
        Wire::Text => b"SERVER_ERROR out of memory writing get response\r\n".to_vec(),
        Wire::Binary => {
            // The code and the opaque of the request come back, with the status "out of memory".
            let mut packet = message[..24].to_vec();
            packet[2..12].copy_from_slice(&[0, 0, 0, 0, 0, 0x82, 0, 0, 0, 13]);
            packet[16..24].fill(0);
            packet.extend_from_slice(b"Out of memory");
            packet
        }
        Wire::Resp => {
            let error = b"-LOADING the records are being loaded\r\n";
            match message[0] {
                // The last value of several.
                b'*' => with_last(message, |_, array| array.extend_from_slice(error)),
                _ => error.to_vec(),
            }
        }
        Wire::Records => b"\x15\x03\x03\x00\x02\x02\x28".to_vec(),
    }
}

/// The value in `message` so many times in place of once.
pub fn repeated(wire: Wire, message: &[u8], times: usize) -> Vec<u8> {
    match (wire, message.first()) {
        (Wire::Resp, Some(b'*')) if resp_kind(message) == Kind::Value => with_last(message, |last, array| {
            (0..times).for_each(|_| array.extend_from_slice(last));
            let line = line(array).expect("an array has a first line").len();
            let count = number(&array[1..line]).expect("it says how many values it has") + times - 1;
            array.splice(1..line, count.to_string().into_bytes());
        }),
        _ => message.repeat(times),
    }
}

/// An array of RESP whose last value is replaced by what `write` appends.
fn with_last(array: &[u8], write: impl FnOnce(&[u8], &mut Vec<u8>)) -> Vec<u8> {
    let mut at = line(array).expect("an array has a first line").len() + 2;
    while let Some(len) = resp_len(&array[at..]).filter(|len| at + len < array.len()) {
        at += len;
    }
    let mut changed = array[..at].to_vec();
    write(&array[at..], &mut changed);
    changed
}

/// A reply that is whole and that was not asked for.
pub fn unasked(wire: Wire, which: u64) -> Vec<u8> {
    let texts: &[&[u8]] = &[
        b"STORED\r\n",
        b"END\r\n",
        b"17\r\n",
        b"HD\r\n",
        b"SERVER_ERROR nobody asked\r\n",
        b"NOT_FOUND\r\n",
    ];
    let resps: &[&[u8]] =
        &[b"+OK\r\n", b":17\r\n", b"$-1\r\n", b"-ERR nobody asked\r\n", b">2\r\n+message\r\n+hello\r\n"];
    match wire {
        Wire::Text => texts[which as usize % texts.len()].to_vec(),
        Wire::Resp => resps[which as usize % resps.len()].to_vec(),
        Wire::Binary => {
            let mut packet = vec![0; 24];
            // Some code, and some opaque that may have been asked with.
            (packet[0], packet[1], packet[15]) = (0x81, (which % 0x25) as u8, (which % 5) as u8);
            packet
        }
        // A warning that TLS 1.3 does not know any more.
        Wire::Records => b"\x15\x03\x03\x00\x02\x01\x5a".to_vec(),
    }
}

/// The message with fields at their limits, which the protocol allows.
pub fn with_odd_fields(wire: Wire, message: &[u8], which: u64) -> Vec<u8> {
    let mut odd = message.to_vec();
    match wire {
        Wire::Binary => match which % 3 {
            // memcached -C keeps no CAS unique.
            0 => odd[16..24].fill(0),
            1 => odd[16..24].fill(0xff),
            _ => odd[5] = 0,
        },
        Wire::Text if message.starts_with(b"VALUE ") => {
            let line = line(message).expect("it is whole");
            let mut words: Vec<Vec<u8>> = line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            match (which % 3, words.get_mut(4)) {
                (0, Some(cas)) => *cas = b"0".to_vec(),
                (1, Some(cas)) => *cas = u64::MAX.to_string().into_bytes(),
                _ => words[2] = u32::MAX.to_string().into_bytes(),
            }
            odd = [words.join(&b' '), message[line.len()..].to_vec()].concat();
        }
        Wire::Text if message.starts_with(b"VA ") => {
            let line = line(message).expect("it is whole");
            let flags = line.split(|byte| *byte == b' ').map(|word| match word.first() {
                Some(b'c') => {
                    [b"c0".to_vec(), format!("c{}", u64::MAX).into_bytes()][which as usize % 2].clone()
                }
                _ => word.to_vec(),
            });
            odd = [flags.collect::<Vec<_>>().join(&b' '), message[line.len()..].to_vec()].concat();
        }
        Wire::Text if message.first().is_some_and(u8::is_ascii_digit) => {
            odd = format!("{}\r\n", u64::MAX).into_bytes();
        }
        Wire::Resp if message[0] == b':' => {
            odd =
                [&b":-9223372036854775808\r\n"[..], b":9223372036854775807\r\n"][which as usize % 2].to_vec();
        }
        _ => {}
    }
    odd
}

/// The error of a node that does not serve a slot, or not now: to any node, to itself, to slots and nodes that there are not; or that
/// of a server that does not serve the request now.
pub fn redirect(draws: &mut Draws, slots: &[u16]) -> Vec<u8> {
    let slot = draws.one_of(slots);
    let node = draws.below(3);
    let words = match draws.below(17) {
        0..4 => format!("MOVED {slot} 127.0.0.{node}:11211"),
        4..6 => format!("ASK {slot} 127.0.0.{node}:11211"),
        6 => format!("MOVED {slot} :11211"),
        7 => format!("MOVED {slot} ?:11211"),
        8 => format!("MOVED {slot} 127.0.0.77:1"),
        9 => "MOVED 99999 127.0.0.1:11211".to_owned(),
        10 => "TRYAGAIN Multiple keys request during rehashing of slot".to_owned(),
        11 => "CLUSTERDOWN The cluster is down".to_owned(),
        12 => "READONLY You can't write against a read only replica.".to_owned(),
        13 => "MASTERDOWN Link with MASTER is down".to_owned(),
        14 => "BUSY Redis is busy running a script.".to_owned(),
        15 => "BUSYKEY Target key name already exists.".to_owned(),
        _ => "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
    };
    format!("-{words}\r\n").into_bytes()
}
