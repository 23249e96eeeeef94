//! What one worker's clients have in common: the records, the work of the phase, and room to make one request in.

use crate::dist::Dist;
use crate::inflight::Care;
use crate::plan::{Data, Load, Mix, Work};
use crate::rng::{Stream, unit};
use crate::time::Nanos;
use crate::wire::{Keys, Op, Value, Verb};
use crate::workload::key::{KEY_MAX_BYTES, KeyBuffer, KeyMaker, Space, Spaces};
use crate::workload::mix::MixTable;
use crate::workload::popularity::{Chooser, Popularity};
use crate::workload::stale::{RunMark, Witness};
use crate::workload::value::{COUNTER, HEADER_BYTES, HeaderBuffer, PIECES_LIMIT_BYTES, ValueMaker, Version};

/// The longest expiry that memcached takes as a span and not as a date (`protocol.txt`, section "Expiration times").
const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;

/// What incr adds and decr takes away.
const DELTA: u64 = 1;

/// What one worker's clients have in common.
#[derive(Debug)]
pub struct Shared {
    keys: KeyMaker,
    values: ValueMaker,
    spaces: Spaces,
    expiry_s: Dist,
    /// Share of reads whose values are checked.
    verify: f64,
    /// Clients in the group, over all threads and agents.
    clients: u64,
    /// Servers that the clients are dealt to in turn.
    servers: u64,
    /// Counters are loaded without the blanks behind them.
    bare_counters: bool,
    task: Task,
    /// Which writes are known to be stored.
    pub(crate) witness: Witness,
    draft: Draft,
}

/// The work of a phase, made ready.
#[derive(Debug)]
enum Task {
    /// Nothing: connections are opened.
    Rest,
    /// The indexes to store: `spaces[n / records]` and so on, dealt to the clients in turn.
    Load(Vec<Space>),
    Mix(Box<Asking>),
}

#[derive(Debug)]
struct Asking {
    table: MixTable,
    chooser: Chooser,
    sequential: bool,
    multiget: u16,
    read_through: Option<Nanos>,
    noreply: bool,
}

/// The request that is being made.
#[derive(Debug)]
struct Draft {
    keys: Vec<u8>,
    ends: Vec<u32>,
    header: HeaderBuffer,
    key: KeyBuffer,
}

/// What a request writes, beside its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    pub(crate) key: u64,
    pub(crate) version: Version,
    pub(crate) cas: u64,
    pub(crate) expiry_bits: u64,
}

impl Shared {
    /// What the clients of a group of `clients` share, for these records; `verify` is the share of reads that are
    /// checked.
    pub fn new(
        keys: KeyMaker,
        values: ValueMaker,
        data: &Data,
        clients: u64,
        verify: f64,
        run: RunMark,
    ) -> Shared {
        Shared {
            spaces: keys.spaces(),
            keys,
            values,
            expiry_s: data.expiry_s.clone(),
            verify,
            clients,
            servers: 1,
            bare_counters: false,
            task: Task::Rest,
            witness: Witness::new(run),
            draft: Draft {
                keys: Vec::with_capacity(KEY_MAX_BYTES),
                ends: Vec::new(),
                header: [0; HEADER_BYTES],
                key: [0; KEY_MAX_BYTES],
            },
        }
    }

    /// The same for clients that are dealt to so many servers in turn, each of which is to have every record.
    pub fn over(mut self, servers: u64) -> Shared {
        self.servers = servers;
        self
    }

    /// The same, with counters that are loaded as bare numbers: Redis counts only what is a number from end to end, where
    /// memcached pads with blanks.
    pub fn counting_bare(mut self, bare: bool) -> Shared {
        self.bare_counters = bare;
        self
    }

    /// Makes the work of the next phase ready.
    pub fn begin(&mut self, work: &Work) {
        self.task = match work {
            Work::Load(load) => Task::Load(load_spaces(load)),
            Work::Mix(mix) => Task::Mix(Box::new(Asking::new(mix, self.spaces.records()))),
        };
    }

    /// How many records a load stores on each server.
    pub fn load_records(load: &Load, records: u64) -> u64 {
        load_spaces(load).len() as u64 * records
    }

    /// Keys and values as they are made and checked.
    pub fn values(&self) -> &ValueMaker {
        &self.values
    }

    /// Keys as they are made.
    pub fn keys(&self) -> &KeyMaker {
        &self.keys
    }

    /// The block that large values are ranges of.
    #[inline]
    pub fn block(&self) -> &[u8] {
        self.values.block()
    }

    /// Whether the server sent the key with this index. A protocol that does not repeat keys sends an empty one.
    #[inline]
    pub(crate) fn is_key(&mut self, index: u64, sent: &[u8]) -> bool {
        sent.is_empty() || self.keys.key(index, &mut self.draft.key) == sent
    }

    /// Whether this phase loads.
    #[inline]
    pub fn is_load(&self) -> bool {
        matches!(self.task, Task::Load(_))
    }

    /// The key that request `index` of client `number` loads; `None` when the phase is not for loading.
    #[inline]
    pub(crate) fn load_key(&self, index: u64, number: u64) -> Option<u64> {
        let Task::Load(spaces) = &self.task else { return None };
        // The clients of one server share its records out among them.
        let mates = mates(number, self.clients, self.servers);
        let place = index * mates + number / self.servers;
        let records = self.spaces.records();
        Some(self.spaces.index(spaces[(place / records) as usize], place % records))
    }

    /// The verb of a draw.
    #[inline]
    pub(crate) fn verb(&self, bits: u64) -> Verb {
        match &self.task {
            Task::Mix(asking) => asking.table.verb(bits),
            Task::Load(_) | Task::Rest => Verb::Set,
        }
    }

    /// The record of key `place` of request `index` of client `number`.
    #[inline]
    pub(crate) fn choose(&self, stream: &Stream, index: u64, place: u64, number: u64) -> u64 {
        let asking = self.asking();
        let turn = if asking.sequential { index * self.clients + number } else { index };
        asking.chooser.choose(stream, turn * u64::from(asking.multiget) + place)
    }

    /// The index of a plain record, a piece or a counter.
    #[inline]
    pub(crate) fn index(&self, space: Space, record: u64) -> u64 {
        self.spaces.index(space, record)
    }

    /// Whether reads are spread over more than the plain records.
    #[inline]
    pub(crate) fn has_spaces(&self) -> bool {
        self.asking().table.has_spaces()
    }

    /// The space that a read looks at.
    #[inline]
    pub(crate) fn space(&self, bits: u64) -> Space {
        self.asking().table.space(bits)
    }

    /// The key that client `number` adds pieces to in its turn, and how many bytes may come together there. Clients
    /// have keys of their own as far as there are enough.
    pub(crate) fn piece_key(&self, number: u64, turn: u64) -> (u64, u64) {
        let records = self.spaces.records();
        let place = (number + turn * self.clients) % records;
        (self.spaces.index(Space::Pieces, place), PIECES_LIMIT_BYTES / self.clients.div_ceil(records))
    }

    /// Bytes of a piece for this key.
    pub(crate) fn piece_bytes(&self, key: u64) -> u64 {
        self.values.len_of(key) as u64
    }

    /// Keys of a read.
    #[inline]
    pub(crate) fn multiget(&self) -> u16 {
        self.asking().multiget
    }

    /// How long after a miss the key is stored, if it is.
    #[inline]
    pub(crate) fn read_through(&self) -> Option<Nanos> {
        match &self.task {
            Task::Mix(asking) => asking.read_through,
            Task::Load(_) | Task::Rest => None,
        }
    }

    /// Whether anything may have to be done with the answer to a read of so many keys.
    #[inline]
    pub(crate) fn cares(&self, keys: u16) -> bool {
        self.verify > 0.0 || keys > 1
    }

    /// What is to be done with the answer to a read of so many keys.
    #[inline]
    pub(crate) fn care(&self, keys: u16, bits: u64) -> Care {
        if self.verify > 0.0 && unit(bits) < self.verify {
            Care::Verify
        } else if keys > 1 && self.read_through().is_some() {
            Care::Items
        } else {
            Care::None
        }
    }

    /// Begins a read; its keys follow.
    #[inline]
    pub(crate) fn begin_read(&mut self) {
        self.draft.keys.clear();
        self.draft.ends.clear();
    }

    /// Adds a key to the read.
    #[inline]
    pub(crate) fn add_key(&mut self, index: u64) {
        let key = self.keys.key(index, &mut self.draft.key);
        self.draft.keys.extend_from_slice(key);
        self.draft.ends.push(self.draft.keys.len() as u32);
    }

    /// A read of one key.
    #[inline]
    pub(crate) fn read_one(&mut self, verb: Verb, index: u64, expiry_bits: u64) -> Op<'_> {
        let expiry_s = self.expiry_of(verb, expiry_bits);
        Op { expiry_s, ..Op::new(verb, self.keys.key(index, &mut self.draft.key)) }
    }

    /// A read of the keys that were added.
    pub(crate) fn read_many(&self, verb: Verb, expiry_bits: u64) -> Op<'_> {
        let keys = Keys::Many { bytes: &self.draft.keys, ends: &self.draft.ends };
        Op { keys, expiry_s: self.expiry_of(verb, expiry_bits), ..Op::new(verb, &[]) }
    }

    /// Anything that is not a read, as a request.
    #[inline]
    pub(crate) fn write(&mut self, write: Write) -> Op<'_> {
        let expiry_s = self.expiry_of(write.verb, write.expiry_bits);
        let noreply =
            matches!(&self.task, Task::Mix(asking) if asking.noreply) && write.verb != Verb::Version;
        let key = self.keys.key(write.key, &mut self.draft.key);
        let value = match write.verb {
            Verb::Set if self.bare_counters && self.spaces.space(write.key) == Space::Counters => {
                Value::plain(COUNTER.trim_ascii_end())
            }
            verb if verb.stores() || verb == Verb::Command => {
                self.values.value(write.key, write.version, &mut self.draft.header)
            }
            _ => Value::default(),
        };
        let delta = if write.verb == Verb::Command { write.key } else { DELTA };
        Op { value, expiry_s, noreply, cas: write.cas, delta, ..Op::new(write.verb, key) }
    }

    /// Whether requests of this verb carry an expiry that has to be drawn.
    #[inline]
    pub(crate) fn sets_expiry(&self, verb: Verb) -> bool {
        !matches!(self.expiry_s, Dist::Fixed(_)) && has_expiry(verb)
    }

    #[inline]
    fn expiry_of(&self, verb: Verb, bits: u64) -> i64 {
        match (&self.expiry_s, has_expiry(verb)) {
            (_, false) => 0,
            (Dist::Fixed(seconds), true) => *seconds as i64,
            (drawn, true) => drawn.draw_size(bits, 0, EXPIRY_MAX_S) as i64,
        }
    }

    #[inline]
    fn asking(&self) -> &Asking {
        match &self.task {
            Task::Mix(asking) => asking,
            Task::Load(_) | Task::Rest => unreachable!("only a mix draws keys"),
        }
    }
}

/// Whether requests of this verb carry an expiry.
fn has_expiry(verb: Verb) -> bool {
    verb.stores() && !verb.is_resp_only() || matches!(verb, Verb::Gat | Verb::Gats | Verb::Touch)
}

impl Asking {
    fn new(mix: &Mix, records: u64) -> Asking {
        Asking {
            table: MixTable::new(mix),
            // Which client asks matters for sequential popularity alone, and is put into the number of the draw there.
            chooser: Chooser::new(&mix.popularity, records, 0, 1),
            sequential: mix.popularity == Popularity::Sequential,
            multiget: mix.multiget as u16,
            read_through: mix.read_through_ns,
            noreply: mix.noreply,
        }
    }
}

/// How many of `clients`, dealt to `servers` in turn, are at the server of client `number`, itself included.
pub fn mates(number: u64, clients: u64, servers: u64) -> u64 {
    (clients - number % servers).div_ceil(servers)
}

fn load_spaces(load: &Load) -> Vec<Space> {
    [(true, Space::Plain), (load.pieces, Space::Pieces), (load.counters, Space::Counters)]
        .into_iter()
        .filter_map(|(wanted, space)| wanted.then_some(space))
        .collect()
}
