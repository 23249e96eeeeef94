//! The files of a series of runs, and its report on standard output.

use std::io;

use crate::commands::run_maker::SeriesEnd;
use crate::output::{Output, open_form, print, print_screen};
use crate::terminal::terminal;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::UsageError;
use pummel_fronts::native::OutputArgs;
use pummel_fronts::outputs::ReportFormat;
use pummel_report::forms::Form;
use pummel_report::screen::{Hints, Paper};
use pummel_report::text::Detail;

/// A form of the result of a series: its name, and the function that makes it.
pub type SeriesForm<T> = (&'static str, fn(&T) -> Vec<u8>);

/// The function that makes the text of a result, with so much on it, for some paper.
pub type TextOf<T> = fn(&T, Detail, Paper) -> String;

/// The files that are made from all runs of a series.
pub struct SeriesFiles<T> {
    files: Vec<SeriesFile<T>>,
}

/// A file, with its form and the function that makes it.
type SeriesFile<T> = (&'static Form, fn(&T) -> Vec<u8>, Output);

impl<T> SeriesFiles<T> {
    /// Checks that everything can be written, before anything is sent. The results of a series have these forms.
    ///
    /// # Errors
    /// Returns [`SeriesEnd::Usage`] for a form that a series has not, and [`SeriesEnd::Failed`] for a file that cannot be
    /// written.
    pub fn prepare(args: &OutputArgs, forms: &[SeriesForm<T>]) -> Result<SeriesFiles<T>, SeriesEnd> {
        if args.files.0.parquet().is_some() {
            let why = "'--parquet' is accepted with one run only, and this is a series of runs";
            return Err(SeriesEnd::Usage(UsageError::Missing(why.to_owned())));
        }
        let mut files = Vec::new();
        for (form, path) in args.files.0.iter() {
            let Some((_, render)) = forms.iter().find(|(name, _)| *name == form.name) else {
                let flag = form.flag();
                return Err(SeriesEnd::Usage(UsageError::Missing(format!(
                    "'{flag}' is accepted with one run only, and this is a series of runs"
                ))));
            };
            files.extend(open_form(form, path)?.map(|output| (form, *render, output)));
        }
        Ok(SeriesFiles { files })
    }

    /// Writes what is known so far.
    ///
    /// # Errors
    /// Returns the system's error when a file cannot be written.
    pub fn checkpoint(&self, series: &T) -> io::Result<()> {
        let mut checkpointed = self.files.iter().filter(|(form, ..)| form.is_checkpointed());
        checkpointed.try_for_each(|(_, render, output)| output.checkpoint(&render(series)))
    }

    /// Writes every file, and the report to standard output where no file is there. Returns the exit status: `exit`, or that of
    /// the first thing that cannot be written.
    pub fn finish(&self, args: &OutputArgs, series: &T, report: Reports<T>, exit: Exit) -> Exit {
        if exit == Exit::Usage && report.text.is_none() {
            // Nothing was sent, and what the files hold is of another series.
            return exit;
        }
        let taken = self.files.iter().any(|(.., output)| output.is_standard());
        // Files first: standard output may not be read yet.
        let mut results: Vec<io::Result<()>> =
            self.files.iter().map(|(_, render, output)| output.finish(&render(series))).collect();
        results.push(match (taken, args.format.unwrap_or_default()) {
            (true, _) => Ok(()),
            (false, ReportFormat::Json) => print(&(report.json)(series)),
            (false, ReportFormat::Markdown) => print(&(report.markdown)(series)),
            (false, ReportFormat::Text) => report.text.map_or(Ok(()), |text| {
                let screen = args.screen;
                print_screen(&text(
                    series,
                    screen.detail(args.quiet),
                    screen.paper(Hints::OfRuns, &terminal()),
                ))
            }),
        });
        let troubles = results.into_iter().filter_map(Result::err);
        troubles.fold(exit, |exit, error| match SeriesEnd::from(error).exit() {
            // A script ends with the series that is interrupted, whatever else could not be done.
            _ if exit == Exit::Interrupted => exit,
            failed => failed,
        })
    }
}

/// The functions of the reports that standard output takes.
pub struct Reports<T> {
    /// For people; `None` where no run was made, and standard error says why.
    pub text: Option<TextOf<T>>,
    /// For the page of a job or a comment.
    pub markdown: fn(&T) -> Vec<u8>,
    /// For programs.
    pub json: fn(&T) -> Vec<u8>,
}
