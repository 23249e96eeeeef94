//! Reads of records that are made one at a time beside the requests of a run, by its popularity and for its keys.

use crate::client::route::Lane;
use crate::plan::Mix;
use crate::protocol::{Keys, Op, Verb};
use crate::rng::{Stream, StreamOwner, Use};
use crate::workload::drawn_records::KeyAt;
use crate::workload::mix::space_of;
use crate::workload::mix_task::MixTask;
use crate::workload::request::RequestMaker;

/// Most draws of a key until its record lies on the server that is asked.
const DRAWS_MAX: u64 = 256;

/// The drawing of reads that are made one at a time.
#[derive(Debug)]
pub struct LoneReads {
    mix: MixTask,
    ops: Stream,
    keys: Stream,
}

impl RequestMaker {
    /// The drawing of the reads of `mix`, which has no other operations, by the streams of `owner`.
    ///
    /// # Panics
    /// Panics when the mix has no operation.
    pub fn lone_reads(&self, mix: &Mix, owner: StreamOwner) -> LoneReads {
        let [ops, keys] = Stream::for_uses(owner, [Use::Op, Use::Key]);
        LoneReads { mix: MixTask::new(mix, self.drawn_records(), 0), ops, keys }
    }

    /// Read number `index`, all of whose records lie on the server of `lane`; `None` where none was drawn that does.
    pub fn lone_read(&mut self, reads: &LoneReads, index: u64, lane: Lane) -> Option<Op<'_>> {
        let verb = reads.mix.table.verb(reads.ops.draw(index));
        let space = space_of(verb);
        let count = if verb == Verb::Hget { 1 } else { u64::from(reads.mix.multiget) };
        self.begin_keys();
        for place in 0..count {
            let key = (0..DRAWS_MAX).find_map(|draw| {
                let at = KeyAt { index: index * DRAWS_MAX + draw, place, client: 0, clients: 1 };
                let key = self.records.index(space, reads.mix.choose_for(verb, &reads.keys, at));
                self.lies_on(lane, key).then_some(key)
            })?;
            self.add_key(key);
        }
        Some(match count {
            1 => Op::new(verb, self.added_keys().0),
            _ => {
                let (bytes, ends) = self.added_keys();
                Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, &[]) }
            }
        })
    }
}
