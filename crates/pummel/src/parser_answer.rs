//! What the parser of command lines says, as an end of the program.

use std::io::ErrorKind;

use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_report::visible;

use crate::stderr::{say, write};

/// Says what the command-line parser has to say: help and versions on standard output, errors on standard error.
pub fn answer(error: &clap::Error) -> Exit {
    if error.use_stderr()
        && let Some(text) = unstyled(error)
    {
        write(text);
        return Exit::Usage;
    }
    let print =
        || if error.use_stderr() { error.print() } else { sys::check_stdout().and_then(|()| error.print()) };
    match (print(), error.use_stderr()) {
        // When the terminal or pipe is gone, the error cannot be reported.
        (_, true) => Exit::Usage,
        // A reader may close the pipe when it has read enough.
        (Err(unwritten), false) if unwritten.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("error: cannot write to standard output: {unwritten}"));
            Exit::Failed
        }
        (_, false) => Exit::Complete,
    }
}

/// The text of an error without its colours, where the words in it hold control characters of their own.
fn unstyled(error: &clap::Error) -> Option<String> {
    let styled = error.render().ansi().to_string();
    let mut pieces = styled.split("\u{1b}[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // A colour: numbers between semicolons, and `m`.
        let words = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match words.strip_prefix('m') {
            Some(words) => text.push_str(words),
            None => text.extend(["\u{1b}[", piece]),
        }
    }
    (visible::text(&text) != text).then_some(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[arg(long)]
        count: Option<u32>,
    }

    #[test]
    fn an_error_with_control_characters_in_its_words_has_no_colours() {
        let error = |word: &str| Line::try_parse_from(["pummel", "--count", word]).expect_err("no number");
        assert_eq!(unstyled(&error("x")), None);
        let text = unstyled(&error("1\u{1b}[2J\u{9b}")).expect("it has control characters");
        assert!(
            text.starts_with("error: invalid value '1\u{1b}[2J\u{9b}' for '--count <COUNT>'"),
            "{text:?}"
        );
    }
}
