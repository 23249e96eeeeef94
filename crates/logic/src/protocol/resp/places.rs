//! The places of a command that each request fills: `__key__`, `__int:1-9__` and others.

use crate::dist::Dist;
use crate::rng::below;
use crate::secrets::place_at;

/// The place of the script's name, which is the same in all requests.
const SCRIPT_PLACE: &[u8] = b"__script__";

/// Most digits of a number in a place.
const DIGITS_MAX: usize = 20;

/// A part of a word of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Bytes that are the same in every request.
    Text(Vec<u8>),
    /// The key of the request's record.
    Key,
    /// The number of the request's record.
    Number,
    /// The value of the request's record.
    Value,
    /// The place of this number, which a [`Fill`] fills.
    Fill(usize),
    /// The place of this number, which is filled by bytes that are made when they are sent.
    Made(usize),
}

/// The content of a place that every request makes anew.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fill {
    /// The key of another record: the draw of this number, from 1.
    Key(u64),
    /// The number of a record, the request's own one or the draw of this number, with at least so many digits.
    Number(u64, usize),
    /// One of some integers, with at least so many digits.
    Integer(Integers, usize),
    /// Bytes of a length from this distribution.
    Bytes(Dist),
    /// The number of the client.
    Client,
    /// The number of the request among those of its client in this phase.
    Sequence,
    /// The wall clock in milliseconds since 1970 when the request was ready.
    NowMs,
    /// The column of this name and number of the request's row of the dataset.
    Field(String, usize),
}

/// The integers that a place is filled with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Integers {
    /// Every integer from the first to the last is as likely.
    Range(i64, i64),
    /// Rounded draws of a distribution.
    Drawn(Dist),
}

/// The fact that a request has to find out for a place, before [`Template::write_fill`](super::template::Template::write_fill) writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The key of the record of the draw of this number, from 1.
    Key(u64),
    /// The number of the record of the draw of this number; draw 0 is the request's own record.
    Number(u64),
    /// 64 random bits.
    Bits,
    /// 64 random bits, which decide on the length of bytes and on the bytes.
    Bytes,
    /// The number of the client.
    Client,
    /// The number of the request among those of its client.
    Sequence,
    /// The wall clock in milliseconds since 1970.
    NowMs,
    /// The column of this number of the request's row of the dataset.
    Field(usize),
}

impl Fill {
    /// The fact that a request has to find out to fill the place.
    pub(super) fn wanted(&self) -> Wanted {
        match self {
            Fill::Key(draw) => Wanted::Key(*draw),
            Fill::Number(draw, _) => Wanted::Number(*draw),
            Fill::Integer(..) => Wanted::Bits,
            Fill::Bytes(_) => Wanted::Bytes,
            Fill::Client => Wanted::Client,
            Fill::Sequence => Wanted::Sequence,
            Fill::NowMs => Wanted::NowMs,
            Fill::Field(_, column) => Wanted::Field(*column),
        }
    }

    /// Number of the last draw of a record that the place takes part in.
    pub(super) fn draw(&self) -> u64 {
        match self {
            Fill::Key(draw) | Fill::Number(draw, _) => *draw,
            _ => 0,
        }
    }
}

impl Integers {
    /// The integer of 64 random bits.
    pub(super) fn of(&self, bits: u64) -> i64 {
        match self {
            Integers::Range(low, high) => {
                let span = high.wrapping_sub(*low) as u64;
                low.wrapping_add(span.checked_add(1).map_or(bits, |count| below(bits, count)) as i64)
            }
            Integers::Drawn(dist) => libm::round(dist.draw(bits)) as i64,
        }
    }
}

/// Why a word is no place, although it looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// No place has this name.
    Unknown(String),
    /// The place has its name right, and not what follows it; with what is expected.
    Wrong(String, &'static str),
}

/// The places that a command has, and what fills them.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) fills: Vec<Fill>,
    /// The names of places that may be there more than once, with the number of what fills them.
    named: Vec<(String, usize)>,
    /// The name of the script, in place of `__script__`.
    script_name: String,
    /// Whether the name of the script is in a word.
    pub(super) names_script: bool,
}

impl Places {
    /// No places so far, in commands that have this in place of `__script__`.
    pub(super) fn with_script(script_name: &str) -> Places {
        Places { script_name: script_name.to_owned(), ..Places::default() }
    }

    /// Finds the places in a word. An empty word is one empty text.
    pub(super) fn parts_of(&mut self, word: &[u8]) -> Result<Vec<Part>, PlaceError> {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        let mut rest = word;
        while let Some((&first, after)) = rest.split_first() {
            if let Some(literal) = rest.strip_prefix(b"\\").and_then(place_at) {
                text.extend_from_slice(literal);
                rest = &rest[1 + literal.len()..];
            } else if let Some(behind) = rest.strip_prefix(SCRIPT_PLACE) {
                text.extend_from_slice(self.script_name.as_bytes());
                self.names_script = true;
                rest = behind;
            } else if let Some(place) = place_at(rest) {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(self.part_of(place)?);
                rest = &rest[place.len()..];
            } else {
                text.push(first);
                rest = after;
            }
        }
        if !text.is_empty() || parts.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(parts)
    }

    /// The part that a place stands for.
    fn part_of(&mut self, place: &[u8]) -> Result<Part, PlaceError> {
        let word = String::from_utf8_lossy(place).into_owned();
        let inner = &word[2..word.len() - 2];
        let (name, given) = inner.split_once(':').map_or((inner, None), |(name, given)| (name, Some(given)));
        let unknown = || PlaceError::Unknown(word.clone());
        let wrong = |expected| PlaceError::Wrong(word.clone(), expected);
        let none =
            |part: Part| if given.is_none() { Ok(part) } else { Err(wrong("nothing behind its name")) };
        if let Some(name) = name.strip_prefix("int") {
            return self.integers(&word, name, given);
        }
        if let Some(draw) = name.strip_prefix("key").and_then(draw_of) {
            return none(if draw == 0 { Part::Key } else { self.fill(inner, Fill::Key(draw)) });
        }
        if let Some(draw) = name.strip_prefix("number").and_then(draw_of) {
            let digits = |text: &str| text.parse().ok().filter(|digits| (1..=DIGITS_MAX).contains(digits));
            return match given.map(digits) {
                None if draw == 0 => Ok(Part::Number),
                None => Ok(self.fill(inner, Fill::Number(draw, 1))),
                Some(Some(digits)) => Ok(self.fill(inner, Fill::Number(draw, digits))),
                Some(None) => Err(wrong("a number of digits from 1 to 20, such as __number:12__")),
            };
        }
        match name {
            "value" => match given.map(str::parse) {
                None => Ok(Part::Value),
                Some(Ok(sizes)) => {
                    self.fills.push(Fill::Bytes(sizes));
                    Ok(Part::Made(self.fills.len() - 1))
                }
                Some(Err(_)) => {
                    Err(wrong("a number of bytes, or a distribution such as __value:uniform:10,90__"))
                }
            },
            "client" => none(self.fill(inner, Fill::Client)),
            "seq" => none(self.fill(inner, Fill::Sequence)),
            "now_ms" => none(self.fill(inner, Fill::NowMs)),
            "field" => match given {
                Some(column) if !column.is_empty() => Ok(self.fill(inner, Fill::Field(column.to_owned(), 0))),
                _ => Err(wrong("the name of a column, such as __field:name__")),
            },
            _ => Err(unknown()),
        }
    }

    /// The part of a place for integers, whose name behind `int` is empty or begins with a dot.
    fn integers(&mut self, word: &str, name: &str, given: Option<&str>) -> Result<Part, PlaceError> {
        const EXPECTED: &str = "integers such as __int:1-99__, __int:000-999__ with three digits each, or a distribution such as \
                                __int:normal:50,10__";
        const SAME: &str =
            "one range for each name: later places of a name repeat it or have none, such as __int.a__";
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !name.is_empty() && !name.strip_prefix('.').is_some_and(is_name) {
            return Err(PlaceError::Unknown(word.to_owned()));
        }
        let known = self.named.iter().find(|(known, _)| !name.is_empty() && known == name).map(|(_, at)| *at);
        let integers =
            given.map(|given| integers_of(given).ok_or(PlaceError::Wrong(word.to_owned(), EXPECTED)));
        match (known, integers.transpose()?) {
            (None, None) => Err(PlaceError::Wrong(word.to_owned(), EXPECTED)),
            (None, Some((integers, digits))) => {
                self.fills.push(Fill::Integer(integers, digits));
                let at = self.fills.len() - 1;
                if !name.is_empty() {
                    self.named.push((name.to_owned(), at));
                }
                Ok(Part::Fill(at))
            }
            (Some(at), integers) => {
                let is_same = |(integers, digits)| self.fills[at] == Fill::Integer(integers, digits);
                match integers.is_none_or(is_same) {
                    true => Ok(Part::Fill(at)),
                    false => Err(PlaceError::Wrong(word.to_owned(), SAME)),
                }
            }
        }
    }

    /// The part of a place that has one content in a request, however often it is there.
    fn fill(&mut self, name: &str, fill: Fill) -> Part {
        let known = self.named.iter().find(|(known, _)| known == name).map(|(_, at)| *at);
        Part::Fill(known.unwrap_or_else(|| {
            self.fills.push(fill);
            self.named.push((name.to_owned(), self.fills.len() - 1));
            self.fills.len() - 1
        }))
    }
}

/// The text that stands for this one in a template's word: a backslash in front of whatever looks like a place.
pub fn literal(text: &str) -> String {
    let (mut escaped, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let len = match place_at(rest.as_bytes()) {
            Some(place) => {
                escaped.push('\\');
                place.len()
            }
            None => first.len_utf8(),
        };
        escaped.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    escaped
}

/// The number of a draw of records from what follows a name: nothing is the request's own record, 2 to 9 are others.
fn draw_of(behind: &str) -> Option<u64> {
    match behind.as_bytes() {
        [] => Some(0),
        [digit @ b'2'..=b'9'] => Some(u64::from(digit - b'1')),
        _ => None,
    }
}

/// The integers of `LO-HI` or of a distribution, and their least number of digits: that of LO where LO begins with a zero.
fn integers_of(text: &str) -> Option<(Integers, usize)> {
    let range = text.get(1..).and_then(|behind| behind.find('-')).and_then(|at| {
        let (low, high) = (&text[..at + 1], &text[at + 2..]);
        let digits = if low.starts_with('0') { low.len() } else { 1 };
        Some((low.parse::<i64>().ok()?, high.parse::<i64>().ok()?, digits))
    });
    match range {
        Some((low, high, digits)) => {
            (low <= high && digits <= DIGITS_MAX).then_some((Integers::Range(low, high), digits))
        }
        None => text.parse().ok().map(|dist| (Integers::Drawn(dist), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(word: &str) -> Result<(Vec<Part>, Vec<Fill>), PlaceError> {
        let mut places = Places::default();
        let parts = places.parts_of(word.as_bytes())?;
        Ok((parts, places.fills))
    }

    #[test]
    fn places_are_known_by_their_names() {
        let fill = |word: &str| match parts(word).expect("it is a place") {
            (parts, mut fills) if parts == [Part::Fill(0)] && fills.len() == 1 => fills.remove(0),
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!(fill("__key2__"), Fill::Key(1));
        assert_eq!(fill("__key9__"), Fill::Key(8));
        assert_eq!(fill("__number:12__"), Fill::Number(0, 12));
        assert_eq!(fill("__number3__"), Fill::Number(2, 1));
        assert_eq!(fill("__number3:4__"), Fill::Number(2, 4));
        assert_eq!(fill("__int:-5-9__"), Fill::Integer(Integers::Range(-5, 9), 1));
        assert_eq!(fill("__int:-9--5__"), Fill::Integer(Integers::Range(-9, -5), 1));
        assert_eq!(
            fill("__int:normal:50,10__"),
            Fill::Integer(Integers::Drawn(Dist::Normal { mean: 50.0, sd: 10.0 }), 1)
        );
        assert_eq!(fill("__int:000-999__"), Fill::Integer(Integers::Range(0, 999), 3));
        assert_eq!(fill("__int:012-99__"), Fill::Integer(Integers::Range(12, 99), 3));
        assert_eq!(
            parts("__value:uniform:1,9__,__value:5__"),
            Ok((
                vec![Part::Made(0), Part::Text(b",".to_vec()), Part::Made(1)],
                vec![Fill::Bytes(Dist::Uniform { low: 1.0, high: 9.0 }), Fill::Bytes(Dist::Fixed(5.0))]
            ))
        );
        assert_eq!(fill("__client__"), Fill::Client);
        assert_eq!(fill("__seq__"), Fill::Sequence);
        assert_eq!(fill("__now_ms__"), Fill::NowMs);
        assert_eq!(fill("__field:user_name__"), Fill::Field("user_name".to_owned(), 0));
        assert_eq!(fill("__field:a:B.c@d+e-f,__"), Fill::Field("a:B.c@d+e-f,".to_owned(), 0));
        let plain = |word: &str| parts(word).map(|(parts, _)| parts);
        assert_eq!(plain("__key____value__"), Ok(vec![Part::Key, Part::Value]));
        assert_eq!(plain("__number__"), Ok(vec![Part::Number]));
    }

    #[test]
    fn a_place_with_a_name_has_one_content_and_others_are_made_anew() {
        let (same, fills) = parts("__int.a:1-9__/__int.a:1-9__/__int.a__/__key2__/__key2__").expect("places");
        let numbers: Vec<_> = same.iter().filter(|part| matches!(part, Part::Fill(_))).collect();
        assert_eq!(numbers, [0, 0, 0, 1, 1].map(Part::Fill).iter().collect::<Vec<_>>());
        assert_eq!(fills.len(), 2);
        assert_eq!(parts("__int:1-9__ __int:1-9__").expect("places").1.len(), 2);
        assert_eq!(parts("__field:a__ __field:b__ __field:a__").expect("places").1.len(), 2);
    }

    #[test]
    fn the_name_of_the_script_is_text() {
        let text = |places: &mut Places, word: &str| match places.parts_of(word.as_bytes()) {
            Ok(parts) => match &parts[..] {
                [Part::Text(text)] => String::from_utf8(text.clone()).expect("ASCII"),
                other => panic!("{word}: {other:?}"),
            },
            Err(error) => panic!("{word}: {error:?}"),
        };
        let mut places = Places::with_script("e0e1");
        assert_eq!(text(&mut places, r"\__script__"), "__script__");
        assert!(!places.names_script);
        assert_eq!(text(&mut places, "a__script__b"), "ae0e1b");
        assert!(places.names_script);
        assert!(places.parts_of(b"__script:1__").is_err());
    }

    #[test]
    fn what_looks_like_a_place_and_is_none_is_refused_unless_a_backslash_goes_before_it() {
        for word in [
            "__data__",
            "__rand_int__",
            "x__Key__",
            "__key1__",
            "__key10__",
            "__integer:1__",
            "__int.A:1-2__",
        ] {
            assert!(matches!(parts(word), Err(PlaceError::Unknown(_))), "{word}: {:?}", parts(word));
        }
        for word in [
            "__int__",
            "__int:9-1__",
            "__int:x__",
            "__int:000000000000000000000-9__",
            "__number:0__",
            "__field__",
            "__field:__",
            "__number:21__",
            "__key:3__",
            "__value:__",
            "__value:4KiB__",
            "__int.a:1-2____int.a:1-3__",
        ] {
            assert!(matches!(parts(word), Err(PlaceError::Wrong(..))), "{word}: {:?}", parts(word));
        }
        for (word, text) in [
            (r"\__init__", "__init__"),
            ("__init", "__init"),
            ("____", "____"),
            ("_ _key__", "_ _key__"),
            (r"\x", r"\x"),
        ] {
            assert_eq!(parts(word), Ok((vec![Part::Text(text.as_bytes().to_vec())], vec![])), "{word}");
        }
    }

    #[test]
    fn text_that_looks_like_a_place_is_itself_behind_a_backslash() {
        for text in [
            "",
            "a",
            "__key__",
            "__key____value__",
            r"\__key__",
            r"\\__a__",
            "____a__",
            "__",
            "é__ä__b__",
            "__a__b__c__",
        ] {
            let written = vec![Part::Text(text.as_bytes().to_vec())];
            assert_eq!(parts(&literal(text)).map(|(parts, _)| parts), Ok(written), "{text}");
        }
    }

    #[test]
    fn integers_reach_both_ends_of_their_range() {
        let range = Integers::Range(-2, 2);
        assert_eq!((range.of(0), range.of(u64::MAX)), (-2, 2));
        let all = Integers::Range(i64::MIN, i64::MAX);
        assert_eq!((all.of(0), all.of(u64::MAX)), (i64::MIN, i64::MAX));
        assert_eq!(Integers::Range(7, 7).of(12345), 7);
        assert_eq!(Integers::Drawn(Dist::Fixed(2.6)).of(1), 3);
    }
}
