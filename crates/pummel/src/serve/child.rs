//! `pummel serve` as a process of its own, for commands that need a server whose truth is known.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Seconds after which the server ends by itself, should nothing end it.
const SECONDS_MAX: &str = "600";

/// A running server, which ends with this value.
pub struct ServeProcess {
    process: Child,
    address: String,
}

impl ServeProcess {
    /// Starts the server of this program on a free loopback port with these further words, and waits until it listens.
    ///
    /// # Errors
    /// Returns the error of starting a process, and what the server said in place of its address.
    pub fn start(words: &[&str]) -> io::Result<ServeProcess> {
        let process = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--max-seconds", SECONDS_MAX])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = ServeProcess { process, address: String::new() };
        let mut first_line = String::new();
        if let Some(out) = server.process.stdout.take() {
            BufReader::new(out).read_line(&mut first_line)?;
        }
        match first_line.trim_end().split_once("listening on ") {
            Some((_, address)) => server.address = address.to_owned(),
            None => return Err(io::Error::other(format!("it said '{}'", first_line.trim_end()))),
        }
        Ok(server)
    }

    /// Where the server listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends the server in order, so that its truth file is whole.
    ///
    /// # Errors
    /// Returns the kernel's error where the server is gone already.
    pub fn end(mut self) -> io::Result<()> {
        kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
