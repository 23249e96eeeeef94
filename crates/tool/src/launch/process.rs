//! A program that works for the placement in a process group of its own: what it says, line by line, and its end.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How often a sign of life goes to what the program started; it takes a silence of [`SILENCE_MAX`] for our end.
const PULSE: Duration = Duration::from_secs(1);

/// How long an agent that was placed waits for a sign of life of its controller before it ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes that are written at once of what a program is given, each a proof that it goes on.
const CHUNK_BYTES: usize = 64 << 10;

/// A longer line is none of ours.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// What happens while a program works.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// A line of its standard output, without its end.
    Line(String),
    /// A line of its standard error.
    Aside(String),
    /// It took some of what it was given.
    Taken,
    /// Its standard output has ended.
    Silent,
}

/// What the program is given on its standard input.
enum Gift {
    Bytes(Arc<[u8]>),
    /// From now on, a sign of life now and then.
    Pulse,
}

/// A program that is running. Dropped, it is ended, and with it all that it started on this machine.
#[derive(Debug)]
pub struct Errand {
    child: Child,
    news: Receiver<News>,
    gifts: Option<Sender<Gift>>,
    /// What it started watches its standard input, and ends by itself when that does.
    is_watched: bool,
}

impl Errand {
    /// Starts a program whose standard input stays open until [`Errand::release`].
    ///
    /// It is in a process group of its own: Ctrl-C at the terminal is for the controller, which then ends its agents in
    /// good order.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(argv: &[impl AsRef<OsStr>]) -> io::Result<Errand> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (teller, news) = channel();
        let (gifts, given) = channel();
        if let Some(stdin) = child.stdin.take() {
            let teller = teller.clone();
            thread::spawn(move || hand_over(stdin, &given, &teller));
        }
        if let Some(stderr) = child.stderr.take() {
            let teller = teller.clone();
            thread::spawn(move || read_lines(stderr, |line| teller.send(News::Aside(line)).is_ok()));
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                read_lines(stdout, |line| teller.send(News::Line(line)).is_ok());
                // Nobody may be left who wants to know.
                let _ = teller.send(News::Silent);
            });
        }
        Ok(Errand { child, news, gifts: Some(gifts), is_watched: false })
    }

    /// Writes these bytes to its standard input, in the background; [`News::Taken`] tells how it goes on.
    pub fn give(&self, bytes: Arc<[u8]>) {
        self.hand(Gift::Bytes(bytes));
    }

    /// Gives signs of life on its standard input from now on.
    pub fn pulse(&mut self) {
        self.is_watched = true;
        self.hand(Gift::Pulse);
    }

    fn hand(&self, gift: Gift) {
        if let Some(gifts) = &self.gifts {
            // Its input may be closed already, in which case its end is news.
            let _ = gifts.send(gift);
        }
    }

    /// The next news, if there are some before `end`. After the last there is silence.
    pub fn next(&self, end: Instant) -> Option<News> {
        match self.news.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(News::Silent),
        }
    }

    /// What it said on standard error and has not been read yet, the newest last; waits for the rest if it has ended.
    pub fn last_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let end = Instant::now() + Duration::from_millis(200);
        while let Ok(news) = self.news.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let News::Aside(line) = news {
                words.push(line);
            }
        }
        words
    }

    /// Waits for its end, which has to come before `end`.
    pub fn ended(&mut self, end: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Closes its standard input, which is how all that it started learns that it is no longer needed.
    pub fn release(&mut self) {
        self.gifts = None;
    }

    /// Hands out what it says from now on, to be followed by somebody else.
    pub fn take_news(&mut self) -> Receiver<News> {
        std::mem::replace(&mut self.news, channel().1)
    }

    fn signal(&self, signal: Signal) {
        // A process that has ended needs none.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Errand {
    /// Ends it: by the end of its input, else by a request, else by force. After that nothing of it is left here.
    fn drop(&mut self) {
        self.release();
        let grace = if self.is_watched { GRACE } else { Duration::ZERO };
        if self.ended(Instant::now() + grace).is_some() {
            return;
        }
        self.signal(Signal::TERM);
        if self.ended(Instant::now() + GRACE).is_some() {
            return;
        }
        self.signal(Signal::KILL);
        // It has no choice, and what cannot be waited for is not ours any more.
        let _ = self.child.wait();
    }
}

fn hand_over(mut stdin: ChildStdin, gifts: &Receiver<Gift>, teller: &Sender<News>) {
    let mut is_pulsing = false;
    loop {
        let gift = if is_pulsing {
            match gifts.recv_timeout(PULSE) {
                Ok(gift) => gift,
                Err(RecvTimeoutError::Timeout) => Gift::Pulse,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        } else {
            match gifts.recv() {
                Ok(gift) => gift,
                Err(_) => return,
            }
        };
        let written = match gift {
            Gift::Bytes(bytes) => bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| {
                stdin.write_all(chunk)?;
                // Nobody may be left who wants to know.
                let _ = teller.send(News::Taken);
                Ok::<(), io::Error>(())
            }),
            Gift::Pulse => {
                is_pulsing = true;
                stdin.write_all(b"\n")
            }
        };
        // It has closed its input; that it has ended is seen elsewhere.
        if written.is_err() {
            return;
        }
    }
}

/// Tells each line, cut at its bound and with what is no UTF-8 replaced, while `tell` wants more. Reads on to the end all
/// the same: a pipe that nobody reads would hold its writer up.
fn read_lines(from: impl Read, mut tell: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    let mut is_wanted = true;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = String::from_utf8_lossy(&bytes);
                is_wanted = is_wanted && tell(line.trim_end_matches(['\n', '\r']).to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Errand {
        Errand::start(&["sh", "-c", script]).expect("there is a shell")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn lines(errand: &Errand) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match errand.next(soon()).expect("in time") {
                News::Line(line) => lines.push(line),
                News::Silent => return lines,
                News::Aside(_) | News::Taken => {}
            }
        }
    }

    #[test]
    fn what_is_said_comes_line_by_line_and_what_is_given_goes_in() {
        let mut errand = shell("echo first; head -c 200000 | wc -c; read pulse; echo alive");
        errand.give(vec![b'x'; 200_000].into());
        errand.pulse();
        assert_eq!(lines(&errand), ["first", "200000", "alive"]);
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let errand = shell("head -c 40000 /dev/zero | tr '\\0' x");
        assert_eq!(lines(&errand).iter().map(String::len).collect::<Vec<_>>(), [16_384, 16_384, 7_232]);
    }

    #[test]
    fn the_last_words_of_a_program_are_kept() {
        let mut errand = shell("echo why >&2; exit 3");
        assert_eq!(errand.ended(soon()).and_then(|status| status.code()), Some(3));
        assert_eq!(errand.last_words(), ["why"]);
    }

    #[test]
    fn the_end_of_the_input_ends_a_program_that_waits_for_it() {
        let mut errand = shell("cat >/dev/null");
        errand.release();
        assert!(errand.ended(soon()).is_some_and(|status| status.success()));
    }

    #[test]
    fn nothing_is_left_of_a_program_that_does_not_want_to_end() {
        let errand = shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait");
        let Some(News::Line(inner)) = errand.next(soon()) else { panic!("the inner one says its number") };
        let inner = Pid::from_raw(inner.parse().expect("a number")).expect("not 0");
        drop(errand);
        let end = soon();
        while rustix::process::test_kill_process(inner).is_ok() && !is_zombie(inner) {
            assert!(Instant::now() < end, "the inner process is left");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Dead, but not yet fetched by whoever adopted it.
    fn is_zombie(pid: Pid) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        status.is_ok_and(|text| text.contains(") Z "))
    }
}
