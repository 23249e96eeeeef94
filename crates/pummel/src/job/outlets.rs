//! Where the text of a run goes: standard error, standard output, a log, and a front's own files.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pummel_fronts::style::{Bar, FileLines, StyleOutput, Word};
use pummel_report::visible;

use crate::job::background_writer::{BackgroundText, Patience, TextWritten};
use crate::job::output_file::OutputFile;
use crate::output::patiently;
use crate::stderr::{self, draw, say, settle};

/// Files that a front has beside the results of all fronts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontFiles {
    /// Where log lines go. Standard error where it is absent.
    pub log: Option<PathBuf>,
    /// The front's own files, which are opened before anything is sent, with the options that name them.
    pub own: Vec<(&'static str, PathBuf)>,
}

/// The places of text.
pub struct Outlets {
    log: Option<BackgroundText>,
    stdout_is_taken: bool,
    /// Started with the first text for standard output.
    output: Option<BackgroundText>,
    own: Vec<OwnFile>,
    bar: Option<ProgressBar>,
    /// Progress is shown by a block or by a screen.
    shows_block: bool,
    block: Option<ProgressBar>,
    /// The first thing that could not be written.
    trouble: Option<io::Error>,
}

/// What became of the text.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Notices of lines that are missing.
    pub notices: Vec<String>,
    /// The first thing that could not be written.
    pub trouble: Option<io::Error>,
}

impl Outlets {
    /// Opens the files, before anything is sent. Where `stdout_is_taken` is set, a result goes to standard output, and
    /// text for it is left out.
    ///
    /// # Errors
    /// Returns the system's error with the path when a file cannot be written.
    pub fn prepare(files: &FrontFiles, stdout_is_taken: bool) -> io::Result<Outlets> {
        let log = files.log.as_deref().map(|path| {
            log_file(path).map_err(|error| {
                io::Error::new(error.kind(), format!("opening log file '{}' failed: {error}", path.display()))
            })
        });
        Ok(Outlets {
            own: files
                .own
                .iter()
                .map(|(flag, path)| OwnFile::create(flag, path))
                .collect::<io::Result<_>>()?,
            log: log.transpose()?,
            stdout_is_taken,
            output: None,
            bar: None,
            shows_block: false,
            block: None,
            trouble: None,
        })
    }

    /// Makes [`Outlets::show_block`], or a screen, show progress in place of lines and bars.
    pub fn replace_progress(&mut self) {
        self.shows_block = true;
    }

    /// Shows these lines in the place of those that were shown before.
    pub fn show_block(&mut self, lines: &[String]) {
        let begin = || {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        };
        let (bar, text) =
            (self.block.get_or_insert_with(begin).clone(), visible::text(&lines.join("\n")).into_owned());
        draw(move || {
            bar.set_message(text);
            bar.tick();
        });
    }

    /// Removes the lines of the block.
    pub fn clear_block(&mut self) {
        if let Some(bar) = self.block.take() {
            draw(move || bar.finish_and_clear());
        }
    }

    /// Prints a line above the block, if there is one.
    fn say_beside(&self, line: String) {
        let Some(bar) = self.block.clone() else { return say(line) };
        let line = format!("{}\n", visible::text(&line));
        draw(move || {
            // There is no other place to say that it could not be written.
            bar.suspend(|| drop(io::stderr().write_all(line.as_bytes())));
        });
    }

    /// Writes the text of a style, and leaves it empty.
    pub fn write(&mut self, out: &mut StyleOutput) {
        for word in out.take() {
            match word {
                Word::Line(line) => self.say_beside(line),
                // The block or the screen shows it.
                Word::Progress(_) if self.shows_block => {}
                Word::Progress(line) => say(line),
                Word::Overwritten(line) => stderr::write_over(&line),
                Word::Error(text) => stderr::write(text),
                Word::Log(line) => match &self.log {
                    Some(log) => log.add(&visible::text(&line)),
                    None => stderr::write(line),
                },
                Word::Output(text) => self.with_output(|output| output.add(&visible::text(&text))),
                Word::Report(bytes) => {
                    let shown = visible::report(&bytes);
                    let text = String::from_utf8_lossy(&shown);
                    self.with_output(|output| output.add_report(&text));
                }
                Word::Screen(text) => self.with_output(|output| output.add_report(&text)),
                Word::Bar(_) if self.shows_block => {}
                Word::Bar(bar) => self.draw(bar),
                Word::File(path, lines) => {
                    let written = self.own_file(path).and_then(|file| file.write(lines));
                    self.note(written);
                }
            }
        }
    }

    /// Writes a piece of text on standard error, after [`Outlets::finish`].
    pub fn write_late(word: Word) {
        match word {
            Word::Line(line) => say(line),
            Word::Error(text) | Word::Log(text) => stderr::write(text),
            Word::Output(_)
            | Word::Report(_)
            | Word::Screen(_)
            | Word::Progress(_)
            | Word::Overwritten(_)
            | Word::Bar(_)
            | Word::File(..) => {}
        }
    }

    /// The file of this path: one that was opened before the run, or a new one whose name only the run decides.
    fn own_file(&mut self, path: PathBuf) -> io::Result<OwnFile> {
        match self.own.iter().position(|file| file.path == path) {
            Some(at) => Ok(self.own.remove(at)),
            None => OwnFile::create("", &path),
        }
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.trouble.get_or_insert(error);
        }
    }

    fn with_output(&mut self, write: impl FnOnce(&BackgroundText)) {
        if self.stdout_is_taken {
            return;
        }
        if self.output.is_none() {
            match BackgroundText::standard_output() {
                Ok(output) => self.output = Some(output),
                Err(error) => return self.note(Err(error)),
            }
        }
        if let Some(output) = &self.output {
            write(output);
        }
    }

    fn draw(&mut self, bar: Bar) {
        match (bar, &self.bar) {
            (Bar::Begin, _) => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                let template = "loading {bar:30} {human_pos} of {human_len}, {eta}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style);
                }
                self.bar = Some(bar);
            }
            (Bar::At(ended, of), Some(bar)) => {
                let bar = bar.clone();
                draw(move || {
                    bar.set_length(of);
                    bar.set_position(ended);
                });
            }
            (Bar::End, Some(_)) => {
                let bar = self.bar.take();
                draw(move || bar.iter().for_each(ProgressBar::finish_and_clear));
            }
            (Bar::At(..) | Bar::End, None) => {}
        }
    }

    /// Writes everything that still waits. Where `reader_may_leave` is set, a reader of standard output that has read
    /// enough is no trouble.
    pub fn finish(mut self, reader_may_leave: bool) -> Delivered {
        let mut notices = Vec::new();
        if let Some(log) = self.log.take() {
            // A log that cannot be written is no reason to fail; lines that are missing are counted.
            let TextWritten { dropped_lines, .. } = log.finish(Patience::Short);
            if dropped_lines > 0 {
                notices.push(format!("{dropped_lines} lines of the log could not be written"));
            }
        }
        // In the order in which it was said, where both go to one terminal.
        settle();
        if let Some(output) = self.output.take() {
            let TextWritten { dropped_lines, result } = output.finish(Patience::UntilInterrupt);
            match result {
                Err(error) if reader_may_leave && error.kind() == io::ErrorKind::BrokenPipe => {}
                Ok(()) if dropped_lines > 0 => {
                    let words = "lines were not printed: they were not read in time";
                    notices.push(format!("{dropped_lines} {words}"));
                }
                result => self.note(result),
            }
        }
        Delivered { notices, trouble: self.trouble }
    }
}

/// Opens a log file, whose lines a thread of its own writes. A named pipe is opened when it has a reader, which nothing
/// waits for.
fn log_file(path: &Path) -> io::Result<BackgroundText> {
    let open = |path: &Path| OpenOptions::new().append(true).create(true).open(path);
    let file = (!is_pipe(path)).then(|| open(path)).transpose()?;
    let path = path.to_owned();
    BackgroundText::start(move || file.map_or_else(|| open(&path), Ok))
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|present| present.file_type().is_fifo())
}

/// A front's own file.
struct OwnFile {
    /// What names the file in words about it, with a colon; empty where no option does.
    flag: String,
    path: PathBuf,
    /// `None` for a named pipe, which is opened when it is written: that waits for its reader.
    file: Option<OutputFile>,
}

impl OwnFile {
    fn create(flag: &str, path: &Path) -> io::Result<OwnFile> {
        let flag = if flag.is_empty() { String::new() } else { format!("{flag}: ") };
        let file = (!is_pipe(path)).then(|| OutputFile::open(path)).transpose().map_err(|error| {
            let words = format!("{flag}failed to open {}: {}", path.display(), os_words(&error));
            io::Error::new(error.kind(), words)
        })?;
        Ok(OwnFile { flag, path: path.to_owned(), file })
    }

    fn write(self, lines: FileLines) -> io::Result<()> {
        let OwnFile { flag, path, file } = self;
        let written = match file {
            Some(file) => {
                let mut out = BufWriter::new(file);
                lines(&mut out).and_then(|()| out.flush())
            }
            None => {
                let (mut bytes, place) = (Vec::new(), path.clone());
                let open = move || OpenOptions::new().write(true).open(place);
                lines(&mut bytes).and_then(|()| patiently(open, &bytes))
            }
        };
        written.map_err(|error| {
            io::Error::new(error.kind(), format!("{flag}failed to write {}: {error}", path.display()))
        })
    }
}

/// The system's words for an error, without its number.
fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
