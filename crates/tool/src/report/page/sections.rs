//! The sections of a page, from the answers to the data.

use pummel_logic::measure::evidence::provenance::Provenance;
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::QUANTILES;

use super::axis::Unit;
use super::data::PageData;
use super::heat::{self, COLUMNS_MAX};
use super::svg::escaped;
use super::throughput::{self, RateMarks, RatePoint};
use super::{anatomy, curve, rate, series, words};
use crate::report::VERSION;
use crate::report::document::{CurveDocument, Document, Figure, FiveTimes, OpResult, TimeFigures, reads};
use crate::report::numbers::{grouped, number};
use crate::report::stored::PAGE_DATA;

/// Rows of a table below a picture at most.
const ROWS_MAX: usize = 60;

/// Of more machines than this only the first are named.
const MACHINES_SHOWN_MAX: usize = 8;

/// The median response of all requests, in microseconds.
pub fn median_us(document: &Document) -> Option<f64> {
    document.totals.times.of_span(Span::Response).p50
}

/// Cells of a row, escaped.
fn cells<'a>(kind: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for words in words {
        text += &format!("<{kind}>{}</{kind}>", escaped(words));
    }
    text
}

/// A table: a row of names, and rows of cells.
fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let head = cells("th", names.iter().copied());
    let mut body = String::new();
    for row in rows {
        body += &format!("<tr>{}</tr>\n", cells("td", row.iter().map(String::as_str)));
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escaped(summary))
}

/// What stands around a picture.
struct Framed<'a> {
    statement: String,
    /// The picture; `None` where there is nothing to show.
    picture: Option<String>,
    /// Why there is nothing, and what would show something.
    instead: &'a str,
    how: String,
    numbers: String,
    /// Pictures with one axis have one cursor.
    axis: &'a str,
}

impl Framed<'_> {
    fn text(self) -> String {
        let heading = format!("<h2>{}</h2>\n", escaped(&self.statement));
        let Some(picture) = self.picture else {
            return format!("{heading}<p>{}</p>\n", long(self.instead));
        };
        format!(
            "{heading}<figure class=\"wide\" data-axis=\"{}\">\n{picture}<div class=\"readout\" aria-live=\"polite\"></div>\n\
             <figcaption class=\"how\">{}</figcaption>\n</figure>\n{}",
            self.axis,
            long(&self.how),
            details("The numbers", &self.numbers)
        )
    }
}

/// The sections of a run.
pub fn of_run(document: &Document, unit: Unit) -> String {
    let mut text = answers(document);
    text += &requests(document, unit);
    text += &percentiles(document, unit);
    text += &over_time(document, unit);
    text += &rates(document);
    text += &parts(document, unit);
    text += &errors(document);
    text += &how_it_was_run(document);
    text
}

/// Names with words beside them; nothing where there are none.
fn fields(fields: &[(&str, String)]) -> String {
    let each = fields.iter().filter(|(_, words)| !words.is_empty());
    let items: String =
        each.map(|(name, words)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), long(words))).collect();
    if items.is_empty() { String::new() } else { format!("<dl>\n{items}</dl>\n") }
}

/// Words of this program, which may be longer than those of others: escaped in pieces.
fn long(words: &str) -> String {
    let all: Vec<char> = words.chars().collect();
    all.chunks(100).map(|piece| escaped(&piece.iter().collect::<String>())).collect()
}

fn answers(document: &Document) -> String {
    let trust = document.trust.as_ref().map_or(String::new(), |trust| trust.says.clone());
    let limit = document.verdict.as_ref().map_or(String::new(), |verdict| verdict.says.clone());
    let reason = document.reason.clone().unwrap_or_default();
    let resources = document.verdict.iter().flat_map(|verdict| &verdict.headroom);
    let used: Vec<String> =
        resources.map(|used| format!("{} {:.0} %", used.resource, used.used_percent)).collect();
    fields(&[
        ("Reason", reason),
        ("Trust", trust),
        ("Limit", limit),
        ("Used", used.join(", ")),
        (
            "Not steady",
            document
                .change
                .as_ref()
                .map_or(String::new(), |change| format!("{} changed at {:.1} s", change.figure, change.at_s)),
        ),
        ("No intervals", document.certainty_missing.clone().unwrap_or_default()),
    ])
}

fn figure(figure: Figure, unit: Unit) -> String {
    match figure {
        Figure::Known(us) => unit.plain(us),
        Figure::Above(us) => format!("> {}", unit.plain(us)),
        Figure::Absent => "-".to_owned(),
    }
}

fn requests(document: &Document, unit: Unit) -> String {
    let times = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut names = vec!["", "due", "completed", "per second", "hit %", "errors", "no answer"];
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
            if reads(name) || name == "all" { share } else { "-".to_owned() },
            grouped(op.failed()),
            grouped(op.unanswered()),
        ];
        cells.extend(times.map(|name| figure(response.at(name), unit)));
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
        let mut cells = row("all", &all, document.totals.times.of_span(Span::Response));
        // The sum of the kinds by name counts each kind of each operation once.
        cells[6] = grouped(series::unanswered(document));
        rows.push(cells);
    }
    let what =
        format!("Response times in {}: from when a request was due until its reply had arrived.", unit.name);
    let spans = details("The five times of each operation", &span_table(document, unit));
    format!("<h2>Requests</h2>\n{}<p class=\"how\">{}</p>\n{spans}", table(&names, &rows), escaped(&what))
}

fn span_table(document: &Document, unit: Unit) -> String {
    let mut names = vec!["operation", "time", "min", "mean"];
    names.extend(QUANTILES.map(|(name, _)| name));
    names.push("max");
    let rows_of = |name: &str, times: &FiveTimes| {
        let row = |span: Span| {
            let figures = times.of_span(span);
            let exact = |us: Option<f64>| us.map_or("-".to_owned(), |us| unit.plain(us));
            let mut cells =
                vec![name.to_owned(), span.name().to_owned(), exact(figures.min), exact(figures.mean)];
            cells.extend(figures.quantiles().map(|(_, quantile)| figure(quantile, unit)));
            cells
        };
        Span::ALL.map(row)
    };
    let mut rows: Vec<Vec<String>> =
        document.ops.iter().flat_map(|(name, op)| rows_of(name, &op.times)).collect();
    rows.extend(rows_of("all", &document.totals.times));
    table(&names, &rows)
}

fn percentiles(document: &Document, unit: Unit) -> String {
    let drawn = series::curve_of(document);
    let statement = words::of_curve(document, unit);
    let picture = curve::draw("curve", &drawn, unit, &statement);
    let rows: Vec<Vec<String>> = QUANTILES
        .iter()
        .map(|(name, _)| {
            let spans = [Span::Response, Span::Service, Span::Wait, Span::Lag];
            let cells = spans.map(|span| figure(document.totals.times.of_span(span).at(name), unit));
            let ends = document.totals.times.of_span(Span::Response).ci.as_ref().and_then(|ci| ci.get(name));
            let end = |at: usize| {
                ends.map_or(String::new(), |ends| ends[at].map_or("?".to_owned(), |us| unit.plain(us)))
            };
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
    if drawn.lines.iter().any(|line| line.is_open) {
        how += " Triangle: what lies beyond got no answer.";
    }
    if drawn.is_doubtful {
        how += " Striped edge: these times are partly the generator's own.";
    }
    Framed {
        statement,
        picture,
        instead: "No request was answered, so there are no times to draw. The reason stands above, and errors below.",
        how,
        numbers: table(&names, &rows),
        axis: "quantile",
    }
    .text()
}

fn over_time(document: &Document, unit: Unit) -> String {
    let columns = series::heat_of(document);
    let statement = words::of_heat(&columns, unit);
    let length_s = length_of(document);
    let picture = heat::draw("heat", &columns, length_s, unit, &statement);
    let rows: Vec<Vec<String>> = heat::merged(&columns, ROWS_MAX)
        .iter()
        .map(|column| {
            let at = |quantile| {
                let ns = column.sketch.quantile(quantile, column.unanswered);
                ns.map_or("-".to_owned(), |ns| unit.plain(ns as f64 / 1e3))
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
        statement: if columns.is_empty() { "When did it happen?".to_owned() } else { statement },
        picture,
        instead: "The result keeps no times of intervals: it is of an older version, or nothing was answered.",
        how,
        numbers: table(&names, &rows),
        axis: "time",
    }
    .text()
}

/// How long the pictures over time are: the measured phase, or the end of its last interval.
fn length_of(document: &Document) -> f64 {
    let end = document.intervals.last().map_or(0.0, |last| last.at_s + last.seconds);
    document.seconds.max(end)
}

fn rates(document: &Document) -> String {
    let columns = series::rates_of(document);
    let statement = words::of_rate(document);
    let length_s = length_of(document);
    let planned_s = series::planned_s(document).unwrap_or(0.0);
    let picture =
        rate::draw("rate", &columns, (length_s, planned_s), series::asked_rate(document), &statement);
    let rows: Vec<Vec<String>> = rate::merged(&columns, ROWS_MAX)
        .iter()
        .map(|column| {
            let rate = if column.seconds > 0.0 { column.completed as f64 / column.seconds } else { 0.0 };
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
                number(rate),
                wrong.join(", "),
            ]
        })
        .collect();
    Framed {
        statement,
        picture,
        instead: "The result has no intervals: nothing of the measured phase was recorded.",
        how: "How to read it: the thick line is what was completed, the dashed one what ended in any way; between them, \
              shaded, what went wrong. A request is counted in the interval in which it ended."
            .to_owned(),
        numbers: table(&["at s", "seconds", "completed", "per second", "errors"], &rows),
        axis: "time",
    }
    .text()
}

fn parts(document: &Document, unit: Unit) -> String {
    let bands = series::bands_of(document);
    let statement = words::of_bands(&bands);
    let picture = anatomy::draw("anatomy", &bands, unit, &statement);
    let rows: Vec<Vec<String>> = bands
        .iter()
        .map(|band| {
            vec![
                band.name.clone(),
                grouped(band.count),
                unit.plain(band.response_us()),
                unit.plain(band.wait_us),
                unit.plain(band.lag_us),
                unit.plain(band.service_us),
            ]
        })
        .collect();
    let left_out = bands.iter().filter(|band| band.count < anatomy::ENOUGH).count();
    let mut how = "How to read it: each bar is the mean of the very requests of its band, split into wait (the server or too few \
                   connections), lag (the generator) and service (the server and the way)."
        .to_owned();
    if left_out > 0 {
        how += &format!(" {left_out} bands have fewer than {} requests and are left out.", anatomy::ENOUGH);
    }
    Framed {
        statement: if document.anatomy.is_empty() { "Whose was the time?".to_owned() } else { statement },
        picture,
        instead: "The result does not say what its responses consist of: nothing was answered, or it is of an older version.",
        how,
        numbers: table(&["requests", "count", "mean response", "wait", "lag", "service"], &rows),
        axis: "",
    }
    .text()
}

fn errors(document: &Document) -> String {
    if document.error_messages.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = document
        .error_messages
        .iter()
        .map(|(words, count)| vec![words.to_owned(), grouped(*count)])
        .collect();
    format!("<h2>What the servers said</h2>\n{}", table(&["message", "times"], &rows))
}

fn how_it_was_run(document: &Document) -> String {
    let plan = serde_json::to_string_pretty(&document.plan).expect("a plan has nothing that JSON has not");
    let machines = document.evidence.iter().flat_map(|evidence| &evidence.servers);
    let servers: Vec<String> = machines
        .filter_map(|server| {
            let reading = server.reading.as_ref()?;
            Some(format!("{}: {} {}", server.address, reading.software, reading.version))
        })
        .collect();
    let servers = if servers.is_empty() { document.plan.servers.join(", ") } else { servers.join("; ") };
    let command = document.argv.join(" ");
    let machines: Vec<String> =
        document.machine.iter().take(MACHINES_SHOWN_MAX).map(Provenance::words).collect();
    let facts = fields(&[
        ("Command", command),
        ("Servers", servers),
        ("Machine", machines.join("; ")),
        ("Seed", format!("{} (data seed {})", document.plan.seed, document.plan.data.seed)),
        ("Connections", grouped(document.connections.asked)),
        ("Backend", document.generator.backend.clone().unwrap_or_default()),
        ("Made by", format!("{} {}", document.tool.name, document.tool.version)),
    ]);
    let plan = format!(
        "<p><button type=\"button\" data-copy=\"plan\" hidden=\"hidden\">Copy</button> Saved as a file, this runs again with \
         <code>pummel run --plan FILE</code>.</p>\n<pre id=\"plan\">{}</pre>\n",
        long(&plan).replace("\\u{a}", "\n")
    );
    format!("<h2>How it was run</h2>\n{facts}{}", details("The plan", &plan))
}

/// The sections of a search or a scan.
pub fn of_curve(document: &CurveDocument) -> String {
    let points: Vec<RatePoint> = document
        .runs
        .iter()
        .map(|run| RatePoint {
            asked: run.asked_rate,
            rate: run.rate,
            response_us: run.times(),
            is_met: run.met,
            is_carried: run.carried,
            is_generators: run.limit == "generator",
        })
        .collect();
    let marks = RateMarks {
        limits_us: document.goals.iter().map(|goal| goal.limit_us).collect(),
        found: document.found_rate,
    };
    let median = document.runs.iter().find_map(|run| run.response_us.get("p50").copied().flatten());
    let unit = Unit::of(median);
    let statement = "How response times grow with the rate";
    let picture = throughput::draw("throughput", &points, &marks, unit, statement);
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| unit.plain(us));
    let rows: Vec<Vec<String>> = document
        .runs
        .iter()
        .map(|run| {
            let asked = run.asked_rate.map_or("closed loop".to_owned(), number);
            let mut cells = vec![asked, number(run.rate)];
            cells.extend(run.times().into_iter().map(|(_, us)| time(us)));
            cells.push(run.role.clone());
            cells.push(if run.carried { "yes" } else { "no" }.to_owned());
            cells.push(run.met.map_or("-", |met| if met { "met" } else { "missed" }).to_owned());
            cells.push(run.limit.clone());
            cells
        })
        .collect();
    let mut names = vec!["asked/s", "done/s"];
    names.extend(QUANTILES.map(|(name, _)| name));
    names.extend(["why", "carried", "goal", "limit"]);
    let numbers = table(&names, &rows);
    let reason = fields(&[("Reason", document.reason.clone().unwrap_or_default())]);
    let drawn = picture.is_some();
    let framed = Framed {
        statement: statement.to_owned(),
        picture,
        instead: "A picture needs two runs whose times are known.",
        how: "How to read it: filled points are runs that met the goals, hollow ones missed them, crosses are rates that the \
              servers did not carry, grey ones were limited by the generator."
            .to_owned(),
        numbers: numbers.clone(),
        axis: "",
    };
    let text = framed.text();
    if drawn { format!("{reason}{text}") } else { format!("{reason}{text}{numbers}") }
}

/// What the words mean, the data, and who made the page.
pub fn footer(version: &str, data: Option<PageData>) -> String {
    let words = fields(&[
        (
            "response",
            "from when a request was due until its reply had arrived: what a user of the cache waits"
                .to_owned(),
        ),
        (
            "wait",
            "from due until only the generator stood in its way: the server's, or too few connections"
                .to_owned(),
        ),
        ("lag", "from then until it was sent: the generator's".to_owned()),
        (
            "service",
            "from sent until the last byte of the reply had arrived: the server's, and the way's".to_owned(),
        ),
        (
            "reaction",
            "from then until the generator read it: the generator's, and in none of the others".to_owned(),
        ),
    ]);
    let data = match data {
        None => String::new(),
        Some(PageData { base64, missing }) => {
            let missing = missing.map_or(String::new(), |words| format!(" ({})", escaped(&words)));
            format!(
                "<p class=\"download\"><a download=\"pummel-result.json.gz\" {PAGE_DATA}{base64}\">Download the result</a> as \
                 JSON, packed by gzip{missing}. <code>pummel show</code> also takes this page.</p>\n"
            )
        }
    };
    format!(
        "<h2>What the words mean</h2>\n<p>Of every request, response = wait + lag + service.</p>\n{words}{data}\
         <p class=\"dim\">Measured by pummel {}, drawn by pummel {VERSION}.</p>\n",
        escaped(version)
    )
}
