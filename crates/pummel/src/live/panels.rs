//! The parts of the live screen, each drawn into its place.

use std::cmp::Reverse;

use pummel_logic::protocol::Fault;
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::histogram::Sketch;
use pummel_measure::measurement::{Slice, SliceOp};
use pummel_measure::parts::SlicePart;
use pummel_measure::recorder::{Counts, Span};
use pummel_measure::summary::{Figures, QUANTILES, Quantile};
use pummel_measure::words::counted;
use pummel_report::document::{redirects_by_kind, slice_rate};
use pummel_report::numbers::grouped;
use pummel_report::snapshot::{Snapshot, SoFar};

use crate::live::block::known;
use crate::live::canvas::{Canvas, Ink};
use crate::live::choice::Choice;
use crate::live::words::{Glyphs, clock_text, shown, time_words};

/// A rectangle of the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First column of the rectangle.
    pub x: usize,
    /// First row of the rectangle.
    pub top: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl Place {
    fn end(self) -> usize {
        self.x + self.width
    }
}

/// The width of the table of rates, and of its narrow form without the column of the run; the table of times stands beside it.
const RATES_WIDTH: usize = 30;
const RATES_WIDTH_NARROW: usize = 18;

/// The least width at which the table of times has room for a column beside that of rates with both of its columns.
const WIDE: usize = 48;

/// Columns that the picture of times leaves to its scale.
const SCALE_WIDTH: usize = 10;

/// Cells of a sketch in each row of the picture: half a doubling, or more of them where the times reach over many rows.
const CELLS_PER_ROW: [usize; 4] = [4, 8, 16, 32];

/// The place of the chosen operation among those of the run, the one that most requests asked first.
fn chosen(so_far: &SoFar, choice: Choice) -> Option<&(String, Counts, [Figures; Span::COUNT])> {
    let mut ops: Vec<_> = so_far.ops.iter().collect();
    ops.sort_by_key(|(_, counts, _)| Reverse(counts.requests()));
    ops.get(choice.op % ops.len().max(1)).copied()
}

/// The operation with a word in an interval.
fn op_of<'a>(slice: &'a Slice, so_far: &SoFar, word: &str) -> Option<&'a SliceOp> {
    // Operations of the run and of an interval have one order, but an interval may lack some.
    let place = so_far.ops.iter().position(|(name, ..)| name == word)?;
    let mut found = slice.ops.iter();
    if slice.ops.len() == so_far.ops.len() {
        return found.nth(place).map(|(_, op)| op.as_ref());
    }
    found.find(|(verb, _)| verb.name() == word).map(|(_, op)| op.as_ref())
}

/// A row of the table of rates: its name, the last interval, the run, and whether a reader has to look there.
struct RateRow {
    name: &'static str,
    now: String,
    run: String,
    is_abnormal: bool,
}

impl RateRow {
    fn new(name: &'static str, now: impl Into<String>, run: impl Into<String>) -> RateRow {
        RateRow { name, now: now.into(), run: run.into(), is_abnormal: false }
    }

    /// A row of counts that are 0 where all is well.
    fn of_counts(name: &'static str, now: u64, run: u64) -> RateRow {
        RateRow { is_abnormal: run > 0, ..RateRow::new(name, grouped(now), grouped(run)) }
    }
}

/// The rows of the table of rates: the last interval, and the run so far.
fn rate_rows(snapshot: &Snapshot, slice: &Slice, so_far: &SoFar) -> Vec<RateRow> {
    let (now, run) = (slice.counts(), &so_far.counts);
    let run_s = seconds(so_far.measured_ns);
    let of_run = match run_s > 0.0 {
        true => grouped((run.completed as f64 / run_s).round() as u64),
        false => String::new(),
    };
    let hits = |counts: &Counts| match counts.hits + counts.misses {
        0 => String::new(),
        keys => format!("{:.1}", counts.hits as f64 / keys as f64 * 100.0),
    };
    let behind = snapshot.backlog.now().map(|point| RateRow {
        is_abnormal: point.is_queue,
        // Of a state the run has no sum: it has the greatest.
        ..RateRow::new(
            "behind",
            grouped(point.behind),
            grouped(snapshot.backlog.most().map_or(point.behind, |most| most.behind.max(point.behind))),
        )
    });
    let timeouts = |counts: &Counts| counts.errors(Fault::Timeout);
    let errors = |counts: &Counts| counts.failed() - timeouts(counts);
    [
        Some(RateRow::new("", "now", "run")),
        Some(RateRow::new("req/s", grouped(slice_rate(slice).round() as u64), of_run)),
        behind,
        Some(RateRow::of_counts("errors", errors(&now), errors(run))),
        Some(RateRow::of_counts("timeouts", timeouts(&now), timeouts(run))),
        Some(RateRow::new("hit %", hits(&now), hits(run))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Rates of the last interval and of the run, and beside them the quantiles of one operation.
pub fn rates_and_times(canvas: &mut Canvas, snapshot: &Snapshot, choice: Choice, place: Place) {
    let (Some(slice), Some(so_far)) = (snapshot.recent.back(), &snapshot.so_far) else { return };
    let is_wide = place.width >= WIDE;
    for (row, of) in rate_rows(snapshot, slice, so_far).iter().enumerate().take(place.height) {
        let ink = if row == 0 {
            Ink::Dim
        } else if of.is_abnormal {
            Ink::Wait
        } else {
            Ink::Plain
        };
        canvas.put(place.x, place.top + row, of.name, Ink::Plain);
        canvas.put_right(place.x + 17, place.top + row, &of.now, ink);
        if is_wide {
            canvas.put_right(place.x + 27, place.top + row, &of.run, ink);
        }
    }
    let width = if is_wide { RATES_WIDTH } else { RATES_WIDTH_NARROW };
    let beside = Place { x: place.x + width, width: place.width.saturating_sub(width), ..place };
    times(canvas, snapshot, choice, beside);
}

/// The quantiles of one operation: response now and in the run, and where there is room service, wait, lag and reaction of
/// the run.
fn times(canvas: &mut Canvas, snapshot: &Snapshot, choice: Choice, place: Place) {
    let (Some(slice), Some(so_far)) = (snapshot.recent.back(), &snapshot.so_far) else { return };
    let Some((word, _, run)) = chosen(so_far, choice) else { return };
    let now = op_of(slice, so_far, word);
    let shown = |quantile: Quantile| match quantile {
        Quantile::Known(ns) => time_words(ns),
        Quantile::Above(ns) => format!("> {}", time_words(ns)),
        Quantile::Absent => String::new(),
    };
    let columns: [(&str, Span, bool, Ink); 7] = [
        ("now", Span::Response, true, Ink::Bold),
        ("run", Span::Response, false, Ink::Plain),
        ("serv. now", Span::Service, true, Ink::Service),
        ("serv. run", Span::Service, false, Ink::Service),
        ("wait run", Span::Wait, false, Ink::Wait),
        ("lag run", Span::Lag, false, Ink::Lag),
        ("react. run", Span::Reaction, false, Ink::Reaction),
    ];
    let names = ["p50", "p90", "p99", "p99.9"];
    let rows = names.iter().enumerate().take(place.height.saturating_sub(1));
    rows.clone().for_each(|(row, name)| _ = canvas.put(place.x, place.top + 1 + row, name, Ink::Plain));
    if place.height > 5 {
        canvas.put(place.x, place.top + 5, "max", Ink::Plain);
    }
    canvas.put(place.x, place.top, &word.chars().take(6).collect::<String>(), Ink::Bold);
    let mut end = place.x + 18;
    for (heading, span, is_now, ink) in columns {
        if end > place.end() {
            return;
        }
        canvas.put_right(end, place.top, heading, Ink::Dim);
        let figures =
            if is_now { now.map(|op| &op.figures[span as usize]) } else { Some(&run[span as usize]) };
        if let Some(figures) = figures {
            for (row, name) in rows.clone() {
                let at = QUANTILES.iter().position(|(known, _)| known == name).unwrap_or(0);
                canvas.put_right(end, place.top + 1 + row, &shown(figures.quantiles[at]), ink);
            }
            if place.height > 5 {
                canvas.put_right(end, place.top + 5, &shown(figures.max), ink);
            }
        }
        end += 11;
    }
}

/// A picture of the times of the latest intervals: a column for each, a row for each half of a doubling or more, and ink by the share of the
/// requests of the interval.
pub fn heat(canvas: &mut Canvas, snapshot: &Snapshot, choice: Choice, place: Place, glyphs: Glyphs) {
    let span = if choice.shows_service { Span::Service } else { Span::Response };
    let columns = place.width.saturating_sub(SCALE_WIDTH);
    let skipped = snapshot.recent.len().saturating_sub(columns);
    let shown: Vec<_> = snapshot.recent.iter().skip(skipped).collect();
    let last = counted(shown.len() as u64, "interval");
    let heading = format!("{}, all operations, last {last}", span.name());
    canvas.heading((place.x, place.end()), place.top, &heading, "");
    let rows = place.height.saturating_sub(1);
    if rows == 0 {
        return;
    }
    let cells: Vec<Vec<(usize, u64)>> = shown.iter().map(|slice| cells_of(slice, span)).collect();
    let all = cells.iter().flatten().map(|(cell, _)| *cell);
    let (Some(low), Some(high)) = (all.clone().min(), all.max()) else { return };
    let fits = |per_row: &usize| high / per_row - low / per_row < rows;
    let per_row = CELLS_PER_ROW.into_iter().find(fits).unwrap_or(32);
    let (low, top) = (low / per_row, high / per_row);
    for row in 0..rows.min(top - low + 1) {
        let y = place.top + 1 + row;
        let bound = Sketch::lowest_of((top - row) * per_row);
        canvas.put_right(place.x + SCALE_WIDTH - 2, y, &time_words(bound), Ink::Dim);
        canvas.put(place.x + SCALE_WIDTH - 1, y, "|", Ink::Dim);
    }
    for (column, counts) in cells.iter().enumerate() {
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        let mut by_row = vec![0u64; rows];
        for (cell, count) in counts {
            // What is below the lowest row is drawn into that.
            by_row[(top - cell / per_row).min(rows.saturating_sub(1))] += count;
        }
        for (row, count) in by_row.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let share = count as f64 / total as f64;
            // A step for each factor of about two, from one in five hundred on.
            let step = (9.0 + share.log2()).clamp(0.0, 9.0) as u8;
            let levels = glyphs.levels();
            let mark = levels[usize::from(step) * (levels.len() - 1) / 9];
            canvas.put(
                place.x + SCALE_WIDTH + column,
                place.top + 1 + row,
                &mark.to_string(),
                Ink::Heat(step),
            );
        }
    }
}

/// The times of an interval: the cells of its sketch that are not empty.
fn cells_of(slice: &Slice, span: Span) -> Vec<(usize, u64)> {
    let Some(sketch) = &slice.sketch else { return Vec::new() };
    let times = if span == Span::Service { &sketch.service } else { &sketch.response };
    times.cells().map(|(lowest, _, count)| (Sketch::cell_of(lowest), count)).collect()
}

/// Rates that differ by less than this share of the greatest do not fill the height of their line.
const STEADY_SHARE: f64 = 0.1;

/// The latest values that have room in a chart of this width.
fn latest<T>(values: impl ExactSizeIterator<Item = T>, width: usize) -> impl Iterator<Item = T> {
    let skipped = values.len().saturating_sub(width.saturating_sub(SCALE_WIDTH));
    values.skip(skipped)
}

/// A chart of one line: its heading, the label of its scale, and its picture.
fn chart(canvas: &mut Canvas, place: Place, heading: &str, scale: &str, picture: &str) {
    canvas.heading((place.x, place.end()), place.top, heading, "");
    canvas.put_right(place.x + SCALE_WIDTH - 2, place.top + 1, scale, Ink::Dim);
    canvas.put(place.x + SCALE_WIDTH - 1, place.top + 1, "|", Ink::Dim);
    canvas.put(place.x + SCALE_WIDTH, place.top + 1, picture, Ink::Plain);
}

/// The least and the greatest of some values; `None` where there are none.
fn ends(values: &[Option<f64>]) -> Option<(f64, f64)> {
    let mut known = values.iter().flatten();
    let first = *known.next()?;
    Some(known.fold((first, first), |(low, high), value| (low.min(*value), high.max(*value))))
}

/// The rate of the latest intervals as a line, from the least to the greatest of them, which the heading names.
pub fn rate_line(canvas: &mut Canvas, snapshot: &Snapshot, place: Place, glyphs: Glyphs) {
    let rates = latest(snapshot.recent.iter(), place.width);
    let rates: Vec<Option<f64>> = rates.map(|slice| Some(slice_rate(slice))).collect();
    let (low, high) = ends(&rates).unwrap_or_default();
    let [least, greatest] = [low, high].map(|rate| grouped(rate.round() as u64));
    let heading = match least != greatest {
        true => format!("req/s, {least} to {greatest}"),
        false => "req/s".to_owned(),
    };
    let picture = glyphs.sparkline(&rates, high * STEADY_SHARE);
    chart(canvas, place, &heading, &greatest, &picture);
}

/// The backlog of the latest intervals as a line, from nothing to the greatest of them.
pub fn behind_line(canvas: &mut Canvas, snapshot: &Snapshot, place: Place, glyphs: Glyphs) {
    let points = latest(snapshot.backlog.points().iter(), place.width);
    let behind: Vec<Option<f64>> = points.map(|point| Some(point.behind as f64)).collect();
    let (_, high) = ends(&behind).unwrap_or_default();
    let greatest = grouped(high as u64);
    let heading = format!("behind, up to {greatest}");
    let picture = glyphs.sparkline_from(0.0, &behind);
    chart(canvas, place, &heading, &greatest, &picture);
}

/// The CPU time of the servers in the latest intervals as a line, from nothing to the greatest of them.
pub fn cores_line(canvas: &mut Canvas, snapshot: &Snapshot, place: Place, glyphs: Glyphs) {
    let cores: Vec<Option<f64>> = latest(snapshot.server_cores.iter().copied(), place.width).collect();
    let (_, high) = ends(&cores).unwrap_or_default();
    let several = snapshot.server_intervals.iter().flatten().count() > 1;
    let heading = format!("{} CPU, up to {high:.2} cores", if several { "servers'" } else { "server" });
    let picture = glyphs.sparkline_from(0.0, &cores);
    chart(canvas, place, &heading, &format!("{high:.2}"), &picture);
}

/// The generator and its connections, and the last message, where no panel of messages stands beside it.
pub fn generator_and_message(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    let used = generator(canvas, snapshot, place);
    if used + 1 < place.height {
        let last = snapshot.messages.back();
        let words =
            last.map_or_else(|| "no messages".to_owned(), |(at_s, words)| message(*at_s, words, place.width));
        canvas.put(place.x, place.top + 1 + used, &words, Ink::Plain);
    }
}

/// The generator and its connections. Returns the number of lines below the heading.
pub fn generator(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) -> usize {
    canvas.heading((place.x, place.end()), place.top, "pummel", "");
    let now =
        snapshot.recent.back().and_then(|slice| slice.ops.values().max_by_key(|op| op.counts.requests()));
    let time =
        |span| now.and_then(|op| known(op, span, "p99")).map_or_else(|| "unknown".to_owned(), time_words);
    let busy =
        snapshot.busy_share().map_or_else(|| "unknown".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let connections = snapshot.connections;
    let open = match (connections.open, connections.asked) {
        (Some(open), Some(asked)) => format!("{} of {}", grouped(open), grouped(asked)),
        (None, Some(asked)) => format!("{} asked for", grouped(asked)),
        _ => "unknown".to_owned(),
    };
    let stalls = grouped(snapshot.run_turns.stalls);
    let goals = snapshot.plan.iter().flat_map(|plan| &plan.goals);
    let goals = goals.map(|goal| {
        let reached = snapshot.so_far.as_ref().and_then(|so_far| {
            let place = QUANTILES.iter().position(|(_, quantile)| (quantile - goal.quantile).abs() < 1e-9)?;
            so_far.figures[Span::Response as usize].quantiles[place].known()
        });
        let word = match reached {
            Some(ns) if ns <= goal.limit_ns => "met so far",
            Some(_) => "MISSED so far",
            None => "not known",
        };
        format!("goal {goal} {word}")
    });
    let of_connections = format!(
        "connections {open}   lost {}   reopened {}{}",
        grouped(connections.of_run().0),
        grouped(connections.of_run().1),
        redirects_words(snapshot)
    );
    // Beside the connections where there is room.
    let of_servers = servers_words(snapshot);
    let together = of_servers.as_ref().map(|words| format!("{of_connections}   {words}"));
    let mut lines = vec![format!(
        "busy {busy}  lag p99 {}  reaction p99 {}  stalls {stalls}",
        time(Span::Lag),
        time(Span::Reaction)
    )];
    match together.filter(|line| line.chars().count() <= place.width) {
        Some(line) => lines.push(line),
        None => lines.extend([Some(of_connections), of_servers].into_iter().flatten()),
    }
    lines.extend(goals);
    for (row, line) in lines.iter().enumerate().take(place.height.saturating_sub(1)) {
        canvas.put(place.x, place.top + 1 + row, &shown(line, place.width), Ink::Plain);
    }
    lines.len()
}

/// The replies in the last interval that redirected requests of a cluster or made them wait; nothing where there were none.
fn redirects_words(snapshot: &Snapshot) -> String {
    let Some(slice) = snapshot.recent.back() else { return String::new() };
    let replies: u64 = redirects_by_kind(&slice.counters.redirects).into_iter().map(|(_, count)| count).sum();
    let length_s = slice_seconds(snapshot);
    if replies == 0 || length_s <= 0.0 {
        return String::new();
    }
    format!("   redirects {}/s", grouped((replies as f64 / length_s).round() as u64))
}

/// The servers' statistics of their last intervals; `None` if they are not asked within the measured phases.
fn servers_words(snapshot: &Snapshot) -> Option<String> {
    let told: Vec<_> = snapshot.server_intervals.iter().flatten().collect();
    let cores: Vec<f64> = told.iter().filter_map(|interval| interval.cores()).collect();
    let evictions = told.iter().filter_map(|interval| interval.counts.evictions).reduce(u64::saturating_add);
    let cpu = match cores.as_slice() {
        [] => None,
        [one] => Some(format!("server CPU {one:.2} cores")),
        several => Some(format!(
            "servers' CPU {:.2} cores, most {:.2}",
            several.iter().sum::<f64>(),
            several.iter().fold(0.0_f64, |most, cores| most.max(*cores))
        )),
    };
    let evictions = evictions.map(|count| format!("evictions {}", grouped(count)));
    let words: Vec<String> = cpu.into_iter().chain(evictions).collect();
    (!words.is_empty()).then(|| words.join("   "))
}

/// The requests of the run that have no good answer, by kind.
pub fn errors(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    let heading = match &snapshot.so_far {
        Some(so_far) if so_far.is_failing() => "errors: FAILED so far",
        _ => "errors",
    };
    canvas.heading((place.x, place.end()), place.top, heading, "");
    let counts = snapshot.so_far.as_ref().map(|so_far| so_far.counts).unwrap_or_default();
    let kinds = Fault::ALL.into_iter().map(|fault| (fault.name(), counts.errors(fault)));
    let kinds = kinds.chain([("unfinished", counts.unfinished), ("unsent", counts.unsent)]);
    let seen: Vec<String> = kinds
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{kind:<12}{:>14}", grouped(count)))
        .collect();
    if seen.is_empty() {
        canvas.put(place.x, place.top + 1, "none", Ink::Good);
    }
    for (row, line) in seen.iter().enumerate().take(place.height.saturating_sub(1)) {
        canvas.put(place.x, place.top + 1 + row, line, Ink::Wait);
    }
}

/// The keys that reads of the run missed, by cause, as many causes in a line as have room.
pub fn misses(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    canvas.heading((place.x, place.end()), place.top, "misses by cause", "");
    let cache = snapshot.so_far.as_ref().map(|so_far| so_far.counts.cache).unwrap_or_default();
    let all = cache.misses().max(1) as f64;
    let (mut x, mut y) = (place.x, place.top + 1);
    for (cause, count) in cache.by_cause().into_iter().filter(|(_, count)| *count > 0) {
        let share = count as f64 / all * 100.0;
        let words = format!("{} {} ({share:.0} %)", cause.replace('_', " "), grouped(count));
        if x > place.x && x + words.chars().count() > place.end() {
            (x, y) = (place.x, y + 1);
        }
        if y >= place.top + place.height {
            return;
        }
        x = canvas.put(x, y, &shown(&words, place.width), Ink::Plain) + 3;
    }
}

/// One row of a table of agents or servers.
struct PartRow {
    name: String,
    /// The row's share of the last interval; `None` if it is not known by itself.
    part: Option<SlicePart>,
    /// Cells of the columns that only this kind of row has.
    own: Vec<String>,
    is_gone: bool,
}

/// A table of agents or servers.
struct PartTable {
    heading: String,
    /// The titles and widths of the columns that this kind has behind those of [`PART_COLUMNS`].
    own_columns: &'static [(&'static str, usize)],
    rows: Vec<PartRow>,
}

/// Columns of the figures of a table of agents or servers.
const PART_COLUMNS: [(&str, usize); 4] = [("req/s", 9), ("failed", 7), ("p50", 8), ("p99", 8)];

/// Columns of agents alone.
const AGENT_COLUMNS: [(&str, usize); 3] = [("lag p99", 8), ("busy", 6), ("clock", 10)];

/// Columns of servers alone, where they are asked for their counters.
const SERVER_COLUMNS: [(&str, usize); 3] = [("CPU", 6), ("hit %", 6), ("evicted", 9)];

/// Bounds of the width of names in a table of agents or servers, next to the columns that only this kind has.
const NAME_WIDTHS: (usize, usize) = (8, 22);

/// The order of badness of a part: its 99th percentile, or more than all others if that falls among requests without an
/// answer; `None` without requests.
fn worst_ns(part: SlicePart) -> Option<Nanos> {
    let is_empty = part.completed + part.failed == 0;
    part.p99_ns.or((!is_empty).then_some(Nanos::MAX))
}

/// Draws the rows that have room, the worst first: lost ones, then by the 99th percentile. Columns that only this kind
/// has are left out, the last one first, if they would take the room of the names.
fn parts(canvas: &mut Canvas, place: Place, table: PartTable, length_s: f64) {
    let PartTable { heading, own_columns, mut rows } = table;
    canvas.heading((place.x, place.end()), place.top, &heading, "");
    let mut columns: Vec<(&str, usize)> = PART_COLUMNS.iter().chain(own_columns).copied().collect();
    let longest = rows.iter().map(|row| row.name.chars().count() + 1).max().unwrap_or(0);
    let name_least = longest.clamp(NAME_WIDTHS.0, NAME_WIDTHS.1);
    let width_of = |columns: &[(&str, usize)]| columns.iter().map(|(_, width)| width).sum::<usize>();
    while columns.len() > PART_COLUMNS.len() && width_of(&columns) + name_least > place.width {
        columns.pop();
    }
    let room = place.height.saturating_sub(2);
    let name_width = place.width.saturating_sub(width_of(&columns)).max(8);
    rows.sort_by_key(|row| Reverse((row.is_gone, row.part.and_then(worst_ns))));
    let row_of = |canvas: &mut Canvas, y: usize, name: &str, cells: &[String], ink: Ink| {
        canvas.put(place.x, y, &shown(name, name_width.saturating_sub(1)), ink);
        let mut end = place.x + name_width;
        for ((_, width), cell) in columns.iter().zip(cells) {
            end += width;
            if end <= place.end() {
                canvas.put_right(end, y, cell, ink);
            }
        }
    };
    if place.height > 1 {
        let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        row_of(canvas, place.top + 1, "", &titles, Ink::Dim);
    }
    for (index, row) in rows.into_iter().enumerate().take(room) {
        let figures = row.part.map_or_else(<[String; 4]>::default, |part| {
            let rate = if length_s > 0.0 { part.completed as f64 / length_s } else { 0.0 };
            [
                grouped(rate.round() as u64),
                grouped(part.failed),
                known_time(part.p50_ns),
                known_time(part.p99_ns),
            ]
        });
        let cells: Vec<String> = figures.into_iter().chain(row.own).collect();
        let ink = if row.is_gone { Ink::Wait } else { Ink::Plain };
        row_of(canvas, place.top + 2 + index, &row.name, &cells, ink);
    }
}

fn known_time(ns: Option<Nanos>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), time_words)
}

/// The processes of a distributed run in the last interval: rate, failures, response, lag, how busy their workers were, the error of
/// the clock, and which are lost.
pub fn agents(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    let slice = snapshot.recent.back();
    let length_ns = slice.map_or(0, |slice| slice.length_ns());
    let rows = snapshot.members.iter().enumerate().map(|(number, member)| {
        let part = slice.and_then(|slice| slice.members.get(number)).copied();
        let clock = match member.is_lost {
            true => "LOST".to_owned(),
            false => format!("+-{}", time_words(member.clock_error_ns)),
        };
        let [lag, busy] = part.map_or_else(Default::default, |part| {
            let time_ns = length_ns as f64 * f64::from(member.threads);
            let busy = (time_ns > 0.0).then(|| format!("{:.0} %", part.busy_ns as f64 / time_ns * 100.0));
            [known_time(part.lag_p99_ns), busy.unwrap_or_default()]
        });
        PartRow { name: member.name.clone(), part, own: vec![lag, busy, clock], is_gone: member.is_lost }
    });
    let lost = snapshot.members.iter().filter(|member| member.is_lost).count();
    let heading = match lost {
        0 => format!("agents, response now: {}", snapshot.members.len()),
        lost => format!("agents, response now: {}, {lost} LOST", snapshot.members.len()),
    };
    let table = PartTable { heading, own_columns: &AGENT_COLUMNS, rows: rows.collect() };
    parts(canvas, place, table, slice_seconds(snapshot));
}

/// Each of several servers in the last interval: rate, failures, service, and, if it is asked for its counters within
/// the measured phases, its CPU time in cores, the share of keys that it found, and the items that it evicted.
pub fn servers(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    let (slice, plan) = (snapshot.recent.back(), snapshot.plan.as_ref());
    let names = plan.map_or(&[][..], |plan| &plan.server_names);
    let told = if plan.is_some_and(|plan| plan.are_asked) { &snapshot.server_intervals[..] } else { &[] };
    let rows = names.iter().enumerate().map(|(number, name)| {
        let told = told.get(number).and_then(Option::as_ref);
        let own = told.map(|interval| {
            let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
            vec![
                known(interval.cores().map(|cores| format!("{cores:.2}"))),
                // A server that was asked for no key has found no share of them.
                interval.hit_ratio().map(|share| format!("{:.1}", share * 100.0)).unwrap_or_default(),
                known(interval.counts.evictions.map(grouped)),
            ]
        });
        PartRow {
            name: name.clone(),
            part: slice.and_then(|slice| slice.servers.get(number)).copied(),
            // One that told nothing in time.
            own: own.unwrap_or_else(|| vec!["-".to_owned(); SERVER_COLUMNS.len()]),
            is_gone: false,
        }
    });
    let own_columns = if told.is_empty() { &[][..] } else { &SERVER_COLUMNS[..] };
    let heading = format!("servers, service now: {}", names.len());
    parts(canvas, place, PartTable { heading, own_columns, rows: rows.collect() }, slice_seconds(snapshot));
}

fn slice_seconds(snapshot: &Snapshot) -> f64 {
    snapshot.recent.back().map_or(0.0, |slice| seconds(slice.length_ns()))
}

/// The latest messages, the newest last.
pub fn messages(canvas: &mut Canvas, snapshot: &Snapshot, place: Place) {
    canvas.heading((place.x, place.end()), place.top, "messages", "");
    let rows = place.height.saturating_sub(1);
    let skipped = snapshot.messages.len().saturating_sub(rows);
    for (row, (at_s, words)) in snapshot.messages.iter().skip(skipped).enumerate() {
        canvas.put(place.x, place.top + 1 + row, &message(*at_s, words, place.width), Ink::Plain);
    }
    if snapshot.messages.is_empty() && rows > 0 {
        canvas.put(place.x, place.top + 1, "none", Ink::Good);
    }
}

fn message(at_s: f64, words: &str, width: usize) -> String {
    let at = clock_text((at_s * 1e9) as Nanos);
    format!("{at}  {}", shown(words, width.saturating_sub(at.len() + 2)))
}
