//! A tcpdump beside a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::child::Child;
use crate::network::Network;
use crate::programs::said_by;

/// Time that tcpdump may take to begin, to take what the kernel still holds, and to end.
const LIMIT: Duration = Duration::from_secs(20);

/// The kernel hands packets over in blocks, at the latest after a second: a file that grew by nothing for longer is
/// whole but for what tcpdump writes when it ends.
const QUIET: Duration = Duration::from_millis(1_500);

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A capture that runs; dropping it ends it.
pub struct Capture {
    tcpdump: Child,
    log: PathBuf,
}

/// A capture that is over.
pub struct Captured {
    /// Bytes that were written, in the format of pcap-savefile(5).
    pub file: Vec<u8>,
    /// Packets that the kernel could not keep.
    pub dropped: u64,
}

impl Capture {
    /// Checks that there is a tcpdump.
    pub fn check() -> io::Result<()> {
        said_by(Command::new("tcpdump").arg("--version")).map(drop)
    }

    /// Captures what goes through the client's card to and from `port` of the server, with time stamps in nanoseconds.
    pub fn start(network: &Network, port: u16, cpu: usize, scratch: &Path) -> io::Result<Capture> {
        // The headers and the first line of a reply fit into 128 bytes. 64 MiB hold what a run of 3 s leaves.
        // Written to standard output, so that tcpdump needs no right to the directory when it gives up being root.
        let line = format!(
            "-i {} -n -s 128 -B 65536 --time-stamp-precision=nano -w - tcp port {port} and host {}",
            network.card(),
            network.address()
        );
        let log = scratch.join("tcpdump");
        let mut tcpdump = Child::start(Path::new("tcpdump"), line.split(' '), cpu, &[], &log)?;
        let said = || fs::read_to_string(log.with_extension("err"));
        if tcpdump.until(LIMIT, || Ok(said()?.contains("listening on").then_some(())))?.is_none() {
            return Err(io::Error::other(format!(
                "tcpdump does not capture; run as root, or `setcap cap_net_raw+ep` it. Its words:\n{}",
                said()?
            )));
        }
        Ok(Capture { tcpdump, log })
    }

    /// Ends it when it has all packets.
    pub fn stop(self) -> io::Result<Captured> {
        let out = self.log.with_extension("out");
        let begin = Instant::now();
        let (mut size, mut grew_at) = (0, begin);
        while grew_at.elapsed() < QUIET && begin.elapsed() < LIMIT {
            let now = fs::metadata(&out)?.len();
            if now > size {
                (size, grew_at) = (now, Instant::now());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.tcpdump.interrupt()?;
        let err = self.log.with_extension("err");
        self.tcpdump.wait(LIMIT)?;
        Ok(Captured { file: fs::read(out)?, dropped: dropped(&fs::read_to_string(err)?) })
    }
}

/// From the words that tcpdump ends with: `3 packets dropped by kernel`.
fn dropped(said: &str) -> u64 {
    let line = said.lines().find(|line| line.contains("dropped by kernel"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_last_words() {
        let said = "tcpdump: listening on lo\n9 packets captured\n18 packets received by filter\n7 packets dropped by kernel\n";
        assert_eq!(dropped(said), 7);
        assert_eq!(dropped(""), 0);
    }
}
