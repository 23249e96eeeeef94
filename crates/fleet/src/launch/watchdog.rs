//! The agent's end of a launch: it lives no longer than the process that started it.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A longer line is no token.
const LINE_BYTES_MAX: u64 = 4096;

/// Watchdog by which an agent learns that it is not needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watchdog {
    /// Standard input has ended.
    Closed,
    /// Nothing came on standard input for this long.
    Silent(Duration),
}

impl fmt::Display for Watchdog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watchdog::Closed => out.write_str("standard input has ended"),
            Watchdog::Silent(silence) => {
                write!(out, "nothing came on standard input for {} s", silence.as_secs_f64())
            }
        }
    }
}

impl Watchdog {
    /// Waits until `input` ends, or is silent for this long: a connection that is cut does not end it, but nothing comes
    /// through any more. What comes says only that the other end lives.
    pub fn wait(mut input: impl Read + AsFd, silence: Option<Duration>) -> Watchdog {
        let timeout = silence.and_then(|silence| Timespec::try_from(silence).ok());
        let mut bytes = [0; 4096];
        loop {
            match poll(&mut [PollFd::new(&input, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) => return Watchdog::Silent(silence.unwrap_or_default()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return Watchdog::Closed,
            }
            match input.read(&mut bytes) {
                Ok(0) => return Watchdog::Closed,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Watchdog::Closed,
            }
        }
    }
}

/// The first line of an input, without its end.
///
/// # Errors
/// Returns the error when the line cannot be read, is no UTF-8 or is too long to be a token.
pub fn first_line(input: impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LINE_BYTES_MAX).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "there is no line on standard input")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};
    use std::thread;

    use super::*;

    #[test]
    fn the_end_of_the_input_is_the_end() {
        let (reader, mut writer) = pipe().expect("a pipe");
        writer.write_all(&[b'\n'; 10_000]).expect("it fits");
        drop(writer);
        assert_eq!(Watchdog::wait(reader, Some(Duration::from_secs(60))), Watchdog::Closed);
        let (reader, writer) = pipe().expect("a pipe");
        let waiting = thread::spawn(move || Watchdog::wait(reader, None));
        drop(writer);
        assert_eq!(waiting.join().expect("it ends"), Watchdog::Closed);
    }

    #[test]
    fn silence_is_the_end_as_well() {
        let silence = Duration::from_millis(30);
        let (reader, mut writer) = pipe().expect("a pipe");
        writer.write_all(b"\n").expect("it fits");
        assert_eq!(Watchdog::wait(reader, Some(silence)), Watchdog::Silent(silence));
        drop(writer);
    }

    #[test]
    fn a_token_is_a_whole_line() {
        assert_eq!(first_line(&b"secret\nmore\n"[..]).expect("a line"), "secret");
        assert_eq!(first_line(&b"\n"[..]).expect("a line"), "");
        first_line(&b"half"[..]).expect_err("no line");
        first_line(&[b'x'; 10_000][..]).expect_err("too long");
    }
}
