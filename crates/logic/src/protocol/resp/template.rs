//! A RESP command, or a sequence of them, with places that each request fills: `ZADD __key__ __number__ __value__`.

use std::fmt;

use super::asked::LookedUp;
use super::command_table::{Access, CommandRow, Tells, Wait};
use super::encode::{push_bulk, push_bulk_number};
use super::key_lookups::{KeyLookups, Told};
use super::places::{Fill, Integers, Part, PlaceError, Places};
pub use super::places::{Wanted, literal};
use super::reply_shape::ReplyShape;
use super::sequence::{self, Role, SEQUENCE_MAX, Sequence, SequenceCommand, TransactionFault};
pub use super::words::quoted;
use super::words::{self, Word, WordsError};
use crate::connection::outbox::Outbox;
use crate::decimal::{DIGITS, decimal, digits_in};
use crate::dist::Dist;
use crate::protocol::{Keys, Op, Refused, Value};
use crate::time::{MILLISECOND, Nanos, from_seconds};

/// Commands that cannot be measured, with the reason.
const UNSUITABLE: &[(&str, Unsuitable)] = &[
    ("SUBSCRIBE", Unsuitable::NoReply),
    ("UNSUBSCRIBE", Unsuitable::NoReply),
    ("PSUBSCRIBE", Unsuitable::NoReply),
    ("PUNSUBSCRIBE", Unsuitable::NoReply),
    ("SSUBSCRIBE", Unsuitable::NoReply),
    ("SUNSUBSCRIBE", Unsuitable::NoReply),
    ("MONITOR", Unsuitable::NoReply),
    ("SYNC", Unsuitable::NoReply),
    ("PSYNC", Unsuitable::NoReply),
    ("CLIENT REPLY", Unsuitable::NoReply),
    ("REPLCONF", Unsuitable::Replication),
    ("REPLICAOF", Unsuitable::Replication),
    ("SLAVEOF", Unsuitable::Replication),
    ("FAILOVER", Unsuitable::Replication),
    ("HELLO", Unsuitable::Connection),
    ("AUTH", Unsuitable::Connection),
    ("RESET", Unsuitable::Connection),
    ("QUIT", Unsuitable::Connection),
    ("SELECT", Unsuitable::Database),
    ("READONLY", Unsuitable::Connection),
    ("READWRITE", Unsuitable::Connection),
    ("ASKING", Unsuitable::Connection),
    ("CLIENT PAUSE", Unsuitable::Others),
    ("CLIENT KILL", Unsuitable::Others),
    ("CLIENT TRACKING", Unsuitable::Tracking),
    ("SCRIPT DEBUG", Unsuitable::Others),
    ("SHUTDOWN", Unsuitable::Others),
];

/// The reason why a command cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsuitable {
    /// The command does not get one reply for each request.
    NoReply,
    /// The command changes who replicates whom.
    Replication,
    /// The command changes the state of the connection that requests of others follow on.
    Connection,
    /// The command changes the database, for which there is an option.
    Database,
    /// The command changes which messages come, for which there is an option.
    Tracking,
    /// The command stops the server, or other clients.
    Others,
    /// The command may stop the server in many ways, and only one of its forms is allowed.
    Debug,
}

/// Separates the commands of a sequence.
const NEXT_MARK: &str = ";";

/// Separates commands, and lets those behind it wait for the replies to those before it.
const WAIT_MARK: &str = ";;";

/// The name in place of that of a script where none is known: as long as the name of one.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";

/// A command or a sequence of them, ready to be written for any request.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The words of each command, as they are on the wire.
    pieces: Vec<Vec<Piece>>,
    /// The commands, where there are several.
    sequence: Option<Sequence>,
    /// The fills of the places beside the record's key, number and value.
    fills: Vec<Fill>,
    /// Whether bytes that are made when they are sent fill one of these places.
    makes_bytes: bool,
    /// Whether the value of the record is in a word.
    has_value: bool,
    /// The words that are keys; those with the place of a key, for a command that is not known.
    key_words: Vec<Vec<Part>>,
    /// Whether all of it are reads by the flags of Redis, outside of transactions.
    reads: bool,
    /// Whether it reads keys that hold plain values.
    reads_plain: bool,
    /// The meaning of replies for what was looked up; `None` where they have none.
    looked_up: Option<LookedUp>,
    /// The lookups of keys that a server counts; `None` where these are not known, and for several commands.
    key_lookups: Option<KeyLookups>,
    /// Whether a server counts one command for each request.
    counts_once: bool,
    /// The time for which the server may let a request wait, in nanoseconds; `None` for one that is answered at once.
    waits_ns: Option<Nanos>,
    /// Whether the command can be carried out twice as well as once.
    may_repeat: bool,
    /// Whether the name of the script is in a word.
    names_script: bool,
}

/// A command as it is read from a template.
struct ReadCommand {
    name: Vec<u8>,
    words: Vec<Vec<Part>>,
    /// The numbers of the words that are keys.
    keys: Vec<usize>,
    row: Option<&'static CommandRow>,
}

/// A piece of a command.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Bytes of the protocol that are the same in every request.
    Fixed(Vec<u8>),
    /// A word that is one place and nothing else.
    Place(Part),
    /// A word with a place in it.
    Word(Vec<Part>),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The command has no word.
    Empty,
    /// A quote is not closed.
    Open,
    /// A closing quote is not followed by a blank.
    Glued,
    /// The first word is a place, or has one in it.
    NoCommand,
    /// A word is no place, although it looks like one.
    Place(PlaceError),
    /// A command that cannot be measured.
    Unsuitable(&'static str, Unsuitable),
    /// The command has fewer or more words than it can have: its name, and the number of words that it has; negative where that is
    /// the least number.
    Arity(&'static str, i8),
    /// A command that waits says for ever, or not for how long.
    Endless(&'static str),
    /// The sequence has so many commands, which are too many.
    TooMany(usize),
    /// The commands of a transaction do not fit each other.
    Transaction(TransactionFault),
    /// The command cannot be sent in the inline form.
    Inline,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Empty => to.write_str("a command needs at least one word"),
            TemplateError::Open => to.write_str("a quote in the command is not closed"),
            TemplateError::Glued => to.write_str("a closing quote in the command is not followed by a blank"),
            TemplateError::NoCommand => to.write_str("the first word of a command is its name, and no place"),
            TemplateError::Place(PlaceError::Unknown(word)) => write!(
                to,
                "'{word}' is no place of a command: there are __key__, __key2__ to __key9__, __number__, __number:12__, __value__, \
                 __value:100__, __int:1-99__, __client__, __seq__, __now_ms__, __field:NAME__ and __script__{}; \\{word} stands for the word itself",
                hint(word)
            ),
            TemplateError::Place(PlaceError::Wrong(word, expected)) => {
                write!(to, "'{word}' needs {expected}")
            }
            TemplateError::Unsuitable(name, why) => write!(to, "{name} {}", why.words()),
            TemplateError::Arity(name, arity) => {
                let (least, words) = (if *arity < 0 { "at least " } else { "" }, arity.unsigned_abs());
                write!(to, "{name} has {least}{words} words, itself among them")
            }
            TemplateError::Endless(name) => {
                write!(to, "{name} waits without end here, and needs a time-out above 0 in its own word")
            }
            TemplateError::TooMany(count) => {
                write!(to, "a sequence has at most {SEQUENCE_MAX} commands, and this one {count}")
            }
            TemplateError::Transaction(fault) => to.write_str(&fault.words()),
            TemplateError::Inline => to.write_str(
                "a command in the inline form is one command of words without places, blanks and quotes",
            ),
        }
    }
}

/// The place that stands for a word of another tool, as a hint; empty for other words.
fn hint(word: &str) -> &'static str {
    match word {
        "__data__" => " (memtier's __data__ is __value__)",
        "__rand_int__" => {
            " (redis-benchmark's __rand_int__ with -r 100 is __int:000000000000-000000000099__)"
        }
        _ => "",
    }
}

impl Unsuitable {
    fn words(self) -> &'static str {
        match self {
            Unsuitable::NoReply => "does not get one reply for each request, so it cannot be measured",
            Unsuitable::Replication => "changes who replicates whom, and no load does that",
            Unsuitable::Connection => "changes the state of its connection, on which other requests follow",
            Unsuitable::Database => "is what --database does",
            Unsuitable::Tracking => "is what --tracking does",
            Unsuitable::Others => "stops the server or its other clients, and no load does that",
            Unsuitable::Debug => "is allowed with SLEEP alone",
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template: words between blanks, with the quotes of Redis' command line. A place may be a whole word or part of one, in
    /// quotes too. A `;` between blanks separates commands, and `;;` also waits for their replies.
    ///
    /// # Errors
    /// Returns the [`TemplateError`] of the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        Template::parse_with(text, NO_SCRIPT)
    }

    /// Reads a template, as [`Template::parse`] does, that has this name of a script in place of `__script__`.
    ///
    /// # Errors
    /// Returns the [`TemplateError`] of the first rule that the text breaks.
    pub fn parse_with(text: &str, script_name: &str) -> Result<Template, TemplateError> {
        let words = words::split(text.as_bytes()).map_err(|error| match error {
            WordsError::Open => TemplateError::Open,
            WordsError::Glued => TemplateError::Glued,
        })?;
        let mut places = Places::with_script(script_name);
        let (mut commands, mut parts) = (Vec::new(), Vec::new());
        let is_mark = |word: &Word| word.is_mark(NEXT_MARK) || word.is_mark(WAIT_MARK);
        let (mut rest, mut part) = (&words[..], 0);
        loop {
            let end = rest.iter().position(is_mark);
            commands.push(ReadCommand::of(&rest[..end.unwrap_or(rest.len())], &mut places)?);
            parts.push(part);
            let Some(end) = end else { break };
            part += usize::from(rest[end].is_mark(WAIT_MARK));
            rest = &rest[end + 1..];
        }
        if commands.len() > SEQUENCE_MAX {
            return Err(TemplateError::TooMany(commands.len()));
        }
        let names: Vec<&[u8]> = commands.iter().map(|command| &command.name[..]).collect();
        let roles = sequence::roles(&names).map_err(TemplateError::Transaction)?;
        let mut template = Template {
            pieces: commands.iter().map(|command| pieces_of(&command.words)).collect(),
            sequence: None,
            reads: commands
                .iter()
                .zip(&roles)
                .all(|(command, (role, _))| command.reads() && *role == Role::Plain),
            reads_plain: false,
            looked_up: None,
            key_lookups: None,
            counts_once: false,
            may_repeat: false,
            waits_ns: None,
            key_words: commands.iter().flat_map(ReadCommand::key_words).collect(),
            makes_bytes: places.fills.iter().any(|fill| fill.wanted() == Wanted::Bytes),
            fills: places.fills,
            has_value: false,
            names_script: places.names_script,
        };
        template.has_value = template.has_part(&Part::Value);
        // Commands in a transaction never wait.
        for (command, _) in commands.iter().zip(&roles).filter(|(_, (role, _))| *role != Role::Queued) {
            if let Some(waits_ns) = command.waits_ns(&template.fills)? {
                template.waits_ns = Some(template.waits_ns.unwrap_or(0).saturating_add(waits_ns));
            }
        }
        if let [command] = &commands[..] {
            template.looked_up = command.looked_up();
            template.key_lookups = command.key_lookups();
            template.counts_once = command.row.is_some_and(|row| !row.calls_others());
            template.reads_plain = command.row.is_some_and(CommandRow::reads_plain);
            template.may_repeat = command.may_repeat();
        } else {
            let of = |((command, part), (role, unit)): ((ReadCommand, usize), _)| SequenceCommand {
                has_keys: !command.keys.is_empty(),
                reads: command.reads(),
                role,
                part,
                unit,
            };
            template.sequence =
                Some(Sequence { commands: commands.into_iter().zip(parts).zip(roles).map(of).collect() });
        }
        Ok(template)
    }

    /// Reads a command that is sent in the inline form of the protocol: its words between blanks, up to the end of a line, in place of
    /// an array ("Inline commands" in Redis' specification of RESP).
    ///
    /// # Errors
    /// Returns [`TemplateError::Inline`] for a sequence and for words that the form cannot carry, and otherwise what
    /// [`Template::parse`] returns.
    pub fn parse_inline(text: &str) -> Result<Template, TemplateError> {
        let template = Template::parse(text)?;
        let words = words::split(text.as_bytes()).unwrap_or_default();
        let is_fixed = matches!(&template.pieces[..], [pieces] if matches!(pieces[..], [Piece::Fixed(_)]));
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'".contains(byte);
        let are_plain = words.iter().all(|word| !word.bytes.is_empty() && word.bytes.iter().all(is_plain));
        if !is_fixed || !are_plain {
            return Err(TemplateError::Inline);
        }
        let mut line = words.iter().map(|word| &word.bytes[..]).collect::<Vec<_>>().join(&b' ');
        line.extend(b"\r\n");
        Ok(Template { pieces: vec![vec![Piece::Fixed(line)]], ..template })
    }

    /// The commands, where there are several.
    pub fn sequence(&self) -> Option<&Sequence> {
        self.sequence.as_ref()
    }

    /// Whether all commands are reads by the flags that Redis gives them, outside of transactions, so that a replica answers them.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// The template of a command whose replies are to have this shape, whatever the table of commands says.
    #[must_use]
    pub fn expecting(self, shape: ReplyShape) -> Template {
        let tells = shape.tells();
        let told = if tells == Tells::No { Told::Nothing } else { Told::Other };
        Template {
            looked_up: (tells != Tells::No).then_some(LookedUp { tells, keys: 1 }),
            key_lookups: self.key_lookups.map(|lookups| KeyLookups { told, ..lookups }),
            ..self
        }
    }

    /// Whether the command is known to read keys that hold plain values.
    pub fn reads_plain(&self) -> bool {
        self.reads_plain
    }

    /// Whether replies tell what was there.
    pub fn tells(&self) -> bool {
        self.looked_up.is_some()
    }

    /// The lookups of keys that a server counts for each request; `None` where these are not known.
    pub fn key_lookups(&self) -> Option<KeyLookups> {
        self.key_lookups
    }

    /// Whether a server counts one command for each request: a single command that is known and carries out no script.
    pub fn counts_once(&self) -> bool {
        self.counts_once
    }

    /// Whether a word of the command has the key of the record in it.
    pub fn has_key(&self) -> bool {
        self.has_part(&Part::Key)
    }

    /// Whether the value of the record is a word of the command, or in one.
    pub fn has_value(&self) -> bool {
        self.has_value
    }

    fn has_part(&self, wanted: &Part) -> bool {
        self.pieces.iter().flatten().any(|piece| match piece {
            Piece::Fixed(_) => false,
            Piece::Place(part) => part == wanted,
            Piece::Word(parts) => parts.contains(wanted),
        })
    }

    /// The meaning of replies for what was looked up; `None` where they have none.
    pub(super) fn looked_up(&self) -> Option<LookedUp> {
        self.looked_up
    }

    /// The time for which the server may let a request wait, in nanoseconds; `None` for one that is answered at once.
    pub fn waits_ns(&self) -> Option<Nanos> {
        self.waits_ns
    }

    /// Number of places that a request fills beside the record's key, number and value.
    pub fn fill_count(&self) -> usize {
        self.fills.len()
    }

    /// The fact that a request has to find out for one of these places.
    pub fn wanted(&self, place: usize) -> Wanted {
        self.fills[place].wanted()
    }

    /// The names of the columns of the dataset that fill places, each once.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fills.iter().filter_map(|fill| match fill {
            Fill::Field(name, _) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Gives the columns of the dataset the numbers that they have among these, in which all of them are.
    pub fn number_fields(&mut self, names: &[String]) {
        for fill in &mut self.fills {
            if let Fill::Field(name, column) = fill {
                *column = names.iter().position(|known| known == name).unwrap_or(0);
            }
        }
    }

    /// Whether the name of the script is in a word.
    pub fn names_script(&self) -> bool {
        self.names_script
    }

    /// Whether bytes that are made when they are sent fill one of the places, so that requests have values beside their keys.
    pub fn makes_bytes(&self) -> bool {
        self.makes_bytes
    }

    /// The lengths of the bytes that fill a place; `None` for another place.
    pub fn lengths(&self, place: usize) -> Option<&Dist> {
        match &self.fills[place] {
            Fill::Bytes(lengths) => Some(lengths),
            _ => None,
        }
    }

    /// Number of records that a request draws, its own one among them.
    pub fn records(&self) -> u64 {
        1 + self.fills.iter().map(Fill::draw).max().unwrap_or(0)
    }

    /// Whether the command has the same effect and the same reply if it is carried out twice; false for one that is not known.
    pub fn may_repeat(&self) -> bool {
        self.may_repeat
    }

    /// Whether all keys of a request are made of its own record.
    pub fn has_one_record(&self) -> bool {
        let names_record =
            |word: &Vec<Part>| word.iter().any(|part| matches!(part, Part::Key | Part::Number));
        self.records() == 1 && !self.key_words.is_empty() && self.key_words.iter().all(names_record)
    }

    /// Writes the content of a place from what [`Template::wanted`] asked for.
    ///
    /// # Panics
    ///
    /// Panics if the place is the key of a record, which the maker of keys writes, bytes that are made when they are sent, or a field of
    /// the dataset.
    pub fn write_fill(&self, place: usize, found: u64, out: &mut Vec<u8>) {
        let (is_below_0, number, digits) = match &self.fills[place] {
            Fill::Integer(integers, digits) => {
                let integer = integers.of(found);
                (integer < 0, integer.unsigned_abs(), *digits)
            }
            Fill::Number(_, digits) => (false, found, *digits),
            Fill::Client | Fill::Sequence | Fill::NowMs => (false, found, 1),
            Fill::Key(_) | Fill::Bytes(_) | Fill::Field(..) => {
                unreachable!("keys, bytes and fields are written by their maker")
            }
        };
        if is_below_0 {
            out.push(b'-');
        }
        push_padded(number, digits, out);
    }

    /// Whether the slot of every word that is a key follows from the keys of the records alone: it is that of the record's key, or, with
    /// `key_tag`, that of the tag which all keys of a request have. `slot` is the slot of a key.
    pub fn keeps_slot(&self, key_tag: bool, slot: impl Fn(&[u8]) -> u16) -> bool {
        // Two keys of different slots show whether what stands beside them changes the slot.
        let is_kept = |word: &[Part], key: &[u8]| {
            let mut text = Vec::new();
            for part in word {
                match part {
                    Part::Text(bytes) => text.extend_from_slice(bytes),
                    Part::Key => text.extend_from_slice(key),
                    Part::Fill(at) if key_tag && matches!(self.fills[*at], Fill::Key(_)) => {
                        text.extend_from_slice(key);
                    }
                    // What stands behind a tag changes no slot.
                    _ => return has_tag(&text) && slot(&text) == slot(key),
                }
            }
            slot(&text) == slot(key)
        };
        let samples: [&[u8]; 2] = if key_tag { [b"{1}2", b"{7}8"] } else { [b"k1", b"k3"] };
        self.key_words.iter().all(|word| samples.iter().all(|key| is_kept(word, key)))
    }

    /// Checks that a request has what fills the places: the first of its keys is that of its record, and each other one fills a place.
    pub(super) fn check(&self, op: &Op<'_>) -> Result<(), Refused> {
        let is_made = matches!(op.keys, Keys::Pairs(_));
        match op.keys.count() != 1 + self.fills.len() || self.makes_bytes != is_made {
            true => Err(Refused("a command has one key, and as many fills as it has places")),
            false => Ok(()),
        }
    }

    /// Writes the command of this number for a request that was checked.
    pub(super) fn push(&self, number: usize, op: &Op<'_>, out: &mut Outbox) {
        for piece in self.pieces.get(number).into_iter().flatten() {
            match piece {
                Piece::Fixed(bytes) => out.push(bytes),
                Piece::Place(Part::Key) => push_bulk(out, op.keys.key(0)),
                Piece::Place(Part::Number) => push_bulk_number(out, op.delta),
                Piece::Place(Part::Value) => super::encode::push_value(out, &op.value),
                Piece::Place(Part::Fill(at)) => push_bulk(out, op.keys.key(1 + at)),
                Piece::Place(Part::Made(at)) => super::encode::push_value(out, &made(op, *at)),
                Piece::Place(Part::Text(text)) => push_bulk(out, text),
                Piece::Word(parts) => push_word(parts, op, out),
            }
        }
    }
}

impl ReadCommand {
    /// Reads a command of these words.
    fn of(words: &[Word], places: &mut Places) -> Result<ReadCommand, TemplateError> {
        let words: Vec<Vec<Part>> = words
            .iter()
            .map(|word| places.parts_of(&word.bytes).map_err(TemplateError::Place))
            .collect::<Result<_, _>>()?;
        let name = match words.first().map(Vec::as_slice) {
            None => return Err(TemplateError::Empty),
            Some([Part::Text(name)]) => name.clone(),
            Some(_) => return Err(TemplateError::NoCommand),
        };
        let second = words.get(1).and_then(|word| text_of(word));
        if let Some((name, why)) = unsuitable(&name, second) {
            return Err(TemplateError::Unsuitable(name, why));
        }
        let row = CommandRow::of(&name, second);
        if let Some(row) = row.filter(|row| !row.allows(words.len())) {
            return Err(TemplateError::Arity(row.name, row.arity));
        }
        let fixed = |at: usize| words.get(at).and_then(|word| text_of(word));
        let has_key = |at: &usize| words[*at].iter().any(|part| matches!(part, Part::Key));
        let keys: Vec<usize> = match row {
            Some(row) => row.key_words(words.len(), fixed),
            None => (1..words.len()).filter(has_key).collect(),
        };
        Ok(ReadCommand { name, words, keys, row })
    }

    fn reads(&self) -> bool {
        self.row.is_some_and(|row| row.access == Access::Read)
    }

    fn key_words(&self) -> impl Iterator<Item = Vec<Part>> {
        self.keys.iter().map(|at| self.words[*at].clone())
    }

    fn looked_up(&self) -> Option<LookedUp> {
        self.row.and_then(|row| looked_up(row, &self.words, self.keys.len()))
    }

    fn key_lookups(&self) -> Option<KeyLookups> {
        let has_word = |option: &str| has_word(&self.words, option);
        let row = self.row?;
        KeyLookups::of(row, self.keys.len(), row.tells_with(has_word), has_word)
    }

    fn may_repeat(&self) -> bool {
        self.row.is_some_and(|row| row.may_repeat(|option| has_word(&self.words, option)))
    }

    /// The longest time for which the command may wait, in nanoseconds; `fills` fill the places of its words.
    fn waits_ns(&self, fills: &[Fill]) -> Result<Option<Nanos>, TemplateError> {
        self.row.map_or(Ok(None), |row| waits_ns(row, &self.words, fills))
    }
}

/// Writes a number with at least so many digits.
fn push_padded(number: u64, digits: usize, out: &mut Vec<u8>) {
    const LIMIT: u64 = 10u64.pow(DIGITS as u32);
    if number < LIMIT && digits <= DIGITS {
        let all = decimal(number);
        return out.extend_from_slice(&all[DIGITS - digits.max(digits_in(number))..]);
    }
    use std::io::Write;
    let written = write!(out, "{number:0digits$}");
    debug_assert!(written.is_ok(), "bytes take what is written");
}

/// Whether a key that begins with this text has a tag that alone decides its slot.
fn has_tag(text: &[u8]) -> bool {
    let behind = text.iter().position(|byte| *byte == b'{').map(|at| &text[at + 1..]);
    behind.is_some_and(|behind| behind.iter().position(|byte| *byte == b'}').is_some_and(|len| len > 0))
}

/// Writes a word of several parts.
fn push_word(parts: &[Part], op: &Op<'_>, out: &mut Outbox) {
    let len = parts.iter().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Key => op.keys.key(0).len(),
        Part::Number => op.delta.checked_ilog10().unwrap_or(0) as usize + 1,
        Part::Value => op.value.len(),
        Part::Fill(at) => op.keys.key(1 + at).len(),
        Part::Made(at) => made(op, *at).len(),
    });
    out.push(b"$");
    out.push_decimal(len.sum::<usize>() as u64);
    out.push(b"\r\n");
    for part in parts {
        match part {
            Part::Text(text) => out.push(text),
            Part::Key => out.push(op.keys.key(0)),
            Part::Number => out.push_decimal(op.delta),
            Part::Value => {
                op.value.push_to(out);
            }
            Part::Fill(at) => out.push(op.keys.key(1 + at)),
            Part::Made(at) => made(op, *at).push_to(out),
        }
    }
    out.push(b"\r\n");
}

/// The bytes that fill a place; none where the request has no values.
fn made<'a>(op: &Op<'a>, place: usize) -> Value<'a> {
    match op.keys {
        Keys::Pairs(pairs) => pairs.value(1 + place),
        _ => Value::default(),
    }
}

/// The bytes of a word that is the same in every request; `None` for a word with a place.
fn text_of(word: &[Part]) -> Option<&[u8]> {
    match word {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}

/// Whether a command of these words has this one behind its name, in any case.
fn has_word(words: &[Vec<Part>], option: &str) -> bool {
    let is_option =
        |word: &Vec<Part>| text_of(word).is_some_and(|text| text.eq_ignore_ascii_case(option.as_bytes()));
    words.iter().skip(1).any(is_option)
}

/// The meaning of replies to a command with these words and so many keys; `None` where they have none.
fn looked_up(row: &CommandRow, words: &[Vec<Part>], keys: usize) -> Option<LookedUp> {
    let tells = row.tells_with(|option| has_word(words, option));
    (tells != Tells::No).then(|| LookedUp { tells, keys: keys.clamp(1, usize::from(u16::MAX)) as u16 })
}

/// The longest time for which a command of these words may wait, in nanoseconds; `None` for one that does not wait. `fills` fill the
/// places of the words: a time-out may be drawn from a range of integers above 0.
fn waits_ns(row: &CommandRow, words: &[Vec<Part>], fills: &[Fill]) -> Result<Option<Nanos>, TemplateError> {
    let Some(wait) = row.wait else { return Ok(None) };
    let is_block = |word: &Vec<Part>| text_of(word).is_some_and(|text| text.eq_ignore_ascii_case(b"BLOCK"));
    let (at, in_seconds) = match wait {
        Wait::Last => (words.len() - 1, true),
        Wait::LastMillis => (words.len() - 1, false),
        Wait::First => (1, true),
        Wait::Block => match words.iter().position(is_block) {
            Some(at) => (at + 1, false),
            None => return Ok(None),
        },
    };
    let longest = match words.get(at).map(Vec::as_slice) {
        Some([Part::Text(text)]) => std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()),
        Some([Part::Fill(fill)]) => match fills[*fill] {
            Fill::Integer(Integers::Range(1.., most), _) => Some(most as f64),
            _ => None,
        },
        _ => None,
    };
    let number = longest.filter(|number| *number > 0.0);
    let ns = number.map(|number| match in_seconds {
        true => from_seconds(number.min(WAIT_MAX_S)),
        false => (number.min(WAIT_MAX_S * 1e3) * MILLISECOND as f64) as Nanos,
    });
    ns.map(Some).ok_or(TemplateError::Endless(row.name))
}

/// A wait that is longer is taken as this, in seconds: no time-out of a run is as long.
const WAIT_MAX_S: f64 = 1e6;

/// The name of the command and the reason, where it is one that cannot be measured.
fn unsuitable(name: &[u8], second: Option<&[u8]>) -> Option<(&'static str, Unsuitable)> {
    let is = |text: &[u8], word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is(name, "DEBUG") && !second.is_some_and(|second| is(second, "SLEEP")) {
        return Some(("DEBUG", Unsuitable::Debug));
    }
    let found = UNSUITABLE.iter().find(|(words, _)| match words.split_once(' ') {
        Some((first, other)) => is(name, first) && second.is_some_and(|second| is(second, other)),
        None => is(name, words),
    });
    found.copied()
}

/// Words on the wire: what is fixed is written out, and joined.
fn pieces_of(words: &[Vec<Part>]) -> Vec<Piece> {
    let mut fixed = format!("*{}\r\n", words.len()).into_bytes();
    let mut pieces = Vec::new();
    for word in words {
        if let Some(text) = text_of(word) {
            fixed.extend(format!("${}\r\n", text.len()).bytes());
            fixed.extend_from_slice(text);
            fixed.extend(b"\r\n");
            continue;
        }
        let piece = match &word[..] {
            [place] => Piece::Place(place.clone()),
            parts => Piece::Word(parts.to_vec()),
        };
        pieces.extend([Piece::Fixed(std::mem::take(&mut fixed)), piece]);
    }
    pieces.push(Piece::Fixed(fixed));
    pieces.retain(|piece| *piece != Piece::Fixed(Vec::new()));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::Bodies;
    use crate::client::route::crc16::slot as slot_of;
    use crate::protocol::contract::sent;
    use crate::protocol::{PairList, PairValue, Pairs, Rest, Value, Verb};
    use proptest::prelude::{prop_assert, proptest};

    fn written(text: &str) -> Result<String, TemplateError> {
        let op = Op {
            value: Value { own: b"own ", rest: Rest::Text { bytes: b"and shared", at: 3 } },
            delta: 100,
            ..Op::new(Verb::Command, b"key")
        };
        let mut out = Outbox::default();
        let template = Template::parse(text)?;
        template.check(&op).expect("one key");
        (0..template.pieces.len()).for_each(|number| template.push(number, &op, &mut out));
        Ok(String::from_utf8(sent(&out)).expect("these tests write ASCII"))
    }

    #[test]
    fn places_are_filled_and_all_else_stays() {
        for (text, wire) in [
            ("PING", "*1\r\n$4\r\nPING\r\n"),
            (
                "  zadd  __key__ __number__\t__value__ ",
                "*4\r\n$4\r\nzadd\r\n$3\r\nkey\r\n$3\r\n100\r\n$14\r\nown and shared\r\n",
            ),
            ("GETRANGE __key__ 0 9", "*4\r\n$8\r\nGETRANGE\r\n$3\r\nkey\r\n$1\r\n0\r\n$1\r\n9\r\n"),
            ("GET user:__key__:__number__", "*2\r\n$3\r\nGET\r\n$12\r\nuser:key:100\r\n"),
            ("SET k <__value__>", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16\r\n<own and shared>\r\n"),
            ("GET __key____key__", "*2\r\n$3\r\nGET\r\n$6\r\nkeykey\r\n"),
            ("GET '__key__ x'", "*2\r\n$3\r\nGET\r\n$5\r\nkey x\r\n"),
            ("SET a \"\"", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n"),
            ("GET __init", "*2\r\n$3\r\nGET\r\n$6\r\n__init\r\n"),
            (
                "MULTI ; INCR __key__ ; EXEC",
                "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$3\r\nkey\r\n*1\r\n$4\r\nEXEC\r\n",
            ),
            ("ECHO ';' ;; ECHO ;x", "*2\r\n$4\r\nECHO\r\n$1\r\n;\r\n*2\r\n$4\r\nECHO\r\n$2\r\n;x\r\n"),
            ("ECHO a;b", "*2\r\n$4\r\nECHO\r\n$3\r\na;b\r\n"),
        ] {
            assert_eq!(written(text).as_deref(), Ok(wire), "{text}");
        }
    }

    #[test]
    fn a_command_in_the_inline_form_is_a_line() {
        let inline = |text: &str| {
            let mut out = Outbox::default();
            Template::parse_inline(text)?.push(0, &Op::new(Verb::Command, b"key"), &mut out);
            Ok(String::from_utf8(sent(&out)).expect("these tests write ASCII"))
        };
        assert_eq!(inline("PING"), Ok("PING\r\n".to_owned()));
        assert_eq!(inline(" SET  k v "), Ok("SET k v\r\n".to_owned()));
        for text in
            ["GET __key__", "SET k 'a b'", "SET k ''", r#"SET k "\x01""#, "SET k 'a\"'", "PING ; PING"]
        {
            assert_eq!(inline(text), Err(TemplateError::Inline), "{text}");
        }
        assert_eq!(inline("MONITOR"), Template::parse("MONITOR").map(|_| String::new()));
    }

    #[test]
    fn reads_are_known_by_the_flags_of_redis() {
        let reads = |text: &str| Template::parse(text).expect("a command").reads();
        for text in [
            "GET __key__",
            "zrange __key__ 0 -1",
            "TOUCH __key__",
            "OBJECT encoding __key__",
            "SORT_RO __key__",
            "XREAD COUNT 1 STREAMS __key__ 0",
            "GET __key__ ; TTL __key__ ;; GET __key__",
        ] {
            assert!(reads(text), "{text}");
        }
        for text in [
            "GETEX __key__",
            "GETDEL __key__",
            "SORT __key__",
            "BITFIELD __key__ GET u8 0",
            "BLPOP __key__ 1",
            "EVAL 'return 1' 1 __key__",
            "OBJECT FREEZE __key__",
            "OBJECT __key__",
            "OBJECT",
            "PING",
            "GET __key__ ; DEL __key__",
            "MULTI ; GET __key__ ; EXEC",
            "WATCH __key__ ; GET __key__ ; UNWATCH",
        ] {
            assert!(!reads(text), "{text}");
        }
    }

    #[test]
    fn a_number_of_one_digit_has_the_length_1() {
        for (delta, digits) in [(0, "0"), (9, "9"), (10, "10"), (u64::MAX, "18446744073709551615")] {
            let mut out = Outbox::default();
            let template = Template::parse("ECHO <__number__>").expect("a command");
            let op = Op { delta, ..Op::new(Verb::Command, b"key") };
            template.push(0, &op, &mut out);
            let wire = format!("*2\r\n$4\r\nECHO\r\n${}\r\n<{digits}>\r\n", digits.len() + 2);
            assert_eq!(sent(&out), wire.as_bytes());
        }
    }

    #[test]
    fn a_text_that_is_no_template_is_refused_with_its_reason() {
        for (text, error) in [
            ("", TemplateError::Empty),
            ("  ", TemplateError::Empty),
            ("GET \"a", TemplateError::Open),
            ("GET \"a\"b", TemplateError::Glued),
            ("__key__", TemplateError::NoCommand),
            ("GET__key__ x", TemplateError::NoCommand),
            ("SET __key__ __data__", TemplateError::Place(PlaceError::Unknown("__data__".to_string()))),
            ("SUBSCRIBE __key__", TemplateError::Unsuitable("SUBSCRIBE", Unsuitable::NoReply)),
            ("monitor", TemplateError::Unsuitable("MONITOR", Unsuitable::NoReply)),
            ("client reply off", TemplateError::Unsuitable("CLIENT REPLY", Unsuitable::NoReply)),
            ("multi", TemplateError::Transaction(TransactionFault::NoExec)),
            ("MULTI ; INCR __key__", TemplateError::Transaction(TransactionFault::NoExec)),
            ("exec", TemplateError::Transaction(TransactionFault::NoMulti("EXEC"))),
            ("MULTI ; EXEC ; DISCARD", TemplateError::Transaction(TransactionFault::NoMulti("DISCARD"))),
            ("MULTI ; multi ; EXEC", TemplateError::Transaction(TransactionFault::Inside("MULTI"))),
            ("MULTI ; WATCH __key__ ; EXEC", TemplateError::Transaction(TransactionFault::Inside("WATCH"))),
            ("WATCH __key__", TemplateError::Transaction(TransactionFault::WatchAlone)),
            ("WATCH __key__ ; GET __key__", TemplateError::Transaction(TransactionFault::WatchAlone)),
            ("MULTI 1 ; EXEC", TemplateError::Arity("MULTI", 1)),
            ("MULTI ; SELECT 1 ; EXEC", TemplateError::Unsuitable("SELECT", Unsuitable::Database)),
            ("GET __key__ ; GET", TemplateError::Arity("GET", 2)),
            ("GET __key__ ; BLPOP __key__ 0", TemplateError::Endless("BLPOP")),
            ("GET __key__ ;", TemplateError::Empty),
            ("; GET __key__", TemplateError::Empty),
            ("PING ;; ; PING", TemplateError::Empty),
            ("select 1", TemplateError::Unsuitable("SELECT", Unsuitable::Database)),
            ("debug reload", TemplateError::Unsuitable("DEBUG", Unsuitable::Debug)),
            ("GET", TemplateError::Arity("GET", 2)),
            ("ZADD __key__ 1", TemplateError::Arity("ZADD", -4)),
            ("BLPOP __key__ 0", TemplateError::Endless("BLPOP")),
            ("BLPOP __key__ __int:0-2__", TemplateError::Endless("BLPOP")),
            ("XREAD BLOCK 0 STREAMS __key__ $", TemplateError::Endless("XREAD")),
        ] {
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        let pings = |count: usize| Template::parse(&vec!["PING"; count].join(" ; ")).map(|_| ());
        assert_eq!(pings(SEQUENCE_MAX), Ok(()));
        assert_eq!(pings(SEQUENCE_MAX + 1), Err(TemplateError::TooMany(SEQUENCE_MAX + 1)));
        for text in ["CLIENT ID", "DEBUG SLEEP 0", "NEW.COMMAND", "XREAD STREAMS __key__ 0"] {
            assert!(Template::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn lookups_are_those_that_servers_count_and_scripts_look_up_what_they_like() {
        let lookups = |text: &str| Template::parse(text).expect("a command").key_lookups();
        for (text, per_request, told) in [
            ("GET __key__", 1, Told::Keys),
            ("MGET __key__ __key2__", 2, Told::Keys),
            ("HGETALL __key__", 1, Told::Keys),
            ("HMGET __key__ a b", 1, Told::Other),
            ("LRANGE __key__ 0 9", 1, Told::Other),
            ("STRLEN __key__", 1, Told::Nothing),
            ("PFCOUNT __key__ __key2__", 2, Told::Nothing),
            ("XREAD STREAMS __key__ 0", 2, Told::Other),
            ("MEMORY USAGE __key__", 0, Told::Other),
            ("SET __key__ x", 0, Told::Nothing),
            ("SET __key__ x GET", 1, Told::Keys),
            ("GETDEL __key__", 1, Told::Keys),
            ("LPOP __key__", 0, Told::Other),
            ("SUNIONSTORE {x}d __key__ __key2__", 2, Told::Other),
            ("ZUNIONSTORE {x}d 2 __key__ __key2__", 2, Told::Other),
            ("PFMERGE {x}d __key__", 2, Told::Nothing),
        ] {
            assert_eq!(lookups(text), Some(KeyLookups { per_request, told }), "{text}");
        }
        for text in [
            "EVAL x 1 __key__",
            "FCALL_RO f 1 __key__",
            "SORT __key__",
            "NEW.COMMAND __key__",
            "GET __key__ ; STRLEN __key__",
        ] {
            assert_eq!(lookups(text), None, "{text}");
        }
        let expecting = |shape| Template::parse("GET __key__").map(|template| template.expecting(shape));
        for (shape, told) in [(ReplyShape::Any, Told::Nothing), (ReplyShape::Nonempty, Told::Other)] {
            let lookups = expecting(shape).expect("a command").key_lookups();
            assert_eq!(lookups, Some(KeyLookups { per_request: 1, told }));
        }
        let counts_once = |text: &str| Template::parse(text).expect("a command").counts_once();
        assert!(counts_once("LRANGE __key__ 0 9") && !counts_once("EVAL x 1 __key__"));
        assert!(!counts_once("NEW.COMMAND") && !counts_once("MULTI ; SET __key__ x ; EXEC"));
    }

    #[test]
    fn commands_that_wait_say_for_how_long() {
        let waits = |text: &str| Template::parse(text).expect("a command").waits_ns();
        for (text, ms) in [
            ("BLPOP __key__ 0.25", 250),
            ("BLMOVE __key__ {x}d LEFT LEFT 2", 2_000),
            ("BLMPOP 3 1 __key__ LEFT", 3_000),
            ("XREAD COUNT 1 BLOCK 20 STREAMS __key__ $", 20),
            ("WAIT 1 100", 100),
            ("WAIT __int:0-2__ __int:5-70__", 70),
            ("BLPOP __key__ 0.25 ; GET __key__ ;; BRPOP __key__ 1", 1_250),
        ] {
            assert_eq!(waits(text), Some(ms * MILLISECOND), "{text}");
        }
        for endless in ["WAIT 1 0", "WAIT 1 __int:0-70__", "WAIT 1 __seq__", "WAIT 1 1__int:1-2__"] {
            assert_eq!(Template::parse(endless), Err(TemplateError::Endless("WAIT")), "{endless}");
        }
        assert_eq!(waits("XREAD STREAMS __key__ 0"), None);
        assert_eq!(waits("LPOP __key__"), None);
        assert_eq!(waits("MULTI ; BLPOP __key__ 0 ; EXEC"), None, "nothing waits in a transaction");
    }

    #[test]
    fn what_replies_tell_depends_on_the_command_and_its_options() {
        let tells =
            |text: &str| Template::parse(text).expect("a command").looked_up().map(|up| (up.tells, up.keys));
        for (text, expected) in [
            ("LRANGE __key__ 0 9", Some((Tells::Nothing, 1))),
            ("SET __key__ 1", None),
            ("SET __key__ 1 xx", Some((Tells::Nothing, 1))),
            ("SET __key__ 1 NX", Some((Tells::NotNothing, 1))),
            ("SET __key__ 1 NX GET", Some((Tells::Nothing, 1))),
            ("EXPIRE __key__ 10", Some((Tells::Zero, 1))),
            ("EXPIRE __key__ 10 GT", None),
            ("EXISTS __key__ __key2__ __key3__", Some((Tells::Count, 3))),
            ("MGET __key__ __key2__", Some((Tells::EachNull, 2))),
            ("SMISMEMBER __key__ a b", Some((Tells::EachZero, 1))),
            ("ZUNION 2 __key__ __key2__", Some((Tells::Nothing, 2))),
            ("GETRANGE __key__ 0 1", None),
            ("NEW.COMMAND __key__", None),
            ("GET __key__ ; GET __key__", None),
        ] {
            assert_eq!(tells(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cluster_takes_commands_whose_keys_have_the_slot_of_the_record() {
        let keeps = |text: &str, tag| Template::parse(text).expect("a command").keeps_slot(tag, slot_of);
        for text in [
            "GET __key__",
            "GET {__key__}:a",
            "NEW __key__ x:__number__",
            "PING",
            "EVAL x 1 __key__ __int:1-2__",
            "WATCH __key__ ; MULTI ; INCR {__key__}:a ; EXEC",
            "GET a:{__key__}:__int:1-9__",
            "MGET {__key__}:__int:1-9__ {__key__}__client__",
        ] {
            assert!(keeps(text, false), "{text}");
        }
        for text in [
            "GET __key__:a",
            "LPUSH mylist __value__",
            "MGET __key__ __key2__",
            "GET __client__",
            "GET __key__:__int:1-9__",
            "GET {a}__key__:__int:1-9__",
            "GET {}{__key__}__client__",
            "GET {x__key__}__client__",
            "EVAL x 1 l",
            "EVAL x __int:1-2__ __key__ l",
            "GET __key__ ; GET a",
            "WATCH a ; MULTI ; GET __key__ ; EXEC",
        ] {
            assert!(!keeps(text, false), "{text}");
        }
        assert!(keeps("MGET __key__ __key2__", true));
        assert!(keeps("GET __key__:a", true));
        assert!(!keeps("GET {x}__key__", true));
    }

    #[test]
    fn places_are_filled_with_what_a_request_found() {
        let template =
            Template::parse("ZADD __key__ __int:10-19__ m:__number:4__:__seq__").expect("a command");
        let wanted: Vec<Wanted> = (0..template.fill_count()).map(|place| template.wanted(place)).collect();
        assert_eq!(wanted, [Wanted::Bits, Wanted::Number(0), Wanted::Sequence]);
        let (mut bytes, mut ends) = (b"key".to_vec(), vec![3]);
        for (place, found) in [u64::MAX, 7, 42].into_iter().enumerate() {
            template.write_fill(place, found, &mut bytes);
            ends.push(bytes.len() as u32);
        }
        let op = Op { keys: Keys::Many { bytes: &bytes, ends: &ends }, ..Op::new(Verb::Command, b"") };
        let mut out = Outbox::default();
        assert_eq!(template.check(&op), Ok(()));
        template.push(0, &op, &mut out);
        assert_eq!(sent(&out), b"*4\r\n$4\r\nZADD\r\n$3\r\nkey\r\n$2\r\n19\r\n$9\r\nm:0007:42\r\n");
        assert!(template.check(&Op::new(Verb::Command, b"key")).is_err());
    }

    #[test]
    fn places_are_filled_with_bytes_of_their_own_length() {
        let template = Template::parse("RPUSH __key__ __value:3__ <__value:2__:__seq__>").expect("a command");
        assert_eq!(template.lengths(0), Some(&Dist::Fixed(3.0)));
        assert_eq!(template.lengths(2), None);
        let bodies = Bodies::new(0, 16.0);
        let body = |len_bytes| Value { own: b"", rest: Rest::Body { bodies: &bodies, seed: 7, len_bytes } };
        let list = PairList {
            bytes: b"key8".to_vec(),
            ends: vec![3, 3, 3, 4],
            values: [0, 3, 2].map(|len| PairValue::of(&body(len))).to_vec(),
        };
        let op =
            Op { keys: Keys::Pairs(Pairs { list: &list, bodies: &bodies }), ..Op::new(Verb::Command, b"") };
        let mut out = Outbox::default();
        assert_eq!(template.check(&op), Ok(()));
        template.push(0, &op, &mut out);
        let wire = "*4\r\n$5\r\nRPUSH\r\n$3\r\nkey\r\n$3\r\n\0\0\0\r\n$6\r\n<\0\0:8>\r\n";
        assert_eq!(String::from_utf8(sent(&out)).as_deref(), Ok(wire));
        let without = Op { keys: Keys::Many { bytes: &list.bytes, ends: &list.ends }, ..op };
        assert!(template.check(&without).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            if let Ok(wire) = written(&text) {
                prop_assert!(wire.starts_with('*'));
            }
        }
    }
}
