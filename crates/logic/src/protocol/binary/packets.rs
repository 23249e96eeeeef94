//! Packets of the binary protocol: their codes, their header, and their way out of the stream of bytes.

use crate::connection::outbox::Outbox;
use crate::protocol::Malformed;

/// Length of the header of every packet.
pub(super) const HEADER_BYTES: usize = 24;

/// Longest key: the field has 16 bits, memcached takes as many as in its text protocol.
pub(super) const KEY_MAX_BYTES: usize = 250;

/// Most bytes that are kept of a reply that is no item; no server says more than this.
pub(super) const KEPT_MAX_BYTES: usize = 512;

/// First byte of a response.
pub(super) const RESPONSE: u8 = 0x81;

/// Command codes. The quiet form of a read is of use only in a multi-get, with the key in the reply.
pub(super) mod opcode {
    pub const GET: u8 = 0x00;
    pub const SET: u8 = 0x01;
    pub const ADD: u8 = 0x02;
    pub const REPLACE: u8 = 0x03;
    pub const DELETE: u8 = 0x04;
    pub const INCREMENT: u8 = 0x05;
    pub const DECREMENT: u8 = 0x06;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const GETKQ: u8 = 0x0d;
    pub const APPEND: u8 = 0x0e;
    pub const PREPEND: u8 = 0x0f;
    pub const SETQ: u8 = 0x11;
    pub const ADDQ: u8 = 0x12;
    pub const REPLACEQ: u8 = 0x13;
    pub const DELETEQ: u8 = 0x14;
    pub const INCREMENTQ: u8 = 0x15;
    pub const DECREMENTQ: u8 = 0x16;
    pub const APPENDQ: u8 = 0x19;
    pub const PREPENDQ: u8 = 0x1a;
    pub const TOUCH: u8 = 0x1c;
    pub const GAT: u8 = 0x1d;
    pub const SASL_AUTH: u8 = 0x21;
    pub const GATKQ: u8 = 0x24;
}

/// Response codes of servers.
pub(super) mod status {
    pub const DONE: u16 = 0x00;
    pub const NOT_FOUND: u16 = 0x01;
    pub const EXISTS: u16 = 0x02;
    pub const TOO_LARGE: u16 = 0x03;
    pub const INVALID: u16 = 0x04;
    pub const NOT_STORED: u16 = 0x05;
    pub const NOT_A_NUMBER: u16 = 0x06;
    pub const AUTH_FAILED: u16 = 0x20;
    pub const AUTH_CONTINUES: u16 = 0x21;
    pub const OUT_OF_MEMORY: u16 = 0x82;
    /// Codes from here to [`TEMPORARY`] are not memcached's own, but those of its relatives: internal error, busy,
    /// temporary failure.
    pub const INTERNAL: u16 = 0x84;
    pub const BUSY: u16 = 0x85;
    pub const TEMPORARY: u16 = 0x86;
}

/// The parts of a request's header that differ in kind.
#[derive(Clone, Copy)]
pub(super) struct RequestHeader {
    pub(super) opcode: u8,
    pub(super) opaque: u32,
    pub(super) cas: u64,
}

impl RequestHeader {
    /// Writes the header of a request whose extras, key and value have these lengths.
    #[inline]
    pub(super) fn push(self, extras_bytes: u8, key_bytes: usize, value_bytes: usize, out: &mut Outbox) {
        let mut header = [0; HEADER_BYTES];
        header[0] = 0x80;
        header[1] = self.opcode;
        header[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
        header[4] = extras_bytes;
        let body_bytes = usize::from(extras_bytes) + key_bytes + value_bytes;
        header[8..12].copy_from_slice(&(body_bytes as u32).to_be_bytes());
        header[12..16].copy_from_slice(&self.opaque.to_be_bytes());
        header[16..24].copy_from_slice(&self.cas.to_be_bytes());
        out.push(&header);
    }
}

/// The header of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyHeader {
    pub(super) opcode: u8,
    extras_bytes: u8,
    key_bytes: u16,
    pub(super) status: u16,
    pub(super) body_bytes: u32,
    pub(super) opaque: u32,
    pub(super) cas: u64,
}

impl ReplyHeader {
    #[inline]
    fn read(bytes: &[u8; HEADER_BYTES]) -> ReplyHeader {
        let [_, opcode, k0, k1, extras_bytes, _, s0, s1, b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = *bytes;
        ReplyHeader {
            opcode,
            extras_bytes,
            key_bytes: u16::from_be_bytes([k0, k1]),
            status: u16::from_be_bytes([s0, s1]),
            body_bytes: u32::from_be_bytes([b0, b1, b2, b3]),
            opaque: u32::from_be_bytes([o0, o1, o2, o3]),
            cas: u64::from_be_bytes(cas),
        }
    }

    #[inline]
    pub(super) fn is_read(&self) -> bool {
        matches!(self.opcode, opcode::GET | opcode::GAT | opcode::GETKQ | opcode::GATKQ)
    }

    /// Whether a value follows that is to be passed on.
    #[inline]
    pub(super) fn is_item(&self) -> bool {
        self.is_read() && self.status == status::DONE
    }

    #[inline]
    pub(super) fn is_quiet_change(&self) -> bool {
        matches!(self.opcode, opcode::SETQ..=opcode::DECREMENTQ | opcode::APPENDQ | opcode::PREPENDQ)
    }

    /// Bytes of extras and key.
    #[inline]
    pub(super) fn fixed_bytes(&self) -> usize {
        usize::from(self.extras_bytes) + usize::from(self.key_bytes)
    }

    /// Checks that the lengths agree and that such a reply can come. Returns the number of bytes after the header that
    /// the codec needs in one piece.
    #[inline]
    fn check(&self) -> Result<usize, Malformed> {
        let body_bytes = self.body_bytes as usize;
        if self.fixed_bytes() > body_bytes || usize::from(self.key_bytes) > KEY_MAX_BYTES {
            return Err(Malformed("the lengths in a binary reply contradict each other"));
        }
        if self.is_item() {
            return match self.extras_bytes {
                4 => Ok(self.fixed_bytes()),
                _ => Err(Malformed("a value in a binary reply comes without its four bytes of flags")),
            };
        }
        let number =
            matches!(self.opcode, opcode::INCREMENT | opcode::DECREMENT) && self.status == status::DONE;
        if number && (self.fixed_bytes() > 0 || body_bytes != 8) {
            return Err(Malformed("a number in a binary reply is not of eight bytes"));
        }
        let known = matches!(self.opcode, opcode::GET..=opcode::DECREMENT | opcode::NOOP | opcode::VERSION)
            || matches!(self.opcode, opcode::GETKQ..=opcode::PREPEND | opcode::TOUCH | opcode::GAT)
            || matches!(self.opcode, opcode::SASL_AUTH | opcode::GATKQ)
            || self.is_quiet_change();
        if known {
            Ok(body_bytes.min(KEPT_MAX_BYTES))
        } else {
            Err(Malformed("a binary reply to a command that was not sent"))
        }
    }
}

/// Bytes as packets: a header with what belongs to it, then the value in as many pieces as it arrives in.
#[derive(Debug)]
pub(super) struct Packets {
    /// The beginning of a packet that arrives in pieces.
    cut: Option<Box<Cut>>,
    /// Bytes of the packet that are still to come.
    left: u32,
    place: PacketPosition,
}

#[derive(Debug, Default)]
pub(super) struct Cut {
    bytes: Vec<u8>,
    /// Whether the beginning is complete and was shown; its bytes are kept until the next packet begins.
    shown: bool,
}

/// Position of the next byte in the stream of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketPosition {
    /// In a header, its extras or its key.
    Head,
    /// In a value that is passed on.
    Value,
    /// In bytes that are dropped.
    Rest,
}

/// The next part of the stream.
pub(super) enum PacketEvent<'i> {
    /// All input was taken.
    Need,
    /// A packet begins. The bytes after the header are here where they lie in the input, else in [`Packets::kept`].
    Head(ReplyHeader, Option<&'i [u8]>),
    /// Some bytes of the packet's value.
    Value(&'i [u8]),
    /// The packet's value is complete.
    ValueEnd,
}

impl Packets {
    pub(super) fn new() -> Packets {
        Packets { cut: None, left: 0, place: PacketPosition::Head }
    }

    #[inline]
    pub(super) fn take<'i>(&mut self, input: &mut &'i [u8]) -> Result<PacketEvent<'i>, Malformed> {
        if self.place != PacketPosition::Head {
            if self.left > 0 && input.is_empty() {
                return Ok(PacketEvent::Need);
            }
            let (bytes, rest) = input.split_at(input.len().min(self.left as usize));
            *input = rest;
            self.left -= bytes.len() as u32;
            match (self.place, bytes.is_empty()) {
                (PacketPosition::Value, false) => return Ok(PacketEvent::Value(bytes)),
                (PacketPosition::Value, true) => {
                    self.place = PacketPosition::Head;
                    return Ok(PacketEvent::ValueEnd);
                }
                _ if self.left > 0 => return Ok(PacketEvent::Need),
                _ => self.place = PacketPosition::Head,
            }
        }
        self.take_head(input)
    }

    #[inline]
    fn take_head<'i>(&mut self, input: &mut &'i [u8]) -> Result<PacketEvent<'i>, Malformed> {
        if self.cut.as_ref().is_none_or(|cut| cut.shown) {
            let Some(&first) = input.first() else { return Ok(PacketEvent::Need) };
            if first != RESPONSE {
                return Err(foreign(first));
            }
            if let Some((head, rest)) = input.split_first_chunk::<HEADER_BYTES>() {
                let header = ReplyHeader::read(head);
                let kept_bytes = header.check()?;
                if let Some((kept, rest)) = rest.split_at_checked(kept_bytes) {
                    *input = rest;
                    self.begin(&header, kept_bytes);
                    return Ok(PacketEvent::Head(header, Some(kept)));
                }
            }
        }
        self.take_cut_head(input)
    }

    /// A packet that lies in `input` as a whole, where no other has begun: its header, and what follows it.
    #[inline]
    pub(super) fn whole<'i>(&self, input: &&'i [u8]) -> Option<(ReplyHeader, &'i [u8])> {
        if self.place != PacketPosition::Head || self.cut.as_ref().is_some_and(|cut| !cut.shown) {
            return None;
        }
        let (head, rest) =
            input.split_first_chunk::<HEADER_BYTES>().filter(|(head, _)| head[0] == RESPONSE)?;
        let header = ReplyHeader::read(head);
        header.check().ok()?;
        Some((header, rest.get(header.body_bytes as usize..)?))
    }

    /// Takes the beginning of a packet that arrives in pieces.
    fn take_cut_head<'i>(&mut self, input: &mut &'i [u8]) -> Result<PacketEvent<'i>, Malformed> {
        let cut = self.cut.get_or_insert_default();
        if cut.shown {
            cut.shown = false;
            cut.bytes.clear();
        }
        cut.fill(HEADER_BYTES, input);
        let Some(head) = cut.bytes.first_chunk::<HEADER_BYTES>() else { return Ok(PacketEvent::Need) };
        let header = ReplyHeader::read(head);
        let kept_bytes = header.check()?;
        cut.fill(HEADER_BYTES + kept_bytes, input);
        if cut.bytes.len() < HEADER_BYTES + kept_bytes {
            return Ok(PacketEvent::Need);
        }
        cut.shown = true;
        self.begin(&header, kept_bytes);
        Ok(PacketEvent::Head(header, None))
    }

    #[inline]
    fn begin(&mut self, header: &ReplyHeader, kept_bytes: usize) {
        self.left = header.body_bytes - kept_bytes as u32;
        self.place = if header.is_item() { PacketPosition::Value } else { PacketPosition::Rest };
    }

    /// Drops the value that follows.
    pub(super) fn drop_value(&mut self) {
        self.place = PacketPosition::Rest;
    }

    /// The bytes after the header, of the packet that [`Packets::take`] showed last.
    #[inline]
    pub(super) fn kept<'s>(&'s self, kept: Option<&'s [u8]>) -> &'s [u8] {
        kept.unwrap_or_else(|| self.cut.as_ref().map_or(&[], |cut| &cut.bytes[HEADER_BYTES..]))
    }
}

impl Cut {
    /// Takes input until there are `count` bytes.
    fn fill(&mut self, count: usize, input: &mut &[u8]) {
        let wanted = count.saturating_sub(self.bytes.len()).min(input.len());
        let (bytes, rest) = input.split_at(wanted);
        self.bytes.extend_from_slice(bytes);
        *input = rest;
    }
}

/// The reason why no packet of the protocol begins with this byte. The check looks at the first byte alone, since the
/// rest may never come.
#[cold]
fn foreign(first: u8) -> Malformed {
    Malformed(match first {
        b'-' | b'+' | b'$' | b':' | b'*' | b'%' | b'_' => {
            "the reply looks like RESP (Redis, Valkey), not like memcached's binary protocol"
        }
        0x80 => "the peer sends requests of the binary protocol, not replies",
        0x15 | 0x16 => "the reply looks like TLS, and this connection has none",
        b'A'..=b'Z' => "the reply looks like memcached's text protocol, not like its binary protocol",
        _ => "a binary reply does not begin with its magic byte",
    })
}
