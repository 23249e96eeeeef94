//! Lines of an agent about peers that it turned away: one for each, and a number where they are too many.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pummel_report::visible::foreign;

use crate::program::Program;

/// Most lines in [`WINDOW`]: a peer that comes again and again fills no log.
const LINES_MAX: u32 = 20;

/// The time in which lines are counted.
const WINDOW: Duration = Duration::from_secs(1);

static WRITTEN: Mutex<Option<Written>> = Mutex::new(None);

/// Lines of one window.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    since: Instant,
    lines: u32,
    left_out: u64,
}

/// Treatment of a line.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Written,
    /// The line is the first that is left out: their number is due when the window ends.
    FirstLeftOut,
    LeftOut,
}

impl Written {
    fn add(&mut self, now: Instant) -> Fate {
        if now.duration_since(self.since) >= WINDOW && self.left_out == 0 {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines < LINES_MAX {
            self.lines += 1;
            return Fate::Written;
        }
        self.left_out += 1;
        if self.left_out == 1 { Fate::FirstLeftOut } else { Fate::LeftOut }
    }
}

/// Says on standard error that a peer was turned away. Beyond [`LINES_MAX`] lines a second only their number is said. To be
/// called on a runtime of tokio.
pub fn refused(address: SocketAddr, why: impl fmt::Display, program: Program) {
    let now = Instant::now();
    let fate = {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        written.get_or_insert(Written { since: now, lines: 0, left_out: 0 }).add(now)
    };
    match fate {
        Fate::Written => (program.say)(format_args!("refused {address}: {}", foreign(&why.to_string()))),
        Fate::FirstLeftOut => drop(tokio::spawn(say_left_out(program))),
        Fate::LeftOut => {}
    }
}

async fn say_left_out(program: Program) {
    tokio::time::sleep(WINDOW).await;
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Written { left_out, .. }) = written.take() {
        (program.say)(format_args!("refused {left_out} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let now = Instant::now();
        let mut written = Written { since: now, lines: 0, left_out: 0 };
        for _ in 0..LINES_MAX {
            assert_eq!(written.add(now), Fate::Written);
        }
        assert_eq!(written.add(now), Fate::FirstLeftOut);
        assert_eq!(written.add(now + WINDOW), Fate::LeftOut, "until their number was said");
        assert_eq!(written.left_out, 2);
    }

    #[test]
    fn each_window_has_its_lines() {
        let now = Instant::now();
        let mut written = Written { since: now, lines: LINES_MAX, left_out: 0 };
        assert_eq!(written.add(now + WINDOW), Fate::Written);
        assert_eq!(written.lines, 1);
    }
}
