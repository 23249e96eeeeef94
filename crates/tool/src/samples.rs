//! Every request of the measured phase as a line of text, for tests and for those who want it raw.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pummel_engine::feed::Row;
use pummel_logic::plan::Plan;
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::wire::{Outcome, Verb};

use crate::report::output::explained;

/// The first line. Times are nanoseconds since the beginning of the measured phase; `ready` is the latest of due, slot
/// freed, connection open and socket writable; a time that did not come is empty.
const HEADER: &str = "due,ready,sent,arrived,read,op,outcome,key,client,group";

/// A file of requests.
#[derive(Debug)]
pub struct Samples {
    path: PathBuf,
    out: BufWriter<File>,
    /// What the plan calls each verb.
    names: [&'static str; Verb::COUNT],
    began: Option<Nanos>,
}

impl Samples {
    /// A file with nothing but its first line, for the requests of a plan.
    ///
    /// # Errors
    /// When it cannot be written; the message names the path.
    pub fn create(path: &Path, plan: &Plan) -> io::Result<Samples> {
        let explained = |error: io::Error| explained(path, &error);
        let mut out = BufWriter::new(File::create(path).map_err(explained)?);
        writeln!(out, "{HEADER}").and_then(|()| out.flush()).map_err(explained)?;
        let names = Verb::ALL.map(|verb| plan.name_of(verb));
        Ok(Samples { path: path.to_owned(), out, names, began: None })
    }

    /// A measured phase begins at `at`; times are counted from the first.
    pub fn begin(&mut self, at: Nanos) {
        self.began.get_or_insert(at);
    }

    /// Adds requests.
    ///
    /// # Errors
    /// When they cannot be written; the message names the path.
    pub fn write(&mut self, rows: &[Row]) -> io::Result<()> {
        self.add(rows).map_err(|error| explained(&self.path, &error))
    }

    fn add(&mut self, rows: &[Row]) -> io::Result<()> {
        let began = self.began.unwrap_or(0);
        for row in rows {
            let arrived = if row.read == NEVER { NEVER } else { row.arrived };
            for time in [row.due, row.ready, row.sent, arrived, row.read] {
                if time != NEVER {
                    write!(self.out, "{}", time.saturating_sub(began))?;
                }
                self.out.write_all(b",")?;
            }
            let outcome = match (row.arrived, row.sent) {
                // The phase ended before the request did: what closed its connection is no part of the result.
                (NEVER, NEVER) => "unsent",
                (NEVER, _) => "unfinished",
                _ => outcome_name(row.outcome),
            };
            let name = self.names[row.verb as usize];
            writeln!(self.out, "{name},{outcome},{},{},{}", row.key, row.client, row.group)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the rest cannot be written; the message names the path.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| explained(&self.path, &error))
    }
}

/// The word for an outcome.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Hit => "hit",
        Outcome::Miss => "miss",
        Outcome::Stored => "stored",
        Outcome::NotStored => "not_stored",
        Outcome::Exists => "exists",
        Outcome::NotFound => "not_found",
        Outcome::Deleted => "deleted",
        Outcome::Touched => "touched",
        Outcome::Number(_) => "number",
        Outcome::Ok => "ok",
        Outcome::Stale => "stale",
        Outcome::Win => "win",
        Outcome::Recaching => "recaching",
        Outcome::Error(fault) => fault.name(),
    }
}
