//! The result of a series of runs: its files, complete after each run, and its report on standard output.

use std::io;

use pummel_fronts::exit_status::Exit;
use pummel_fronts::native::OutputArgs;
use pummel_fronts::outputs::ReportFormat;
use pummel_report::layouts;
use pummel_report::screen::Hints;
use pummel_report::stored::ResultDocument;

use crate::job::driver::{Driver, exit_after};
use crate::job::result_files::ResultFiles;
use crate::job::series::{RunSeries, SeriesRunner, SeriesSide, SeriesState, SeriesStyle, tell_end};
use crate::output::{print, print_screen};
use crate::terminal::terminal;

/// A series whose runs make one result.
pub trait ResultSeries: RunSeries {
    /// The result of the runs so far.
    fn result(&self, state: &SeriesState) -> ResultDocument;
}

/// Makes the runs of a series of these sides by these drivers, one for each side or one for all, and writes their result. Returns the
/// exit status.
pub fn follow(
    series: &mut impl ResultSeries,
    drivers: Vec<Driver<'_>>,
    sides: Vec<SeriesSide>,
    args: &OutputArgs,
) -> Exit {
    // Before anything is sent: everything can be written.
    let mut files = match ResultFiles::prepare(&args.files.0, drivers[0].plan()) {
        Ok(files) => files,
        Err(error) => return exit_after(Exit::Failed, [error], &SeriesStyle),
    };
    let mut runner = SeriesRunner::new(drivers, sides, args.quiet);
    let state = runner.run(series, |series, state| files.checkpoint(&series.result(state)));
    runner.close_view();
    let told = state.end.as_ref().map(|end| (tell_end(end), end));
    if let Some((exit, end)) = told
        && state.made == 0
        && end.is_usage()
    {
        // Nothing was sent, and what the files hold is of another series.
        return exit;
    }
    let result = series.result(&state);
    let exit = Exit::of_status(layouts::status_of(&result).unwrap_or_default());
    let is_taken = files.take_standard_output();
    // Standard error says all that there is to say, unless the user ended the series and asks for its report.
    let is_told = state.made == 0 && told.is_some() && !state.is_interrupted();
    // Files first: standard output may not be read yet.
    let written = files.finish(|| &result);
    let printed = if is_taken { Ok(()) } else { print_result(&result, args, is_told) };
    let closed = runner.into_drivers().into_iter().map(|mut driver| driver.close());
    let results: Vec<io::Result<()>> = [written, printed].into_iter().chain(closed).collect();
    exit_after(exit, results.into_iter().filter_map(io::Result::err), &SeriesStyle)
}

/// Prints the report; `is_told` leaves out the one for people.
fn print_result(result: &ResultDocument, args: &OutputArgs, is_told: bool) -> io::Result<()> {
    match args.format.unwrap_or_default() {
        ReportFormat::Json => print(&layouts::json_of(result)),
        ReportFormat::Markdown => print(&layouts::markdown_of(result)),
        ReportFormat::Text if is_told => Ok(()),
        ReportFormat::Text => {
            let (detail, paper) =
                (args.screen.detail(args.quiet), args.screen.paper(Hints::OfRuns, &terminal()));
            print_screen(&layouts::text_of(result, detail, paper))
        }
    }
}
