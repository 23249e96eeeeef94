//! The protocols that a Plan can name, each with its properties, codec and handshake.

use std::sync::Arc;

use super::address::{PORT, RESP_PORT};
use crate::protocol::binary::{Binary, PlainBinary};
use crate::protocol::handshake::{Credentials, Handshake};
use crate::protocol::meta::Meta;
use crate::protocol::resp::Resp;
use crate::protocol::resp::template::Template;
use crate::protocol::text::Text;
use crate::protocol::{COMMANDS_MAX, Codec, Refused, ServerError, Verb};

crate::words! {
    /// A protocol between pummel and the servers.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Protocol {
        /// memcached's text protocol.
        Text = "text",
        /// memcached's meta commands.
        Meta = "meta",
        /// memcached's binary protocol.
        Binary = "binary",
        /// RESP2, of Redis and Valkey.
        Resp2 = "resp2",
        /// RESP3, of Redis and Valkey.
        Resp3 = "resp3",
    }
}

/// The kind of server that speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFamily {
    /// memcached, and other servers that speak one of its protocols.
    Memcached,
    /// Redis, Valkey, and other servers that speak RESP.
    Resp,
    /// Servers of another kind, whose only operations are those in the row of their protocol.
    Other,
}

/// The properties of one protocol.
#[derive(Debug)]
pub struct ProtocolRow {
    /// The description of the protocol in `--help`.
    pub about: &'static str,
    /// The port of a server whose address in the Plan has none.
    pub default_port: u16,
    /// The kind of server that speaks the protocol.
    pub family: ServerFamily,
    /// The operations that the protocol has.
    pub verbs: &'static [Verb],
}

/// The operations of memcached's protocols: all verbs that are declared before [`Verb::Hget`], the first verb of RESP
/// alone.
const MEMCACHED_VERBS: &[Verb] = Verb::ALL.split_at(Verb::Hget as usize).0;

/// The operations of RESP servers; the commands of the user stand behind the others.
const RESP_VERBS: [Verb; 14 + COMMANDS_MAX] = {
    let mut verbs = [Verb::Command; 14 + COMMANDS_MAX];
    let own = [
        Verb::Get,
        Verb::Gat,
        Verb::Set,
        Verb::Add,
        Verb::Replace,
        Verb::Append,
        Verb::Incr,
        Verb::Decr,
        Verb::Delete,
        Verb::Touch,
        Verb::Version,
        Verb::Hget,
        Verb::Hset,
        Verb::Mset,
    ];
    let mut place = 0;
    while place < verbs.len() {
        verbs[place] = match place.checked_sub(own.len()) {
            None => own[place],
            Some(command) => Verb::ALL[Verb::Command as usize + command],
        };
        place += 1;
    }
    verbs
};

/// The properties of memcached's text protocol.
const MEMCACHED: ProtocolRow = ProtocolRow {
    about: "memcached's text protocol",
    default_port: PORT,
    family: ServerFamily::Memcached,
    verbs: MEMCACHED_VERBS,
};

/// The properties of RESP2.
const RESP: ProtocolRow = ProtocolRow {
    about: "RESP2, of Redis and Valkey",
    default_port: RESP_PORT,
    family: ServerFamily::Resp,
    verbs: &RESP_VERBS,
};

/// Options for the codec of a Plan. The protocol that an option belongs to stands in brackets; codecs of other
/// protocols ignore it.
#[derive(Clone, Debug, Default)]
pub struct CodecOptions {
    /// Whether command lines end with a blank, as mcperf writes them; not those of reads and of requests without
    /// reply (text).
    pub blanks: bool,
    /// Whether `set` is sent as `xxx`, which no server knows (mcperf's bogus method); includes `blanks` (text).
    pub bogus_sets: bool,
    /// Whether all packets carry the opaque 0, and a read of several keys is sent as that many plain reads (binary).
    pub plain_packets: bool,
    /// The commands of the user, by [`Verb::command`]; `None` without any (RESP).
    pub commands: Option<Arc<Vec<Template>>>,
    /// Length in bytes of the hash field at the end of a key; 0 if values are not kept in hashes (RESP).
    pub field_bytes: u32,
}

/// A function that is generic over the codec. [`Protocol::with_codec`] calls it with the codec of a protocol.
pub trait WithCodec {
    /// The value that the function returns.
    type Output;

    /// Runs the function. `codec` has the options of the Plan; the codec of each connection is made from it by
    /// [`Codec::renew`].
    fn with_codec<C: Codec + Sync>(self, codec: C) -> Self::Output;
}

impl Protocol {
    /// The properties of this protocol.
    pub fn row(self) -> &'static ProtocolRow {
        match self {
            Protocol::Text => &MEMCACHED,
            Protocol::Meta => const { &ProtocolRow { about: "memcached's meta commands", ..MEMCACHED } },
            Protocol::Binary => const { &ProtocolRow { about: "memcached's binary protocol", ..MEMCACHED } },
            Protocol::Resp2 => &RESP,
            Protocol::Resp3 => {
                const { &ProtocolRow { about: "RESP3, of Redis (6.0 and later) and Valkey", ..RESP } }
            }
        }
    }

    /// Calls `work` with the codec of this protocol and these options.
    pub fn with_codec<W: WithCodec>(self, options: CodecOptions, work: W) -> W::Output {
        match self {
            Protocol::Text if options.bogus_sets => work.with_codec(Text::with_bogus_sets()),
            Protocol::Text if options.blanks => work.with_codec(Text::with_blanks()),
            Protocol::Text => work.with_codec(Text::new()),
            Protocol::Meta => work.with_codec(Meta::new()),
            Protocol::Binary if options.plain_packets => work.with_codec(PlainBinary::new()),
            Protocol::Binary => work.with_codec(Binary::new()),
            Protocol::Resp2 => work.with_codec(resp::<2>(options)),
            Protocol::Resp3 => work.with_codec(resp::<3>(options)),
        }
    }

    /// The handshake that begins every connection: it sends the login, if there is one, and selects the database
    /// (RESP).
    ///
    /// # Errors
    /// Returns [`Refused`] for a login that the protocol cannot express.
    pub fn handshake(self, login: Option<Credentials<'_>>, database: u32) -> Result<Handshake, Refused> {
        match (self, login) {
            (Protocol::Resp2, login) => Ok(Handshake::resp2(login, database)),
            (Protocol::Resp3, login) => Ok(Handshake::resp3(login, database)),
            (_, None) => Ok(Handshake::none()),
            (Protocol::Text | Protocol::Meta, Some(login)) => Handshake::text(login),
            (Protocol::Binary, Some(login)) => Handshake::binary(login),
        }
    }

    /// Kind of an error that a server of the protocol sent with this message.
    pub fn error_of(self, message: &[u8]) -> ServerError {
        match self {
            Protocol::Resp2 | Protocol::Resp3 => ServerError::of_resp(message),
            Protocol::Text | Protocol::Meta => ServerError::of_text(message),
            Protocol::Binary => ServerError::of_binary(message),
        }
    }

    /// Whether the protocol is a version of RESP.
    pub fn is_resp(self) -> bool {
        self.row().family == ServerFamily::Resp
    }
}

fn resp<const VERSION: u8>(options: CodecOptions) -> Resp<VERSION> {
    let codec = options.commands.map_or_else(Resp::new, Resp::with_commands);
    codec.keeping_hashes(options.field_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::contract;

    struct ReadsEqually<'a>(&'a [u8]);

    impl WithCodec for ReadsEqually<'_> {
        type Output = ();

        fn with_codec<C: Codec + Sync>(self, codec: C) {
            contract::fuzz_decode(|| codec.renew(), self.0);
        }
    }

    #[test]
    fn every_protocol_has_a_codec_that_reads_cut_bytes_as_whole_ones() {
        for protocol in Protocol::ALL {
            for bytes in [&b"VALUE a 0 1\r\nb\r\nEND\r\n"[..], b"$1\r\nb\r\n", b"\x81\0\0\0", b"HD\r\n", b""]
            {
                protocol.with_codec(CodecOptions::default(), ReadsEqually(bytes));
            }
        }
    }

    #[test]
    fn every_protocol_reads_and_stores() {
        for protocol in Protocol::ALL {
            for verb in [Verb::Get, Verb::Set] {
                assert!(protocol.row().verbs.contains(&verb), "{} has no {}", protocol.name(), verb.name());
            }
        }
    }
}
