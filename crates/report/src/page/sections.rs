//! The sections of a page, from the answers to the data.

use maud::{Markup, html};
use pummel_logic::plan::labels_text;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;
use pummel_measure::words::{counted, percent};

use super::axis::{known_time, time};
use super::data::{self, PageData};
use super::frame::{
    Framed, details, fields, figure as figure_of, how, lines_of, plan_text, section, table, tables_of,
};
use super::heat::{self, COLUMNS_MAX};
use super::rate::{self, RateColumn, RatePlan};
use super::svg::{WORDS_MAX, cut_name, in_layouts};
use super::words::{self, command_line, figure};
use super::{anatomy, curve, picture_data, surroundings};
use crate::VERSION;
use crate::document::{
    CacheResult, Document, FiveTimes, IntervalResult, OpResult, OpsResult, TimeFigures, reads, reads_records,
};
use crate::numbers::{grouped, number};
use crate::stored::PAGE_DATA;
use crate::view::View;
use crate::view::run::{Wanted, asked_rate, cluster_tables, too_few_stops, view};

/// Rows of a table below a picture at most.
const ROWS_MAX: usize = 60;

/// Columns of the heat map of service times, which is beside the main one.
const SERVICE_COLUMNS_MAX: usize = 120;

/// Of more kinds of machines than this only the first are named.
const MACHINES_SHOWN_MAX: usize = 8;

/// The sections of a run, with the heat map of service times where that is wanted.
pub fn of_run(document: &Document, has_service_heat: bool) -> Markup {
    let length_s = length_of(document);
    html! {
        (answers_below(document))
        (requests(document))
        (phases(document))
        (cache(document))
        (percentiles(document))
        (over_time(document))
        @if has_service_heat { (service_over_time(document, length_s)) }
        (rates(document))
        (surroundings::own_figures(document, length_s))
        (parts(document))
        (cluster(document))
        (surroundings::sections(document, length_s))
        (surroundings::verified(document))
        (errors(document))
        (how_it_was_run(document))
    }
}

/// What a result says of itself, in the words of the screen.
pub fn answers(document: &Document) -> Markup {
    html! { (lines_of(&view(document, Wanted::Everything).lines)) (surroundings_of_answers(document)) }
}

/// What a result says of itself below a headline that is its first line already.
fn answers_below(document: &Document) -> Markup {
    html! { (lines_of(&view(document, Wanted::Everything).lines[1..])) (surroundings_of_answers(document)) }
}

/// The resources that were used, and why there are no intervals.
fn surroundings_of_answers(document: &Document) -> Markup {
    let resources = document.verdict.iter().flat_map(|verdict| &verdict.headroom);
    let used: Vec<String> =
        resources.map(|used| format!("{} {}", used.resource, percent(used.used_percent / 100.0))).collect();
    let stops = too_few_stops(document).map(str::to_owned);
    let no_intervals = stops.or_else(|| document.certainty_missing.clone());
    fields(&[("Used", used.join(", ")), ("No intervals", no_intervals.unwrap_or_default())])
}

fn requests(document: &Document) -> Markup {
    let times = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut names = vec!["", "due", "completed", "per second", "hit %", "errors", "unfinished", "unsent"];
    names.extend(times);
    let row = |name: &str, op: &OpResult, response: &TimeFigures| {
        let looked_up = op.hits + op.misses;
        let share = match looked_up {
            0 => "-".to_owned(),
            all => format!("{:.1}", 100.0 * op.hits as f64 / all as f64),
        };
        let rate = if document.seconds > 0.0 { op.completed as f64 / document.seconds } else { 0.0 };
        let mut cells = vec![
            name.to_owned(),
            grouped(op.requests),
            grouped(op.completed),
            number(rate),
            if reads(name, op) || name == "all" { share } else { "-".to_owned() },
            grouped(op.failed()),
            grouped(op.unfinished),
            grouped(op.unsent),
        ];
        cells.extend(times.map(|name| figure(response.at(name))));
        cells
    };
    let mut rows: Vec<Vec<String>> =
        document.ops.iter().map(|(name, op)| row(name, op, op.times.of_span(Span::Response))).collect();
    if rows.len() != 1 {
        let mut all = OpResult::default();
        for (_, op) in document.ops.iter() {
            all.requests += op.requests;
            all.completed += op.completed;
            (all.hits, all.misses) = (all.hits + op.hits, all.misses + op.misses);
            (all.unfinished, all.unsent) = (all.unfinished + op.unfinished, all.unsent + op.unsent);
            all.errors.0.extend(op.errors.0.iter().cloned());
        }
        rows.push(row("all", &all, document.totals.times.of_span(Span::Response)));
    }
    section(
        "Requests",
        html! {
            (table(&names, &rows))
            (how("Response times: from when a request was due until its reply had arrived."))
            (details("The five times of each operation", span_table(document)))
        },
    )
}

/// What the clients saw of the cache behind the servers; nothing of runs whose misses are not told apart.
fn cache(document: &Document) -> Markup {
    let Some(all) = &document.cache else { return Markup::default() };
    let looked_up = |ops: &OpsResult, of: fn(&OpResult) -> u64| {
        ops.iter().filter(|(name, _)| reads_records(name)).map(|(_, op)| of(op)).sum::<u64>()
    };
    let row = |first: [String; 2], ops: &OpsResult, cache: &CacheResult| {
        let (hits, misses) = (looked_up(ops, |op| op.hits), looked_up(ops, |op| op.misses));
        let percent =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}", share * 100.0));
        let counts = &cache.counts;
        let mut cells = first.to_vec();
        cells.push(percent((hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)));
        cells.push(percent(cache.counts.hit_share_of_bytes()));
        let each = [
            counts.first_touch,
            counts.absent,
            counts.expired,
            counts.other,
            counts.stored_bytes,
            counts.fills,
            counts.duplicate_fills,
        ];
        cells.extend(each.map(grouped));
        cells
    };
    let names = [
        "from s",
        "seconds",
        "hit %",
        "hit % of bytes",
        "first touch",
        "absent",
        "expired",
        "other misses",
        "stored bytes",
        "fills",
        "duplicates",
    ];
    let rows = [row(["all".to_owned(), format!("{:.1}", document.seconds)], &document.ops, all)];
    let each = document.intervals.len().div_ceil(ROWS_MAX).max(1);
    let slices = document.intervals.chunks(each).map(data::merged);
    let of_slice = |slice: IntervalResult| {
        let first = [format!("{:.1}", slice.at_s), format!("{:.1}", slice.seconds)];
        slice.cache.as_ref().map(|cache| row(first, &slice.ops, cache))
    };
    let over_time: Vec<Vec<String>> = slices.filter_map(of_slice).collect();
    let causes = "Misses by cause: keys that were never stored, that do not exist, whose last store by the same worker had expired, \
               and all others, such as evicted ones.";
    let (hits, misses) = (looked_up(&document.ops, |op| op.hits), looked_up(&document.ops, |op| op.misses));
    let statement = match hits + misses {
        0 => "Hits and misses".to_owned(),
        keys => format!("{:.1} % of the keys read were found", 100.0 * hits as f64 / keys as f64),
    };
    section(
        &statement,
        html! {
            (table(&names, &rows))
            (how(causes))
            (details("While the run went on", table(&names, &over_time)))
        },
    )
}

/// The parts of a load that changed by plan, each with figures of its own; nothing of other runs.
fn phases(document: &Document) -> Markup {
    if document.phases.is_empty() {
        return Markup::default();
    }
    let times = ["p50", "p90", "p99", "p99.9", "max"];
    let mut names = vec![
        "phase",
        "from s",
        "seconds",
        "connections",
        "due",
        "due per second",
        "errors",
        "unfinished",
        "unsent",
    ];
    names.extend(times);
    let mut rows: Vec<Vec<String>> = document
        .phases
        .iter()
        .map(|phase| {
            let due_per_s =
                if phase.seconds > 0.0 { phase.totals.requests as f64 / phase.seconds } else { 0.0 };
            let sum = |of: fn(&OpResult) -> u64| grouped(phase.ops.iter().map(|(_, op)| of(op)).sum());
            let mut cells = vec![
                phase.name.clone(),
                format!("{:.1}", phase.at_s),
                format!("{:.1}", phase.seconds),
                phase.connections.map_or_else(String::new, grouped),
                grouped(phase.totals.requests),
                number(due_per_s),
                grouped(phase.totals.errors),
                sum(|op| op.unfinished),
                sum(|op| op.unsent),
            ];
            let response = phase.totals.times.of_span(Span::Response);
            cells.extend(times.map(|name| figure(response.at(name))));
            cells
        })
        .collect();
    if document.phases.iter().all(|phase| phase.connections.is_none()) {
        names.remove(3);
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    let each: Vec<(String, f64)> = document
        .phases
        .iter()
        .filter_map(|phase| {
            Some((phase.name.clone(), phase.totals.times.of_span(Span::Response).at("p99").known()?))
        })
        .collect();
    let slowest = each.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let statement = match slowest {
        Some((name, us)) if each.len() > 1 => format!("Slowest phase: {name}, p99 {}", time(*us)),
        _ => "Phases".to_owned(),
    };
    let what =
        how("A request belongs to the phase in which it was due. Rates are of requests that were due.");
    section(&statement, html! { (table(&names, &rows)) (what) })
}

fn span_table(document: &Document) -> Markup {
    let mut names = vec!["operation", "time", "min", "mean"];
    names.extend(QUANTILES.map(|(name, _)| name));
    names.push("max");
    let rows_of = |name: &str, times: &FiveTimes| {
        let row = |span: Span| {
            let figures = times.of_span(span);
            let mut cells = vec![
                name.to_owned(),
                span.name().to_owned(),
                known_time(figures.min),
                known_time(figures.mean),
            ];
            cells.extend(figures.quantiles().map(|(_, quantile)| figure(quantile)));
            cells
        };
        Span::ALL.map(row)
    };
    let mut rows: Vec<Vec<String>> =
        document.ops.iter().flat_map(|(name, op)| rows_of(name, &op.times)).collect();
    rows.extend(rows_of("all", &document.totals.times));
    table(&names, &rows)
}

fn percentiles(document: &Document) -> Markup {
    let drawn = picture_data::curve_of(document);
    let statement = words::of_curve(document);
    // Wait and lag of what got no answer are no picture of answers.
    let picture = in_layouts(|layout| curve::draw(layout, "curve", &drawn, &statement))
        .filter(|_| document.totals.completed > 0);
    let ops = picture_data::op_curves_of(document);
    let title = "Response times of each operation";
    let panels = in_layouts(|layout| curve::draw_panels(layout, "ops", &ops, title)).map(|panels| {
        html! { h3 { (title) } (figure_of(&panels, "", "Grey: the response of all requests.")) }
    });
    let rows: Vec<Vec<String>> = QUANTILES
        .iter()
        .map(|(name, _)| {
            let spans = [Span::Response, Span::Service, Span::Wait, Span::Lag];
            let cells = spans.map(|span| figure(document.totals.times.of_span(span).at(name)));
            let ends = picture_data::interval_of(document, name);
            let end = |at: usize| ends.map_or(String::new(), |ends| ends[at].map_or("?".to_owned(), time));
            [vec![(*name).to_owned()], cells.to_vec(), vec![end(0), end(1)]].concat()
        })
        .collect();
    let names = ["quantile", "response", "service", "wait", "lag", "from", "to"];
    let mut how = "How to read it: at 99 on the horizontal axis a line shows how long the slowest of the fastest 99 % took; \
                   dotted where fewer than ten requests lie beyond."
        .to_owned();
    if !drawn.whiskers.is_empty() {
        how += " Broad bars, and the pale band between them: 95 % intervals within this run.";
    }
    if drawn.whiskers.iter().any(|whisker| whisker.high_us.is_none()) {
        how += " Arrow: no upper end is known.";
    }
    if !drawn.goals.is_empty() {
        how += " Short bars with a foot: what the quantile may be at most by the goal.";
    }
    if drawn.lines.iter().any(|line| line.is_open) {
        how += " Triangle: what lies beyond got no answer.";
    }
    if drawn.lines.iter().any(|line| line.is_open && ["wait", "lag"].contains(&line.class)) {
        how += " Beyond the triangles of wait and lag it was not even sent.";
    }
    if drawn.is_doubtful {
        how += " Striped edge: a part of these times was added by pummel itself.";
    }
    let framed = Framed {
        statement,
        picture,
        instead: "No request was answered, so there are no times to draw. The reason stands above, and errors below.",
        how,
        numbers: table(&names, &rows),
        axis: "quantile",
    };
    html! { (framed.markup()) (panels.unwrap_or_default()) }
}

fn over_time(document: &Document) -> Markup {
    let columns = picture_data::heat_of(document);
    let statement = words::of_heat(&columns);
    let length_s = length_of(document);
    let picture = in_layouts(|layout| heat::draw(layout, "heat", &columns, length_s, &statement));
    let rows: Vec<Vec<String>> = heat::merged(&columns, ROWS_MAX)
        .iter()
        .map(|column| {
            let at = |quantile| {
                let ns = column.sketch.quantile(quantile, column.unanswered);
                known_time(ns.map(|ns| ns as f64 / 1e3))
            };
            vec![
                format!("{:.1}", column.at_s),
                format!("{:.1}", column.seconds),
                grouped(column.sketch.count()),
                grouped(column.unanswered),
                at(0.5),
                at(0.99),
                at(1.0),
            ]
        })
        .collect();
    let names = ["at s", "seconds", "answered", "no answer", "p50", "p99", "longest"];
    let mut how = "How to read it: the stronger the colour of a cell, the more of the interval's requests took that long. Cells are 12.5 % high, \
                   so quantiles of intervals are upper ends of cells."
        .to_owned();
    if columns.len() > COLUMNS_MAX {
        how += &format!(" A column is {} intervals.", columns.len().div_ceil(COLUMNS_MAX));
    }
    Framed {
        statement: if columns.is_empty() { "Response times over time".to_owned() } else { statement },
        picture,
        instead: match document.totals.completed {
            0 => "No request was answered, so there are no times to draw.",
            _ => "The result keeps no times of intervals: it is of an older version.",
        },
        how,
        numbers: table(&names, &rows),
        axis: "time",
    }
    .markup()
}

/// The heat map of the service times, which is opened on demand; nothing where there is none.
fn service_over_time(document: &Document, length_s: f64) -> Markup {
    let columns = heat::merged(&picture_data::service_heat_of(document), SERVICE_COLUMNS_MAX);
    let title = "Service times over time";
    let picture = in_layouts(|layout| heat::draw(layout, "heat-service", &columns, length_s, title));
    picture.map_or(Markup::default(), |picture| {
        details("Service times instead", figure_of(&picture, "time", ""))
    })
}

/// How long the pictures over time are: the measured phase, or the end of its last interval.
fn length_of(document: &Document) -> f64 {
    let end = document.intervals.last().map_or(0.0, |last| last.at_s + last.seconds);
    document.seconds.max(end)
}

fn rates(document: &Document) -> Markup {
    let columns = picture_data::rates_of(document);
    let statement = words::of_rate(document);
    let length_s = length_of(document);
    let is_complete = document.status == Status::Complete;
    let planned_s = picture_data::planned_s(document).filter(|_| !is_complete).unwrap_or(0.0);
    let asked = asked_rate(document);
    let parts = document.phases.iter().map(|phase| (phase.at_s, phase.name.clone())).collect();
    let plan = RatePlan { asked, parts, planned_s };
    let picture = in_layouts(|layout| rate::draw(layout, "rate", &columns, length_s, &plan, &statement));
    let is_wrong = |column: &RateColumn| column.wrong.iter().any(|(_, count)| *count > 0);
    let has_failed = |column: &RateColumn| column.requests > column.completed;
    let mut how = "How to read it: the thick line is what was completed.".to_owned();
    if asked.is_some() || columns.iter().any(|column| column.asked.is_some()) {
        how += " The dashed line at \u{201c}asked\u{201d} is the rate of the plan.";
        if picture_data::fills_misses(document) {
            how += " Stores of missed keys come on top of it.";
        }
    }
    if columns.iter().any(has_failed) {
        how += " The shaded area above it is what failed.";
    }
    if columns.iter().any(is_wrong) {
        how += " The bars below are errors and requests without an answer.";
    }
    if !plan.parts.is_empty() {
        how += " Dotted lines part the phases.";
    }
    how += " A request is counted in the interval in which it ended.";
    let rows: Vec<Vec<String>> = rate::merged(&columns, ROWS_MAX)
        .iter()
        .map(|column| {
            let wrong: Vec<String> = column
                .wrong
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{name} {}", grouped(*count)))
                .collect();
            vec![
                format!("{:.1}", column.at_s),
                format!("{:.1}", column.seconds),
                grouped(column.completed),
                number(column.per_second(column.completed)),
                wrong.join(", "),
            ]
        })
        .collect();
    Framed {
        statement,
        picture,
        instead: "The result has no intervals: nothing of the measured phase was recorded.",
        how,
        numbers: table(&["at s", "seconds", "completed", "per second", "errors"], &rows),
        axis: "time",
    }
    .markup()
}

fn parts(document: &Document) -> Markup {
    let bands = picture_data::bands_of(document);
    let statement = words::of_bands(&bands);
    let picture = in_layouts(|layout| anatomy::draw(layout, "anatomy", &bands, &statement));
    let rows: Vec<Vec<String>> = bands
        .iter()
        .map(|band| {
            let parts = [band.response_us(), band.wait_us, band.lag_us, band.service_us];
            let mean = |us: f64| if band.count == 0 { "-".to_owned() } else { time(us) };
            [vec![band.name.clone(), grouped(band.count)], parts.map(mean).to_vec()].concat()
        })
        .collect();
    let left_out = bands.iter().filter(|band| band.count < anatomy::ENOUGH).count();
    let mut how = "How to read it: each bar is the mean response time of the requests of its band, split into wait (a slow server or \
                   too few connections), lag (the generator) and service (the server and the network)."
        .to_owned();
    if left_out > 0 {
        let bands = counted(left_out as u64, "band");
        how += &format!(" Left out: {bands} of fewer than {} requests.", anatomy::ENOUGH);
    }
    Framed {
        statement: if document.anatomy.is_empty() {
            "What the response times consist of".to_owned()
        } else {
            statement
        },
        picture,
        instead: match document.totals.completed {
            0 => "No request was answered, so there are no times to split.",
            _ => "The result does not say what its responses consist of: it is of an older version.",
        },
        how,
        numbers: table(&["requests", "count", "mean response", "wait", "lag", "service"], &rows),
        axis: "",
    }
    .markup()
}

/// The shards of a cluster beside each other, and its outages.
fn cluster(document: &Document) -> Markup {
    let tables = cluster_tables(document);
    if tables.is_empty() {
        return Markup::default();
    }
    section(
        "Cluster",
        html! {
            (tables_of(&View { tables, ..View::default() }))
            (how("A shard is the slots that a node owned at the start. Times are service times, within 3 %."))
        },
    )
}

fn errors(document: &Document) -> Markup {
    if document.error_messages.is_empty() {
        return Markup::default();
    }
    let rows: Vec<Vec<String>> = document
        .error_messages
        .iter()
        .map(|(words, count)| vec![words.to_owned(), grouped(*count)])
        .collect();
    section("What the servers said", table(&["message", "times"], &rows))
}

/// The descriptions of machines, each once with the number of those that it is of.
fn alike(machines: impl Iterator<Item = String>) -> String {
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for words in machines {
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => kinds.push((words, 1)),
        }
    }
    let more = kinds.len().saturating_sub(MACHINES_SHOWN_MAX);
    let each = kinds.into_iter().take(MACHINES_SHOWN_MAX).map(|(words, count)| match count {
        1 => words,
        many => format!("{many} alike: {words}"),
    });
    let more = (more > 0).then(|| format!("{} more", counted(more as u64, "kind")));
    each.chain(more).collect::<Vec<_>>().join("; ")
}

fn how_it_was_run(document: &Document) -> Markup {
    let machines = document.evidence.iter().flat_map(|evidence| &evidence.servers);
    let servers: Vec<String> = machines
        .filter_map(|server| {
            let reading = server.reading.as_ref()?;
            Some(format!("{}: {} {}", server.address, reading.software, reading.version))
        })
        .collect();
    let servers = if servers.is_empty() { document.plan.servers.join(", ") } else { servers.join("; ") };
    let command = command_line(&document.argv);
    let machines = alike(document.machine.iter().map(Provenance::words));
    let mut facts = vec![
        ("Command", command),
        ("Servers", servers),
        ("Machine", machines),
        ("Labels", labels_text(&document.labels)),
        ("Seed", format!("{} (data seed {})", document.plan.seed, document.plan.data.seed)),
        ("Connections", grouped(document.connections.asked)),
        ("Backend", document.generator.backend.clone().unwrap_or_default()),
        ("Made by", format!("{} {}", document.tool.name, document.tool.version)),
    ];
    facts.extend(surroundings::facts(document));
    let facts = fields(&facts);
    // The names of an anonymous plan are not those of its servers and keys.
    let again = match (document.plan.anonymous, document.plan.has_masked_command()) {
        (true, _) => html! { "Names are left out, so that this is not the plan of the same run." },
        (false, true) => {
            html! { "Passwords in the command are masked, so that this is not the plan of the same run." }
        }
        (false, false) => {
            html! { "Saved as a file, this runs again with " code { "pummel run --plan FILE" } "." }
        }
    };
    let plan = html! {
        p { button type="button" data-copy="plan" hidden { "Copy" } " " (again) }
        (plan_text(&document.plan, "plan"))
    };
    section("How it was run", html! { (facts) (details("The plan", plan)) })
}

/// What the words of pages mean.
fn meanings() -> Markup {
    let words = fields(&[
        (
            "response",
            "from when a request was due until its reply had arrived: what a user of the cache waits"
                .to_owned(),
        ),
        (
            "wait",
            "the part before a connection was free for it: caused by a slow server or by too few connections"
                .to_owned(),
        ),
        ("lag", "the part from then until it was sent: caused by the generator".to_owned()),
        (
            "service",
            "the part from sending to the last byte of the reply: caused by the server and the network"
                .to_owned(),
        ),
        (
            "reaction",
            "from the arrival of the reply until the generator read it: part of none of the other times"
                .to_owned(),
        ),
    ]);
    let rule = html! { p { "Of every request, response = wait + lag + service." } };
    section("What the words mean", html! { (rule) (words) })
}

/// What the data of a page are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// The result of a run.
    Run,
    /// The result of a search or a scan.
    Series,
    /// Repeated runs, or two sides by turns.
    Several,
    /// A comparison of stored results.
    Comparison,
}

/// What the words mean, the data of a run or a series, and the versions that measured and drew.
pub fn footer(version: &str, data: Option<PageData>, kind: DataKind) -> Markup {
    html! {
        (footer_of(data, kind))
        p.dim { "Measured by pummel " (cut_name(version, WORDS_MAX)) ", drawn by pummel " (VERSION) "." }
    }
}

/// What the words mean, and the data of the page.
pub fn footer_of(data: Option<PageData>, kind: DataKind) -> Markup {
    let what = if kind == DataKind::Comparison { "comparison" } else { "result" };
    let reader = match kind {
        DataKind::Run | DataKind::Several => Some("pummel show"),
        DataKind::Series => Some("pummel show --format json"),
        DataKind::Comparison => None,
    };
    html! {
        (meanings())
        @if let Some(PageData { base64, missing }) = data {
            p.download {
                a download=(format!("pummel-{what}.json.gz")) href=(data_link(&base64)) { "Download the " (what) }
                " as JSON, packed by gzip"
                @if let Some(missing) = missing { " (" (missing) ")" }
                "."
                @if let Some(reader) = reader { " " code { (reader) } " also takes this page." }
            }
        }
    }
}

/// The address of the data of a page, which [`PAGE_DATA`] finds in the page again.
fn data_link(base64: &str) -> String {
    format!("{}{base64}", PAGE_DATA.trim_start_matches("href=\""))
}
