//! pummel's own report: response time first, with what it is made of beside it, and a word on whom to believe.

mod around;
mod heading;
mod judgement;
mod page;
mod server_stats;
mod tables;
mod units;

#[cfg(test)]
mod tests;

use pummel_logic::measure::measurement::Verify;
use pummel_logic::measure::recorder::{Counts, Outcomes};
use pummel_logic::measure::summary::{OpSummary, Quantile, time_text};
use pummel_logic::measure::words::{counted, grouped};
use pummel_logic::plan::Clock;
use pummel_logic::protocol::Fault;
use pummel_logic::time::Nanos;

use self::around::around;
use self::heading::heading;
use self::judgement::judgement;
use self::page::Page;
use self::server_stats::server_stats;
use self::tables::tables;
use self::units::byte_text;
use crate::native::report_agents;
use crate::report::document::TransmitResult;
use crate::report::numbers::number;
use crate::report::{Report, transmit};

/// The report, with a line end after each line.
pub fn render(report: &Report<'_>) -> String {
    let mut page = Page::default();
    heading(&mut page, report);
    let groups = &report.summary.groups;
    let summary = report.summary;
    if groups.len() > 1 {
        for group in groups {
            page.line(&format!("\nGroup {}", group.name));
            tables(&mut page, report, &group.ops, &group.totals);
        }
        page.line("\nAll groups");
    }
    tables(&mut page, report, &summary.ops, &summary.totals);
    page.line("");
    requests_without_answer(&mut page, &summary.totals.counts);
    requests_estimated(&mut page, &summary.totals.counts);
    errors(&mut page, report);
    around(&mut page, report);
    crew(&mut page, report);
    renewals(&mut page, &report.summary.ops);
    verification(&mut page, report);
    generator(&mut page, report);
    server_stats(&mut page, report);
    goals(&mut page, report);
    judgement(&mut page, report);
    page.text
}

fn requests_without_answer(page: &mut Page, counts: &Counts) {
    let unanswered = counts.unanswered();
    if unanswered > 0 && counts.completed > 0 {
        let share = 100.0 * unanswered as f64 / counts.requests() as f64;
        page.field(
            "Unanswered",
            &format!(
                "{} of {} ({share:.2} %) got no answer. They count as slower than all others: where a quantile falls \
                 among them, only a lower bound of it is known (> x). min, mean and stddev of response and service leave them out.",
                grouped(unanswered),
                counted(counts.requests(), "request"),
            ),
        );
    }
}

/// Says which share of the unsent requests was not counted one by one.
fn requests_estimated(page: &mut Page, counts: &Counts) {
    if counts.unsent_estimated > 0 {
        page.field(
            "Unsent",
            &format!(
                "{} of {} were not counted one by one: how many they are, and of which operation, follows from the mean rate \
                 and the mix.",
                grouped(counts.unsent_estimated),
                counted(counts.unsent, "unsent request"),
            ),
        );
    }
}

fn errors(page: &mut Page, report: &Report<'_>) {
    let counts = &report.summary.totals.counts;
    if counts.failed() > 0 {
        let kinds = Fault::ALL.into_iter().filter(|fault| counts.errors(*fault) > 0);
        let kinds: Vec<String> =
            kinds.map(|fault| format!("{} {}", fault.name(), grouped(counts.errors(fault)))).collect();
        page.field("Errors", &kinds.join(", "));
    }
    let unheard = report.measurement.noreply_errors;
    if unheard > 0 {
        let says = format!("{} of requests without a reply, which count as completed", grouped(unheard));
        page.field(if counts.failed() > 0 { "" } else { "Errors" }, &says);
    }
    for (message, count) in &report.measurement.messages {
        page.field("", &format!("{} x {message}", grouped(*count)));
    }
}

/// The processes that took part, where there were several.
fn crew(page: &mut Page, report: &Report<'_>) {
    let Some(crew) = &report.measurement.agents else { return };
    page.field("Agents", &report_agents::words(crew));
    let rows = report_agents::table(crew, report.summary.seconds);
    if rows.len() > 1 {
        page.line("");
        page.table(&rows, 1);
        page.line("");
    }
}

/// What the meta protocol said about who renews what.
fn renewals(page: &mut Page, ops: &[OpSummary]) {
    let sum = |of: fn(&Outcomes) -> u64| ops.iter().map(|op| of(&op.counts.outcomes)).sum::<u64>();
    let said = [
        (sum(|outcomes| outcomes.win), "won, and stored by the client that won"),
        (sum(|outcomes| outcomes.recaching), "left to another client"),
        (sum(|outcomes| outcomes.stale), "stale and left to another client"),
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

fn verification(page: &mut Page, report: &Report<'_>) {
    let verify = &report.measurement.verify;
    if report.plan.verify <= 0.0 && *verify == Verify::default() {
        return;
    }
    let checked = format!("{} checked: ", counted(verify.checked, "value"));
    if verify.failed == 0 && verify.stale == 0 {
        page.field("Verified", &format!("{checked}none wrong, none stale"));
    } else {
        let or_more = if verify.more_keys() { " or more" } else { "" };
        let keys = format!("{}{or_more}", counted(verify.failed_keys(), "key"));
        let wrong = format!("{} WRONG, of {keys}; {} stale", grouped(verify.failed), grouped(verify.stale));
        page.field("Verified", &format!("{checked}{wrong}"));
    }
    for failure in &verify.first {
        page.field("", &format!("{}: {}", failure.key, failure.why));
    }
    if verify.failed_keys() > verify.first.len() as u64 {
        let more = verify.failed_keys() - verify.first.len() as u64;
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

fn generator(page: &mut Page, report: &Report<'_>) {
    let Report { measurement, summary, .. } = *report;
    let generator = &measurement.generator;
    let mut text = String::new();
    if let Some(cpu) = summary.cpu_us_per_request {
        let completed = summary.totals.counts.completed as f64;
        let each = |ns: Nanos| number(ns as f64 / 1e3 / completed);
        text += &format!(
            "{} us of CPU for each request ({} user, {} system); ",
            number(cpu),
            each(generator.cpu_user_ns),
            each(generator.cpu_system_ns)
        );
    }
    text += &format!("busiest thread busy {:.0} % of the time, ", generator.busy_share_max() * 100.0);
    text += &counted(generator.turns.stalls, "stall");
    if generator.turns.stalls > 0 {
        text += &format!(" (turns above 1 ms; {} in all)", time_text(generator.turns.stalled_ns));
    }
    text += &format!("; {} of memory", byte_text(generator.peak_rss_bytes));
    page.field("Generator", &text);
    page.field("Clock", &clock(report));
    if let Some(times) = &report.measurement.transmit {
        page.field("Departures", &transmit::words(&TransmitResult::of(report.plan.engine.stamps, times)));
    }
}

fn clock(report: &Report<'_>) -> String {
    let measurement = report.measurement;
    let stamps = &measurement.generator.turns.stamps;
    if measurement.clock == Clock::User {
        return "user: a reply has arrived when it is read, so service times contain the generator's own slowness"
            .to_owned();
    }
    let mut notes = Vec::new();
    if measurement.unix_socket {
        notes.push("none on unix sockets: a reply there has arrived when it is read".to_owned());
    }
    // Error replies have stamps too.
    let counts = &report.summary.totals.counts;
    let replies = (counts.requests() - counts.unanswered()).max(1) as f64;
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

fn goals(page: &mut Page, report: &Report<'_>) {
    for result in &report.summary.goals {
        let reached = match result.reached {
            Quantile::Known(ns) => time_text(ns),
            Quantile::Above(ns) => format!("> {}", time_text(ns)),
            Quantile::Absent => "unknown".to_owned(),
        };
        let met = if result.met { "met" } else { "MISSED" };
        let name = format!("p{}", number_plain(result.goal.quantile * 100.0));
        let limit = time_text(result.goal.limit_ns);
        let doubt = if report.summary.trust.ok { "" } else { ", partly the generator's own" };
        page.field("Goal", &format!("response time {name} within {limit}: {met} ({reached}{doubt})"));
    }
}

/// A number without digits that say nothing, such as the 99.9 of a quantile.
fn number_plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}
