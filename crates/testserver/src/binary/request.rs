//! memcached's binary protocol from the server's side: bytes become requests.
//!
//! Follows `protocol-binary.txt` and, where that is silent, what memcached 1.6.18 does.

use crate::contract::{ParserStep, Silence};
use crate::copies::MARK;
use crate::store::KEY_MAX_BYTES;
use pummel_logic::protocol::Verb;

/// First byte of a request.
pub(crate) const REQUEST: u8 = 0x80;

pub(super) const HEADER_BYTES: usize = 24;

/// A buffer that was needed once is kept up to this size.
const KEEP_BYTES: usize = 64 * 1024;

/// Effect of a command; its quiet form and the one that repeats the key have fields of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    Get,
    GetAndTouch,
    Touch,
    /// Set, add, replace, append or prepend; a set or replace with a CAS unique is a cas.
    Store(Verb),
    /// Incr or decr.
    Count(Verb),
    Delete,
    Flush,
    Noop,
    Version,
    Stat,
    Quit,
    SaslList,
    SaslAuth,
    SaslStep,
}

/// Command of an operation code.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryCommand {
    pub(super) kind: CommandKind,
    pub(super) name: &'static str,
    pub(super) quiet: bool,
    pub(super) with_key: bool,
}

impl BinaryCommand {
    fn of(opcode: u8) -> Option<BinaryCommand> {
        let command = |kind, name, quiet, with_key| Some(BinaryCommand { kind, name, quiet, with_key });
        let loud = |kind, name| command(kind, name, false, false);
        let quiet = |kind, name| command(kind, name, true, false);
        match opcode {
            0x00 => loud(CommandKind::Get, "get"),
            0x01 => loud(CommandKind::Store(Verb::Set), "set"),
            0x02 => loud(CommandKind::Store(Verb::Add), "add"),
            0x03 => loud(CommandKind::Store(Verb::Replace), "replace"),
            0x04 => loud(CommandKind::Delete, "delete"),
            0x05 => loud(CommandKind::Count(Verb::Incr), "incr"),
            0x06 => loud(CommandKind::Count(Verb::Decr), "decr"),
            0x07 => loud(CommandKind::Quit, "quit"),
            0x08 => loud(CommandKind::Flush, "flush_all"),
            0x09 => quiet(CommandKind::Get, "getq"),
            0x0a => loud(CommandKind::Noop, "noop"),
            0x0b => loud(CommandKind::Version, "version"),
            0x0c => command(CommandKind::Get, "getk", false, true),
            0x0d => command(CommandKind::Get, "getkq", true, true),
            0x0e => loud(CommandKind::Store(Verb::Append), "append"),
            0x0f => loud(CommandKind::Store(Verb::Prepend), "prepend"),
            0x10 => loud(CommandKind::Stat, "stats"),
            0x11 => quiet(CommandKind::Store(Verb::Set), "setq"),
            0x12 => quiet(CommandKind::Store(Verb::Add), "addq"),
            0x13 => quiet(CommandKind::Store(Verb::Replace), "replaceq"),
            0x14 => quiet(CommandKind::Delete, "deleteq"),
            0x15 => quiet(CommandKind::Count(Verb::Incr), "incrq"),
            0x16 => quiet(CommandKind::Count(Verb::Decr), "decrq"),
            0x17 => quiet(CommandKind::Quit, "quitq"),
            0x18 => quiet(CommandKind::Flush, "flush_allq"),
            0x19 => quiet(CommandKind::Store(Verb::Append), "appendq"),
            0x1a => quiet(CommandKind::Store(Verb::Prepend), "prependq"),
            0x1c => loud(CommandKind::Touch, "touch"),
            0x1d => loud(CommandKind::GetAndTouch, "gat"),
            0x1e => quiet(CommandKind::GetAndTouch, "gatq"),
            0x20 => loud(CommandKind::SaslList, "sasl_list"),
            0x21 => loud(CommandKind::SaslAuth, "sasl_auth"),
            0x22 => loud(CommandKind::SaslStep, "sasl_step"),
            0x23 => command(CommandKind::GetAndTouch, "gatk", false, true),
            0x24 => command(CommandKind::GetAndTouch, "gatkq", true, true),
            _ => None,
        }
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketHeader {
    pub(super) opcode: u8,
    pub(super) key_bytes: usize,
    pub(super) extras_bytes: usize,
    pub(super) body_bytes: usize,
    /// Bytes that are sent back as they came.
    pub(super) opaque: [u8; 4],
    pub(super) cas: u64,
}

impl PacketHeader {
    fn read(bytes: &[u8; HEADER_BYTES]) -> PacketHeader {
        let [_, opcode, k0, k1, extras, _, _, _, b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = *bytes;
        PacketHeader {
            opcode,
            key_bytes: usize::from(u16::from_be_bytes([k0, k1])),
            extras_bytes: usize::from(extras),
            body_bytes: u32::from_be_bytes([b0, b1, b2, b3]) as usize,
            opaque: [o0, o1, o2, o3],
            cas: u64::from_be_bytes(cas),
        }
    }

    /// Whether the lengths contradict each other; what follows such a header cannot be found.
    fn is_broken(&self) -> bool {
        self.key_bytes + self.extras_bytes > self.body_bytes || self.key_bytes > KEY_MAX_BYTES
    }
}

/// Bytes that came after a header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// Extras, key and value.
    Whole { extras: &'a [u8], key: &'a [u8], value: &'a [u8] },
    /// The value was too large, and skipped.
    TooLarge { key: &'a [u8] },
    /// The lengths contradict each other.
    Broken,
}

/// Request of a binary connection.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(super) header: PacketHeader,
    pub(super) command: Option<BinaryCommand>,
    pub(super) body: Body<'a>,
}

impl Request<'_> {
    pub(crate) fn verb(&self) -> &'static str {
        match (self.command, self.body) {
            (_, Body::Broken) | (None, _) => "error",
            (Some(command), _) => command.name,
        }
    }

    /// Whether the request carries the mark of copies.
    pub(crate) fn is_copy(&self) -> bool {
        self.header.opaque == MARK
    }

    /// Whether the lengths contradict each other, so that what follows the request cannot be found.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.body, Body::Broken)
    }

    pub(crate) fn silence(&self) -> Silence {
        if self.command.is_some_and(|command| command.quiet) { Silence::Quiet } else { Silence::Never }
    }
}

/// The state of one connection's parser: the cut end of a packet.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    bytes: Vec<u8>,
    /// Whether the last step lent `bytes` out.
    lent: bool,
    /// Bytes of a value that is too large which are still to be skipped.
    skip: usize,
}

impl Parser {
    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(crate) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        item_max_bytes: usize,
    ) -> ParserStep<Request<'s>> {
        if std::mem::take(&mut self.lent) {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_BYTES);
        }
        if self.bytes.is_empty() {
            match input.first() {
                None => return ParserStep::Need,
                Some(&REQUEST) => {}
                Some(_) => return ParserStep::Close,
            }
            if let Some(head) = input.first_chunk::<HEADER_BYTES>() {
                let header = PacketHeader::read(head);
                let (kept_bytes, skip) = extent(&header, item_max_bytes);
                if skip == 0
                    && let Some((packet, rest)) = input.split_at_checked(kept_bytes)
                {
                    *input = rest;
                    return ParserStep::Request(request(header, packet, false));
                }
            }
        }
        self.next_cut(input, item_max_bytes)
    }

    /// Takes the next step of a packet that arrives in pieces, or of which bytes are skipped.
    fn next_cut<'s>(&'s mut self, input: &mut &[u8], item_max_bytes: usize) -> ParserStep<Request<'s>> {
        self.fill(HEADER_BYTES, input);
        let Some(head) = self.bytes.first_chunk::<HEADER_BYTES>() else { return ParserStep::Need };
        let header = PacketHeader::read(head);
        let (kept_bytes, skip) = extent(&header, item_max_bytes);
        if self.bytes.len() < kept_bytes {
            self.fill(kept_bytes, input);
            if self.bytes.len() < kept_bytes {
                return ParserStep::Need;
            }
            self.skip = skip;
        } else if kept_bytes == HEADER_BYTES && self.skip == 0 {
            self.skip = skip;
        }
        let skipped = input.len().min(self.skip);
        *input = &input[skipped..];
        self.skip -= skipped;
        if self.skip > 0 {
            return ParserStep::Need;
        }
        self.lent = true;
        ParserStep::Request(request(header, &self.bytes, skip > 0))
    }

    /// Takes input until there are `count` bytes.
    fn fill(&mut self, count: usize, input: &mut &[u8]) {
        let wanted = count.saturating_sub(self.bytes.len()).min(input.len());
        let (bytes, rest) = input.split_at(wanted);
        self.bytes.extend_from_slice(bytes);
        *input = rest;
    }
}

/// Numbers of bytes of a packet that are kept, and of those after them that are skipped.
fn extent(header: &PacketHeader, item_max_bytes: usize) -> (usize, usize) {
    if header.is_broken() {
        return (HEADER_BYTES, 0);
    }
    let fixed_bytes = header.key_bytes + header.extras_bytes;
    if header.body_bytes - fixed_bytes > item_max_bytes {
        (HEADER_BYTES + fixed_bytes, header.body_bytes - fixed_bytes)
    } else {
        (HEADER_BYTES + header.body_bytes, 0)
    }
}

fn request(header: PacketHeader, packet: &[u8], skipped: bool) -> Request<'_> {
    let body = if header.is_broken() {
        Body::Broken
    } else {
        let (extras, rest) = packet[HEADER_BYTES..].split_at(header.extras_bytes);
        let (key, value) = rest.split_at(header.key_bytes);
        if skipped { Body::TooLarge { key } } else { Body::Whole { extras, key, value } }
    };
    Request { header, command: BinaryCommand::of(header.opcode), body }
}
