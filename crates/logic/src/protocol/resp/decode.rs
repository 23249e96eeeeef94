//! Replies of RESP, value by value, and their meaning for the oldest request.

use std::mem;

use super::asked::{ExpectedReply, Found, LookedUp, NoElement};
use super::command_table::Tells;
use super::reply::{self, StatusWord, ValueHead};
use super::{Meaning, Passing, Resp, RespPosition, StringEnd};
use crate::protocol::lines::Line;
use crate::protocol::sized_value::ValuePosition;
use crate::protocol::{Fault, Malformed, Outcome, Step};

impl<const VERSION: u8> Resp<VERSION> {
    /// Takes the first line of a value.
    #[inline]
    pub(super) fn take_line<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Line<'i>>, Malformed> {
        let Some(&first) = input.first() else { return Ok(None) };
        if self.lines.at_start() {
            reply::check_first(first, VERSION)?;
        }
        self.lines.advance(input, reply::may_be_long)
    }

    /// Returns the meaning of a value whose first line has come.
    #[inline]
    pub(super) fn meaning(&mut self, head: ValueHead) -> Result<Meaning, Malformed> {
        if let ValueHead::Attribute(values) = head {
            self.skip = self.skip.checked_add(values).ok_or(TOO_MANY)?;
            if let Some(uncommon) = &mut self.uncommon {
                // The next string is the attribute's, and no name and no element.
                uncommon.names_push = false;
                if let Some(found) = &mut uncommon.found_of_list {
                    found.inner = found.inner.saturating_add(values);
                }
            }
            return Ok(Meaning::Nothing);
        }
        if self.skip > 0 {
            return self.pass_over(head);
        }
        if self.uncommon.as_ref().is_some_and(|uncommon| uncommon.reading) {
            return self.element(head);
        }
        if let ValueHead::Push(values) = head {
            self.skip = values;
            self.uncommon.get_or_insert_default().names_push = values > 0;
            return Ok(Meaning::Nothing);
        }
        self.answer(head)
    }

    /// Handles a value that answers the oldest request.
    #[inline]
    pub(super) fn answer(&mut self, head: ValueHead) -> Result<Meaning, Malformed> {
        // Where no request waits, the caller rejects the reply.
        let kind = self.asked.front().copied().unwrap_or(ExpectedReply::Any);
        let outcome = match (kind, head) {
            (ExpectedReply::Sequence, head) => return Ok(self.in_sequence(head)),
            (_, ValueHead::Error(fault)) => return Ok(self.fails(fault)),
            (_, ValueHead::ErrorString(size)) => return Ok(self.begin_string(size, Passing::Words)),
            (ExpectedReply::LookedUp(asked), head) => return Ok(self.looked_up(asked, head)),
            (ExpectedReply::Value, ValueHead::String(size)) => {
                return Ok(self.begin_string(size, Passing::Whole));
            }
            (ExpectedReply::Value, ValueHead::Null) => Outcome::Miss,
            (ExpectedReply::Values, ValueHead::Array(values)) => return self.begin_read(values),
            (ExpectedReply::Stored, ValueHead::Status(StatusWord::Ok)) => Outcome::Stored,
            (ExpectedReply::Stored, ValueHead::Null) => Outcome::NotStored,
            (ExpectedReply::Grown, ValueHead::Integer(_)) => Outcome::Stored,
            (ExpectedReply::Removed, ValueHead::Integer(count)) if count > 0 => Outcome::Deleted,
            (ExpectedReply::Touched, ValueHead::Integer(count)) if count > 0 => Outcome::Touched,
            (ExpectedReply::Removed | ExpectedReply::Touched, ValueHead::Integer(_)) => Outcome::NotFound,
            (ExpectedReply::Counted | ExpectedReply::Any, ValueHead::Integer(number)) => number_of(number),
            (ExpectedReply::Pong, ValueHead::Status(StatusWord::None | StatusWord::Other)) => Outcome::Ok,
            (ExpectedReply::Any, ValueHead::Null) => Outcome::NotFound,
            (
                ExpectedReply::Any,
                ValueHead::Status(_) | ValueHead::Plain | ValueHead::Array(0) | ValueHead::Group(0),
            ) => Outcome::Ok,
            (ExpectedReply::Any, ValueHead::Array(values) | ValueHead::Group(values)) => {
                (self.skip, self.ending) = (values, Some(Outcome::Ok));
                return Ok(Meaning::Nothing);
            }
            (ExpectedReply::Any, ValueHead::String(size) | ValueHead::Verbatim(size)) => {
                (self.skip, self.ending) = (1, Some(Outcome::Ok));
                return Ok(self.begin_string(size, Passing::Dropped));
            }
            _ => return Err(UNFIT),
        };
        self.asked.pop_front();
        Ok(Meaning::Reply(outcome))
    }

    /// Handles the value that answers a command whose reply says what was found.
    #[inline(never)]
    fn looked_up(&mut self, asked: LookedUp, head: ValueHead) -> Meaning {
        let is_empty = matches!(head, ValueHead::Null | ValueHead::Array(0) | ValueHead::Group(0));
        let was_there = match (asked.tells, head) {
            (Tells::Nothing | Tells::EachNull | Tells::EachZero | Tells::Scan, _) => !is_empty,
            (Tells::NotNothing, _) => is_empty,
            (Tells::Ok, head) => head == ValueHead::Status(StatusWord::Ok),
            (Tells::Integer, head) => matches!(head, ValueHead::Integer(_)),
            (Tells::NotEmpty, ValueHead::String(0) | ValueHead::Verbatim(..=VERBATIM_HEAD_BYTES)) => false,
            (Tells::NotEmpty, _) => !is_empty,
            (Tells::Zero, ValueHead::Integer(number)) => number != 0,
            (Tells::NotZero, ValueHead::Integer(number)) => number == 0,
            (Tells::MinusTwo, ValueHead::Integer(number)) => number != -2,
            (Tells::NoType, ValueHead::Status(word)) => word != StatusWord::None,
            (Tells::Count, ValueHead::Integer(number)) => {
                let hits = number.clamp(0, asked.keys.into()) as u16;
                self.asked.pop_front();
                return Meaning::Reply(Outcome::Found { hits, of: asked.keys });
            }
            _ => !matches!(head, ValueHead::Null),
        };
        let found = match (asked.tells, head) {
            (Tells::Null, ValueHead::Null) => Outcome::Ok,
            (Tells::Null, _) => Outcome::Error(Fault::Unexpected),
            _ => Outcome::Found { hits: was_there.into(), of: 1 },
        };
        match head {
            ValueHead::Array(values @ 1..) | ValueHead::Group(values @ 1..) => {
                (self.skip, self.ending) = (values, Some(found));
                let none = match asked.tells {
                    Tells::EachNull => Some(NoElement::Null),
                    Tells::EachZero => Some(NoElement::Zero),
                    Tells::Scan => Some(NoElement::Cursor),
                    _ => None,
                };
                if let Some(none) = none {
                    self.uncommon.get_or_insert_default().found_of_list =
                        Some(Found { none, ..Found::default() });
                }
                Meaning::Nothing
            }
            ValueHead::String(size) | ValueHead::Verbatim(size) => {
                (self.skip, self.ending) = (1, Some(found));
                self.begin_string(size, Passing::Dropped)
            }
            _ => {
                self.asked.pop_front();
                Meaning::Reply(found)
            }
        }
    }

    /// Handles the value that answers the next command of a sequence.
    #[inline(never)]
    fn in_sequence(&mut self, head: ValueHead) -> Meaning {
        let uncommon = self.uncommon.get_or_insert_default();
        let Some(replies) = uncommon.sequences.front_mut() else { return Meaning::Nothing };
        if !matches!(head, ValueHead::Error(_) | ValueHead::ErrorString(_)) {
            replies.pass(head);
        }
        match head {
            ValueHead::Error(fault) => Meaning::FailsInSequence(fault),
            ValueHead::ErrorString(size) => self.begin_string(size, Passing::Words),
            ValueHead::Array(values @ 1..) | ValueHead::Group(values @ 1..) => {
                if replies.is_of_exec() {
                    uncommon.found_of_list = Some(Found::default());
                }
                (self.skip, self.ending) = (values, Some(Outcome::Ok));
                Meaning::Nothing
            }
            ValueHead::String(size) | ValueHead::Verbatim(size) => {
                (self.skip, self.ending) = (1, Some(Outcome::Ok));
                self.begin_string(size, Passing::Dropped)
            }
            _ => self.value_ends().map_or(Meaning::Nothing, Meaning::Over),
        }
    }

    /// Notes that a value in the replies to a sequence is complete. Returns the outcome of the sequence if it was the last one.
    pub(super) fn value_ends(&mut self) -> Option<Outcome> {
        if self.skip > 0 {
            return self.passed_over();
        }
        let uncommon = self.uncommon.as_mut()?;
        uncommon.found_of_list = None;
        let outcome = uncommon.sequences.front_mut()?.end_command()?;
        uncommon.answer_sequence();
        self.asked.pop_front();
        Some(outcome)
    }

    /// Begins the array that answers a multi-get.
    pub(super) fn begin_read(&mut self, values: u64) -> Result<Meaning, Malformed> {
        let uncommon = self.uncommon.get_or_insert_default();
        if uncommon.reads.front().is_none_or(|read| read.ends.len() as u64 != values) {
            return Err(Malformed("the reply to a multi-get has not one value for each key"));
        }
        (uncommon.reading, uncommon.passed, uncommon.found) = (true, 0, false);
        Ok(Meaning::Nothing)
    }

    /// Handles a value of the array that answers a multi-get. An error in the array ends the request, and the rest of
    /// the array is dropped. Proxies send such errors for keys of servers that they cannot reach.
    pub(super) fn element(&mut self, head: ValueHead) -> Result<Meaning, Malformed> {
        match head {
            ValueHead::String(size) => Ok(self.begin_string(size, Passing::Part)),
            ValueHead::Null => Ok(self.element_passed(false).map_or(Meaning::Nothing, Meaning::Over)),
            ValueHead::Error(fault) => Ok(self.fails(fault)),
            ValueHead::ErrorString(size) => Ok(self.begin_string(size, Passing::Words)),
            _ => Err(UNFIT),
        }
    }

    /// Notes that a value of a multi-get is complete. Returns the outcome of the request if the value was the last
    /// one.
    pub(super) fn element_passed(&mut self, found: bool) -> Option<Outcome> {
        let uncommon = self.uncommon.as_mut()?;
        uncommon.passed += 1;
        uncommon.found |= found;
        if uncommon.passed < uncommon.reads.front()?.ends.len() {
            return None;
        }
        let outcome = if uncommon.found { Outcome::Hit } else { Outcome::Miss };
        uncommon.answer();
        self.asked.pop_front();
        Some(outcome)
    }

    /// Ends the oldest request with an error.
    pub(super) fn fails(&mut self, fault: Fault) -> Meaning {
        if self.asked.pop_front() == Some(ExpectedReply::Values)
            && let Some(uncommon) = &mut self.uncommon
        {
            if uncommon.reading {
                let values = uncommon.reads.front().map_or(0, |read| read.ends.len());
                self.skip = (values - uncommon.passed - 1) as u64;
            }
            uncommon.answer();
        }
        Meaning::Reply(Outcome::Error(fault))
    }

    /// Drops a value.
    pub(super) fn pass_over(&mut self, head: ValueHead) -> Result<Meaning, Malformed> {
        let mut is_of_exec = false;
        let names_push = self.uncommon.as_mut().is_some_and(|uncommon| {
            if let Some(found) = &mut uncommon.found_of_list {
                is_of_exec = found.pass(head) && !uncommon.sequences.is_empty();
            }
            mem::take(&mut uncommon.names_push)
        });
        match head {
            ValueHead::Error(fault) if is_of_exec && self.is_in_sequence() => {
                return Ok(Meaning::FailsInSequence(fault));
            }
            ValueHead::ErrorString(size) if is_of_exec && self.is_in_sequence() => {
                return Ok(self.begin_string(size, Passing::Words));
            }
            ValueHead::String(size) if names_push && (1..=PUSH_NAME_MAX_BYTES).contains(&size) => {
                return Ok(self.begin_string(size, Passing::Name));
            }
            ValueHead::String(size) | ValueHead::Verbatim(size) | ValueHead::ErrorString(size) => {
                return Ok(self.begin_string(size, Passing::Dropped));
            }
            ValueHead::Array(values) | ValueHead::Group(values) | ValueHead::Push(values) => {
                self.skip = self.skip.checked_add(values).ok_or(TOO_MANY)?;
            }
            _ => {}
        }
        Ok(self.passed_over().map_or(Meaning::Nothing, Meaning::Over))
    }

    /// Notes that a dropped value is complete. Returns the outcome of the oldest request if the value was the last of
    /// its reply.
    pub(super) fn passed_over(&mut self) -> Option<Outcome> {
        self.skip -= 1;
        if self.skip > 0 {
            return None;
        }
        let outcome = self.ending.take()?;
        if self.is_in_sequence() {
            return self.value_ends();
        }
        let of_list = self.uncommon.as_mut().and_then(|uncommon| uncommon.found_of_list.take());
        self.asked.pop_front();
        Some(of_list.map_or(outcome, |found| Outcome::Found { hits: found.hits, of: found.passed }))
    }

    /// Whether the oldest request is a sequence.
    fn is_in_sequence(&self) -> bool {
        self.asked.front() == Some(&ExpectedReply::Sequence)
    }

    /// Begins to receive a string.
    #[inline]
    pub(super) fn begin_string(&mut self, size: u32, passing: Passing) -> Meaning {
        self.left = size;
        self.place = RespPosition::Value(ValuePosition::at_start(size));
        self.passing = passing;
        match passing {
            Passing::Whole | Passing::Part => return Meaning::Item(size),
            Passing::Words | Passing::Name => self.uncommon.get_or_insert_default().words.clear(),
            Passing::Dropped => {}
        }
        Meaning::Nothing
    }

    /// Notes that a string is complete.
    #[inline]
    pub(super) fn string_ends(&mut self) -> StringEnd {
        let outcome = match self.passing {
            Passing::Whole => {
                self.asked.pop_front();
                Some(Outcome::Hit)
            }
            Passing::Part => self.element_passed(true),
            Passing::Dropped => self.passed_over(),
            Passing::Name => {
                // No request ends with a push message.
                self.passed_over();
                return StringEnd::Name;
            }
            Passing::Words => {
                let fault =
                    self.uncommon.as_ref().map_or(Fault::Server, |uncommon| reply::fault(&uncommon.words));
                if self.is_in_sequence() {
                    if let Some(uncommon) = &mut self.uncommon {
                        let words = mem::take(&mut uncommon.words);
                        uncommon.fail_in_sequence(fault, &words, self.skip > 0);
                        uncommon.words = words;
                    }
                    return self.value_ends().map_or(StringEnd::Nothing, StringEnd::Request);
                }
                self.fails(fault);
                Some(Outcome::Error(fault))
            }
        };
        outcome.map_or(StringEnd::Nothing, StringEnd::Request)
    }

    /// The step for a push message whose name was received.
    pub(super) fn push(&self) -> Step<'_> {
        Step::Push { name: self.uncommon.as_ref().map_or(&[], |uncommon| &uncommon.words) }
    }

    /// The step for an item. Only items of a multi-get have their key.
    #[inline]
    pub(super) fn item(&self, size: u32) -> Step<'_> {
        let key = match (self.passing, &self.uncommon) {
            (Passing::Part, Some(uncommon)) => uncommon.key(),
            _ => &[],
        };
        Step::Item { tag: None, key, size: u64::from(size), cas: 0, flags: 0 }
    }

    /// The step for a reply, with the message in its line or in the string that was received.
    #[inline]
    pub(super) fn reply<'s>(&'s self, outcome: Outcome, line: Option<Line<'s>>) -> Step<'s> {
        let message = match (line, outcome, &self.uncommon) {
            // The server said nothing that is an error to it.
            (_, Outcome::Error(Fault::Unexpected), _) => &[],
            (Some(line), ..) => &self.lines.line(line)[1..],
            (None, Outcome::Error(_) | Outcome::Failed { .. }, Some(uncommon)) => &uncommon.words[..],
            _ => &[],
        };
        Step::Reply { tag: None, outcome, message }
    }
}

impl Found {
    /// Takes in the first line of a value of the list, and returns whether it is an element and not within one.
    fn pass(&mut self, head: ValueHead) -> bool {
        let is_inner = self.inner > 0;
        if let ValueHead::Array(values) | ValueHead::Group(values) | ValueHead::Push(values) = head {
            self.inner = self.inner.saturating_add(values);
        }
        if is_inner {
            self.inner -= 1;
            return false;
        }
        let is_none = match (self.none, head) {
            (NoElement::Cursor, _) => {
                self.none = NoElement::Empty;
                return true;
            }
            (_, ValueHead::Null)
            | (NoElement::Zero, ValueHead::Integer(0))
            | (NoElement::Empty, ValueHead::Array(0) | ValueHead::Group(0)) => true,
            _ => false,
        };
        self.passed = self.passed.saturating_add(1);
        self.hits = self.hits.saturating_add(u16::from(!is_none));
        true
    }
}

/// Longest name of a push message that is read. Redis has `invalidate` and others of that length.
const PUSH_NAME_MAX_BYTES: u32 = 64;

/// The length of the format that an empty verbatim string begins with, such as `txt:`.
const VERBATIM_HEAD_BYTES: u32 = 4;

const UNFIT: Malformed = Malformed("the type of a RESP reply does not fit its request");

const TOO_MANY: Malformed = Malformed("a RESP reply says that it has more values than there can be");

fn number_of(number: i64) -> Outcome {
    u64::try_from(number).map_or(Outcome::Ok, Outcome::Number)
}
