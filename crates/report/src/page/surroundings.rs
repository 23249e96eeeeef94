//! The sections of what stood around the requests: agents, servers, connections, what the servers said, events, the instrument.

use maud::{Markup, html};
use pummel_measure::recorder::Span;
use pummel_measure::words::{counted, was};

use super::axis::{known_time, time};
use super::frame::{Framed, details, fields, section, table};
use super::links::{self, LinkColumn};
use super::members::{self, MemberLine};
use super::servers::{self, ServerFigure, ServerPanels};
use super::svg::in_layouts;
use super::words::figure;
use crate::document::{
    Document, IntervalResult, MemberResult, PartResult, ReadingResult, ServerIntervalResult, ServerResult,
    ServerStatsResult, events_beyond_words,
};
use crate::numbers::{grouped, number};
use crate::view::run::has_intervals;
use crate::words::baseline::baseline_words;
use crate::words::commands::loaded;
use crate::words::unsteady;
use crate::{calibration_words, transmit};

/// Rows of a table of events at most.
const EVENTS_SHOWN: usize = 200;

/// Intervals between readings of a server that are shorter than this share of the longest one are not drawn.
const SHARE_OF_SLICE_MIN: f64 = 0.2;

/// Rows of a table of members at most.
const MEMBERS_SHOWN: usize = 256;

/// The sections on agents, servers and connections, and on events; nothing of what was not there.
pub fn sections(document: &Document, length_s: f64) -> Markup {
    html! {
        (agents(document, length_s))
        (several_servers(document, length_s))
        (connections(document))
        (events(document))
    }
}

/// The slices of the member in this place, from the parts that `of` takes out of an interval.
fn slices_of(
    intervals: &[IntervalResult],
    of: fn(&IntervalResult) -> &[PartResult],
    place: usize,
) -> Vec<(f64, Option<f64>, f64)> {
    let part = |interval: &IntervalResult| {
        let part = of(interval).get(place)?;
        Some((interval.at_s + interval.seconds / 2.0, part.p99_us, part.rate))
    };
    intervals.iter().filter_map(part).collect()
}

/// From where to where p99 of the members reaches, and which of them lie far above the others.
fn statement(what: &str, lines: &[MemberLine]) -> String {
    let known = || lines.iter().filter_map(|line| line.p99_us);
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let outlying = members::outlying(lines);
    let named: Vec<&str> =
        lines.iter().zip(&outlying).filter(|(_, is)| **is).map(|(line, _)| line.name.as_str()).collect();
    let range = match most > 0.0 {
        true if time(least) == time(most) => {
            format!("p99 of {} {what}: {} each", lines.len(), time(most))
        }
        true => format!("p99 of {} {what} from {} to {}", lines.len(), time(least), time(most)),
        false => format!("p99 of {} {what} is not known", lines.len()),
    };
    match named.as_slice() {
        [] => range,
        few if few.len() <= 3 => format!("{range}; far above the others: {}", few.join(", ")),
        many => format!("{range}; {} far above the others", many.len()),
    }
}

/// How to read the picture of members.
fn how_to_read(lines: &[MemberLine]) -> String {
    let is_far = "whose p99 lies above the median of the others by more than twice their median distance from it, and by a tenth at least, where \
                  there are four or more";
    match members::has_panels(lines) {
        true => format!(
            "How to read it: the slowest come first, all on the same axes. A frame is drawn around one {is_far}."
        ),
        false => format!("How to read it: a dot is p99 of one of them. One {is_far}, has another colour."),
    }
}

fn agents(document: &Document, length_s: f64) -> Markup {
    let Some(agents) = document.agents.as_ref().filter(|agents| agents.members.len() > 1) else {
        return Markup::default();
    };
    let p99 = |member: &MemberResult| member.times.of_span(Span::Response).at("p99");
    let lines: Vec<MemberLine> = agents
        .members
        .iter()
        .enumerate()
        .map(|(place, member)| MemberLine {
            name: member.name.clone(),
            p99_us: p99(member).known(),
            rate: member.rate,
            slices: slices_of(&document.intervals, |interval| &interval.agents, place),
        })
        .collect();
    let rows: Vec<Vec<String>> = agents
        .members
        .iter()
        .take(MEMBERS_SHOWN)
        .map(|member| {
            let response = member.times.of_span(Span::Response);
            let quantile = |name: &str| figure(response.at(name));
            let lost = member.lost.as_ref().map_or(String::new(), |lost| {
                let when =
                    lost.at_s.map_or("before the measurement".to_owned(), |at| format!("at {at:.1} s"));
                format!("{} {when}: {}", if lost.left { "left" } else { "lost" }, lost.why)
            });
            vec![
                member.name.clone(),
                grouped(member.clients),
                number(member.rate),
                grouped(member.errors),
                grouped(member.unfinished + member.unsent),
                quantile("p50"),
                quantile("p99"),
                quantile("max"),
                time(member.clock_error_us),
                known_time(member.late_us),
                if member.trust.ok { "yes" } else { "no" }.to_owned(),
                lost,
            ]
        })
        .collect();
    let names = [
        "agent",
        "clients",
        "per second",
        "errors",
        "no answer",
        "p50",
        "p99",
        "max",
        "clock +-",
        "late",
        "believed",
        "",
    ];
    let spread =
        agents.start_spread_us.map_or(String::new(), |us| format!(" They began within {}.", time(us)));
    let error = agents.members.iter().map(|member| member.clock_error_us).fold(0.0, f64::max);
    let lost = if agents.lost > 0 {
        format!(" {} lost or gone before the end.", agents.lost)
    } else {
        String::new()
    };
    Framed {
        statement: statement("agents", &lines),
        picture: in_layouts(|layout| {
            members::draw(layout, "agents", &lines, length_s, "p99 and rate of each agent")
        }),
        instead: "The agents' response times are not known.",
        how: format!("{}{spread} Their clocks are known to {}.{lost}", how_to_read(&lines), time(error)),
        numbers: table(&names, &rows),
        axis: "",
    }
    .markup()
}

fn several_servers(document: &Document, length_s: f64) -> Markup {
    if document.servers.len() < 2 {
        return Markup::default();
    }
    let lines: Vec<MemberLine> = document
        .servers
        .iter()
        .enumerate()
        .map(|(place, server)| MemberLine {
            name: server.address.clone(),
            p99_us: server.service_us.p99,
            rate: server.rate,
            slices: slices_of(&document.intervals, |interval| &interval.servers, place),
        })
        .collect();
    let rows: Vec<Vec<String>> = document
        .servers
        .iter()
        .map(|server| {
            let times = &server.service_us;
            vec![
                server.address.clone(),
                grouped(server.completed),
                number(server.rate),
                grouped(server.failed),
                grouped(server.unanswered),
                known_time(times.p50),
                known_time(times.p90),
                known_time(times.p99),
                known_time(times.p99_9),
            ]
        })
        .collect();
    let names = ["server", "completed", "per second", "errors", "no answer", "p50", "p90", "p99", "p99.9"];
    let more = document.plan.servers.len() - document.servers.len().min(document.plan.servers.len());
    let more = if more > 0 {
        format!(" {} more are not told apart.", counted(more as u64, "server"))
    } else {
        String::new()
    };
    Framed {
        statement: statement("servers", &lines),
        picture: in_layouts(|layout| {
            members::draw(layout, "servers", &lines, length_s, "Service p99 and rate of each server")
        }),
        instead: "No server answered, so there are no times to draw.",
        how: format!("{} Times are service times, within 3 %.{more}", how_to_read(&lines)),
        numbers: table(&names, &rows),
        axis: "",
    }
    .markup()
}

fn connections(document: &Document) -> Markup {
    let all = &document.connections;
    let columns: Vec<LinkColumn> = document
        .intervals
        .iter()
        .filter_map(|interval| {
            let links = interval.connections?;
            Some(LinkColumn {
                at_s: interval.at_s,
                seconds: interval.seconds,
                open: links.open,
                ticks: [links.lost, links.reopened, links.failed, links.begun, links.ended],
            })
        })
        .collect();
    let named = |name: &str, times: &crate::document::TimeFigures| {
        let quantile = |quantile: &str| known_time(times.at(quantile).known());
        vec![name.to_owned(), quantile("p50"), quantile("p90"), quantile("p99"), quantile("max")]
    };
    let mut rows = vec![named("connecting", &all.connect_us)];
    rows.extend(all.handshake_us.iter().map(|times| named("handshake", times)));
    rows.extend(
        all.churn.iter().flat_map(|churn| {
            [named("connecting, measured", &churn.connect_us), named("life", &churn.life_us)]
        }),
    );
    let mut numbers = table(&["", "p50", "p90", "p99", "max"], &rows);
    if !all.servers.is_empty() {
        let rows: Vec<Vec<String>> = all
            .servers
            .iter()
            .map(|server| {
                let p50 = known_time(server.connect_p50_us);
                vec![server.address.clone(), grouped(server.opened), p50]
            })
            .collect();
        numbers = html! { (numbers) (table(&["server", "opened", "connecting p50"], &rows)) };
    }
    let statement = match &all.churn {
        Some(churn) => format!(
            "{} clients came, {} ended, {} at once at most",
            grouped(churn.clients),
            grouped(churn.ended),
            counted(churn.alive_max, "connection")
        ),
        None if all.lost + all.failed == 0
            && all.open == all.asked
            && !columns.iter().any(|column| column.ticks[0] > 0) =>
        {
            let words = format!("{} {} open all the time.", counted(all.open, "connection"), was(all.open));
            return section("Connections", html! { p { (words) } (details("The numbers", numbers)) });
        }
        None => {
            // The load before the measurement has losses of its own, which are not drawn.
            let measured: u64 = columns.iter().map(|column| column.ticks[0]).sum();
            let before = match all.lost.saturating_sub(measured) {
                some @ 1.. if !columns.is_empty() => {
                    format!(" ({} of them before the measurement)", grouped(some))
                }
                _ => String::new(),
            };
            format!(
                "{} of {} connections {} open at the start; {} lost{before}, {} back, {} attempts failed",
                grouped(all.open),
                grouped(all.asked),
                was(all.open),
                grouped(all.lost),
                grouped(all.reconnected),
                grouped(all.failed)
            )
        }
    };
    if columns.is_empty() {
        let why = "In no interval did a connection open or close, or the result is of a version that does not say when.";
        return section(&statement, html! { p { (why) } (details("The numbers", numbers)) });
    }
    let asked = if all.churn.is_some() { 0 } else { all.asked };
    Framed {
        statement,
        picture: in_layouts(|layout| {
            links::draw(layout, "connections", &columns, asked, "Open connections over time")
        }),
        instead: "No connection was asked for.",
        how: format!(
            "How to read it: the steps are connections that were open at the end of each interval; a mark below is an interval in which {}.",
            if all.churn.is_some() {
                "clients came or ended, or connections could not be opened"
            } else {
                "connections were lost, came back or could not be opened"
            }
        ),
        numbers,
        axis: "time",
    }
    .markup()
}

/// A figure of a server over time, from what `of` takes out of an interval.
fn over_time(
    stats: &ServerStatsResult,
    name: &str,
    of: impl Fn(&ServerIntervalResult) -> Option<f64>,
) -> Option<ServerFigure> {
    let point = |interval: &ServerIntervalResult| {
        Some((interval.at_s + interval.seconds / 2.0, of(interval).filter(|value| value.is_finite())?))
    };
    // The last reading lies at the end of the run, maybe milliseconds after the one before it: too short to say a rate.
    let longest_s = stats.intervals.iter().map(|interval| interval.seconds).fold(0.0, f64::max);
    let is_whole = |interval: &&ServerIntervalResult| interval.seconds >= longest_s * SHARE_OF_SLICE_MIN;
    let points: Vec<(f64, f64)> = stats.intervals.iter().filter(is_whole).filter_map(point).collect();
    (!points.is_empty()).then(|| ServerFigure {
        name: name.to_owned(),
        points,
        ours: Vec::new(),
        limit: None,
    })
}

fn panels_of(document: &Document, stats: &ServerStatsResult) -> ServerPanels {
    let per_s = |count: Option<u64>, interval: &ServerIntervalResult| {
        (interval.seconds > 0.0).then_some(count? as f64 / interval.seconds)
    };
    let reading = document
        .evidence
        .iter()
        .flat_map(|evidence| &evidence.servers)
        .find(|server| server.address == stats.address)
        .and_then(|server| server.reading.as_ref());
    let requests =
        over_time(stats, "requests per second", |interval| interval.requests_per_s).map(|figure| {
            let place = document.servers.iter().position(|server| server.address == stats.address);
            let rate = |interval: &IntervalResult| match place {
                Some(place) => interval.servers.get(place).map(|part| part.rate),
                None if document.plan.servers.len() == 1 => Some(interval.rate),
                None => None,
            };
            let ours = document
                .intervals
                .iter()
                .filter_map(|interval| Some((interval.at_s + interval.seconds / 2.0, rate(interval)?)));
            ServerFigure { ours: ours.collect(), ..figure }
        });
    let memory =
        over_time(stats, "memory in use, MiB", |interval| Some(interval.memory_bytes? as f64 / 1_048_576.0));
    let limit = reading.and_then(|reading| reading.memory_limit_bytes).filter(|limit| *limit > 0);
    let memory =
        memory.map(|figure| ServerFigure { limit: limit.map(|bytes| bytes as f64 / 1_048_576.0), ..figure });
    let links = over_time(stats, "connections", |interval| Some(interval.connections? as f64));
    let links = links.map(|figure| ServerFigure {
        limit: reading.and_then(|reading| reading.connections_max).map(|most| most as f64),
        ..figure
    });
    let figures = [
        over_time(stats, "CPU, cores", |interval| {
            (interval.seconds > 0.0).then_some(interval.cpu_s? / interval.seconds)
        }),
        requests,
        over_time(stats, "hits, %", |interval| Some(interval.hit_ratio? * 100.0)),
        over_time(stats, "evictions per second", |interval| per_s(interval.counts.evictions, interval)),
        links,
        memory,
    ];
    ServerPanels { address: stats.address.clone(), figures: figures.into_iter().flatten().collect() }
}

/// What the servers said of themselves: over time where they were asked for it, else their first and last words.
pub fn own_figures(document: &Document, length_s: f64) -> Markup {
    let readings = || document.evidence.iter().flat_map(|evidence| &evidence.servers);
    if document.server_stats.is_empty() && readings().all(|server| server.reading.is_none()) {
        return Markup::default();
    }
    let rows: Vec<Vec<String>> = readings()
        .map(|server| {
            let Some(reading) = &server.reading else {
                let why = server.unread.clone().unwrap_or_default();
                return [vec![server.address.clone(), why], vec!["-".to_owned(); 8]].concat();
            };
            reading_cells(server, reading)
        })
        .collect();
    let names = [
        "server",
        "software",
        "requests",
        "of them ours",
        "CPU, s",
        "CPU/request",
        "CPU/key",
        "evictions",
        "connections",
        "memory in use, MiB",
        "resident, MiB",
    ];
    let numbers = table(&names, &rows);
    if document.server_stats.is_empty() {
        return section(
            "What the servers say of themselves",
            html! {
                (numbers)
                p.how {
                    "Differences of two readings, at the beginning and at the end. With " code { "--server-stats" }
                    " they are asked in every interval, and drawn."
                }
            },
        );
    }
    let panels: Vec<ServerPanels> =
        document.server_stats.iter().map(|stats| panels_of(document, stats)).collect();
    let disturbed: Vec<String> = readings()
        .filter_map(|server| server.reading.as_ref())
        .flat_map(|reading| reading.disturbances.clone())
        .collect();
    let statement = match disturbed.first() {
        Some(first) => format!("The servers say of themselves: {first}"),
        None => "What the servers say of themselves".to_owned(),
    };
    let more = panels.len().saturating_sub(servers::SERVERS_MAX);
    let more = if more > 0 {
        format!(" {} more are not drawn.", counted(more as u64, "server"))
    } else {
        String::new()
    };
    Framed {
        statement,
        picture: in_layouts(|layout| {
            servers::draw(layout, "own", &panels, length_s, "The servers' own figures over time")
        }),
        instead: "No server told a figure that can be drawn.",
        how: format!(
            "How to read it: a line for each server, from the start of the run as in the other pictures over time. Grey: what pummel \
             completed; where the server counts more, other clients load it too. Dashed: the server's limit, where it is near.{more}"
        ),
        numbers,
        axis: "time",
    }
    .markup()
}

fn reading_cells(server: &ServerResult, reading: &ReadingResult) -> Vec<String> {
    let count = |value: Option<u64>| value.map_or("-".to_owned(), grouped);
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let mebibytes =
        |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| number(bytes as f64 / 1_048_576.0));
    vec![
        server.address.clone(),
        format!("{} {}", reading.software, reading.version),
        count(reading.counts.requests),
        count(reading.our_requests),
        figure(reading.cpu_s),
        known_time(reading.cpu_us_per_request),
        known_time(reading.cpu_us_per_key),
        count(reading.counts.evictions),
        count(reading.connections),
        mebibytes(reading.memory_bytes),
        mebibytes(server.resident_bytes.or(reading.resident_bytes)),
    ]
}

fn events(document: &Document) -> Markup {
    if document.events.is_empty() {
        return Markup::default();
    }
    let rows: Vec<Vec<String>> = document
        .events
        .iter()
        .take(EVENTS_SHOWN)
        .map(|event| vec![format!("{:.1}", event.at_s), event.kind.clone(), event.what.clone()])
        .collect();
    let beyond = document.events_beyond + document.events.len().saturating_sub(EVENTS_SHOWN) as u64;
    let table = table(&["at s", "", ""], &rows);
    let content = html! { (table) @if let Some(words) = events_beyond_words(beyond) { p { (words) "." } } };
    let all = counted(document.events.len() as u64 + document.events_beyond, "event");
    details(&format!("What happened: {all}"), content)
}

/// What is known of how the run was made and of the instrument, beside what the plan says.
pub fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let warm_up = document.warmup.as_ref().map(unsteady::warm_up);
    let until = document.until.map(|until| {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let reached = until.half_width.map_or("not known".to_owned(), percent);
        let ended = if until.reached { "reached" } else { "not reached in the longest time" };
        let name = (until.quantile * 1e8).round() / 1e6;
        format!("p{name} within {} asked, {ended} ({reached})", percent(until.asked))
    });
    let load = document.load.as_ref().map(|load| {
        let errors =
            if load.errors > 0 { format!(", {} failed", grouped(load.errors)) } else { String::new() };
        format!("{} in {} s{errors}", loaded(&document.plan, load.stored, load.records), number(load.seconds))
    });
    let detected = document.detected.as_ref().map(|words| format!("found by asking: {words}"));
    let certainty = document.certainty.as_ref().filter(|_| has_intervals(document));
    let windows = certainty.map(|certainty| {
        let level = certainty.level * 100.0;
        format!(
            "{level:.0} % within the run, from {} of {:.1} s ({})",
            counted(certainty.windows as u64, "window"),
            certainty.window_s,
            certainty.method
        )
    });
    vec![
        ("Protocol", detected.unwrap_or_default()),
        ("Stored before", load.unwrap_or_default()),
        ("Keys", document.totals.keys_words().unwrap_or_default()),
        ("Warm-up", warm_up.unwrap_or_default()),
        ("Measured until", until.unwrap_or_default()),
        ("Intervals", windows.unwrap_or_default()),
        ("Instrument", document.calibration.as_ref().map(calibration_words::line).unwrap_or_default()),
        ("Baseline", document.baseline.as_deref().map(baseline_words).unwrap_or_default()),
        ("Departures", document.transmit.as_ref().map(transmit::words).unwrap_or_default()),
        ("Generator", generator(document)),
    ]
}

fn generator(document: &Document) -> String {
    let generator = &document.generator;
    let cpu = generator
        .cpu_us_per_request
        .map_or(String::new(), |us| format!("{} of CPU for each request, ", time(us)));
    let stalled = if generator.stalls > 0 {
        format!(" ({} in all)", time(generator.stalled_s * 1e6))
    } else {
        String::new()
    };
    format!(
        "{cpu}busiest thread busy {:.0} % of the time, {}{stalled}",
        generator.busy_share_max * 100.0,
        counted(generator.stalls, "stall")
    )
}

/// Requests that were checked, those that were wrong, and the first of these.
pub fn verified(document: &Document) -> Markup {
    let verify = &document.verify;
    if verify.failed + verify.stale == 0 {
        return Markup::default();
    }
    let rows: Vec<Vec<String>> =
        verify.first.iter().map(|wrong| vec![wrong.key.clone(), wrong.why.to_string()]).collect();
    let answer = fields(&[
        ("Wrong values", grouped(verify.failed)),
        ("Stale values", grouped(verify.stale)),
        ("Checked", grouped(verify.checked)),
    ]);
    section(
        "Values that were wrong or stale",
        html! {
            (answer)
            @if !rows.is_empty() { (details("The first of them", table(&["key", "why"], &rows))) }
        },
    )
}
