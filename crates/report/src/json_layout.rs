//! The layout of JSON files: one member to a line, and lists of numbers on one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// The JSON of a value, with a line end.
///
/// # Panics
/// Panics when the value has something that JSON has not, such as a map whose keys are no text.
pub fn json_text(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Layout::default());
    value.serialize(&mut serializer).expect("a result has nothing that JSON has not");
    text.push(b'\n');
    text
}

/// The JSON of a value, as data. It goes by way of the value's text, because serializing to data would compile every type of a plan
/// and of a result once more.
///
/// # Panics
/// Panics when the value has something that JSON has not, such as a map whose keys are no text.
pub fn json_value(value: &(impl Serialize + ?Sized)) -> Value {
    let text = serde_json::to_vec(value).expect("a result has nothing that JSON has not");
    serde_json::from_slice(&text).expect("it is JSON")
}

/// Indents members and elements by two blanks a level. A list of numbers and nulls stays on one line, so that the counts of a
/// histogram do not take a line each.
#[derive(Default)]
struct Layout {
    depth: usize,
    /// What is written before the next element of a list, which depends on its kind.
    pending: Option<Pending>,
    /// Whether the last thing that ended had its elements on lines of their own.
    is_open: Vec<bool>,
}

#[derive(Clone, Copy)]
enum Pending {
    First,
    Later,
}

impl Layout {
    fn indent<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }

    /// Ends the wait for the kind of an element: a number stays on the line of its list.
    fn settle<W: ?Sized + Write>(&mut self, writer: &mut W, is_number: bool) -> io::Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        if let Pending::Later = pending {
            writer.write_all(if is_number { b", " } else { b"," })?;
        }
        if !is_number {
            if let Some(is_open) = self.is_open.last_mut() {
                *is_open = true;
            }
            self.indent(writer)?;
        }
        Ok(())
    }

    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, mark: &[u8]) -> io::Result<()> {
        self.settle(writer, false)?;
        self.depth += 1;
        self.is_open.push(false);
        writer.write_all(mark)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, mark: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.is_open.pop() == Some(true) {
            self.indent(writer)?;
        }
        writer.write_all(mark)
    }
}

macro_rules! numbers {
    ($($name:ident: $kind:ty),*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, writer: &mut W, value: $kind) -> io::Result<()> {
            self.settle(writer, true)?;
            serde_json::ser::CompactFormatter.$name(writer, value)
        }
    )*};
}

impl Formatter for Layout {
    numbers!(write_u64: u64, write_u32: u32, write_u16: u16, write_u8: u8, write_i64: i64, write_i32: i32, write_f64: f64);

    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.settle(writer, true)?;
        writer.write_all(b"null")
    }

    fn write_bool<W: ?Sized + Write>(&mut self, writer: &mut W, value: bool) -> io::Result<()> {
        self.settle(writer, false)?;
        writer.write_all(if value { b"true" } else { b"false" })
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.settle(writer, false)?;
        writer.write_all(b"\"")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.pending = Some(if first { Pending::First } else { Pending::Later });
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if let Some(is_open) = self.is_open.last_mut() {
            *is_open = true;
        }
        self.indent(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_share_a_line_and_everything_else_has_one_of_its_own() {
        let value = json!({"a": [1, -2.5, null], "b": ["x", [], {}], "c": {"d": [[1, 2], [3]]}, "e": [true]});
        let text = String::from_utf8(json_text(&value)).unwrap();
        assert_eq!(
            text,
            "{\n  \"a\": [1, -2.5, null],\n  \"b\": [\n    \"x\",\n    [],\n    {}\n  ],\n  \"c\": {\n    \"d\": [\n      [1, 2],\n      \
             [3]\n    ]\n  },\n  \"e\": [\n    true\n  ]\n}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
