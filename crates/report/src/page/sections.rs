//! The sections of a page, from the answers to the data.

use pummel_logic::plan::labels_text;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;
use pummel_measure::words::{counted, percent};

use super::axis::Unit;
use super::data::{self, PageData};
use super::frame::{Framed, details, fields, plan_text, table};
use super::heat::{self, COLUMNS_MAX};
use super::rate::RateColumn;
use super::svg::escaped;
use super::throughput::{self, RateMarks, RatePoint};
use super::words::command_line;
use super::{anatomy, curve, rate, series, surroundings, words};
use crate::VERSION;
use crate::document::{
    CacheResult, CurveDocument, Document, Figure, FiveTimes, IntervalResult, OpResult, OpsResult,
    TimeFigures, reads,
};
use crate::numbers::{grouped, number};
use crate::run_figures::lag_words;
use crate::stored::PAGE_DATA;

/// Rows of a table below a picture at most.
const ROWS_MAX: usize = 60;

/// Columns of the heat map of service times, which is beside the main one.
const SERVICE_COLUMNS_MAX: usize = 120;

/// Of more kinds of machines than this only the first are named.
const MACHINES_SHOWN_MAX: usize = 8;

/// The median response of all requests in microseconds, or what it is more than.
pub fn median_us(document: &Document) -> Option<f64> {
    match document.totals.times.of_span(Span::Response).at("p50") {
        Figure::Known(us) | Figure::Above(us) => Some(us),
        Figure::Absent => None,
    }
}

/// The sections of a run, with the heat map of service times where that is wanted.
pub fn of_run(document: &Document, unit: Unit, has_service_heat: bool) -> String {
    let mut text = answers_in(document, unit);
    text += &requests(document, unit);
    text += &phases(document, unit);
    text += &cache(document);
    text += &percentiles(document, unit);
    text += &over_time(document, unit);
    if has_service_heat {
        text += &service_over_time(document, unit, length_of(document));
    }
    text += &rates(document);
    text += &parts(document, unit);
    text += &surroundings::sections(document, unit, length_of(document));
    text += &surroundings::verified(document);
    text += &errors(document);
    text += &how_it_was_run(document);
    text
}

/// What a result says of itself, with times in its own unit.
pub fn answers(document: &Document) -> String {
    answers_in(document, Unit::of(median_us(document)))
}

fn answers_in(document: &Document, unit: Unit) -> String {
    let trust = document.trust.as_ref().map_or(String::new(), |trust| trust.says.clone());
    let limit = document.verdict.as_ref().map_or(String::new(), |verdict| verdict.says.clone());
    let reason = document.reason.clone().unwrap_or_default();
    let resources = document.verdict.iter().flat_map(|verdict| &verdict.headroom);
    let used: Vec<String> =
        resources.map(|used| format!("{} {}", used.resource, percent(used.used_percent / 100.0))).collect();
    fields(&[
        ("Reason", reason),
        ("Trust", trust),
        ("Limit", limit),
        ("Used", used.join(", ")),
        ("Not steady", not_steady(document, unit)),
        ("No intervals", document.certainty_missing.clone().unwrap_or_default()),
    ])
}

/// Why a run was not steady; nothing where it was, or where that is not known.
fn not_steady(document: &Document, unit: Unit) -> String {
    let parts = document.merged.iter().filter(|part| part.steady == Some(false));
    let names: Vec<&str> = parts.map(|part| part.file.as_str()).collect();
    match &document.change {
        _ if document.steady != Some(false) => String::new(),
        None if !document.merged.is_empty() => format!("results of the sum: {}", names.join(", ")),
        None => document.unsteady_words(),
        Some(change) => {
            let text = |value: Option<f64>| match (change.figure.as_str(), value) {
                (_, None) => "not known".to_owned(),
                ("p50", Some(us)) => unit.text(us),
                ("rate", Some(rate)) => format!("{}/s", number(rate)),
                (_, Some(share)) => format!("{:.1} %", share * 100.0),
            };
            let (before, after) = (text(change.before), text(change.after));
            format!("{} {before} before {:.1} s, {after} after", change.figure, change.at_s)
        }
    }
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
            if reads(name) || name == "all" { share } else { "-".to_owned() },
            grouped(op.failed()),
            grouped(op.unfinished),
            grouped(op.unsent),
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
        rows.push(row("all", &all, document.totals.times.of_span(Span::Response)));
    }
    let what =
        format!("Response times in {}: from when a request was due until its reply had arrived.", unit.name);
    let spans = details("The five times of each operation", &span_table(document, unit));
    format!("<h2>Requests</h2>\n{}<p class=\"how\">{}</p>\n{spans}", table(&names, &rows), escaped(&what))
}

/// What the clients saw of the cache behind the servers; nothing of runs whose misses are not told apart.
fn cache(document: &Document) -> String {
    let Some(all) = &document.cache else { return String::new() };
    let looked_up = |ops: &OpsResult, of: fn(&OpResult) -> u64| {
        ops.iter().filter(|(name, _)| reads(name)).map(|(_, op)| of(op)).sum::<u64>()
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
    let how = "Misses by cause: keys that were never stored, that do not exist, whose last store by the same worker had expired, \
               and all others, such as evicted ones.";
    let details = details("While the run went on", &table(&names, &over_time));
    let (hits, misses) = (looked_up(&document.ops, |op| op.hits), looked_up(&document.ops, |op| op.misses));
    let statement = match hits + misses {
        0 => "Hits and misses".to_owned(),
        keys => format!("{:.1} % of the keys read were found", 100.0 * hits as f64 / keys as f64),
    };
    format!("<h2>{statement}</h2>\n{}<p class=\"how\">{how}</p>\n{details}", table(&names, &rows))
}

/// The parts of a load that changed by plan, each with figures of its own; nothing of other runs.
fn phases(document: &Document, unit: Unit) -> String {
    if document.phases.is_empty() {
        return String::new();
    }
    let times = ["p50", "p90", "p99", "p99.9", "max"];
    let mut names = vec!["phase", "from s", "seconds", "due", "per second", "errors", "unfinished", "unsent"];
    names.extend(times);
    let rows: Vec<Vec<String>> = document
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
                grouped(phase.totals.requests),
                number(due_per_s),
                grouped(phase.totals.errors),
                sum(|op| op.unfinished),
                sum(|op| op.unsent),
            ];
            let response = phase.totals.times.of_span(Span::Response);
            cells.extend(times.map(|name| figure(response.at(name), unit)));
            cells
        })
        .collect();
    let each: Vec<(String, f64)> = document
        .phases
        .iter()
        .filter_map(|phase| {
            Some((phase.name.clone(), phase.totals.times.of_span(Span::Response).at("p99").known()?))
        })
        .collect();
    let slowest = each.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let statement = match slowest {
        Some((name, us)) if each.len() > 1 => format!("Slowest phase: {name}, p99 {}", unit.text(*us)),
        _ => "Phases".to_owned(),
    };
    let what = format!(
        "A request belongs to the phase in which it was due. Due per second; response times in {}.",
        unit.name
    );
    format!(
        "<h2>{}</h2>\n{}<p class=\"how\">{}</p>\n",
        escaped(&statement),
        table(&names, &rows),
        escaped(&what)
    )
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
    // Wait and lag of what got no answer are no picture of answers.
    let picture = curve::draw("curve", &drawn, unit, &statement).filter(|_| document.totals.completed > 0);
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
    if drawn.lines.iter().any(|line| line.is_open && ["wait", "lag"].contains(&line.class)) {
        how += " Beyond the triangles of wait and lag it was not even sent.";
    }
    if drawn.is_doubtful {
        how += " Striped edge: a part of these times was added by pummel itself.";
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
    .text()
}

/// The heat map of the service times, which is opened on demand; nothing where there is none.
fn service_over_time(document: &Document, unit: Unit, length_s: f64) -> String {
    let columns = heat::merged(&series::service_heat_of(document), SERVICE_COLUMNS_MAX);
    let title = "Service times over time";
    let picture = heat::draw("heat-service", &columns, length_s, unit, title);
    let figure = picture.map(|picture| {
        format!(
            "<figure class=\"wide\" data-axis=\"time\">\n{picture}<div class=\"readout\" aria-live=\"polite\"></div>\n</figure>\n"
        )
    });
    figure.map_or(String::new(), |figure| details("Service times instead", &figure))
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
    let is_complete = document.status == Status::Complete;
    let planned_s = series::planned_s(document).filter(|_| !is_complete).unwrap_or(0.0);
    let asked = series::asked_rate(document);
    let phases: Vec<(f64, String)> =
        document.phases.iter().map(|phase| (phase.at_s, phase.name.clone())).collect();
    let picture = rate::draw("rate", &columns, (length_s, planned_s), asked, &phases, &statement);
    let is_wrong = |column: &RateColumn| column.wrong.iter().any(|(_, count)| *count > 0);
    let has_failed = |column: &RateColumn| column.requests > column.completed;
    let mut how = "How to read it: the thick line is what was completed.".to_owned();
    if asked.is_some() || columns.iter().any(|column| column.asked.is_some()) {
        how += " The dashed line at \u{201c}asked\u{201d} is the rate of the plan.";
        if series::fills_misses(document) {
            how += " Stores of missed keys come on top of it.";
        }
    }
    if columns.iter().any(has_failed) {
        how += " The shaded area above it is what failed.";
    }
    if columns.iter().any(is_wrong) {
        how += " The bars below are errors and requests without an answer.";
    }
    if !phases.is_empty() {
        how += " Dotted lines part the phases.";
    }
    how += " A request is counted in the interval in which it ended.";
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
        how,
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
            let parts = [band.response_us(), band.wait_us, band.lag_us, band.service_us];
            let mean = |us: f64| if band.count == 0 { "-".to_owned() } else { unit.plain(us) };
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

fn how_it_was_run(document: &Document) -> String {
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
        (true, _) => "Names are left out, so that this is not the plan of the same run.",
        (false, true) => "Passwords in the command are masked, so that this is not the plan of the same run.",
        (false, false) => "Saved as a file, this runs again with <code>pummel run --plan FILE</code>.",
    };
    let plan = format!(
        "<p><button type=\"button\" data-copy=\"plan\" hidden=\"hidden\">Copy</button> {again}</p>\n{}",
        plan_text(&document.plan, "plan")
    );
    format!("<h2>How it was run</h2>\n{facts}{}", details("The plan", &plan))
}

/// What the marks of picture 5 mean, as far as it has them.
fn how_to_read_rates(points: &[RatePoint], has_goals: bool, over: Option<&str>) -> String {
    let has = |is: fn(&RatePoint) -> bool| points.iter().any(is);
    let marks = [
        (has_goals, "filled points are runs that met the goals, hollow ones missed them"),
        (has(|point| !point.is_carried), "crosses are rates that were not carried"),
        (has(|point| point.is_generators), "in grey points the generator was the limit"),
        (has(|point| !point.intervals_us.is_empty()), "vertical bars are 95 % intervals within a run"),
    ];
    let marks: Vec<&str> =
        marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words).collect();
    let levels = over.map_or(String::new(), |what| format!(" The numbers above the axis count the {what}."));
    match marks.is_empty() {
        true => format!("How to read it: each point is a run.{levels}"),
        false => format!("How to read it: {}.{levels}", marks.join("; ")),
    }
}

/// p99 of the runs with the lowest and the highest rate that know it, of those that were asked for a rate.
fn statement_of_rates(points: &[RatePoint], unit: Unit) -> Option<String> {
    let p99 =
        |point: &RatePoint| point.response_us.iter().find(|(name, _)| name == "p99").and_then(|(_, us)| *us);
    let mut known: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.asked.is_some())
        .filter_map(|point| Some((point.rate, p99(point)?)))
        .collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (known.first()?, known.last()?);
    (known.len() > 1 && number(first.0) != number(last.0)).then(|| {
        format!(
            "p99 {} at {} completed per second, {} at {}",
            unit.text(first.1),
            number(first.0),
            unit.text(last.1),
            number(last.0)
        )
    })
}

/// The sections of a search or a scan.
pub fn of_curve(document: &CurveDocument) -> String {
    let points: Vec<RatePoint> = document
        .runs
        .iter()
        .map(|run| RatePoint {
            asked: run.asked_rate,
            level: run.level.as_ref().map(|level| (level.of.clone(), level.n)),
            intervals_us: run
                .response_ci_us
                .iter()
                .filter_map(|(name, [low, high])| Some((name.to_owned(), ((*low)?, (*high)?))))
                .collect(),
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
    let over = document.runs.iter().find_map(|run| run.level.as_ref()).map(|level| level.of.as_str());
    let title = match over {
        Some("threads") => "Throughput and response times by number of threads",
        Some(_) => "Throughput and response times by number of connections",
        None => "How response times grow with the rate",
    };
    let statement = statement_of_rates(&points, unit).unwrap_or_else(|| title.to_owned());
    let picture = throughput::draw("throughput", &points, &marks, unit, title);
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| unit.plain(us));
    let rows: Vec<Vec<String>> = document
        .runs
        .iter()
        .map(|run| {
            let asked = match (run.asked_rate, &run.level) {
                (Some(rate), _) => number(rate),
                (None, Some(level)) => format!("{} {}", level.n, level.of),
                (None, None) => "closed loop".to_owned(),
            };
            let rate_ends = run
                .rate_ci
                .map_or(String::new(), |[low, high]| format!(" ({} .. {})", number(low), number(high)));
            let mut cells = vec![asked, format!("{}{rate_ends}", number(run.rate))];
            cells.extend(run.times().into_iter().map(|(name, us)| {
                let ends = run.response_ci_us.get(&name).and_then(|[low, high]| Some(((*low)?, (*high)?)));
                let ends = ends.map_or(String::new(), |(low, high)| {
                    format!(" ({} .. {})", unit.plain(low), unit.plain(high))
                });
                format!("{}{ends}", time(us))
            }));
            cells.push(run.role.clone());
            let carried = if run.carried { "yes" } else { "no" };
            let outcome = run.outcome.headline().map_or_else(String::new, |word| format!(", {word}"));
            cells.push(format!("{carried}{outcome}"));
            cells.push(run.met.map_or("-", |met| if met { "met" } else { "missed" }).to_owned());
            cells.push(run.limit.clone());
            cells
        })
        .collect();
    let mut names = vec!["asked/s", "done/s"];
    names.extend(QUANTILES.map(|(name, _)| name));
    names.extend(["role", "carried", "goal", "limit"]);
    let numbers = table(&names, &rows);
    let search = document.search.as_ref();
    let limit = search
        .and_then(|search| Some((search.low?, search.high?)))
        .filter(|_| search.is_some_and(|search| !search.at_least));
    let limit = limit.map_or(String::new(), |(low, high)| {
        let carried = search.and_then(|search| search.not_carried).map_or("", |_| {
            ", where requests were no longer answered as fast as they were asked; the times would allow more"
        });
        format!("between {} and {} requests per second{carried}", number(low), number(high))
    });
    let at_least = search
        .filter(|search| search.at_least)
        .map_or(String::new(), |_| "the goal was met up to the greatest rate that was tried".to_owned());
    let limited = document.runs.iter().filter(|run| run.limit == "generator").count();
    let generator_limited = match limited {
        0 => String::new(),
        some => format!("was the limit in {some} of {} runs", document.runs.len()),
    };
    let doubtful = document.runs.iter().filter(|run| !run.trust).count();
    let mostly =
        |name: &str| document.runs.iter().filter(|run| run.mostly_lag.iter().any(|one| one == name)).count();
    let names = QUANTILES.iter().map(|(name, _)| *name);
    let doubts = lag_words(document.runs.len(), doubtful, names, mostly).join(" ");
    let why = search.and_then(|search| search.reason.clone()).unwrap_or_default();
    let reason = fields(&[
        ("Reason", document.reason.clone().unwrap_or_default()),
        ("The limit", limit),
        ("At least", at_least),
        ("Why", why),
        ("Generator", generator_limited),
        ("Trust", doubts),
        ("Labels", labels_text(&document.labels)),
    ]);
    let drawn = picture.is_some();
    let framed = Framed {
        statement,
        picture,
        instead: "A picture needs two runs whose times are known.",
        how: how_to_read_rates(&points, !document.goals.is_empty(), over),
        numbers: numbers.clone(),
        axis: "",
    };
    let text = framed.text();
    let sections = if drawn || document.runs.is_empty() {
        format!("{reason}{text}")
    } else {
        format!("{reason}{text}{numbers}")
    };
    sections + &how_a_series_was_run(document)
}

/// The command line and the plan of a series of runs; nothing where its result does not hold them.
fn how_a_series_was_run(document: &CurveDocument) -> String {
    let Some(plan) = &document.plan else { return String::new() };
    let version = format!("{} {}", document.tool.name, document.tool.version);
    let facts = fields(&[
        ("Command", command_line(&document.argv)),
        ("Servers", plan.servers.join(", ")),
        ("Made by", version.trim().to_owned()),
    ]);
    format!(
        "<h2>How it was run</h2>\n{facts}{}",
        details("The plan of the first run", &plan_text(plan, "plan"))
    )
}

/// What the words of pages mean.
fn meanings() -> String {
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
    format!(
        "<h2>What the words mean</h2>\n<p>Of every request, response = wait + lag + service.</p>\n{words}"
    )
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
pub fn footer(version: &str, data: Option<PageData>, kind: DataKind) -> String {
    format!(
        "{}<p class=\"dim\">Measured by pummel {}, drawn by pummel {VERSION}.</p>\n",
        footer_of(data, kind),
        escaped(version)
    )
}

/// What the words mean, and the data of the page.
pub fn footer_of(data: Option<PageData>, kind: DataKind) -> String {
    let link = data.map_or(String::new(), |PageData { base64, missing }| {
        let missing = missing.map_or(String::new(), |words| format!(" ({})", escaped(&words)));
        let (what, reader) = match kind {
            DataKind::Run => ("result", " <code>pummel show</code> also takes this page."),
            DataKind::Series => ("result", " <code>pummel show --format json</code> also takes this page."),
            DataKind::Several => ("result", " <code>pummel show</code> also takes this page."),
            DataKind::Comparison => ("comparison", ""),
        };
        format!(
            "<p class=\"download\"><a download=\"pummel-{what}.json.gz\" {PAGE_DATA}{base64}\">Download the {what}</a> as JSON, \
             packed by gzip{missing}.{reader}</p>\n"
        )
    });
    meanings() + &link
}
