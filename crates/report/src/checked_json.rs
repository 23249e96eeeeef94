//! The JSON of stored results is read here, with limits for its numbers and its lists.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The greatest size of a number with a fraction or an exponent: more than the nanoseconds of all times and the counts of 64 bits.
pub const NUMBER_MAX: f64 = 2e19;

/// The most elements of a list, and the most members of an object. A result has at most 4,096 intervals.
pub const LIST_MAX: usize = 1 << 16;

/// The most lists and objects of a result: those of 4,096 intervals of many operations are some 300,000.
pub const NODES_MAX: usize = 1 << 22;

/// Reads a stored result, or a part of it.
///
/// # Errors
/// Returns the error of the parser where the bytes are no such JSON, and one that names the place and the limit where a number is
/// greater than [`NUMBER_MAX`], a list is longer than [`LIST_MAX`], or there are more than [`NODES_MAX`] lists and objects.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    let mut parser = serde_json::Deserializer::from_slice(json);
    let mut nodes_left = NODES_MAX;
    Checked { nodes_left: &mut nodes_left }.deserialize(&mut parser)?;
    parser.end()?;
    serde_json::from_slice(json)
}

/// A value whose numbers and lists are within their limits.
struct Checked<'n> {
    nodes_left: &'n mut usize,
}

impl Checked<'_> {
    fn enter<E: Error>(&mut self) -> Result<(), E> {
        let left = self.nodes_left.checked_sub(1);
        *self.nodes_left = left.ok_or_else(|| {
            E::custom(format_args!("more than {NODES_MAX} lists and objects in one result"))
        })?;
        Ok(())
    }
}

fn check_length<E: Error>(length: usize) -> Result<(), E> {
    match length > LIST_MAX {
        true => Err(E::custom(format_args!("a list of more than {LIST_MAX} elements"))),
        false => Ok(()),
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        match number.abs() <= NUMBER_MAX {
            true => Ok(()),
            false => Err(E::custom(format_args!(
                "the number {number:e} is out of range: no figure of a result is beyond {NUMBER_MAX:e}"
            ))),
        }
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut length = 0;
        while list.next_element_seed(Checked { nodes_left: self.nodes_left })?.is_some() {
            length += 1;
            check_length(length)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut length = 0;
        while members.next_key::<serde::de::IgnoredAny>()?.is_some() {
            members.next_value_seed(Checked { nodes_left: self.nodes_left })?;
            length += 1;
            check_length(length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        read::<serde_json::Value>(json.as_bytes()).expect_err("it is refused").to_string()
    }

    #[test]
    fn numbers_beyond_every_figure_are_refused_with_their_place() {
        for json in ["{\"a\": [1, 1e308]}", "{\"a\": {\"b\": -3e19}}", "[123456789012345678901234567890]"] {
            let why = refusal(json);
            assert!(why.contains("out of range") && why.contains("at line 1 column"), "{json}: {why}");
        }
        for json in ["{\"seed\": 18446744073709551615}", "[-9223372036854775808, 1.8e19, 5e-324, null, true]"]
        {
            assert!(read::<serde_json::Value>(json.as_bytes()).is_ok(), "{json}");
        }
    }

    #[test]
    fn lists_have_a_greatest_length() {
        let list = |length: usize| format!("[{}]", vec!["0"; length].join(","));
        assert!(read::<Vec<u8>>(list(LIST_MAX).as_bytes()).is_ok());
        assert!(refusal(&list(LIST_MAX + 1)).contains("a list of more than 65536 elements"));
    }

    #[test]
    fn what_stands_behind_the_value_is_refused() {
        assert!(refusal("{} {}").contains("trailing characters"));
        assert!(refusal("{\"a\": ").contains("EOF"));
    }
}
