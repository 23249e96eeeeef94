//! `--live` and the block of four lines in a real terminal: keys, sizes, and a terminal that is always given back.
#![cfg(feature = "live")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::agent::{Agent, list};
use crate::common::{Memcached, Process, Serve, in_some_quiet_moment, shell_status, until};
use pummel_tool::live::terminal::LiveView;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

/// A terminal as far as the live view needs one: a grid of characters, a cursor, and two screens.
#[derive(Debug, Default)]
struct Grid {
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    /// Number of times that the other screen was opened and left.
    opened: usize,
    left: usize,
    /// Bytes that came while the first screen was shown.
    plain: String,
    pending: Vec<u8>,
}

impl Grid {
    fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.rows = vec![vec![' '; usize::from(columns)]; usize::from(rows)];
    }

    fn is_open(&self) -> bool {
        self.opened > self.left
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let text = match std::str::from_utf8(&self.pending) {
            Ok(text) => text.to_owned(),
            Err(error) => String::from_utf8_lossy(&self.pending[..error.valid_up_to()]).into_owned(),
        };
        let mut rest = text.as_str();
        while let Some(next) = rest.chars().next() {
            let step = if next == '\x1b' { self.escape(rest) } else { self.character(next) };
            // The rest of an escape is still to come.
            let Some(step) = step else { break };
            rest = &rest[step..];
        }
        let used = text.len() - rest.len();
        self.pending.drain(..used);
    }

    fn character(&mut self, character: char) -> Option<usize> {
        if !self.is_open() {
            self.plain.push(character);
        } else if !character.is_control() {
            let (row, column) = self.at;
            if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(column)) {
                *cell = character;
            }
            self.at.1 += 1;
        }
        Some(character.len_utf8())
    }

    /// Follows an escape at the beginning of the text; `None` where its end is missing.
    fn escape(&mut self, text: &str) -> Option<usize> {
        let body = match text[1..].chars().next()? {
            '[' => &text[2..],
            other => return Some(1 + other.len_utf8()),
        };
        let end = body.find(|c: char| c.is_ascii_alphabetic())?;
        let (arguments, word) = (&body[..end], body[end..].chars().next()?);
        match (arguments, word) {
            ("?1049", 'h') => self.opened += 1,
            ("?1049", 'l') => self.left += 1,
            (place, 'H') => {
                let mut numbers = place.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
                self.at = (numbers.next().unwrap_or(1) - 1, numbers.next().unwrap_or(1) - 1);
            }
            ("2", 'J') => self.rows.iter_mut().for_each(|row| row.fill(' ')),
            _ => {}
        }
        Some(2 + end + 1)
    }

    fn text(&self) -> String {
        self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
    }
}

/// A pummel in a terminal of its own.
struct Screen {
    process: Process,
    keyboard: File,
    terminal: OwnedFd,
    grid: Arc<Mutex<Grid>>,
    /// Reads until the last process has closed the terminal.
    reader: JoinHandle<()>,
    folder: tempfile::TempDir,
}

impl Screen {
    fn start(words: &str, size: (u16, u16), environment: &[(&str, &str)]) -> Screen {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        command.args(words.split_whitespace()).args(["--json", "result.json"]);
        Screen::of(command, size, environment)
    }

    /// The program of a command in a terminal of its own.
    fn of(program: Command, size: (u16, u16), environment: &[(&str, &str)]) -> Screen {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("there are terminals");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it is ours");
        let name = ptsname(&terminal, Vec::new()).expect("it has a name");
        let open = || {
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
                .expect("it is there")
        };
        resize(&terminal, size);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args()).current_dir(folder.path());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env_remove("CI").env_remove("NO_COLOR").env("TERM", "xterm-256color").env("LC_ALL", "C");
        command.envs(environment.iter().copied());
        let child: Child =
            command.stdin(open()).stdout(open()).stderr(open()).spawn().expect("setsid is there");
        let mut output = File::from(terminal.try_clone().expect("a second handle"));
        let keyboard = File::from(terminal.try_clone().expect("a third handle"));
        let grid = Arc::new(Mutex::new(Grid::default()));
        grid.lock().expect("nobody panicked").resize(size);
        let fed = Arc::clone(&grid);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose last holder is gone is an error of its reader.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                fed.lock().expect("nobody panicked").feed(&bytes[..count]);
            }
        });
        Screen { process: Process(child), keyboard, terminal, grid, reader, folder }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it is there");
    }

    fn resize(&self, size: (u16, u16)) {
        self.grid.lock().expect("nobody panicked").resize(size);
        resize(&self.terminal, size);
    }

    fn seen<T>(&self, look: impl FnOnce(&Grid) -> T) -> T {
        look(&self.grid.lock().expect("nobody panicked"))
    }

    #[track_caller]
    fn wait_for(&self, words: &str) {
        until(words, || self.seen(|grid| grid.text().contains(words)).then_some(()));
    }

    /// Whether the words are shown before the process is over.
    fn shows_before_the_end(&self, words: &str) -> bool {
        until(words, || {
            let is_over = self.reader.is_finished();
            let is_shown = self.seen(|grid| grid.text().contains(words));
            (is_shown || is_over).then_some(is_shown)
        })
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).expect("it runs");
    }

    /// The letter of its state, as the kernel has it.
    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.0.id())).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    /// Waits for the end. Returns the status of a shell, and what the terminal shows outside of the other screen.
    fn end(self) -> (i32, String) {
        let (status, plain, folder) = self.end_with_folder();
        assert!(folder.path().join("result.json").exists(), "a result is written");
        (status, plain)
    }

    /// Waits for the end of what writes no result.
    fn end_without_result(self) -> (i32, String) {
        let (status, plain, folder) = self.end_with_folder();
        assert!(!folder.path().join("result.json").exists(), "no result is written");
        (status, plain)
    }

    /// Waits for the end, and keeps the folder of the process.
    fn end_with_folder(mut self) -> (i32, String, tempfile::TempDir) {
        let status = until("the end", || self.process.0.try_wait().expect("it was started"));
        until("the last words", || self.reader.is_finished().then_some(()));
        let plain = self.seen(|grid| grid.plain.clone());
        (shell_status(status), plain, self.folder)
    }
}

fn resize(terminal: &OwnedFd, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is a terminal");
}

/// Whether the terminal shows what is typed, as it does while nothing has changed it.
fn is_cooked(screen: &Screen) -> bool {
    let modes = tcgetattr(&screen.terminal).expect("it is a terminal").local_modes;
    modes.contains(rustix::termios::LocalModes::ICANON)
}

const RUN: &str = "--no-load --records 100 -c 2 --rate 500 --interval 100ms --protocol text";

#[test]
fn keys_and_sizes_change_the_screen_and_q_ends_with_the_report() {
    let server = Serve::start("");
    let mut screen = Screen::start(&format!("run -s {} {RUN} -t 60s --live", server.name), (80, 24), &[]);
    screen.wait_for("response, all operations");
    screen.wait_for("req/s");
    assert!(!is_cooked(&screen));
    screen.press("s");
    screen.wait_for("service, all operations");
    screen.press("\t");
    screen.wait_for("errors ----");
    screen.press("a");
    screen.wait_for("messages ----");
    screen.press("a");
    screen.wait_for("--- pummel ---");
    screen.press("o");
    until("the times of the other operation", || {
        screen
            .seen(|grid| grid.text().lines().nth(3).is_some_and(|line| line.contains("run   set")))
            .then_some(())
    });
    screen.press(" ");
    screen.wait_for("space go on");
    screen.press(" ");
    screen.wait_for("space freeze");
    // Keys that change the rate do nothing without --steer.
    screen.press("p+");
    screen.press("?");
    screen.wait_for("this help");
    screen.press("?");
    screen.wait_for("service, all operations");
    screen.resize((120, 40));
    until("the larger screen", || {
        screen
            .seen(|grid| grid.rows[39].iter().collect::<String>().contains("q end and report"))
            .then_some(())
    });
    screen.wait_for("messages ----");
    screen.press("q");
    until("the terminal is given back", || is_cooked(&screen).then_some(()));
    let (status, plain) = screen.end();
    assert_eq!(status, 130, "{plain}");
    assert!(plain.contains("INTERRUPTED") || plain.contains("interrupted"), "{plain}");
}

#[test]
fn the_report_stands_where_the_screen_was_and_not_on_it() {
    let server = Serve::start("");
    for _ in 0..3 {
        let screen = Screen::start(&format!("run -s {} {RUN} -n 100 --live", server.name), (80, 24), &[]);
        let (status, plain) = screen.end();
        assert_eq!(status, 0, "{plain}");
        assert!(plain.starts_with("pummel "), "{plain}");
    }
}

#[test]
fn keys_that_come_with_a_change_of_the_size_are_heard() {
    let server = Serve::start("");
    let mut screen = Screen::start(&format!("run -s {} {RUN} -t 60s --live", server.name), (80, 24), &[]);
    screen.wait_for("response, all operations");
    for columns in [90, 80, 90, 80, 90, 80, 90, 80] {
        screen.resize((columns, 24));
        screen.press("s");
        let span = if columns == 90 { "service" } else { "response" };
        screen.wait_for(&format!("{span}, all operations"));
    }
    screen.press("q");
    let (status, plain) = screen.end();
    assert_eq!(status, 130, "{plain}");
}

#[test]
fn a_terminal_that_becomes_small_shows_what_has_room_and_four_lines_at_last() {
    let server = Serve::start("");
    let mut screen = Screen::start(&format!("run -s {} {RUN} -t 60s --live", server.name), (80, 24), &[]);
    screen.wait_for("response, all operations");
    for (size, there, gone) in [
        ((80, 16), "busy ", "all operations, last 0"),
        ((44, 10), "p99", "serv."),
        ((39, 7), "rate       ", "q end and report"),
    ] {
        screen.resize(size);
        until(there, || {
            screen.seen(|grid| grid.text().contains(there) && !grid.text().contains(gone)).then_some(())
        });
    }
    screen.resize((80, 24));
    screen.wait_for("q end and report");
    // The first Ctrl-C ends the load, and the report comes.
    screen.press("\x03");
    until("the terminal is given back", || is_cooked(&screen).then_some(()));
    let (status, plain) = screen.end();
    assert_eq!(status, 130, "{plain}");
}

/// Not a test by itself: a panic while the screen is open, in a process of its own that the test below starts.
#[test]
fn panic_on_purpose() {
    if std::env::var_os("PUMMEL_TEST_PANIC").is_none() {
        return;
    }
    let snapshot = pummel_report::snapshot::SharedSnapshot::default();
    let glyphs = pummel_tool::live::words::Glyphs::Ascii;
    static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
    let _view = LiveView::open(snapshot, glyphs, &INTERRUPTS, None, None).expect("there is a terminal");
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(500));
        panic!("on purpose");
    })
    .join()
    .expect_err("it panics");
    std::process::exit(101);
}

#[test]
fn the_terminal_is_given_back_before_the_words_of_a_panic() {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "live::panic_on_purpose", "--nocapture"]).env("PUMMEL_TEST_PANIC", "1");
    let screen = Screen::of(command, (80, 24), &[]);
    until("the screen is open", || (screen.seen(|grid| grid.opened) == 1).then_some(()));
    until("the terminal is given back", || (screen.seen(|grid| grid.left) == 1).then_some(()));
    until("the words of the panic", || screen.seen(|grid| grid.plain.contains("on purpose")).then_some(()));
    assert!(is_cooked(&screen));
}

#[test]
fn an_overload_is_on_the_screen_while_it_lasts_and_in_the_report() {
    let server = Serve::start("--service-time 1ms --queue 1");
    for size in [(80, 24), (140, 45)] {
        // A machine that keeps the server from its work makes an overload that is not of one level.
        in_some_quiet_moment(|| {
            let words =
                "--no-load --records 100 --rate 2k -t 4s --timeout 30s --interval 500ms --protocol text";
            let screen = Screen::start(&format!("run -s {} {words} --live", server.name), size, &[]);
            for words in [
                "OVERLOADED  ",
                "--- behind, up to ",
                "/s answered of 2,000 asked; behind ",
                "the server does not keep up: 2,000/s asked, ",
                "all 50 connections are busy, requests wait for one",
            ] {
                if !screen.shows_before_the_end(words) {
                    return Err(format!("not shown: {words}\n{}", screen.end().1));
                }
            }
            let text = screen.seen(Grid::text);
            assert!(!text.contains("nothing at its limit") && !text.contains("no messages"), "{text}");
            let (status, plain) = screen.end();
            assert_eq!(status, 0, "{plain}");
            if plain.contains("OVERLOADED: ") { Ok(()) } else { Err(plain) }
        });
    }
}

#[test]
fn agents_and_servers_have_panels_where_there_are_several() {
    let servers = [Serve::start(""), Serve::start("")];
    let agents = Agent::many(2);
    let names = format!("{},{}", servers[0].name, servers[1].name);
    let words = format!("run -s {names} {RUN} -t 60s --agents {} --live", list(&agents));
    let mut screen = Screen::start(&words, (120, 40), &[]);
    screen.wait_for("agents, response now: 2");
    screen.wait_for("servers, service now: 2");
    screen.wait_for(&agents[1].name);
    screen.wait_for(&servers[1].name);
    screen.resize((80, 24));
    screen.wait_for("--- pummel ---");
    for heading in ["errors ----", "messages ----", "agents, response now: 2", "servers, service now: 2"] {
        screen.press("a");
        screen.wait_for(heading);
    }
    screen.press("q");
    until("the terminal is given back", || is_cooked(&screen).then_some(()));
    let (status, plain) = screen.end();
    assert_eq!(status, 130, "{plain}");
}

#[test]
fn servers_that_are_asked_within_the_measurement_show_their_cpu() {
    let server = Memcached::start();
    let words = format!("run -s {} {RUN} -t 60s --server-stats=200ms --live", server.name);
    let mut screen = Screen::start(&words, (120, 40), &[]);
    screen.wait_for("server CPU 0.");
    screen.wait_for("evictions 0");
    screen.press("q");
    until("the terminal is given back", || is_cooked(&screen).then_some(()));
    let (status, plain) = screen.end();
    assert_eq!(status, 130, "{plain}");
}

#[test]
fn a_steered_run_changes_its_rate_and_has_the_plan_that_repeats_it() {
    let server = Serve::start("");
    let words = format!("run -s {} {RUN} -t 120s --live --steer -v", server.name);
    let mut screen = Screen::start(&words, (120, 40), &[]);
    screen.wait_for("open 500/s");
    screen.wait_for("p pause");
    screen.wait_for("%  measuring");
    for (key, shown) in [
        ("*", "open 1,000/s"),
        ("+", "open 1,050/s"),
        ("p", "open 0/s, PAUSED at 1,050/s"),
        ("/", "PAUSED at 525/s"),
        ("p", "open 525/s"),
        ("-", "open 499/s"),
    ] {
        screen.press(key);
        screen.wait_for(shown);
    }
    screen.press("q");
    let (status, plain, folder) = screen.end_with_folder();
    assert_eq!(status, 130, "{plain}");
    assert!(plain.contains("steered by hand, with 5 changes"), "{plain}");
    let file = folder.path().join("result.json");
    let text = std::fs::read_to_string(&file).expect("a result is written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let changes = result["steered"].as_array().expect("the changes");
    let rate = |change: &Value| change["rate"].as_f64().expect("a rate");
    let rates: Vec<f64> = changes.iter().map(|change| rate(change).round()).collect();
    assert_eq!(rates, [1_000.0, 1_050.0, 0.0, 525.0, 499.0]);
    let events = result["events"].as_array().expect("events");
    assert_eq!(events.iter().filter(|event| event["kind"] == "steering").count(), 5, "{events:?}");
    // The plan of the result goes from rate to rate by jumps.
    let plan = &result["plan"];
    let points = plan["changes"]["rate"]["points"].as_array().expect("a rate over time");
    assert_eq!((points.len(), rate(&points[0])), (11, 500.0));
    for (change, jump) in changes.iter().zip(points[1..].chunks(2)) {
        assert_eq!((jump[0]["at_ns"].as_u64(), rate(&jump[1])), (jump[1]["at_ns"].as_u64(), rate(change)));
    }
}

#[test]
fn what_cannot_be_steered_is_refused_with_its_reason() {
    let server = Serve::start("");
    let refused = |words: &str| {
        let words = format!("run -s {} --no-load --records 100 {words}", server.name);
        let screen = Screen::start(&words, (80, 24), &[]);
        let (status, plain) = screen.end_without_result();
        assert_eq!(status, 2, "{plain}");
        plain.replace("\r\n", "\n")
    };
    for (words, why) in [
        ("-t 1s --live --steer", "with --rate only"),
        ("--rate 100 -n 5 --live --steer", "with a time (-t) only"),
        ("--rate 100 -t 1s --goal p99:1s --live --steer", "without --goal only"),
        ("--rate 100..200 -t 1s --live --steer", "with one rate only"),
        ("--rate 100 --until p99:5% --live --steer", "without --until only"),
        ("--conn-rate 10 --calls-per-connection 2 -t 1s --live --steer", "clients that stay only"),
        ("--rate 100 -t 1s --steer", "--live"),
        ("--rate 100 -t 1s --live --steer --repeat 2", "--repeat"),
    ] {
        let said = refused(words);
        assert!(said.contains(why), "{words}: {said}");
    }
    let words = format!("run -s {} --rate 100 -t 1s --live --steer", server.name);
    let ended = crate::common::pummel(&words).expect(2);
    assert!(ended.errors.contains("on a terminal only"), "{}", ended.errors);
}

#[test]
fn a_stopped_run_gives_the_terminal_back_and_takes_it_again() {
    let server = Serve::start("");
    let screen = Screen::start(&format!("run -s {} {RUN} -t 60s --live", server.name), (80, 24), &[]);
    screen.wait_for("req/s");
    screen.signal(Signal::TSTP);
    until("it is stopped", || (screen.state() == Some('T')).then_some(()));
    assert!(is_cooked(&screen));
    until("what it wrote last is on the screen", || (screen.seen(|grid| grid.left) == 1).then_some(()));
    assert_eq!(screen.seen(|grid| grid.opened), 1);
    screen.signal(Signal::CONT);
    until("the screen is open again", || (screen.seen(|grid| grid.opened) == 2).then_some(()));
    screen.wait_for("req/s");
    screen.signal(Signal::TERM);
    // What the program wrote last may still be on its way to the screen when the terminal is its old self.
    until("the terminal is given back", || (is_cooked(&screen) && !screen.seen(Grid::is_open)).then_some(()));
    let (status, plain) = screen.end();
    assert_eq!(status, 143, "{plain}");
}

#[test]
fn a_terminal_shows_four_lines_in_place_of_one_for_each_interval() {
    let server = Serve::start("");
    let screen = Screen::start(&format!("run -s {} {RUN} -t 2s", server.name), (100, 30), &[]);
    let (status, plain) = screen.end();
    assert_eq!(status, 0, "{plain}");
    for words in ["measuring  [", "rate       ", "response   p50 ", "   behind "] {
        assert!(plain.contains(words), "no {words:?} in {plain}");
    }
    // A busy machine makes times doubtful, and then the fourth line says so.
    let fourth = ["generator  busy ", " NOT RELIABLE since ", "pummel's thread "];
    assert!(fourth.iter().any(|words| plain.contains(words)), "{plain}");
    assert!(!plain.contains(" req/s   response p50"), "a line of progress for each interval: {plain}");
}

#[test]
fn a_log_of_a_ci_gets_a_line_for_each_interval_also_with_live() {
    let server = Serve::start("");
    let words = format!("run -s {} {RUN} -t 1s --live", server.name);
    let (status, plain) = Screen::start(&words, (100, 30), &[("CI", "1")]).end();
    assert_eq!(status, 0, "{plain}");
    assert!(plain.contains("--live needs a terminal"), "{plain}");
    assert!(plain.contains(" req/s   response p50"), "{plain}");
    assert!(!plain.contains("\x1b[?1049h"), "{plain}");
}

#[test]
fn standard_output_is_the_result_alone_and_nothing_disturbs_it() {
    let server = Serve::start("");
    let ended = crate::common::Running::start(&format!("run -s {} {RUN} -t 300ms --live", server.name))
        .end()
        .expect(0);
    assert!(ended.errors.contains("--live needs a terminal"), "{}", ended.errors);
    assert!(ended.text.starts_with("pummel "), "{}", ended.text);
}
