//! The choice of a request's operation, and of its key space.

use crate::plan::{Fill, Load, Mix, Plan, Work};
use crate::protocol::Verb;
use crate::rng::Stream;
use crate::workload::key::Space;

/// The weights of a mix, made ready for drawing.
#[derive(Clone, Debug)]
pub struct MixTable {
    /// Verbs with the upper end of their share of all 64-bit draws, the last being the greatest number.
    verbs: Vec<(u64, Verb)>,
    /// Upper ends of the shares of plain records, pieces and counters, for verbs that work in every space.
    spaces: [u64; SHARED_SPACES],
    /// The verbs in turns; `None` where they are drawn.
    turns: Option<Vec<Turn>>,
}

/// A turn of an operation in each round of requests of a client.
#[derive(Clone, Copy, Debug)]
struct Turn {
    verb: Verb,
    /// Requests of a round up to the first and up to the last one of the turn.
    from: u64,
    upto: u64,
    /// Requests of the operation in a round before the turn, and in the whole round.
    before: u64,
    in_round: u64,
}

/// Spaces whose values a read of any kind can read: plain records, pieces and counters, which are the first.
const SHARED_SPACES: usize = 3;

impl MixTable {
    /// Makes a mix ready.
    ///
    /// # Panics
    /// Panics when no operation has a weight above 0.
    pub fn new(mix: &Mix) -> MixTable {
        let weights = mix.weights();
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        assert!(total > 0.0, "a mix has at least one operation");
        let mut sum = 0.0;
        let mut verbs: Vec<(u64, Verb)> = Vec::with_capacity(weights.len());
        for (verb, weight) in weights {
            sum += weight;
            verbs.push((share(sum / total), verb));
        }
        verbs.last_mut().expect("a mix is not empty").0 = u64::MAX;
        MixTable { verbs, spaces: space_shares(mix), turns: mix.in_turns.then(|| turns(mix)) }
    }

    /// The verb of a draw.
    #[inline]
    pub fn verb(&self, bits: u64) -> Verb {
        for &(limit, verb) in &self.verbs {
            if bits <= limit {
                return verb;
            }
        }
        unreachable!("the last limit is the greatest number")
    }

    /// The verb of request `index` of a client where the verbs take turns; `None` where they are drawn.
    #[inline]
    pub fn in_turn(&self, index: u64) -> Option<Verb> {
        self.turn(index).map(|(turn, _)| turn.verb)
    }

    /// The turn of request `index` of a client, and the number of the request in its round; `None` where verbs are drawn.
    #[inline]
    fn turn(&self, index: u64) -> Option<(&Turn, u64)> {
        let turns = self.turns.as_ref()?;
        let last = turns.last()?;
        let place = index % last.upto.max(1);
        let at = turns.partition_point(|turn| turn.upto <= place);
        Some((turns.get(at).unwrap_or(last), place))
    }

    /// The verb of request `index` of a client, and how many of its requests before had the same verb. Where verbs are drawn, all requests
    /// before count. `ops` is the client's stream of operations.
    pub fn asked(&self, index: u64, ops: &Stream) -> (Verb, u64) {
        let (Some((turn, place)), Some(last)) =
            (self.turn(index), self.turns.as_ref().and_then(|all| all.last()))
        else {
            return (self.verb(ops.draw(index)), index);
        };
        let rounds = index / last.upto.max(1);
        (turn.verb, rounds * turn.in_round + turn.before + (place - turn.from))
    }

    /// The only verb of the mix; `None` where there are several.
    pub fn only(&self) -> Option<Verb> {
        match self.verbs.as_slice() {
            [(_, verb)] => Some(*verb),
            _ => None,
        }
    }

    /// Deals requests to the verbs by their weights. What does not divide goes where `bits`, drawn at random, say, so that
    /// many small numbers are dealt by the weights as well. Every request is dealt.
    pub fn deal(&self, requests: u64, bits: u64, mut each: impl FnMut(Verb, u64)) {
        let mut before = 0;
        for &(limit, verb) in &self.verbs {
            let until = ((u128::from(requests) * (u128::from(limit) + 1) + u128::from(bits)) >> 64) as u64;
            if until > before {
                each(verb, until - before);
            }
            before = until;
        }
    }

    /// The space of a draw, for a verb that reads: every space that the mix writes is read, in proportion.
    #[inline]
    pub fn space(&self, bits: u64) -> Space {
        if bits <= self.spaces[0] {
            Space::Plain
        } else if bits <= self.spaces[1] {
            Space::Pieces
        } else {
            Space::Counters
        }
    }

    /// Whether reads are spread over more than the plain space.
    #[inline]
    pub fn has_spaces(&self) -> bool {
        self.spaces[0] != u64::MAX
    }
}

/// The turns of a mix whose operations take turns.
fn turns(mix: &Mix) -> Vec<Turn> {
    let mut counts = [0; Verb::COUNT];
    let mut upto = 0;
    let turn = |&(verb, weight): &(Verb, f64)| {
        let (from, before) = (upto, counts[verb as usize]);
        upto += weight as u64;
        counts[verb as usize] += weight as u64;
        Turn { verb, from, upto, before, in_round: 0 }
    };
    let turns: Vec<Turn> = mix.ops.iter().map(turn).collect();
    turns.into_iter().map(|turn| Turn { in_round: counts[turn.verb as usize], ..turn }).collect()
}

/// The verbs that a mix asks: its own, and those that follow from their answers.
pub fn verbs_of(mix: &Mix) -> Vec<Verb> {
    let mut verbs: Vec<Verb> = mix.ops.iter().map(|&(verb, _)| verb).collect();
    for &(verb, _) in &mix.ops {
        match verb {
            // The CAS unique is read first.
            Verb::Cas => verbs.push(Verb::Gets),
            // A value that grew long is stored anew.
            Verb::Append | Verb::Prepend => verbs.push(Verb::Set),
            Verb::Hget if mix.read_through_ns.is_some() => verbs.push(Verb::Hset),
            verb if verb.reads() && (mix.read_through_ns.is_some() || mix.meta.renews()) => {
                // What the meta protocol renews is always set.
                if mix.fill == Fill::Set || mix.meta.renews() {
                    verbs.push(Verb::Set);
                }
                if mix.fill == Fill::Add {
                    verbs.push(Verb::Add);
                }
            }
            _ => {}
        }
    }
    verbs.sort_unstable();
    verbs.dedup();
    verbs
}

/// The spaces whose records the phases of a plan store or ask for; none where their keys are not those of records.
pub fn spaces_of(plan: &Plan) -> Vec<Space> {
    let of_mix = |mix: &Mix| mix.ops.iter().map(|&(verb, _)| space_of(verb)).collect::<Vec<Space>>();
    let of_phase = |work: &Work| match work {
        Work::Load(load) => load_spaces(load),
        Work::Mix(mix) => {
            let of_parts = plan.changes.parts.iter().flat_map(|part| of_mix(&part.mix(mix)));
            of_mix(mix).into_iter().chain(of_parts).collect()
        }
        Work::Delete(_) => vec![Space::Plain],
        _ => Vec::new(),
    };
    if plan.sequence().is_some() {
        return Vec::new();
    }
    let mut spaces: Vec<Space> = plan.phases.iter().flat_map(|phase| of_phase(&phase.work)).collect();
    if !plan.changes.events.is_empty() {
        // What is lost and what is hot are plain records.
        spaces.push(Space::Plain);
    }
    spaces.sort_unstable_by_key(|space| *space as usize);
    spaces.dedup();
    spaces
}

/// The spaces whose records a load stores.
pub(super) fn load_spaces(load: &Load) -> Vec<Space> {
    let wanted = |space: &Space| match space {
        Space::Plain => !load.no_plain,
        Space::Pieces => load.pieces,
        Space::Counters => load.counters,
        Space::Hashes => load.hashes,
        Space::Commands => load.commands,
    };
    Space::ALL.into_iter().filter(wanted).collect()
}

/// The space that a verb writes. All reads but hget read the spaces that other verbs write.
pub fn space_of(verb: Verb) -> Space {
    match verb {
        Verb::Append | Verb::Prepend => Space::Pieces,
        Verb::Incr | Verb::Decr => Space::Counters,
        Verb::Hget | Verb::Hset => Space::Hashes,
        verb if verb.is_command() => Space::Commands,
        _ => Space::Plain,
    }
}

/// The verb that stores the value of a record in this space anew.
pub fn store_of(space: Space) -> Verb {
    if space == Space::Hashes { Verb::Hset } else { Verb::Set }
}

fn share(part: f64) -> u64 {
    (part * u64::MAX as f64) as u64
}

fn space_shares(mix: &Mix) -> [u64; SHARED_SPACES] {
    let mut weights = [0.0; Space::COUNT];
    for &(verb, weight) in mix.ops.iter().filter(|(verb, _)| !verb.reads() && *verb != Verb::Version) {
        weights[space_of(verb) as usize] += weight;
    }
    let special = weights[1] + weights[2];
    if special == 0.0 {
        return [u64::MAX; SHARED_SPACES];
    }
    // Reads keep at least half of their requests for the plain records.
    let plain = weights[0].max(special);
    let total = plain + special;
    [share(plain / total), share((plain + weights[1]) / total), u64::MAX]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MetaAsk;

    #[test]
    fn verbs_come_in_proportion_to_their_weights() {
        let table = MixTable::new(&Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 0.75), (Verb::Delete, 0.25)]));
        let stream = Stream::from_seed(5);
        let mut counts = [0u32; Verb::COUNT];
        for i in 0..100_000 {
            counts[table.verb(stream.draw(i)) as usize] += 1;
        }
        for (verb, expected) in [(Verb::Get, 90_000.0), (Verb::Set, 7_500.0), (Verb::Delete, 2_500.0f64)] {
            let seen = f64::from(counts[verb as usize]);
            assert!((seen - expected).abs() < 5.0 * expected.sqrt(), "{verb:?}: {seen} of {expected}");
        }
        assert_eq!(table.verb(u64::MAX), Verb::Delete);
    }

    #[test]
    fn operations_take_turns_in_their_order_also_where_one_stands_at_several_places() {
        let ops = [(Verb::Set, 3.0), (Verb::Command, 1.0), (Verb::Set, 2.0), (Verb::Get, 4.0)];
        let table = MixTable::new(&Mix { in_turns: true, ..Mix::of(&ops) });
        let ops = Stream::from_seed(1);
        let [set, command, get] = [Verb::Set, Verb::Command, Verb::Get];
        let round = [set, set, set, command, set, set, get, get, get, get];
        let mut before = [0; Verb::COUNT];
        for index in 0..55 {
            let verb = round[index as usize % round.len()];
            assert_eq!(table.in_turn(index), Some(verb));
            assert_eq!(table.asked(index, &ops), (verb, before[verb as usize]), "request {index}");
            before[verb as usize] += 1;
        }
        let mut dealt = Vec::new();
        table.deal(1_000, u64::MAX / 2, |verb, requests| dealt.push((verb, requests)));
        assert_eq!(dealt, [(set, 500), (command, 100), (get, 400)]);
        let only = Mix { in_turns: true, ..Mix::of(&[(get, 1.0), (get, 2.0)]) };
        assert_eq!(MixTable::new(&only).only(), Some(get));
        let drawn = MixTable::new(&Mix::of(&[(get, 1.0), (set, 1.0)]));
        assert_eq!(drawn.asked(7, &ops), (drawn.verb(ops.draw(7)), 7), "all requests before count");
    }

    #[test]
    fn reads_stay_in_the_plain_space_unless_others_are_written() {
        let table = MixTable::new(&Mix::of(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]));
        assert!(!table.has_spaces());
        assert_eq!(table.space(u64::MAX), Space::Plain);
        let table = MixTable::new(&Mix::of(&[(Verb::Get, 1.0), (Verb::Append, 1.0), (Verb::Decr, 1.0)]));
        assert_eq!(table.space(0), Space::Plain);
        assert_eq!(table.space(u64::MAX / 2 + (1 << 60)), Space::Pieces);
        assert_eq!(table.space(u64::MAX), Space::Counters);
    }

    #[test]
    fn what_only_resp_commands_can_read_is_read_by_nothing_else() {
        let ops = [(Verb::Get, 1.0), (Verb::Hset, 5.0), (Verb::Command, 5.0)];
        assert!(!MixTable::new(&Mix::of(&ops)).has_spaces());
        assert_eq!((space_of(Verb::Hget), space_of(Verb::Command)), (Space::Hashes, Space::Commands));
    }

    #[test]
    fn a_mix_brings_along_what_its_answers_ask_for() {
        let read_through = |ops| Mix { read_through_ns: Some(0), ..Mix::of(ops) };
        let hashes = read_through(&[(Verb::Hget, 1.0)]);
        assert_eq!(verbs_of(&hashes), [Verb::Hget, Verb::Hset]);
        let vivify = MetaAsk { vivify_s: Some(30), ..MetaAsk::default() };
        assert_eq!(verbs_of(&Mix { meta: vivify, ..Mix::of(&[(Verb::Get, 1.0)]) }), [Verb::Get, Verb::Set]);
    }
}
