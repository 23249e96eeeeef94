//! The order of SETs, GETs and WAITs: each client's SETs of a round, then its GETs, and a WAIT before every few SETs.

use pummel_logic::plan::{Command, Mix};
use pummel_logic::protocol::Verb;

use super::display::{Row, RowKind};
use super::options::Options;
use super::{Operations, Refusal, configuration};

/// Most parts of a round, where WAITs divide the SETs.
const PARTS_MAX: usize = 4_096;

/// Bytes of a RESP command of three words around its key and its value, with the words themselves where they are SET's.
const SET_FRAME_BYTES: f64 = 30.0;

/// Bytes of a RESP command of two words around its key, with the word GET.
const GET_FRAME_BYTES: f64 = 20.0;

/// Bytes of WAIT with two numbers of one digit.
const WAIT_BYTES: f64 = 28.0;

impl Options {
    /// The operations of a command line without commands of its own.
    pub(super) fn sets_and_gets(&mut self) -> Result<Operations, Refusal> {
        let (set_pattern, get_pattern) = self.key_pattern();
        let mut commands = Vec::new();
        // A plan has no command that is never asked.
        let set = if self.ratio.0 > 0 { self.set_verb(&mut commands) } else { Verb::Set };
        let get = if self.ratio.1 > 0 { self.get_verb(&mut commands) } else { Verb::Get };
        let wait = (self.wait_ratio.1 > 0 && self.ratio.0 > 0 && self.protocol.is_resp()).then(|| {
            add(&mut commands, Command { name: "wait".to_owned(), ..Command::unnamed(&self.wait_template()) })
        });
        if self.wait_ratio.1 > 0 && !self.protocol.is_resp() {
            return configuration("WAIT command not implemented for memcache!");
        }
        let (sets, gets) = self.ratio;
        let keys = self.multi_key_get.max(1);
        if gets % keys != 0 {
            self.remarks.push(format!(
                "--multi-key-get {keys}: every GET has so many keys, also the last one of {gets} GETs in a round"
            ));
        }
        let parts = round((sets, gets.div_ceil(keys)), wait.map(|_| self.wait_ratio));
        if parts.len() > PARTS_MAX {
            return configuration("--ratio and --wait-ratio: expected numbers with a shorter common round");
        }
        if self.wait_ratio.1 > 0 && wait.is_none() {
            self.remarks
                .push("--wait-ratio changes nothing without SETs, before which WAITs stand".to_owned());
        }
        let verb_of = |part: Part| match part {
            Part::Set => set,
            Part::Get => get,
            Part::Wait => wait.unwrap_or(set),
        };
        let ops: Vec<(Verb, f64)> =
            parts.iter().map(|&(part, count)| (verb_of(part), f64::from(count))).collect();
        let asks = |verb: Verb| ops.iter().any(|(asked, _)| *asked == verb);
        let popularity = self.popularity(if asks(set) { set_pattern } else { get_pattern });
        let of_get = self.popularity(get_pattern);
        let popularity_of = if asks(get) && of_get != popularity { vec![(get, of_get)] } else { Vec::new() };
        let mix = Mix { in_turns: ops.len() > 1, multiget: keys, popularity, popularity_of, ..Mix::of(&ops) };
        let row = |name: &str, title: &str, verb: Option<Verb>, kind| Row {
            name: name.to_owned(),
            title: title.to_owned(),
            verbs: verb.into_iter().collect(),
            kind,
        };
        let rows = vec![
            row("Sets", "SET", Some(set), RowKind::Set),
            row("Gets", "GET", Some(get), RowKind::Get),
            row("Waits", "WAIT", wait, RowKind::Wait),
        ];
        let key = self.mean_key_bytes();
        let request_bytes = vec![
            SET_FRAME_BYTES + key + self.mean_value_bytes(),
            GET_FRAME_BYTES + f64::from(keys) * key,
            WAIT_BYTES,
        ];
        Ok(Operations { commands, mix, rows, request_bytes })
    }

    /// The operation that stores: a command of its own where values have an offset, or where RESP has an expiry for them.
    fn set_verb(&self, commands: &mut Vec<Command>) -> Verb {
        let expiry = self.expiry_range.filter(|_| self.protocol.is_resp());
        let template = match expiry {
            Some((least, most)) => format!("SETEX __key__ __int:{}-{most}__ __value__", least.max(1)),
            None if self.data_offset > 0 => format!("SETRANGE __key__ {} __value__", self.data_offset),
            None => return Verb::Set,
        };
        add(commands, Command::unnamed(&template))
    }

    fn get_verb(&self, commands: &mut Vec<Command>) -> Verb {
        match self.data_offset {
            0 => Verb::Get,
            offset => add(commands, Command::unnamed(&format!("GETRANGE __key__ {offset} -1"))),
        }
    }

    fn wait_template(&self) -> String {
        let drawn = |range: Option<(u32, u32)>, least: u32| {
            let (low, high) = range.unwrap_or_default();
            let (low, high) = (low.max(least), high.max(least));
            if low == high { low.to_string() } else { format!("__int:{low}-{high}__") }
        };
        // A WAIT for 0 milliseconds has no end.
        format!("WAIT {} {}", drawn(self.replicas, 0), drawn(self.wait_timeout_ms, 1))
    }
}

/// Adds a command, and returns its operation.
fn add(commands: &mut Vec<Command>, command: Command) -> Verb {
    commands.push(command);
    Verb::of_command(commands.len() - 1).expect("there are fewer than a plan may have")
}

/// A part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Set,
    Get,
    Wait,
}

/// The parts of a round in their order, with how often each is asked: `sets` and `gets`, and of `(a, b)` a WAIT before every a / b + 1
/// SETs, as the rule of the original comes to.
fn round((sets, gets): (u32, u32), waits: Option<(u32, u32)>) -> Vec<(Part, u32)> {
    let plain = [(Part::Set, sets), (Part::Get, gets)];
    let Some((of_sets, of_waits)) = waits.filter(|_| sets > 0) else {
        return plain.into_iter().filter(|(_, count)| *count > 0).collect();
    };
    let every = u64::from(of_sets / of_waits.max(1)) + 1;
    let rounds = every / greatest_divisor(every, sets.into());
    let mut parts: Vec<(Part, u32)> = Vec::new();
    let mut since = every;
    for _ in 0..rounds.min(PARTS_MAX as u64 + 1) {
        let mut left = u64::from(sets);
        while left > 0 {
            if since == every {
                parts.push((Part::Wait, 1));
                since = 0;
            }
            let now = left.min(every - since);
            (left, since) = (left - now, since + now);
            parts.push((Part::Set, now as u32));
            if parts.len() > PARTS_MAX {
                return parts;
            }
        }
        if gets > 0 {
            parts.push((Part::Get, gets));
        }
    }
    parts
}

fn greatest_divisor(first: u64, second: u64) -> u64 {
    if second == 0 { first } else { greatest_divisor(second, first % second) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_first_and_then_gets() {
        assert_eq!(round((1, 10), None), [(Part::Set, 1), (Part::Get, 10)]);
        assert_eq!(round((0, 1), None), [(Part::Get, 1)]);
        assert_eq!(round((2, 0), None), [(Part::Set, 2)]);
    }

    #[test]
    fn a_wait_stands_before_as_many_sets_as_the_original_counts() {
        let (set, get, wait) = (Part::Set, Part::Get, Part::Wait);
        assert_eq!(round((1, 10), Some((0, 1))), [(wait, 1), (set, 1), (get, 10)]);
        assert_eq!(round((1, 10), Some((1, 1))), [(wait, 1), (set, 1), (get, 10), (set, 1), (get, 10)]);
        let expected = [(wait, 1), (set, 2), (wait, 1), (set, 1), (set, 1), (wait, 1), (set, 2)];
        assert_eq!(round((3, 0), Some((1, 1))), expected);
        assert_eq!(round((0, 5), Some((1, 1))), [(get, 5)]);
        assert!(round((999_983, 1), Some((999_979, 1))).len() > PARTS_MAX);
    }
}
