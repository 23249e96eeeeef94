//! pummel's own report: response time first, with what it is made of beside it, and a word on whom to believe.

use std::fmt::Write as _;

use pummel_logic::measure::churn::Churn;
use pummel_logic::measure::measurement::{Status, Verify};
use pummel_logic::measure::recorder::{Counts, Outcomes, Span};
use pummel_logic::measure::summary::{Figures, OpSummary, QUANTILES, Quantile, Totals, time_text};
use pummel_logic::plan::{
    Arrivals, ChurningClients, Clock, Depth, Group, Mix, Phase, Plan, Route, Spawns, TlsOptions, Work,
};
use pummel_logic::protocol::{Fault, udp};
use pummel_logic::time::{MILLISECOND, Nanos};

use crate::native::report_agents;
use crate::report::numbers::{grouped, number};
use crate::report::{Report, VERSION, transmit};

/// The report, with a line end after each line.
pub fn render(report: &Report<'_>) -> String {
    let mut page = Page { text: String::new() };
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
    goals(&mut page, report);
    page.field("Verdict", &summary.verdict.says);
    page.text
}

/// How wide a line of words is.
const WIDTH: usize = 100;
/// Where the words beside a name begin.
const INDENT: usize = 13;
/// With more verbs than this only their response times are shown, and what these are made of for all together.
const VERBS_IN_FULL: usize = 3;
/// From this median on times are shown in milliseconds.
const MILLISECONDS_FROM: Nanos = 10 * MILLISECOND;

struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A name with words beside it, broken into lines.
    fn field(&mut self, name: &str, words: &str) {
        let mut line = format!("{name:<INDENT$}");
        let mut empty = true;
        for word in words.split(' ') {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = " ".repeat(INDENT);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }

    /// Rows of cells in columns; the first `left` columns begin at the left, the others end at the right.
    fn table(&mut self, rows: &[Vec<String>], left: usize) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
        for row in rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if at == 0 { "" } else { "  " };
                let written = if at < left {
                    write!(line, "{gap}{cell:<width$}")
                } else {
                    write!(line, "{gap}{cell:>width$}")
                };
                written.expect("a string takes everything");
            }
            self.line(&line);
        }
    }
}

fn heading(page: &mut Page, report: &Report<'_>) {
    let Report { plan, summary, .. } = *report;
    let status = match summary.status {
        Status::Complete => "complete",
        Status::Partial => "PARTIAL",
        Status::Interrupted => "INTERRUPTED",
    };
    let mut line = format!("pummel {VERSION}: {status}, {:.2} s measured", summary.seconds);
    if report.measurement.verify.failed > 0 {
        line += ", WRONG VALUES FOUND";
    } else if report.measurement.verify.stale > 0 {
        line += ", STALE VALUES FOUND";
    }
    if summary.missed_a_goal() {
        line += ", GOAL MISSED";
    }
    page.line(&line);
    if let Some(reason) = &summary.reason {
        page.field("Reason", reason);
    }
    page.field("Servers", &plan.servers.join(", "));
    if plan.route != Route::All {
        let copies =
            if plan.route.owns_keys() { "every record on one server" } else { "every record on each server" };
        page.field("Route", &format!("{}, {copies}", plan.route.name()));
    }
    if let Some(options) = &plan.tls {
        page.field("TLS", &trust(options));
    }
    for group in &plan.groups {
        page.field("Clients", &clients(plan, group));
    }
    for phase in plan.phases.iter().filter(|phase| phase.recorded) {
        if let Work::Mix(mix) = &phase.work {
            page.field("Requests", &requests(plan, mix));
        }
    }
    if let Some(command) = &plan.command {
        page.field("Command", command);
    }
    page.field("Seed", &format!("{} (data seed {})", plan.seed, plan.data.seed));
}

/// Whose word the certificates of servers were.
fn trust(options: &TlsOptions) -> String {
    if options.insecure {
        return "NOT VERIFIED: every certificate was accepted (--tls-insecure), so who answered is not known"
            .to_owned();
    }
    let authorities = match &options.ca {
        Some(file) => format!("the authorities in {file}"),
        None => "the authorities that this system trusts".to_owned(),
    };
    format!("certificates of the servers checked against {authorities}")
}

/// Clients that come and go.
fn comers(group: &Group, churn: &ChurningClients) -> String {
    let when = match &churn.spawns {
        Spawns::Closed => "as soon as there is room".to_owned(),
        Spawns::Open { arrivals, rate } => {
            format!("{} a second, {arrivals}", plain(*rate))
        }
        Spawns::Drawn(gap) => format!("by drawn gaps, {gap:?}").to_lowercase(),
    };
    format!(
        "come {when}, at most {} at one time, {} each",
        grouped(u64::from(group.clients)),
        counted(churn.calls, "request")
    )
}

/// What came of those.
fn comings(churn: &Churn) -> String {
    let mut text = format!(
        "{} clients came, {} connections were open, at most {} at one time",
        grouped(churn.begun),
        grouped(churn.established),
        grouped(churn.alive_max)
    );
    for (times, what) in [(&churn.connect, "connecting took"), (&churn.life, "they lasted")] {
        if let (Some(median), Some(longest)) = (times.quantile(0.5), times.quantile(1.0)) {
            text += &format!("; {what} {} (p50) to {} (max)", time_text(median), time_text(longest));
        }
    }
    for (failure, count) in churn.failures.named().into_iter().filter(|(_, count)| *count > 0) {
        text += &format!(", {} {}", grouped(count), failure.name());
    }
    if churn.failures.addresses > 0 {
        text += " (--linger 0 gives ports back at once, --source spreads them over several addresses)";
    }
    text
}

fn clients(plan: &Plan, group: &Group) -> String {
    let depth = match group.depth {
        Depth::Limit(depth) => format!("depth {}", grouped(u64::from(depth))),
        Depth::Unlimited => "unlimited depth".to_owned(),
    };
    let rate = group.rate.map_or_else(String::new, |rate| format!(" at {} req/s", plain(rate)));
    if let Some(churn) = &group.churn {
        return format!("{}, {depth}", comers(group, churn));
    }
    let load = match &group.arrivals {
        Arrivals::Closed => Arrivals::Closed.to_string(),
        open => format!("open loop{rate}, {open}"),
    };
    let mut connections = counted(u64::from(group.clients), "connection");
    if plan.route.lanes(plan.servers.len()) > 1 {
        connections += " to each server";
    }
    format!("{connections}, {depth}, {load}, {}", counted(u64::from(plan.engine.threads), "thread"))
}

fn requests(plan: &Plan, mix: &Mix) -> String {
    let total: f64 = mix.ops.iter().map(|(_, weight)| weight).sum();
    let ops: Vec<String> = mix
        .ops
        .iter()
        .map(|(verb, weight)| format!("{} {} %", plan.name_of(*verb), plain(weight / total * 100.0)))
        .collect();
    let mut text = ops.join(", ");
    if mix.multiget > 1 {
        text += &format!(", {} keys in each read", mix.multiget);
    }
    if mix.multiset > 1 {
        text += &format!(", {} keys in each mset", mix.multiset);
    }
    let seconds = [
        (mix.meta.vivify_s, "misses are vivified for"),
        (mix.meta.recache_s, "renewed when they expire in less than"),
        (mix.meta.stale_s, "deletes mark as stale for"),
    ];
    for (seconds, words) in seconds.into_iter().filter_map(|(seconds, words)| Some((seconds?, words))) {
        text += &format!(", {words} {seconds} s");
    }
    if let Some(delay_ns) = mix.read_through_ns {
        let after =
            if delay_ns == 0 { "at once".to_owned() } else { format!("after {}", time_text(delay_ns)) };
        text += &format!(", missed keys are set {after}");
    }
    if mix.noreply {
        text += ", writes without reply";
    }
    let data = &plan.data;
    let records = counted(data.records, "record");
    text + &format!(
        "; {records}, {}, keys {} bytes, values {} bytes",
        mix.popularity, data.key_size, data.value_size
    )
}

fn tables(page: &mut Page, report: &Report<'_>, ops: &[OpSummary], totals: &Totals) {
    page.line("");
    page.table(&count_rows(report.plan, ops, totals, report.summary.seconds), 1);
    page.line("");
    page.table(&time_rows(report.plan, ops, totals), 2);
    if report.summary.verdict.limited() {
        page.line("These times are partly the generator's own: see the verdict.");
    }
}

fn count_rows(plan: &Plan, ops: &[OpSummary], totals: &Totals, measured_s: f64) -> Vec<Vec<String>> {
    let names =
        ["", "due", "completed", "per second", "hits", "misses", "hit %", "errors", "unfinished", "unsent"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for op in ops {
        rows.push(count_row(plan.name_of(op.verb), &op.counts, op.verb.reads(), measured_s));
    }
    if ops.len() != 1 {
        rows.push(count_row("all", &totals.counts, ops.iter().any(|op| op.verb.reads()), measured_s));
    }
    rows
}

fn count_row(name: &str, counts: &Counts, reads: bool, measured_s: f64) -> Vec<String> {
    let rate = if measured_s > 0.0 { counts.completed as f64 / measured_s } else { 0.0 };
    let looked_up = counts.hits + counts.misses;
    let of_reads = |text: String| if reads { text } else { "-".to_owned() };
    let share = if looked_up > 0 {
        format!("{:.1}", 100.0 * counts.hits as f64 / looked_up as f64)
    } else {
        "-".to_owned()
    };
    vec![
        name.to_owned(),
        grouped(counts.requests()),
        grouped(counts.completed),
        number(rate),
        of_reads(grouped(counts.hits)),
        of_reads(grouped(counts.misses)),
        share,
        grouped(counts.failed()),
        grouped(counts.unfinished),
        grouped(counts.unsent),
    ]
}

/// Response first, then what it is made of (wait + lag + service), then how long replies lay unread.
const ROWS: [Span; Span::COUNT] = [Span::Response, Span::Service, Span::Wait, Span::Lag, Span::Reaction];

fn time_rows(plan: &Plan, ops: &[OpSummary], totals: &Totals) -> Vec<Vec<String>> {
    let response = &totals.figures[Span::Response as usize];
    let (unit, unit_ns) = match response.quantiles[0] {
        Quantile::Known(median) | Quantile::Above(median) if median >= MILLISECONDS_FROM => ("ms", 1e6),
        _ => ("us", 1e3),
    };
    let names = ["min", "mean", "stddev"].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["max"]);
    let heading = [format!("in {unit}"), String::new()].into_iter().chain(names.map(str::to_owned));
    let mut rows = vec![heading.collect()];
    let in_full = ops.len() <= VERBS_IN_FULL;
    for op in ops {
        let spans: &[Span] = if in_full { &ROWS } else { &ROWS[..1] };
        rows.extend(span_rows(plan.name_of(op.verb), spans, &op.figures, unit_ns));
    }
    if ops.len() != 1 {
        let spans: &[Span] = if in_full { &ROWS[..1] } else { &ROWS };
        rows.extend(span_rows("all", spans, &totals.figures, unit_ns));
    }
    rows
}

fn span_rows(name: &str, spans: &[Span], figures: &[Figures; Span::COUNT], unit_ns: f64) -> Vec<Vec<String>> {
    let row = |(at, span): (usize, &Span)| {
        let name = if at == 0 { name } else { "" };
        let cells = figure_cells(&figures[*span as usize], unit_ns);
        [name.to_owned(), span.name().to_owned()].into_iter().chain(cells).collect()
    };
    spans.iter().enumerate().map(row).collect()
}

fn figure_cells(figures: &Figures, unit_ns: f64) -> Vec<String> {
    let exact = &figures.exact;
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ns| number(ns / unit_ns));
    let mut cells = vec![
        cell((exact.count > 0).then_some(exact.min as f64)),
        cell(exact.mean_ns()),
        cell(exact.stddev_ns()),
    ];
    for quantile in figures.quantiles.iter().chain([&figures.max]) {
        cells.push(match quantile {
            Quantile::Known(ns) => number(*ns as f64 / unit_ns),
            Quantile::Above(ns) => format!("> {}", number(*ns as f64 / unit_ns)),
            Quantile::Absent => "-".to_owned(),
        });
    }
    cells
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

fn around(page: &mut Page, report: &Report<'_>) {
    let Report { measurement, summary, .. } = *report;
    let bytes = measurement.bytes;
    let rate = |count: u64| {
        if summary.seconds > 0.0 {
            byte_text((count as f64 / summary.seconds) as u64)
        } else {
            "-".to_owned()
        }
    };
    page.field(
        "Bytes",
        &format!(
            "{} sent ({}/s), {} received ({}/s)",
            byte_text(bytes.sent),
            rate(bytes.sent),
            byte_text(bytes.received),
            rate(bytes.received)
        ),
    );
    let connections = &measurement.connections;
    let mut text =
        format!("{} of {} open at the start", grouped(connections.open), grouped(connections.asked));
    for (count, what) in [
        (connections.failed, "failed"),
        (connections.lost, "lost"),
        (connections.reconnected, "opened again"),
    ] {
        if count > 0 {
            text += &format!(", {} {what}", grouped(count));
        }
    }
    if let (Some(median), Some(longest)) = (summary.connect.quantiles[0].known(), summary.connect.max.known())
    {
        text += &format!("; connecting took {} (p50) to {} (max)", time_text(median), time_text(longest));
    }
    match &connections.churn {
        None => page.field("Connections", &text),
        // Those above are the ones that load, of which the load tells.
        Some(churn) => page.field("Connections", &comings(churn)),
    }
    if report.plan.tls.is_some() {
        page.field("Handshakes", &handshakes(report));
    }
    if let Some(udp) = &measurement.udp {
        page.field("UDP", &datagrams(udp));
    }
    if let Some(load) = &measurement.load {
        let mut text = format!(
            "{} of {} stored in {}, {}",
            grouped(load.stored),
            counted(load.records, "record"),
            time_text(load.elapsed_ns),
            byte_text(load.bytes)
        );
        if load.errors > 0 {
            text += &format!("; {}", counted(load.errors, "error"));
        }
        page.field("Loading", &text);
        // What servers said to a load that is recorded stands with the errors.
        let recorded = |phase: &Phase| phase.recorded && matches!(phase.work, Work::Load(_));
        let is_measured = report.plan.phases.iter().any(recorded);
        for (message, count) in load.messages.iter().filter(|_| !is_measured) {
            page.field("", &format!("{} x {message}", grouped(*count)));
        }
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

/// What became of datagrams.
fn datagrams(udp: &udp::DatagramCounts) -> String {
    let mut text = format!(
        "{} given up, {} missing then, {} out of order or for nothing",
        counted(udp.udp_timeout, "request"),
        counted(udp.packet_drop, "datagram"),
        grouped(udp.packet_disorder)
    );
    if udp.stray > 0 {
        text += &format!(" ({} of them too late, or nobody's)", grouped(udp.stray));
    }
    if udp.unclear_misses > 0 {
        text += &format!(
            ", all in the whole run; misses in multi-gets: {}, of which some may be lost datagrams, which look the same",
            grouped(udp.unclear_misses)
        );
    } else {
        text += ", all in the whole run";
    }
    text
}

/// How connections were agreed on, which is a part of how long opening them took.
fn handshakes(report: &Report<'_>) -> String {
    let Report { measurement, summary, .. } = *report;
    let count = measurement.connections.handshake.count();
    let resumed = measurement.connections.resumed;
    let mut text = format!("{} in full, {} resumed", grouped(count - resumed), grouped(resumed));
    let figures = &summary.handshake;
    if let (Some(median), Some(longest)) = (figures.quantiles[0].known(), figures.max.known()) {
        text += &format!("; they took {} (p50) to {} (max)", time_text(median), time_text(longest));
    }
    text
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
        page.field("Departures", &transmit::words(report.plan.engine.stamps, times));
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
        page.field("Goal", &format!("response time {name} within {limit}: {met} ({reached})"));
    }
}

/// A number as people write it: no zeros at the end of a fraction.
fn plain(value: f64) -> String {
    let text = number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number without digits that say nothing, such as the 99.9 of a quantile.
fn number_plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// A count with what it counts.
fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// A number of bytes with three digits, in decimal units.
fn byte_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", number(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{Run, sample};
    use pummel_logic::measure::measurement::Keep;
    use pummel_logic::measure::recorder::Sample;
    use pummel_logic::plan::Goal;
    use pummel_logic::protocol::{Outcome, Verb};

    #[track_caller]
    fn shows(run: &Run, expected: &str) {
        let text = run.report(render);
        let expected = expected.trim_start_matches('\n').replace("VERSION", VERSION);
        assert!(text == expected, "the report is now:\n{text}");
    }

    #[test]
    fn a_run_of_gets_and_sets() {
        shows(&Run::new(Keep::Figures), NORMAL);
    }
    const NORMAL: &str = r"
pummel VERSION: complete, 2.00 s measured
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,800      1,800         900  1,700     100   94.4       0           0       0
set    200        200         100      -       -      -       0           0       0
all  2,000      2,000       1,000  1,700     100   94.4       0           0       0

in us             min  mean  stddev   p50   p90   p95   p99  p99.9  p99.99   max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9   93.6    93.6  93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4   90.9    90.9  90.9
       wait         0     0       0     0     0     0     0      0       0     0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68   2.68    2.68  2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
set    response  31.8  62.8    17.7  62.4  86.8  89.9  92.9   93.8    93.8  93.8
       service   30.0  60.2    17.6  59.9  84.4  87.4  89.8   90.4    90.4  90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00   4.00    4.00  4.00
       lag       1.00  1.76    0.49  1.68  2.36  2.53  2.53   2.53    2.53  2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  92.9   93.6    93.8  93.8

Bytes        120 kB sent (60.0 kB/s), 420 kB received (210 kB/s)
Connections  10 of 10 open at the start; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 6 (0.3 %) shared by replies that came together (an upper
             bound for all but the last)
Verdict      Nothing stood in the way: requests were sent when they were due (wait p99 4.00 us, lag
             p99 2.67 us), and the response time is the server's service time.
";

    #[test]
    fn an_encrypted_run_says_whom_it_believed_and_what_agreeing_took() {
        let mut run = Run::new(Keep::Figures);
        assert!(!run.report(render).contains("Handshakes"));
        run.plan.tls = Some(TlsOptions { ca: Some("ca.pem".to_owned()), ..TlsOptions::default() });
        assert!(run.report(render).contains("\nHandshakes   0 in full, 0 resumed\n"));
        (1..=10).for_each(|i| run.measurement.connections.handshake.record(i * MILLISECOND / 10));
        run.measurement.connections.resumed = 4;
        let text = run.report(render);
        for line in [
            "\nTLS          certificates of the servers checked against the authorities in ca.pem\n",
            "\nHandshakes   6 in full, 4 resumed; they took 500 us (p50) to 1.00 ms (max)\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        run.plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
        let text = run.report(render);
        assert!(text.contains("\nTLS          NOT VERIFIED: every certificate was accepted"), "{text}");
    }

    #[test]
    fn a_run_with_timeouts_says_what_is_not_known() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            for i in 0..50 {
                let outcome = Outcome::Error(Fault::Timeout);
                interval.groups[0].record(&Sample { outcome, ..sample(i) });
            }
            interval.groups[0].unsent(Verb::Get, 20);
        });
        run.measurement.connections.lost = 50;
        run.measurement.connections.reconnected = 50;
        run.plan.goals = vec![
            Goal { quantile: 0.5, limit_ns: MILLISECOND },
            Goal { quantile: 0.999, limit_ns: 2_000 * MILLISECOND },
        ];
        shows(&run, TIMEOUTS);
    }
    const TIMEOUTS: &str = r"
pummel VERSION: complete, 2.00 s measured, GOAL MISSED
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,865      1,800         900  1,700     100   94.4      45           0      20
set    205        200         100      -       -      -       5           0       0
all  2,070      2,000       1,000  1,700     100   94.4      50           0      20

in us             min  mean  stddev   p50   p90   p95          p99        p99.9       p99.99          max
get    response  31.1  62.4    17.7  63.1  88.5  92.5  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       service   30.1  60.5    17.6  61.6  87.0  90.0  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       wait         0     0       0     0     0     0          > 0          > 0          > 0          > 0
       lag       1.02  1.84    0.49  1.83  2.55  2.63       > 2.68       > 2.68       > 2.68       > 2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50         2.50         2.50         2.50         2.50
set    response  31.8  62.8    17.7  63.3  88.3  92.2  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       service   30.0  60.2    17.6  61.1  86.1  89.2  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       wait         0  0.80    1.60     0  4.00  4.00         4.00         4.00         4.00         4.00
       lag       1.00  1.75    0.49  1.68  2.36  2.53         2.53         2.53         2.53         2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50         2.50         2.50         2.50         2.50
all    response  31.1  62.4    17.7  63.1  88.4  92.5  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000

Unanswered   70 of 2,070 requests (3.38 %) got no answer. They count as slower than all others:
             where a quantile falls among them, only a lower bound of it is known (> x). min, mean
             and stddev of response and service leave them out.
Errors       timeout 50
Bytes        180 kB sent (90.0 kB/s), 630 kB received (315 kB/s)
Connections  10 of 10 open at the start, 50 lost, 50 opened again; connecting took 35.0 us (p50) to
             70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 9 (0.5 %) shared by replies that came together (an upper
             bound for all but the last)
Goal         response time p50 within 1.00 ms: met (63.1 us)
Goal         response time p99.9 within 2.00 s: MISSED (> 1.00 s)
Verdict      The server or the way there was the limit, not the generator: 3.4 % of the requests got
             no answer. The generator's own lag is 2.67 us at p99.
";

    #[test]
    fn a_partial_run_says_why() {
        let mut run = Run::new(Keep::Figures);
        run.measurement.mark(
            Status::Partial,
            "127.0.0.1:11211 closed the connection after 1.2 s, and it was not replaced",
        );
        run.measurement.connections.lost = 1;
        run.interval(2, Keep::Figures, |interval| {
            let outcome = Outcome::Error(Fault::Server);
            interval.groups[0].record(&Sample { outcome, ..sample(3) });
            interval.groups[0].unfinished(Verb::Set, 1);
        });
        run.measurement.message(b"SERVER_ERROR out of memory storing object", 1);
        shows(&run, PARTIAL);
    }
    const PARTIAL: &str = r"
pummel VERSION: PARTIAL, 2.00 s measured
Reason       127.0.0.1:11211 closed the connection after 1.2 s, and it was not replaced
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,801      1,800         900  1,700     100   94.4       1           0       0
set    201        200         100      -       -      -       0           1       0
all  2,002      2,000       1,000  1,700     100   94.4       1           1       0

in us             min  mean  stddev   p50   p90   p95   p99   p99.9  p99.99     max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9    93.6    93.6    93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4    90.9    90.9    90.9
       wait         0     0       0     0     0     0     0       0       0       0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68    2.68    2.68    2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50    2.50    2.50    2.50
set    response  31.8  62.8    17.7  63.1  87.5  90.6  93.8  > 93.8  > 93.8  > 93.8
       service   30.0  60.2    17.6  60.5  84.9  88.0  90.4  > 90.4  > 90.4  > 90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00  > 4.00  > 4.00  > 4.00
       lag       1.00  1.76    0.49  1.85  2.53  2.53  2.53  > 2.53  > 2.53  > 2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50    2.50    2.50    2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  93.1    93.8  > 93.8  > 93.8

Unanswered   1 of 2,002 requests (0.05 %) got no answer. They count as slower than all others: where
             a quantile falls among them, only a lower bound of it is known (> x). min, mean and
             stddev of response and service leave them out.
Errors       server 1
             1 x SERVER_ERROR out of memory storing object
Bytes        180 kB sent (90.0 kB/s), 630 kB received (315 kB/s)
Connections  10 of 10 open at the start, 1 lost; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 9 (0.4 %) shared by replies that came together (an upper
             bound for all but the last)
Verdict      Nothing stood in the way: requests were sent when they were due (wait p99 4.00 us, lag
             p99 2.67 us), and the response time is the server's service time.
";

    #[test]
    fn a_run_that_found_wrong_values_names_their_keys() {
        let mut run = Run::new(Keep::Figures);
        run.plan.verify = 1.0;
        run.measurement.verify.checked = 1_710;
        run.measurement.verify.short = 1;
        for key in 0..12 {
            run.measurement.verify.fail(format!("key-{key:04}").as_bytes(), "bytes changed");
        }
        shows(&run, WRONG);
    }
    const WRONG: &str = r"
pummel VERSION: complete, 2.00 s measured, WRONG VALUES FOUND
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,800      1,800         900  1,700     100   94.4       0           0       0
set    200        200         100      -       -      -       0           0       0
all  2,000      2,000       1,000  1,700     100   94.4       0           0       0

in us             min  mean  stddev   p50   p90   p95   p99  p99.9  p99.99   max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9   93.6    93.6  93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4   90.9    90.9  90.9
       wait         0     0       0     0     0     0     0      0       0     0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68   2.68    2.68  2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
set    response  31.8  62.8    17.7  62.4  86.8  89.9  92.9   93.8    93.8  93.8
       service   30.0  60.2    17.6  59.9  84.4  87.4  89.8   90.4    90.4  90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00   4.00    4.00  4.00
       lag       1.00  1.76    0.49  1.68  2.36  2.53  2.53   2.53    2.53  2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  92.9   93.6    93.8  93.8

Bytes        120 kB sent (60.0 kB/s), 420 kB received (210 kB/s)
Connections  10 of 10 open at the start; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Verified     1,710 values checked: 12 WRONG, of 12 keys; 0 stale
             key-0000: bytes changed
             key-0001: bytes changed
             key-0002: bytes changed
             key-0003: bytes changed
             key-0004: bytes changed
             key-0005: bytes changed
             key-0006: bytes changed
             key-0007: bytes changed
             key-0008: bytes changed
             key-0009: bytes changed
             and 2 more
             Too short to carry a frame: 1 value. The bytes of such values were compared, but
             neither a lost end nor an older value can be seen in them.
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 6 (0.3 %) shared by replies that came together (an upper
             bound for all but the last)
Verdict      Nothing stood in the way: requests were sent when they were due (wait p99 4.00 us, lag
             p99 2.67 us), and the response time is the server's service time.
";

    #[test]
    fn a_run_without_any_answer_has_a_report_without_numbers_that_nobody_knows() {
        let mut run = Run::new(Keep::Figures);
        run.measurement = pummel_logic::measure::measurement::Measurement::new(
            ["all".to_owned()],
            Clock::User,
            MILLISECOND,
        );
        run.measurement.mark(Status::Partial, "connection refused");
        let text = run.report(render);
        assert!(text.contains("PARTIAL, 0.00 s measured\nReason       connection refused"), "{text}");
        assert!(text.contains("Nothing was completed"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn values_that_are_only_stale_are_in_the_first_line_too() {
        let mut run = Run::new(Keep::Figures);
        run.measurement.verify.stale = 1;
        let text = run.report(render);
        assert!(text.contains("complete, 2.00 s measured, STALE VALUES FOUND\n"), "{text}");
    }

    #[test]
    fn stamps_are_a_share_of_all_replies_also_where_most_are_errors() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            let outcome = Outcome::Error(Fault::Server);
            (0..7_000).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
        });
        // 3 of each of three intervals, and 9,000 replies, of which 2,000 completed their requests.
        let text = run.report(render);
        assert!(text.contains(" 9 (0.1 %) shared"), "{text}");
    }

    #[test]
    fn times_of_a_slow_run_are_in_milliseconds() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            for i in 0..5_000 {
                let late = sample(i);
                let arrived = late.arrived + 20 * MILLISECOND;
                interval.groups[0].record(&Sample { arrived, read: arrived, ..late });
            }
        });
        let text = run.report(render);
        assert!(text.contains("\nin ms "), "{text}");
    }

    #[test]
    fn many_verbs_have_their_response_times_only() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            for verb in Verb::ALL {
                interval.groups[0].record(&Sample { verb, outcome: Outcome::Ok, ..sample(5) });
            }
        });
        let text = run.report(render);
        let rows = |span: &str| text.lines().filter(|line| line.contains(&format!(" {span}  "))).count();
        assert_eq!(rows("response"), Verb::COUNT + 1, "{text}");
        assert_eq!(rows("service"), 1, "{text}");
    }

    #[test]
    fn numbers_and_bytes_have_no_digits_that_say_nothing() {
        assert_eq!([90.0, 33.333, 20_000.0, 0.5].map(plain), ["90", "33.3", "20,000", "0.5"]);
        assert_eq!([0, 999, 1_000, 1_999_999].map(byte_text), ["0 B", "999 B", "1.00 kB", "2.00 MB"]);
        assert_eq!([0.99 * 100.0, 0.9995 * 100.0].map(number_plain), ["99", "99.95"]);
    }
}
