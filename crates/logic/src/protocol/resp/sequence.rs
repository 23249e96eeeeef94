//! Sequences of commands in one template: their transactions, the parts between which they wait, and which commands go out at once.

/// Most commands of a sequence.
pub const SEQUENCE_MAX: usize = 32;

/// Some commands of a sequence: bit n stands for command n.
pub type CommandSet = u32;

/// The task of a command in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The command is carried out by itself.
    Plain,
    /// The command watches keys for the transaction behind it.
    Watch,
    /// The command begins a transaction.
    Multi,
    /// The command is queued in a transaction.
    Queued,
    /// The command carries out the transaction.
    Exec,
    /// The command drops the transaction.
    Discard,
}

/// Why the commands of a sequence do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionFault {
    /// No `EXEC` follows `MULTI`.
    NoExec,
    /// This command stands where no `MULTI` goes before it.
    NoMulti(&'static str),
    /// `MULTI` or `WATCH` stands between `MULTI` and `EXEC`.
    Inside(&'static str),
    /// No `MULTI` follows `WATCH`.
    WatchAlone,
}

impl TransactionFault {
    /// The reason in words.
    pub(super) fn words(self) -> String {
        match self {
            TransactionFault::NoExec => {
                "MULTI needs EXEC behind it, in the same sequence: 'MULTI ; INCR __key__ ; EXEC'".to_owned()
            }
            TransactionFault::NoMulti(name) => format!("{name} needs MULTI before it, in the same sequence"),
            TransactionFault::Inside(name) => format!("{name} cannot stand between MULTI and EXEC"),
            TransactionFault::WatchAlone => {
                "WATCH needs MULTI and EXEC, or UNWATCH, behind it in the same sequence: what it watches would count for the requests that \
                 follow"
                    .to_owned()
            }
        }
    }
}

/// A command of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SequenceCommand {
    pub(super) role: Role,
    /// Number of the part, which is sent when all replies to the part before have come.
    pub(super) part: usize,
    /// The commands that are repeated together with this one: those of its transaction, from `WATCH` on.
    pub(super) unit: CommandSet,
    pub(super) has_keys: bool,
    /// The command only reads, by the flags of Redis.
    pub(super) reads: bool,
}

/// The commands of a sequence, two or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    pub(super) commands: Vec<SequenceCommand>,
}

/// The commands of a sequence that are sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// The commands; none stands for those of the first part.
    pub commands: CommandSet,
    /// `ASKING` goes before each command up to `MULTI`.
    pub is_asking: bool,
    /// `UNWATCH` is sent in place of commands.
    pub is_unwatching: bool,
}

const ASKING_BIT: u32 = 32;
const UNWATCHING_BIT: u32 = 33;

impl Sending {
    /// The number as which a request carries it ([`Op::cas`](crate::protocol::Op::cas)); 0 is the first part.
    pub fn to_bits(self) -> u64 {
        u64::from(self.commands)
            | u64::from(self.is_asking) << ASKING_BIT
            | u64::from(self.is_unwatching) << UNWATCHING_BIT
    }

    /// The commands that a request with this number sends.
    pub(super) fn from_bits(bits: u64) -> Sending {
        Sending {
            commands: bits as CommandSet,
            is_asking: bits >> ASKING_BIT & 1 != 0,
            is_unwatching: bits >> UNWATCHING_BIT & 1 != 0,
        }
    }
}

/// The numbers of some commands, in order.
pub(super) fn numbers(commands: CommandSet) -> impl Iterator<Item = usize> {
    (0..SEQUENCE_MAX).filter(move |number| commands >> number & 1 != 0)
}

/// The tasks of commands with these names, and the commands that each is repeated with.
pub(super) fn roles(names: &[&[u8]]) -> Result<Vec<(Role, CommandSet)>, TransactionFault> {
    let is = |name: &[u8], word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let mut roles: Vec<(Role, CommandSet)> = Vec::with_capacity(names.len());
    // The first command of the transaction or of what it watches, and whether MULTI has come.
    let (mut begun, mut is_multi) = (None, false);
    for (number, name) in names.iter().enumerate() {
        let role = match (*name, is_multi) {
            (name, true) if is(name, "MULTI") => return Err(TransactionFault::Inside("MULTI")),
            (name, true) if is(name, "WATCH") => return Err(TransactionFault::Inside("WATCH")),
            (name, false) if is(name, "EXEC") => return Err(TransactionFault::NoMulti("EXEC")),
            (name, false) if is(name, "DISCARD") => return Err(TransactionFault::NoMulti("DISCARD")),
            (name, false) if is(name, "MULTI") => Role::Multi,
            (name, false) if is(name, "WATCH") => Role::Watch,
            (name, true) if is(name, "EXEC") => Role::Exec,
            (name, true) if is(name, "DISCARD") => Role::Discard,
            (_, true) => Role::Queued,
            (_, false) => Role::Plain,
        };
        is_multi |= role == Role::Multi;
        if matches!(role, Role::Watch | Role::Multi) {
            begun = begun.or(Some(number));
        }
        roles.push((role, 1 << number));
        let is_end = matches!(role, Role::Exec | Role::Discard) || role == Role::Plain && is(name, "UNWATCH");
        if let Some(first) = begun.filter(|_| is_end) {
            let unit = (first..=number).fold(0, |all, number| all | 1 << number);
            roles[first..=number].iter_mut().for_each(|(_, other)| *other = unit);
            (begun, is_multi) = (None, false);
        }
    }
    match begun {
        Some(_) if is_multi => Err(TransactionFault::NoExec),
        Some(_) => Err(TransactionFault::WatchAlone),
        None => Ok(roles),
    }
}

impl Sequence {
    /// The set of all commands.
    pub fn all(&self) -> CommandSet {
        CommandSet::MAX >> (SEQUENCE_MAX - self.commands.len())
    }

    /// Whether the sequence waits for replies before it goes on.
    pub fn is_divided(&self) -> bool {
        self.commands.last().is_some_and(|last| last.part > 0)
    }

    /// Whether the sequence waits for replies between `WATCH`, or `MULTI`, and the end of its transaction, so that no other request may
    /// come in between.
    pub fn divides_transaction(&self) -> bool {
        let part_of_first = |command: &SequenceCommand| {
            self.commands.get(command.unit.trailing_zeros() as usize).map(|first| first.part)
        };
        self.commands.iter().any(|command| part_of_first(command) != Some(command.part))
    }

    /// Whether a transaction that is repeated would write twice: a command that writes stands between its `WATCH` and its `MULTI`.
    pub fn writes_before_transaction(&self) -> bool {
        let writes = |command: &SequenceCommand| {
            command.role == Role::Plain && command.unit.count_ones() > 1 && !command.reads && command.has_keys
        };
        self.commands.iter().any(writes)
    }

    /// The commands among `left` that are sent next. Those among `asked` are sent behind `ASKING`, by themselves.
    pub fn next(&self, left: CommandSet, asked: CommandSet) -> Sending {
        let of = |number: usize| (self.commands.get(number).map(|command| command.part), asked >> number & 1);
        let first = of(left.trailing_zeros() as usize);
        let commands = numbers(left).take_while(|&number| of(number) == first).fold(0, |all, n| all | 1 << n);
        Sending { commands, is_asking: first.1 != 0, is_unwatching: false }
    }

    /// The commands that are repeated together with these.
    pub fn units_of(&self, commands: CommandSet) -> CommandSet {
        numbers(commands).filter_map(|number| self.commands.get(number)).fold(0, |all, own| all | own.unit)
    }

    /// Whether the first of these commands goes on with what earlier ones on the same connection began: it stands within a transaction,
    /// or behind its `WATCH`.
    pub fn goes_on(&self, commands: CommandSet) -> bool {
        let first = commands.trailing_zeros();
        self.commands.get(first as usize).is_some_and(|own| own.unit.trailing_zeros() < first)
    }

    /// Whether `MULTI` was sent before these commands, and they end its transaction.
    pub fn is_in_transaction(&self, commands: CommandSet) -> bool {
        let first = self.commands.get(commands.trailing_zeros() as usize);
        first.is_some_and(|first| matches!(first.role, Role::Queued | Role::Exec | Role::Discard))
    }

    /// Whether a connection watches keys before these commands, the first of which goes on with a transaction. `failed` were not carried
    /// out.
    pub fn watches_before(&self, commands: CommandSet, failed: CommandSet) -> bool {
        let first = self.commands.get(commands.trailing_zeros() as usize);
        let watches =
            |number: &usize| self.commands[*number].role == Role::Watch && failed >> number & 1 == 0;
        !self.is_in_transaction(commands)
            && first.is_some_and(|first| numbers(first.unit).any(|number| watches(&number)))
    }

    /// The commands of the first part.
    pub(super) fn first_part(&self) -> CommandSet {
        self.next(self.all(), 0).commands
    }

    /// Whether `ASKING` goes before this command where it is asked for.
    pub(super) fn takes_asking(&self, number: usize) -> bool {
        matches!(self.commands[number].role, Role::Plain | Role::Watch | Role::Multi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::resp::template::Template;

    fn sequence(text: &str) -> Sequence {
        Template::parse(text).expect("a template").sequence().expect("several commands").clone()
    }

    #[test]
    fn a_transaction_is_one_unit_from_what_it_watches_on() {
        let units = |text: &str| sequence(text).commands.iter().map(|own| own.unit).collect::<Vec<_>>();
        assert_eq!(units("GET a ; MULTI ; INCR a ; EXEC ; GET a"), [1, 0b1110, 0b1110, 0b1110, 0b1_0000]);
        assert_eq!(units("watch a ; GET a ;; multi ; INCR a ; discard"), [0b1_1111; 5]);
        assert_eq!(units("WATCH a ; UNWATCH ; GET a"), [0b11, 0b11, 0b100]);
        assert_eq!(units("UNWATCH ; GET a"), [1, 2]);
    }

    #[test]
    fn parts_are_sent_one_by_one_and_those_behind_asking_by_themselves() {
        let of = |commands, is_asking| Sending { commands, is_asking, is_unwatching: false };
        let divided = sequence("WATCH a ; GET a ;; MULTI ; SET a 1 ; EXEC ; GET a ;; GET a");
        assert_eq!(divided.next(divided.all(), 0), of(0b11, false));
        assert_eq!(divided.next(0b111_1100, 0), of(0b11_1100, false));
        assert_eq!(divided.next(0b111_1100, 0b1_1111), of(0b1_1100, true));
        assert_eq!(divided.next(0b110_0000, 0b1_1111), of(0b10_0000, false));
        assert_eq!(divided.next(0b100_0000, 0), of(0b100_0000, false));
        assert_eq!(divided.units_of(0b1001), 0b1_1111);
        assert!(divided.is_divided() && divided.divides_transaction());
        assert!(divided.goes_on(0b1_1100) && !divided.goes_on(0b1_1111) && !divided.goes_on(0b10_0000));
        assert!(divided.watches_before(0b1_1100, 0b10) && !divided.watches_before(0b1_1100, 1));
        assert!(!divided.watches_before(0b1_1000, 0));
        assert!(divided.is_in_transaction(0b1_1000) && !divided.is_in_transaction(0b1_1100));
        let plain = sequence("SET a 1 ;; GET a");
        assert!(plain.is_divided() && !plain.divides_transaction());
        let whole = sequence("WATCH a ; MULTI ; GET a ; EXEC");
        assert!(!whole.is_divided() && !whole.divides_transaction());
        assert_eq!(whole.next(whole.all(), 0), of(0b1111, false));
    }

    #[test]
    fn writes_between_watch_and_multi_would_be_repeated() {
        for (text, writes) in [
            ("WATCH a ; GET a ; MULTI ; SET a 1 ; EXEC", false),
            ("WATCH a ; SET a 1 ; MULTI ; GET a ; EXEC", true),
            ("WATCH a ; NEW __key__ ; MULTI ; GET a ; EXEC", true),
            ("SET a 1 ; WATCH a ; PING ; MULTI ; GET a ; EXEC ; SET a 1", false),
        ] {
            assert_eq!(sequence(text).writes_before_transaction(), writes, "{text}");
        }
    }

    #[test]
    fn what_is_sent_is_carried_as_a_number() {
        for sending in [
            Sending::default(),
            Sending { commands: u32::MAX, is_asking: true, is_unwatching: false },
            Sending { commands: 0, is_asking: false, is_unwatching: true },
        ] {
            assert_eq!(Sending::from_bits(sending.to_bits()), sending);
        }
        assert_eq!(Sending::default().to_bits(), 0);
    }
}
