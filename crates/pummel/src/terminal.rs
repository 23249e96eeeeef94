//! The terminal of this process.

use std::env;
use std::io::{self, IsTerminal};

use pummel_fronts::screen_options::Terminal;

/// What standard output is now.
pub fn terminal() -> Terminal {
    let is_one = io::stdout().is_terminal();
    Terminal { is_one, columns: is_one.then(terminal_width).flatten(), variable: |name| env::var(name).ok() }
}

/// The columns of the terminal that is standard output; `None` where it does not say.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
