//! pummel's own report: response time first, with what it is made of beside it, and a word on whom to believe.

mod agents;
mod around;
pub(crate) mod changes;
mod classes;
mod heading;
mod hits;
mod judgement;
mod page;
mod parts;
mod server_stats;
mod steadiness;
mod tables;
mod units;

#[cfg(test)]
mod tests;

use pummel_logic::plan::Clock;
use pummel_logic::protocol::Fault;
use pummel_measure::words::{counted, grouped};

pub(crate) use self::changes::{connections_words, note as changes_note, rate_words};

use self::around::around;
use self::heading::heading;
use self::judgement::judgement;
use self::page::Page;
use self::server_stats::server_stats;
use self::tables::tables;
pub(crate) use self::units::byte_text;
use self::units::duration_text;
use crate::comparison::{Comparison, SuitesComparison};
use crate::document::{Document, FailOnAnswer, RequestTotals, VerifyResult};
use crate::numbers::number;
use crate::repetition::Repetition;
use crate::screen::{Hints, Paper, draw};
use crate::suite::SuiteDocument;
use crate::view::run::{MESSAGES_MAX, Wanted, commonest_messages};
use crate::{calibration_words, transmit, view, visible};

/// How much the text of a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// One line, for scripts.
    Line,
    /// One screen, the answer first.
    #[default]
    Screen,
    /// The screen with the five times of all operations and of each.
    Times,
    /// The screen with the five times, and everything else that the result has.
    Everything,
}

/// Text of a run, with a line end after each line.
pub fn run(document: &Document, detail: Detail, paper: Paper) -> String {
    match detail {
        Detail::Line => format!("{}\n", visible::words(&view::run::brief(document))),
        Detail::Screen => draw(&view::run::view(document, Wanted::Screen), paper),
        Detail::Times => draw(&view::run::view(document, Wanted::Times), paper),
        Detail::Everything => {
            let screen =
                draw(&view::run::view(document, Wanted::Everything), Paper { hints: Hints::None, ..paper });
            screen + &details(document, paper.width)
        }
    }
}

/// Text of the comparisons of one side or more with the first, with a line end after each line.
pub fn comparison(comparisons: &[Comparison], detail: Detail, paper: Paper) -> String {
    match detail {
        Detail::Line => format!("{}\n", visible::words(&view::pair::brief(comparisons))),
        Detail::Screen | Detail::Times => draw(&view::pair::view(comparisons, Wanted::Screen), paper),
        Detail::Everything => draw(&view::pair::view(comparisons, Wanted::Everything), paper),
    }
}

/// Text of the comparison of two suites, with a line end after each line.
pub fn suites(compared: &SuitesComparison, detail: Detail, paper: Paper) -> String {
    match detail {
        Detail::Line => format!("{}\n", visible::words(&view::suites::brief(compared))),
        Detail::Screen | Detail::Times => draw(&view::suites::view(compared, Wanted::Screen), paper),
        Detail::Everything => draw(&view::suites::view(compared, Wanted::Everything), paper),
    }
}

/// Text of several runs of one configuration, with a line end after each line.
pub fn repetition(repetition: &Repetition, detail: Detail, paper: Paper) -> String {
    match detail {
        Detail::Line => format!("{}\n", visible::words(&view::repeated::brief(repetition))),
        Detail::Screen | Detail::Times => draw(&view::repeated::view(repetition, Wanted::Screen), paper),
        Detail::Everything => draw(&view::repeated::view(repetition, Wanted::Everything), paper),
    }
}

/// Text of a suite, with a line end after each line; everything has the screen of each run below that of the suite.
pub fn suite(suite: &SuiteDocument, detail: Detail, paper: Paper) -> String {
    let drawn = |wanted| draw(&view::suite::view(suite, wanted), paper);
    match detail {
        Detail::Line => format!("{}\n", visible::words(&view::suite::brief(suite))),
        Detail::Screen | Detail::Times => drawn(Wanted::Screen),
        Detail::Everything => {
            let plain = Paper { hints: Hints::None, ..paper };
            suite.runs.iter().fold(drawn(Wanted::Everything), |text, own| {
                let name = visible::words(&own.name);
                own.results.iter().enumerate().fold(text, |text, (place, result)| {
                    let round =
                        if suite.rounds > 1 { format!(", round {}", place + 1) } else { String::new() };
                    text + &format!("\n--- {name}{round}\n") + &run(result, Detail::Times, plain)
                })
            })
        }
    }
}

/// What a result has beside its screen, with a line end after each line; words with a name beside them are as wide as the paper.
fn details(document: &Document, width: usize) -> String {
    let mut page = Page::of_width(width);
    heading(&mut page, document);
    for group in &document.groups {
        page.line(&format!("\nGroup {}", group.name));
        tables(&mut page, document, &group.ops, &group.totals);
    }
    if !document.groups.is_empty() {
        page.line("\nAll groups");
    }
    tables(&mut page, document, &document.ops, &document.totals);
    parts::parts(&mut page, document);
    page.line("");
    requests_without_answer(&mut page, document);
    requests_estimated(&mut page, &document.totals);
    keys(&mut page, document);
    hits::hits(&mut page, document);
    errors(&mut page, document);
    around(&mut page, document);
    agents(&mut page, document);
    renewals(&mut page, document);
    verification(&mut page, document);
    trace(&mut page, document);
    generator(&mut page, document);
    server_stats(&mut page, document);
    steadiness::ends(&mut page, document);
    failures(&mut page, document);
    judgement(&mut page, document);
    visible::text(&page.text).into_owned()
}

/// Requests of the measured phase that got no answer.
fn unanswered(document: &Document) -> u64 {
    document.ops.iter().map(|(_, op)| op.unanswered()).sum()
}

fn requests_without_answer(page: &mut Page, document: &Document) {
    let (unanswered, totals) = (unanswered(document), &document.totals);
    if unanswered > 0 && totals.completed > 0 {
        let share = 100.0 * unanswered as f64 / totals.requests as f64;
        page.field(
            "Unanswered",
            &format!(
                "{} of {} ({share:.2} %) got no answer. They count as slower than all others: where a quantile falls \
                 among them, only a lower bound of it is known (> x). min, mean and stddev of response and service leave them out.",
                grouped(unanswered),
                counted(totals.requests, "request"),
            ),
        );
    }
}

/// The keys of the completed requests, where those have several.
fn keys(page: &mut Page, document: &Document) {
    if let Some(words) = document.totals.keys_words() {
        page.field("Keys", &words);
    }
}

/// Says which share of the unsent requests was not counted one by one.
fn requests_estimated(page: &mut Page, totals: &RequestTotals) {
    if totals.unsent_estimated > 0 {
        page.field(
            "Unsent",
            &format!(
                "{} of {} were not counted one by one: how many they are, and of which operation, follows from the mean rate \
                 and the mix.",
                grouped(totals.unsent_estimated),
                counted(totals.unsent, "unsent request"),
            ),
        );
    }
}

fn errors(page: &mut Page, document: &Document) {
    let failed = document.totals.errors;
    if failed > 0 {
        let count =
            |fault: Fault| document.ops.iter().filter_map(|(_, op)| op.errors.get(fault.name())).sum::<u64>();
        let kinds = Fault::ALL.into_iter().map(|fault| (fault, count(fault))).filter(|(_, count)| *count > 0);
        let kinds: Vec<String> =
            kinds.map(|(fault, count)| format!("{} {}", fault.name(), grouped(count))).collect();
        page.field("Errors", &kinds.join(", "));
    }
    // The commonest stand on the screen.
    for (message, count) in commonest_messages(document).into_iter().skip(MESSAGES_MAX) {
        page.field("", &format!("{} x {message}", grouped(count)));
    }
}

/// The processes that took part, where there were several.
fn agents(page: &mut Page, document: &Document) {
    let Some(agents) = &document.agents else { return };
    page.field("Agents", &agents::words(agents));
    let rows = agents::table(agents, document.seconds);
    if rows.len() > 1 {
        page.line("");
        page.table(&rows, 1);
        page.line("");
    }
}

/// What the meta protocol said about who renews what.
fn renewals(page: &mut Page, document: &Document) {
    let sum = |name| document.ops.iter().filter_map(|(_, op)| op.outcomes.get(name)).sum::<u64>();
    let said = [
        (sum("win"), "won, and stored by the client that won"),
        (sum("recaching"), "left to another client"),
        (sum("stale"), "stale and left to another client"),
    ];
    let said: Vec<String> = said
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, words)| format!("{} {words}", grouped(count)))
        .collect();
    if !said.is_empty() {
        page.field("Renewals", &said.join("; "));
    }
}

fn verification(page: &mut Page, document: &Document) {
    let verify = &document.verify;
    if document.plan.verify <= 0.0 && *verify == VerifyResult::default() {
        return;
    }
    let checked = format!("{} checked: ", counted(verify.checked, "value"));
    if verify.failed == 0 && verify.stale == 0 {
        page.field("Verified", &format!("{checked}none wrong, none stale"));
    } else {
        let or_more = if verify.failed_keys_or_more { " or more" } else { "" };
        let keys = format!("{}{or_more}", counted(verify.failed_keys, "key"));
        let wrong = format!("{} WRONG, of {keys}; {} stale", grouped(verify.failed), grouped(verify.stale));
        page.field("Verified", &format!("{checked}{wrong}"));
    }
    for failure in &verify.first {
        page.field("", &format!("{}: {}", failure.key, failure.why));
    }
    if verify.failed_keys > verify.first.len() as u64 {
        let more = verify.failed_keys - verify.first.len() as u64;
        page.field("", &format!("and {} more", grouped(more)));
    }
    if verify.short > 0 {
        let short = counted(verify.short, "value");
        page.field(
            "",
            &format!(
                "Too short to carry a frame: {short}. The bytes of such values were compared, but neither a lost end nor \
                 an older value can be seen in them."
            ),
        );
    }
}

/// The account of the trace that was replayed.
fn trace(page: &mut Page, document: &Document) {
    let Some(trace) = &document.trace else { return };
    let end = if trace.whole { "all of it" } else { "not to its end" };
    page.field(
        "Trace",
        &format!(
            "{} read, {end}; {} of {} asked for about {}; {:.1} s of its time",
            counted(trace.rows, "row"),
            counted(trace.requests, "request"),
            counted(trace.kept, "kept row"),
            counted(trace.keys, "key"),
            trace.covered_s
        ),
    );
    if let Some(replay) = document.plan.trace().filter(|replay| replay.sample < 1.0) {
        let share = number(replay.sample * 100.0);
        let kept = number(trace.kept as f64 * 100.0 / trace.rows.max(1) as f64);
        page.field(
            "",
            &format!(
                "a sample of {share} % of the keys has {kept} % of the rows; a server with {share} % of the memory is as full"
            ),
        );
    }
    let latest = duration_text(trace.latest_us / 1e6);
    page.field(
        "",
        &format!("{} more than 10 ms after they were due, the latest by {latest}", grouped(trace.late_rows)),
    );
    for notice in &trace.notices {
        page.field("", notice);
    }
}

fn generator(page: &mut Page, document: &Document) {
    let generator = &document.generator;
    let mut text = String::new();
    if let Some(cpu) = generator.cpu_us_per_request {
        // A request that failed took as much as one that was completed.
        let ended = document.totals.ended() as f64;
        let each = |seconds: f64| number(seconds * 1e6 / ended);
        text += &format!(
            "{} us of CPU for each request ({} user, {} system); ",
            number(cpu),
            each(generator.cpu_user_s),
            each(generator.cpu_system_s)
        );
    }
    text += &format!("busiest thread busy {:.0} % of the time, ", generator.busy_share_max * 100.0);
    text += &counted(generator.stalls, "stall");
    if generator.stalls > 0 {
        text += &format!(" (turns above 1 ms; {} in all)", duration_text(generator.stalled_s));
    }
    text += &format!("; {} of memory", byte_text(generator.peak_rss_bytes));
    page.field("Generator", &text);
    page.field("Clock", &clock(document));
    if let Some(calibrated) = &document.calibration {
        page.field("Instrument", &calibration_words::line(calibrated));
    }
    if let Some(sample) = &document.transmit {
        page.field("Departures", &transmit::words(sample));
    }
}

fn clock(document: &Document) -> String {
    let stamps = &document.generator.stamps;
    if document.clock == Clock::User {
        return "user: a reply has arrived when it is read, so service times contain the generator's own slowness"
            .to_owned();
    }
    let mut notes = Vec::new();
    if document.unix_socket {
        notes.push("none on unix sockets: a reply there has arrived when it is read".to_owned());
    }
    // Error replies have stamps too.
    let replies = document.totals.requests.saturating_sub(unanswered(document)).max(1) as f64;
    for (count, what) in [
        (stamps.missing, "missing (the reading clock was taken)"),
        (stamps.rejected, "impossible (the reading clock was taken)"),
        (stamps.shared, "shared by replies that came together (an upper bound for all but the last)"),
    ] {
        if count > 0 {
            notes.push(format!("{} ({:.1} %) {what}", grouped(count), 100.0 * count as f64 / replies));
        }
    }
    if notes.is_empty() {
        return "the kernel's receive stamps, one for every reply".to_owned();
    }
    format!("the kernel's receive stamps; {}", notes.join("; "))
}

/// The faults that `--fail-on` names and the run did not have; the others stand on the screen.
fn failures(page: &mut Page, document: &Document) {
    let not_so = document.plan.fail_on.iter().filter(|on| document.answer(**on) == FailOnAnswer::No);
    let words = not_so.map(|on| format!("{on}: no")).collect::<Vec<_>>().join(", ");
    if !words.is_empty() {
        page.field("Fail on", &words);
    }
}
