//! The choice of records where operations spread theirs in different ways, or where each client goes through the records by itself.

use crate::plan::{Mix, Popularity};
use crate::protocol::Verb;
use crate::rng::Stream;
use crate::workload::drawn_records::{DrawnRecords, KeyAt};
use crate::workload::popularity::{Chooser, neighbour, share_of};

/// The choices of the records of each operation.
#[derive(Debug)]
pub(super) struct Choices {
    /// Operations whose records are spread in another way than those of the others.
    of_verbs: Vec<(Verb, Choice)>,
    others: Choice,
    records: DrawnRecords,
    /// Draws of keys that belong to one request.
    stride: u64,
    /// Keys of a read that are chosen one by one, and keys of an mset.
    multiget: u64,
    multiset: u64,
}

/// A choice of records.
#[derive(Debug)]
enum Choice {
    Drawn(Chooser),
    /// All clients go through the records together.
    Together(Chooser),
    /// Each client goes through all records.
    Each,
    /// Each client goes through its share of the records.
    Shares,
}

impl Choices {
    /// The choices of a mix with `stride` draws for each request; `None` where one chooser is enough.
    pub(super) fn of(mix: &Mix, records: DrawnRecords, stride: u64) -> Option<Choices> {
        let goes_alone = matches!(mix.popularity, Popularity::SequentialEach | Popularity::SequentialShares);
        if !goes_alone && mix.popularity_of.is_empty() {
            return None;
        }
        let choice = |popularity: &Popularity| Choice::new(popularity, records, stride);
        let of_verbs = mix.popularity_of.iter().map(|(verb, popularity)| (*verb, choice(popularity)));
        Some(Choices {
            of_verbs: of_verbs.collect(),
            others: choice(&mix.popularity),
            records,
            stride,
            multiget: if mix.scans { 1 } else { mix.multiget.into() },
            multiset: mix.multiset.into(),
        })
    }

    /// The record of a request of this verb, before which the client asked `count` requests of the verb. `keys` is the client's stream
    /// of keys.
    pub(super) fn choose(&self, (verb, count): (Verb, u64), keys: &Stream, at: KeyAt) -> u64 {
        let of_verb = self.of_verbs.iter().find(|(own, _)| *own == verb);
        let records = self.records.count;
        match of_verb.map_or(&self.others, |(_, choice)| choice) {
            Choice::Drawn(chooser) => chooser.choose(keys, at.index * self.stride + at.place),
            Choice::Together(chooser) => {
                chooser.choose(keys, (at.index * at.clients + at.client) * self.stride + at.place)
            }
            Choice::Each => self.following((verb, count), at.place, (0, records)),
            Choice::Shares => {
                // A client that comes has the share of the one that went.
                let client = at.client % at.clients.max(1);
                self.following((verb, count), at.place, share_of(records, client, at.clients))
            }
        }
    }

    /// The record of key `place` of the request behind `count` others, which go round in a share of the records: its first record, and
    /// how many it has.
    fn following(&self, (verb, count): (Verb, u64), place: u64, (first, records): (u64, u64)) -> u64 {
        let keys = self.keys_of(verb);
        let record = |number: u64| first + number % records;
        match self.records.together.filter(|_| keys > 1) {
            Some(group) => neighbour(record(count.wrapping_mul(keys)), place, group, self.records.count),
            None => record(count.wrapping_mul(keys).wrapping_add(place)),
        }
    }

    /// Records that a request of this verb asks for, one after the other.
    fn keys_of(&self, verb: Verb) -> u64 {
        match verb {
            Verb::Hget => 1,
            Verb::Mset => self.multiset,
            verb if verb.reads() => self.multiget,
            verb => verb.command().map_or(1, |place| self.records.of_commands[place].into()),
        }
    }
}

impl Choice {
    fn new(popularity: &Popularity, records: DrawnRecords, stride: u64) -> Choice {
        // Which client asks is put into the number of the draw.
        let chooser = || Chooser::of_request(popularity, records, stride);
        match popularity {
            Popularity::SequentialEach => Choice::Each,
            Popularity::SequentialShares => Choice::Shares,
            Popularity::Sequential => Choice::Together(chooser()),
            _ => Choice::Drawn(chooser()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::COMMANDS_MAX;
    use crate::rng::{StreamOwner, Use};
    use crate::workload::mix_task::MixTask;

    fn records(count: u64) -> DrawnRecords {
        DrawnRecords { count, together: None, of_commands: [1; COMMANDS_MAX] }
    }

    fn mix(ops: &[(Verb, f64)], popularity_of: &[(Verb, Popularity)]) -> Mix {
        Mix { in_turns: true, popularity_of: popularity_of.to_vec(), ..Mix::of(ops) }
    }

    /// The verbs and first records of the first requests of a client.
    fn asked(
        mix: &Mix,
        records: DrawnRecords,
        (client, clients): (u64, u64),
        requests: u64,
    ) -> Vec<(Verb, u64)> {
        let task = MixTask::new(mix, records, 0);
        let owner = StreamOwner { seed: 3, group: 0, phase: 0, client };
        let [ops, keys] = Stream::for_uses(owner, [Use::Op, Use::Key]);
        let request = |index| {
            let at = KeyAt { index, place: 0, client, clients };
            (task.table.asked(index, &ops).0, task.choose((&ops, &keys), at))
        };
        (0..requests).map(request).collect()
    }

    fn of_verb(asked: &[(Verb, u64)], verb: Verb) -> Vec<u64> {
        asked.iter().filter(|(own, _)| *own == verb).map(|(_, record)| *record).collect()
    }

    #[test]
    fn operations_in_turns_go_through_the_records_each_for_itself() {
        let each = Popularity::SequentialEach;
        let mix = mix(&[(Verb::Set, 2.0), (Verb::Get, 3.0)], &[(Verb::Set, each.clone()), (Verb::Get, each)]);
        for client in [0, 4] {
            let asked = asked(&mix, records(7), (client, 5), 20);
            assert_eq!(of_verb(&asked, Verb::Set), [0, 1, 2, 3, 4, 5, 6, 0]);
            assert_eq!(of_verb(&asked, Verb::Get), [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn clients_go_through_their_shares_of_the_records() {
        let mix = Mix { popularity: Popularity::SequentialShares, ..mix(&[(Verb::Get, 1.0)], &[]) };
        let of_client = |client| of_verb(&asked(&mix, records(10), (client, 4), 5), Verb::Get);
        assert_eq!(of_client(0), [0, 1, 2, 0, 1]);
        assert_eq!(of_client(2), [6, 7, 8, 6, 7]);
        assert_eq!(of_client(3), [9; 5], "the last client has what is left");
        assert_eq!(of_client(6), of_client(2), "a client that comes in the place of another");
        let beyond = |client| of_verb(&asked(&mix, records(2), (client, 5), 3), Verb::Get);
        assert_eq!(
            (beyond(1), beyond(4)),
            (vec![1; 3], vec![1; 3]),
            "clients beyond the records take the last one"
        );
    }

    #[test]
    fn an_operation_has_a_popularity_of_its_own_beside_the_others() {
        let hot = Popularity::Hot { keys: 0.1, requests: 1.0 };
        let mix = mix(&[(Verb::Set, 1.0), (Verb::Get, 1.0)], &[(Verb::Get, hot)]);
        let asked = asked(&mix, records(1_000), (0, 1), 2_000);
        assert!(of_verb(&asked, Verb::Get).iter().all(|record| *record < 100));
        let all = Mix { popularity_of: Vec::new(), ..mix };
        assert_eq!(
            of_verb(&asked, Verb::Set),
            of_verb(&self::asked(&all, records(1_000), (0, 1), 2_000), Verb::Set)
        );
    }

    #[test]
    fn requests_of_several_keys_ask_for_records_that_follow_each_other() {
        let of_commands = std::array::from_fn(|place| 1 + place as u16);
        let ops = [(Verb::Get, 1.0), (Verb::Mset, 1.0), (Verb::Command2, 1.0), (Verb::Set, 1.0)];
        let mut mix =
            Mix { multiget: 3, multiset: 2, popularity: Popularity::SequentialEach, ..mix(&ops, &[]) };
        let task = MixTask::new(&mix, DrawnRecords { of_commands, ..records(100) }, 0);
        let stream = Stream::from_seed(1);
        let of = |task: &MixTask, index, places: u64| -> Vec<u64> {
            let at = |place| KeyAt { index, place, client: 0, clients: 1 };
            (0..places).map(|place| task.choose((&stream, &stream), at(place))).collect()
        };
        assert_eq!((of(&task, 4, 3), of(&task, 8, 3)), (vec![3, 4, 5], vec![6, 7, 8]));
        assert_eq!(of(&task, 9, 2), [4, 5]);
        assert_eq!(of(&task, 10, 2), [4, 5], "the second command of the user has two keys");
        assert_eq!(of(&task, 11, 1), [2]);
        let tagged = DrawnRecords { together: Some(4), of_commands, ..records(100) };
        assert_eq!(of(&MixTask::new(&mix, tagged, 0), 8, 3), [6, 7, 4], "all keys of a request have one tag");
        mix.scans = true;
        assert_eq!(of(&MixTask::new(&mix, records(100), 0), 8, 1), [2], "a scan goes on from one record");
    }
}
