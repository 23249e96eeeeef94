//! RESP2 and RESP3 from the server's side: bytes become commands.
//!
//! Follows the "Redis serialization protocol specification" and the documents of the commands.

use crate::contract::ParserStep;
use crate::lines::{RequestLine, take_line, without_end};
use pummel_logic::protocol::{Keys, lines};

/// Most words of a command.
const WORDS_MAX: u64 = 1 << 20;

/// Longest word, as Redis has it.
const WORD_MAX_BYTES: u64 = 512 << 20;

/// All words of a command; beyond this they are skipped, and the command is refused.
const WORDS_MAX_BYTES: usize = 32 << 20;

/// Longest line, in bytes.
const LINE_MAX_BYTES: usize = 64 * 1024;

/// A buffer that was needed once is kept up to this size.
const KEEP_BYTES: usize = 64 * 1024;

/// Content of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RespRequest<'a> {
    /// A command of at least one word.
    Words(Keys<'a>),
    /// A command whose words are too long to be kept.
    TooLong,
    /// Bytes that the protocol does not allow; this error is sent before the connection is closed.
    Broken(&'static str),
}

/// Request of a RESP connection.
#[derive(Debug)]
pub(crate) struct Request<'a>(pub(super) RespRequest<'a>);

impl Request<'_> {
    /// Whether the bytes are no request, so that what follows them cannot be understood.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.0, RespRequest::Broken(_))
    }
}

/// The state of one connection's parser: the words of a command that have come.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Words that are still to come.
    words_left: u64,
    /// Bytes of the word that is coming, and of the line end behind it, which are still to come.
    word_left: Option<u64>,
    /// Whether the words are too long to be kept.
    too_long: bool,
    /// Whether the last step lent `bytes` out.
    lent: bool,
}

/// The result of reading a line.
enum Found {
    /// The line has more words to be read.
    More,
    /// A command is complete.
    Command,
    Broken(&'static str),
}

impl Parser {
    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(crate) fn next<'s>(&'s mut self, input: &mut &[u8]) -> ParserStep<Request<'s>> {
        if std::mem::take(&mut self.lent) {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_BYTES);
            self.ends.clear();
            self.ends.shrink_to(KEEP_BYTES);
            self.too_long = false;
        }
        loop {
            let found = match self.word_left {
                Some(_) if input.is_empty() => return ParserStep::Need,
                Some(left) => self.take_word(left, input),
                None => match self.take_line(input) {
                    Some(found) => found,
                    None => return ParserStep::Need,
                },
            };
            let asked = match found {
                Found::More => continue,
                Found::Broken(why) => RespRequest::Broken(why),
                Found::Command if self.too_long => RespRequest::TooLong,
                Found::Command => RespRequest::Words(Keys::Many { bytes: &self.bytes, ends: &self.ends }),
            };
            self.lent = true;
            return ParserStep::Request(Request(asked));
        }
    }

    fn take_line(&mut self, input: &mut &[u8]) -> Option<Found> {
        let mut line = std::mem::take(&mut self.line);
        let found = match take_line(&mut line, input, |_| LINE_MAX_BYTES) {
            RequestLine::Need => None,
            RequestLine::TooLong => {
                // Its end has not come: kept, it would be found too long again at every further step.
                line.clear();
                Some(Found::Broken("too big inline request"))
            }
            RequestLine::Whole(line) => Some(self.read_line(line)),
            RequestLine::Kept => {
                let found = self.read_line(without_end(&line));
                line.clear();
                Some(found)
            }
        };
        self.line = line;
        found
    }

    fn read_line(&mut self, line: &[u8]) -> Found {
        match (self.words_left, line.split_first()) {
            (0, None) => Found::More,
            (0, Some((b'*', digits))) => match signed(digits) {
                Some(count) if count <= WORDS_MAX as i64 => {
                    self.words_left = count.max(0) as u64;
                    Found::More
                }
                _ => Found::Broken("invalid multibulk length"),
            },
            (0, Some(_)) => {
                for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                    self.bytes.extend_from_slice(word);
                    self.ends.push(self.bytes.len() as u32);
                }
                if self.ends.is_empty() { Found::More } else { Found::Command }
            }
            (_, Some((b'$', digits))) => match lines::whole_decimal(digits) {
                Some(len) if len <= WORD_MAX_BYTES => {
                    self.too_long |= self.bytes.len() + len as usize > WORDS_MAX_BYTES;
                    self.word_left = Some(len + 2);
                    Found::More
                }
                _ => Found::Broken("invalid bulk length"),
            },
            _ => Found::Broken("expected '$' before the length of a word"),
        }
    }

    /// Takes what there is of a word.
    fn take_word(&mut self, left: u64, input: &mut &[u8]) -> Found {
        let (bytes, rest) = input.split_at(input.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        *input = rest;
        // The last two bytes are the line end; like Redis, the parser does not check them.
        let own = bytes.len().min(left.saturating_sub(2) as usize);
        if !self.too_long {
            self.bytes.extend_from_slice(&bytes[..own]);
        }
        let left = left - bytes.len() as u64;
        if left > 0 {
            self.word_left = Some(left);
            return Found::More;
        }
        self.word_left = None;
        self.ends.push(self.bytes.len() as u32);
        self.words_left -= 1;
        if self.words_left == 0 { Found::Command } else { Found::More }
    }
}

/// A decimal number that may be negative.
pub(super) fn signed(digits: &[u8]) -> Option<i64> {
    let (negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let number = lines::whole_decimal(digits)?;
    if negative { 0i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}
