//! The live view in a terminal: a thread that draws the screen, reads keys, and always restores the terminal.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use pummel_engine::clock;
use pummel_engine::run::{RateCommand, Steering};
use pummel_logic::time::Nanos;
use pummel_report::snapshot::SharedSnapshot;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGTSTP;
use signal_hook::{flag, low_level};

use crate::live::canvas::{Canvas, Ink};
use crate::live::choice::Choice;
use crate::live::screen::draw;
use crate::live::words::Glyphs;
use crate::metrics::server::step_back;

/// How long the thread waits for a key before it draws again.
const FRAME: Duration = Duration::from_millis(250);

/// How long the end of a run waits for a terminal that accepts no output.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// Whether the screen is open, so that the terminal must be restored.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// A live view that is open.
#[derive(Debug)]
pub struct LiveView {
    stop: Arc<AtomicBool>,
    /// Closed when the terminal is restored.
    done: Receiver<()>,
}

impl LiveView {
    /// Opens the screen on standard error. `interrupts` counts the requests to end the run; with `aside` the thread
    /// stays on that CPU, and with `steering` keys change the rate.
    ///
    /// # Errors
    /// Returns the system's error when the terminal cannot be had.
    pub fn open(
        snapshot: SharedSnapshot,
        glyphs: Glyphs,
        interrupts: &'static AtomicU32,
        aside: Option<usize>,
        steering: Option<Arc<Steering>>,
    ) -> io::Result<LiveView> {
        if !io::stderr().is_terminal() {
            return Err(io::Error::other("standard error is not a terminal"));
        }
        give_back_after_a_panic();
        let (stop, is_asked_to_pause) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        // Once the view is closed the signal stops the process, as it does without a handler.
        flag::register_conditional_default(SIGTSTP, Arc::clone(&stop))?;
        flag::register(SIGTSTP, Arc::clone(&is_asked_to_pause))?;
        take_terminal()?;
        let (closing, done) = channel();
        let view = Viewer {
            snapshot,
            glyphs,
            interrupts,
            stop: Arc::clone(&stop),
            is_asked_to_pause,
            steering,
            choice: Choice::default(),
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        let started = thread::Builder::new().name("live".to_owned()).spawn(move || {
            step_back(aside);
            // A terminal that is gone ends the view and never the run.
            let _ = view.run();
            give_terminal_back();
            drop(closing);
        });
        if let Err(error) = started {
            give_terminal_back();
            return Err(error);
        }
        Ok(LiveView { stop, done })
    }

    /// Closes the screen and restores the terminal. A terminal that accepts no output is waited for no longer than a
    /// second.
    pub fn close(self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.done.recv_timeout(END_TIME_MAX);
    }
}

/// The thread of a live view.
struct Viewer {
    snapshot: SharedSnapshot,
    glyphs: Glyphs,
    interrupts: &'static AtomicU32,
    stop: Arc<AtomicBool>,
    is_asked_to_pause: Arc<AtomicBool>,
    /// The queue of commands that change the rate; `None` where keys do not change it.
    steering: Option<Arc<Steering>>,
    choice: Choice,
    has_colours: bool,
}

impl Viewer {
    fn run(mut self) -> io::Result<()> {
        let mut terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
        while !self.stop.load(Ordering::Acquire) {
            if self.is_asked_to_pause.swap(false, Ordering::AcqRel) {
                give_terminal_back();
                low_level::emulate_default_handler(SIGTSTP)?;
                take_terminal()?;
                // A view without memory draws all of the screen again, and asks the terminal for nothing.
                terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
            }
            if !self.choice.is_frozen || self.choice.shows_help {
                self.draw(&mut terminal)?;
            }
            if event::poll(FRAME)? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => {
                        self.press(key);
                        // What was chosen is seen at once, also on a screen that stands still.
                        self.draw(&mut terminal)?;
                    }
                    Event::Resize(..) => self.draw(&mut terminal)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn draw(&self, terminal: &mut Terminal<CrosstermBackend<io::Stderr>>) -> io::Result<()> {
        let now: Nanos = clock::now();
        terminal.draw(|frame| {
            let area = frame.area();
            let size = (usize::from(area.width), usize::from(area.height));
            let canvas = draw(&self.snapshot.lock(), self.choice, now, size, self.glyphs);
            paint(&canvas, frame.buffer_mut(), self.has_colours);
        })?;
        Ok(())
    }

    fn press(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.interrupt(),
            KeyCode::Char('z') if is_control => self.is_asked_to_pause.store(true, Ordering::Release),
            // One request to end is enough; the second Ctrl-C ends the process without a report.
            KeyCode::Char('q') if self.interrupts.load(Ordering::Relaxed) == 0 => self.interrupt(),
            code => match (rate_command(code), &self.steering) {
                // A full queue means that the run applies nothing; one more command would not be applied either.
                (Some(command), Some(steering)) => _ = steering.send(clock::now(), command),
                _ => self.choice = after_key(self.choice, code),
            },
        }
    }

    /// Sends this process the signal that Ctrl-C is on a terminal without a view.
    fn interrupt(&self) {
        if self.interrupts.load(Ordering::Relaxed) > 0 {
            // The process is about to end without coming back here.
            give_terminal_back();
        }
        let _ = kill_process(getpid(), Signal::INT);
    }
}

/// The command of a key that changes the rate.
fn rate_command(code: KeyCode) -> Option<RateCommand> {
    Some(match code {
        KeyCode::Char('p') => RateCommand::Pause,
        KeyCode::Char('+') => RateCommand::Scale(1.05),
        KeyCode::Char('-') => RateCommand::Scale(0.95),
        KeyCode::Char('*') => RateCommand::Scale(2.0),
        KeyCode::Char('/') => RateCommand::Scale(0.5),
        _ => return None,
    })
}

/// The viewer's choices after a key.
fn after_key(choice: Choice, code: KeyCode) -> Choice {
    match code {
        KeyCode::Char('o') => Choice { op: choice.op + 1, ..choice },
        KeyCode::Char('s') => Choice { shows_service: !choice.shows_service, ..choice },
        KeyCode::Char('a') | KeyCode::Tab => Choice { panel: choice.panel.wrapping_add(1), ..choice },
        KeyCode::Char('?') => Choice { shows_help: !choice.shows_help, ..choice },
        KeyCode::Char(' ') => Choice { is_frozen: !choice.is_frozen, ..choice },
        _ => choice,
    }
}

/// Puts a grid into the buffer of a terminal.
fn paint(canvas: &Canvas, buffer: &mut Buffer, has_colours: bool) {
    for y in 0..canvas.height() {
        for x in 0..canvas.width() {
            let (character, ink) = canvas.cell(x, y);
            if let Some(cell) = buffer.cell_mut((x as u16, y as u16)) {
                cell.set_char(character).set_style(style_of(ink, has_colours));
            }
        }
    }
}

/// Colours of the 256 that most terminals have, from few requests to most.
const HEAT: [u8; 10] = [66, 67, 67, 68, 68, 32, 32, 33, 33, 27];

fn style_of(ink: Ink, has_colours: bool) -> Style {
    let plain = Style::new();
    let colour = |index: u8| if has_colours { plain.fg(Color::Indexed(index)) } else { plain };
    match ink {
        Ink::Plain => plain,
        Ink::Bold => plain.add_modifier(Modifier::BOLD),
        Ink::Dim => plain.add_modifier(Modifier::DIM),
        Ink::Reverse => plain.add_modifier(Modifier::REVERSED),
        Ink::Service => colour(32),
        Ink::Wait => colour(172),
        Ink::Lag => colour(166),
        Ink::Reaction => colour(175),
        Ink::Good => colour(36),
        Ink::Heat(step) => colour(HEAT[usize::from(step.min(9))]),
    }
}

fn take_terminal() -> io::Result<()> {
    enable_raw_mode()?;
    IS_OPEN.store(true, Ordering::Release);
    // A terminal without a second screen still shows what stood there before, where the view draws nothing.
    execute!(io::stderr(), EnterAlternateScreen, Clear(ClearType::All), Hide)
}

/// Restores the terminal, once.
fn give_terminal_back() {
    if IS_OPEN.swap(false, Ordering::AcqRel) {
        let mut to = io::stderr();
        // A terminal that is gone has nothing to be given back.
        let _ = execute!(to, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = to.flush();
    }
}

/// Restores the terminal before the words of a panic are written to it.
fn give_back_after_a_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_terminal_back();
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use ratatui_core::backend::TestBackend;

    use super::*;
    use crate::live::example;

    #[test]
    fn a_terminal_of_each_size_shows_the_screen() {
        let (snapshot, now) = example::measuring();
        for (width, height) in [(120, 40), (80, 24), (80, 15), (40, 8), (39, 7)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is in memory");
            let size = (usize::from(width), usize::from(height));
            let canvas = draw(&snapshot, Choice::default(), now, size, Glyphs::Ascii);
            terminal.draw(|frame| paint(&canvas, frame.buffer_mut(), true)).expect("it is in memory");
            let buffer = terminal.backend().buffer();
            for y in 0..height {
                let row: String = (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
                let drawn: String = (0..size.0).map(|x| canvas.cell(x, usize::from(y)).0).collect();
                assert_eq!(row, drawn, "row {y} of {width} x {height}");
            }
        }
    }

    #[test]
    fn without_colours_only_bold_dim_and_reverse_stay() {
        for ink in [Ink::Service, Ink::Wait, Ink::Heat(9), Ink::Good] {
            assert_eq!(style_of(ink, false), Style::new());
            assert_ne!(style_of(ink, true), Style::new());
        }
        assert_eq!(style_of(Ink::Bold, false), style_of(Ink::Bold, true));
    }

    #[test]
    fn keys_change_the_choice_and_back() {
        let first = Choice::default();
        for (code, times) in [(KeyCode::Char('s'), 2), (KeyCode::Char('?'), 2), (KeyCode::Char(' '), 2)] {
            assert_ne!(after_key(first, code), first, "{code:?}");
            assert_eq!((0..times).fold(first, |choice, _| after_key(choice, code)), first, "{code:?}");
        }
        assert_eq!(after_key(first, KeyCode::Tab), after_key(first, KeyCode::Char('a')));
        assert_eq!(after_key(first, KeyCode::Tab).panel, 1);
        assert_eq!(after_key(first, KeyCode::Char('x')), first);
    }
}
