//! The whole screen of the live view: a pure function of a snapshot, of the viewer's choices, and of the size.

use pummel_logic::time::Nanos;
use pummel_report::snapshot::Snapshot;

use crate::live::block;
use crate::live::canvas::{Canvas, Ink};
use crate::live::choice::Choice;
use crate::live::panels::{self, Place};
use crate::live::verdict;
use crate::live::words::{Glyphs, bar, clock_text, elapsed_ns, pace_words, share_done, shown, stage_word};

/// The size from which on the whole screen is shown.
pub const FULL: (usize, usize) = (80, 24);

/// Below this size the block of four lines is shown.
pub const LEAST: (usize, usize) = (40, 8);

/// The size from which on everything is shown at once.
pub const LARGE: (usize, usize) = (120, 40);

/// The line of the verdict, below the load and its progress.
const VERDICT_ROW: usize = 2;

/// The first row of the tables.
const TABLES_TOP: usize = VERDICT_ROW + 1;

/// Intervals for which a screen shows that there was a backlog.
const BEHIND_SHOWN: usize = 10;

/// Draws the state at this time of the monotonic clock.
pub fn draw(snapshot: &Snapshot, choice: Choice, now: Nanos, size: (usize, usize), glyphs: Glyphs) -> Canvas {
    let (width, height) = size;
    let mut canvas = Canvas::new(width, height);
    if width < LEAST.0 || height < LEAST.1 {
        for (y, line) in block::lines(snapshot, now, glyphs).iter().enumerate() {
            canvas.put(0, y, line, Ink::Plain);
        }
        return canvas;
    }
    if choice.shows_help {
        help(&mut canvas, snapshot.is_steerable);
        return canvas;
    }
    head(&mut canvas, snapshot, now);
    verdict::draw(&mut canvas, snapshot, VERDICT_ROW);
    keys(&mut canvas, choice, snapshot.is_steerable);
    let below = height - 1;
    if width >= LARGE.0 && height >= LARGE.1 {
        large(&mut canvas, snapshot, choice, below, glyphs);
    } else {
        small(&mut canvas, snapshot, choice, below, glyphs);
    }
    canvas
}

/// The header: the load, and the progress of the run.
fn head(canvas: &mut Canvas, snapshot: &Snapshot, now: Nanos) {
    let width = canvas.width();
    let Some(plan) = &snapshot.plan else {
        canvas.put(0, 0, "pummel", Ink::Bold);
        return;
    };
    let servers = match plan.servers.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    };
    let total: f64 = plan.mix.iter().map(|(_, weight)| weight).sum();
    let mix = plan.mix.iter().map(|(op, weight)| format!("{op} {:.0}", weight / total * 100.0));
    let mix = mix.collect::<Vec<_>>().join(" ");
    let length = plan.measured_ns.map_or_else(String::new, |ns| format!(" / {}", clock_text(ns)));
    let clock = format!("{}{length}", clock_text(elapsed_ns(snapshot, now)));
    let room = width.saturating_sub(clock.len() + 1);
    // What is asked for now is never cut short for what never changes.
    let pace = pace_words(snapshot, plan, now);
    let left = room.saturating_sub(8 + 3 + pace.chars().count());
    let words = match shown(&format!("{}   {mix}", shown(&servers, 30)), left) {
        target if left > 2 => format!("{target}   {pace}"),
        _ => pace,
    };
    canvas.put(0, 0, "pummel", Ink::Bold);
    canvas.put(8, 0, &shown(&words, room.saturating_sub(8)), Ink::Plain);
    canvas.put_right(width, 0, &clock, Ink::Bold);
    let stage = stage_word(snapshot.stage);
    match share_done(snapshot, now) {
        Some(share) => {
            let percent = format!(" {:3.0} %  {stage}", share * 100.0);
            let end = canvas.put(0, 1, &bar(share, width.saturating_sub(22)), Ink::Plain);
            canvas.put(end, 1, &percent, Ink::Plain);
        }
        None => _ = canvas.put(0, 1, stage, Ink::Plain),
    }
}

fn keys(canvas: &mut Canvas, choice: Choice, is_steerable: bool) {
    let y = canvas.height() - 1;
    let span = if choice.shows_service { "response" } else { "service" };
    let frozen = if choice.is_frozen { "space go on   " } else { "space freeze   " };
    let end = canvas.put(0, y, "q end and report   ", Ink::Dim);
    let end = canvas.put(end, y, frozen, if choice.is_frozen { Ink::Reverse } else { Ink::Dim });
    let steering = if is_steerable { "p pause   + - * / rate   " } else { "" };
    let all = format!("s {span}   o op   tab panel   {steering}? all keys");
    // Where they have no room, the help has them.
    let short = format!("{steering}? all keys");
    let words = if end + all.len() <= canvas.width() { all } else { short };
    canvas.put(end, y, &words, Ink::Dim);
}

fn help(canvas: &mut Canvas, is_steerable: bool) {
    let mut lines = vec![
        "pummel: the live view",
        "",
        "q, Ctrl-C   end the load and print the report",
        "space       freeze the screen, and resume",
        "o           show the times of the next operation",
        "s           switch the heat map between response and service",
        "tab, a      show the next of the lower panels: pummel, errors, messages, and",
        "            misses by cause, agents and servers if there are some",
        "Ctrl-Z      suspend the process; fg resumes it",
        "?           this help, and back",
    ];
    if is_steerable {
        lines.extend([
            "p           pause the load, and resume it",
            "+, -        raise or lower the rate by 5 %",
            "*, /        double or halve the rate",
            "            Each change takes effect half a second later, on all threads at once",
        ]);
    }
    for (y, line) in lines.iter().enumerate() {
        canvas.put(0, y, line, if y == 0 { Ink::Bold } else { Ink::Plain });
    }
}

/// A panel, drawn into its place.
type Panel = fn(&mut Canvas, &Snapshot, Place);

/// A chart of one line, drawn into its place.
type Chart = fn(&mut Canvas, &Snapshot, Place, Glyphs);

/// Rows of a chart of one line, with its heading.
const CHART_ROWS: usize = 2;

/// The charts of one line that have room in so many rows, from the first to the last: the backlog where there is one, the
/// rate, and the CPU of the servers where it is known.
fn charts(snapshot: &Snapshot, rows: usize) -> Vec<Chart> {
    let room = rows / CHART_ROWS;
    let has_cores = snapshot.server_cores.iter().any(Option::is_some);
    let mut charts: Vec<Chart> = Vec::new();
    // Where there is room for one alone, it is that of the backlog.
    if !is_behind(snapshot) || room > 1 {
        charts.push(panels::rate_line);
    }
    if is_behind(snapshot) {
        charts.push(panels::behind_line);
    }
    if has_cores {
        charts.push(panels::cores_line);
    }
    charts.truncate(room);
    charts
}

/// Draws charts one below the other, from a row on. Returns the row below them.
fn draw_charts(
    canvas: &mut Canvas,
    snapshot: &Snapshot,
    charts: &[Chart],
    mut top: usize,
    glyphs: Glyphs,
) -> usize {
    for chart in charts {
        chart(canvas, snapshot, Place { x: 0, top, width: canvas.width(), height: CHART_ROWS }, glyphs);
        top += CHART_ROWS;
    }
    top
}

/// Whether there is a backlog, or was one just now.
fn is_behind(snapshot: &Snapshot) -> bool {
    snapshot.backlog.points().iter().rev().take(BEHIND_SHOWN).any(|point| point.is_queue)
}

/// The lower panels that a small screen shows one at a time: those that have content in this run. Beside a backlog the messages
/// come first.
fn lower_panels(snapshot: &Snapshot) -> Vec<Panel> {
    let mut panels: Vec<Panel> = vec![panels::generator_and_message, panels::errors, panels::messages];
    if is_behind(snapshot) {
        panels.reverse();
    }
    if has_causes(snapshot) {
        panels.push(panels::misses);
    }
    if has_agents(snapshot) {
        panels.push(panels::agents);
    }
    if has_servers(snapshot) {
        panels.push(panels::servers);
    }
    panels
}

/// Whether keys were missed whose causes are told apart.
fn has_causes(snapshot: &Snapshot) -> bool {
    snapshot.so_far.as_ref().is_some_and(|so_far| so_far.counts.cache.misses() > 0)
}

fn has_agents(snapshot: &Snapshot) -> bool {
    !snapshot.members.is_empty()
}

/// Whether there are several servers, each with figures of its own.
fn has_servers(snapshot: &Snapshot) -> bool {
    snapshot.recent.back().is_some_and(|slice| slice.servers.len() > 1)
}

/// The small screen: 80 x 24, and less. On a smaller screen the row of the last message goes first, then the heat map
/// row by row, then the chart of rates; the columns of service go when the width does not suffice.
fn small(canvas: &mut Canvas, snapshot: &Snapshot, choice: Choice, below: usize, glyphs: Glyphs) {
    let width = canvas.width();
    let place = |top: usize, height: usize| Place { x: 0, top, width, height };
    let tables = 6.min(below.saturating_sub(TABLES_TOP));
    panels::rates_and_times(canvas, snapshot, choice, place(TABLES_TOP, tables));
    let mut top = TABLES_TOP + tables;
    let left = below - top;
    // A heading and three lines, the last of which is the last message; two messages beside the chart of a backlog.
    let panel = if canvas.height() >= FULL.1 && !is_behind(snapshot) { 4 } else { 3.min(left) };
    let charts = charts(snapshot, left - panel);
    let heat = left - panel - CHART_ROWS * charts.len();
    // A heading and two rows at least; without the picture, the panel has what is left.
    let (heat, panel) = if heat >= 3 { (heat, panel) } else { (0, panel + heat) };
    if heat > 0 {
        panels::heat(canvas, snapshot, choice, place(top, heat), glyphs);
        top += heat;
    }
    top = draw_charts(canvas, snapshot, &charts, top, glyphs);
    let which = lower_panels(snapshot);
    if panel > 0 {
        which[choice.panel % which.len()](canvas, snapshot, place(top, panel));
    }
}

/// A screen of 120 x 40 or more: everything that a small one shows one after the other.
fn large(canvas: &mut Canvas, snapshot: &Snapshot, choice: Choice, below: usize, glyphs: Glyphs) {
    let width = canvas.width();
    let split = width * 11 / 20;
    panels::rates_and_times(canvas, snapshot, choice, Place { x: 0, top: TABLES_TOP, width, height: 6 });
    let has_parts = has_agents(snapshot) || has_servers(snapshot);
    // Beside the pictures: the generator and errors, agents and servers where there are some, messages.
    let bottom = if has_parts { 5 + 7 + 5 } else { 6 + 6 };
    let (heat_top, mut top) = (TABLES_TOP + 6, below - bottom);
    let charts = charts(snapshot, top - heat_top);
    let heat_end = top - CHART_ROWS * charts.len();
    let heat = Place { x: 0, top: heat_top, width, height: heat_end - heat_top };
    panels::heat(canvas, snapshot, choice, heat, glyphs);
    draw_charts(canvas, snapshot, &charts, heat_end, glyphs);
    let height = if has_parts { 5 } else { 6 };
    let beside = |top: usize, height: usize| {
        (Place { x: 0, top, width: split - 1, height }, Place { x: split, top, width: width - split, height })
    };
    let (left, right) = beside(top, height);
    panels::generator(canvas, snapshot, left);
    if has_causes(snapshot) {
        // Errors take no more columns than this.
        let (errors, gap) = (right.width / 2 - 1, 1);
        let behind = errors + gap;
        panels::errors(canvas, snapshot, Place { width: errors, ..right });
        panels::misses(canvas, snapshot, Place { x: right.x + behind, width: right.width - behind, ..right });
    } else {
        panels::errors(canvas, snapshot, right);
    }
    top += height;
    if has_parts {
        let (left, right) = beside(top, 7);
        let whole = Place { width, ..left };
        match (has_agents(snapshot), has_servers(snapshot)) {
            (true, true) => {
                panels::agents(canvas, snapshot, left);
                panels::servers(canvas, snapshot, right);
            }
            (true, false) => panels::agents(canvas, snapshot, whole),
            (false, _) => panels::servers(canvas, snapshot, whole),
        }
        top += 7;
    }
    panels::messages(canvas, snapshot, Place { x: 0, top, width, height: below - top });
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use pummel_logic::arrival::steps;
    use pummel_logic::plan::RatePoint;
    use pummel_logic::time::SECOND;
    use pummel_logic::workload::cache_counts::CacheCounts;
    use pummel_measure::evidence::ServerCounts;
    use pummel_measure::evidence::server_stats::ServerInterval;

    use super::*;
    use crate::live::example;
    use pummel_report::numbers::grouped;

    /// Fails unless a screen, or a panel of it, equals the stored one; with `PUMMEL_BLESS` set it is stored.
    #[track_caller]
    fn is_stored(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/live/screens").join(name);
        if std::env::var_os("PUMMEL_BLESS").is_some() {
            fs::write(&path, text).expect("the folder is there");
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, stored, "{}", path.display());
    }

    #[test]
    fn screens_of_five_sizes_are_as_they_are_stored() {
        let (snapshot, now) = example::measuring();
        for (width, height) in [(120, 40), (80, 24), (80, 15), (40, 8), (39, 7)] {
            let canvas = draw(&snapshot, Choice::default(), now, (width, height), Glyphs::Ascii);
            is_stored(&format!("{width}x{height}.txt"), &canvas.text());
        }
        let (overloaded, now_of_overload) = example::overloaded(5);
        for (width, height) in [FULL, (140, 45)] {
            let size = (width, height);
            let canvas = draw(&overloaded, Choice::default(), now_of_overload, size, Glyphs::Ascii);
            is_stored(&format!("{width}x{height}-overload.txt"), &canvas.text());
        }
        let shared = example::shared();
        let text = |panel, size| {
            draw(&shared, Choice { panel, ..Choice::default() }, now, size, Glyphs::Ascii).text()
        };
        is_stored("120x40-agents.txt", &text(0, LARGE));
        // Beside its last panel the screen is that of a run on one machine.
        let panel =
            |panel| text(panel, FULL).lines().skip(19).map(|line| format!("{line}\n")).collect::<String>();
        is_stored("panel-agents.txt", &panel(3));
        is_stored("panel-servers.txt", &panel(4));
    }

    #[test]
    fn an_overload_is_on_the_screen_and_nothing_says_that_all_is_well() {
        for seconds in 1..=20 {
            let (snapshot, now) = example::overloaded(seconds);
            for size in [FULL, (140, 45)] {
                let text = draw(&snapshot, Choice::default(), now, size, Glyphs::Ascii).text();
                let behind = grouped(1_000 * seconds);
                for words in [
                    format!("behind {behind} ("),
                    format!("behind{behind:>11}{behind:>10}   p90"),
                    format!("--- behind, up to {behind} ---"),
                    "00:01  all 50 connections are busy, requests wait for one\n".to_owned(),
                ] {
                    assert!(text.contains(&words), "{seconds} s, {words}: {text}");
                }
                if seconds > 1 {
                    let verdict = "\nOVERLOADED  1,000/s answered of 2,000 asked; behind ";
                    assert!(text.contains(verdict), "{seconds} s: {text}");
                    let message = "00:02  the server does not keep up: 2,000/s asked, 1,000/s answered\n";
                    assert_eq!(text.matches(message).count(), 1, "{seconds} s: {text}");
                }
                for soothing in ["nothing at its limit", "reliable so far", "no messages", "no answer"] {
                    assert!(!text.contains(soothing), "{seconds} s, {soothing}: {text}");
                }
            }
        }
    }

    #[test]
    fn panels_of_the_generator_are_reached_beside_a_backlog_too() {
        let (snapshot, now) = example::overloaded(5);
        let text = |panel| {
            let choice = Choice { panel, ..Choice::default() };
            draw(&snapshot, choice, now, FULL, Glyphs::Ascii).text()
        };
        for (panel, heading) in ["--- messages ---", "--- errors ---", "--- pummel ---"].iter().enumerate() {
            assert!(text(panel).contains(heading), "{}", text(panel));
        }
    }

    #[test]
    fn the_cpu_of_the_servers_has_a_chart_on_the_axis_of_the_rates() {
        let (mut snapshot, now) = example::measuring();
        snapshot.server_cores = (0..42).map(|at| (at > 0).then_some(f64::from(at) / 50.0)).collect();
        for size in [FULL, LARGE] {
            let text = draw(&snapshot, Choice::default(), now, size, Glyphs::Ascii).text();
            assert!(text.contains("--- server CPU, up to 0.82 cores ---"), "{text}");
            assert!(text.contains("\n    0.82 | __"), "{text}");
        }
    }

    #[test]
    fn the_cpu_of_the_server_stands_beside_the_connections_where_there_is_room() {
        let (mut snapshot, now) = example::measuring();
        let told = ServerInterval {
            end_ns: SECOND,
            cpu_ns: Some(SECOND * 81 / 100),
            counts: ServerCounts { evictions: Some(0), ..ServerCounts::default() },
            ..ServerInterval::default()
        };
        snapshot.server_intervals = vec![Some(told)];
        let text = |size| draw(&snapshot, Choice::default(), now, size, Glyphs::Ascii).text();
        let small = text(FULL);
        assert!(small.contains("reopened 0   server CPU 0.81 cores   evictions 0\n"), "{small}");
        let large = text(LARGE);
        assert!(large.contains("\nserver CPU 0.81 cores   evictions 0"), "{large}");
    }

    #[test]
    fn redirects_of_a_cluster_stand_beside_the_connections_while_there_are_some() {
        let (mut snapshot, now) = example::measuring();
        let screen = |snapshot: &Snapshot| draw(snapshot, Choice::default(), now, FULL, Glyphs::Ascii).text();
        assert!(!screen(&snapshot).contains("redirects"), "{}", screen(&snapshot));
        let last = Arc::make_mut(snapshot.recent.back_mut().expect("an interval"));
        (last.counters.redirects.moved, last.counters.redirects.clusterdown) = (1_200, 34);
        let screen = screen(&snapshot);
        assert!(screen.contains("reopened 0   redirects 1,234/s\n"), "{screen}");
    }

    #[test]
    fn misses_by_cause_are_a_panel_where_a_run_tells_them_apart() {
        let (mut snapshot, now) = example::measuring();
        let text = |snapshot: &Snapshot, panel, size| {
            let choice = Choice { panel, ..Choice::default() };
            draw(snapshot, choice, now, size, Glyphs::Ascii).text()
        };
        assert!(!text(&snapshot, 0, LARGE).contains("misses by cause"));
        let cache =
            CacheCounts { first_touch: 123_456, absent: 1_000, expired: 20_000, ..CacheCounts::default() };
        snapshot.so_far.as_mut().expect("figures so far").counts.cache = cache;
        let small = text(&snapshot, 3, FULL);
        assert!(
            small.contains("\nfirst touch 123,456 (85 %)   absent 1,000 (1 %)   expired 20,000 (14 %)\n"),
            "{small}"
        );
        let large = text(&snapshot, 0, LARGE);
        for line in ["misses by cause", "none ", "first touch 123,456 (85 %)\n", " absent 1,000 (1 %)\n"] {
            assert!(large.contains(line), "{line}: {large}");
        }
        for size in [(40, 8), (60, 12), (120, 40), (200, 50)] {
            text(&snapshot, 3, size);
        }
    }

    #[test]
    fn the_page_about_the_view_shows_the_screens_that_are_stored() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = fs::read_to_string(folder.join("../../docs/LIVE.md")).expect("the page is there");
        let plain = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        let shown: Vec<String> = page.split("```\n").skip(1).step_by(2).map(plain).collect();
        for name in ["80x24.txt", "80x24-overload.txt", "120x40.txt"] {
            let stored =
                fs::read_to_string(folder.join("src/live/screens").join(name)).expect("it is stored");
            assert!(shown.contains(&plain(&stored)), "docs/LIVE.md does not show {name}");
        }
    }

    #[test]
    fn the_head_says_what_is_asked_for_now_and_the_keys_how_to_change_it() {
        let (mut snapshot, now) = example::measuring();
        snapshot.is_steerable = true;
        let text = |snapshot: &Snapshot| draw(snapshot, Choice::default(), now, LARGE, Glyphs::Ascii).text();
        assert!(text(&snapshot).contains("open 400/s "), "{}", text(&snapshot));
        assert!(text(&snapshot).contains("p pause   + - * / rate"), "{}", text(&snapshot));
        let mut plan = example::plan_at(400.0);
        plan.changes.rate = Some(steps(400.0, &[RatePoint { at_ns: 41 * SECOND, rate: 0.0 }]));
        snapshot.steered(&plan, Some(420.0));
        assert!(text(&snapshot).contains("open 0/s, PAUSED at 420/s"), "{}", text(&snapshot));
    }

    #[test]
    fn every_size_and_every_choice_is_drawn_without_a_fault() {
        let (snapshot, now) = example::measuring();
        let empty = Snapshot::default();
        let shared = example::shared();
        let (overloaded, _) = example::overloaded(3);
        for width in [0, 1, 39, 40, 41, 60, 79, 80, 119, 120, 200] {
            for height in 0..45 {
                for panel in 0..6 {
                    let choice = Choice { panel, op: panel, shows_service: panel == 1, ..Choice::default() };
                    for of in [&snapshot, &shared, &overloaded, &empty] {
                        let canvas = draw(of, choice, now, (width, height), Glyphs::Unicode);
                        assert_eq!((canvas.width(), canvas.height()), (width, height));
                    }
                }
            }
        }
    }

    #[test]
    fn a_viewer_sees_what_it_chose() {
        let (snapshot, now) = example::measuring();
        let text = |choice| draw(&snapshot, choice, now, FULL, Glyphs::Ascii).text();
        let first = text(Choice::default());
        assert!(first.contains("get 90 set 10") && first.contains("response, all operations"), "{first}");
        let op = |choice| text(choice).lines().nth(3).map(|line| line[30..33].to_owned());
        assert_eq!(op(Choice::default()).as_deref(), Some("get"));
        assert_eq!(op(Choice { op: 1, ..Choice::default() }).as_deref(), Some("set"));
        assert_eq!(op(Choice { op: 2, ..Choice::default() }).as_deref(), Some("get"));
        assert!(
            text(Choice { shows_service: true, ..Choice::default() }).contains("service, all operations")
        );
        assert!(text(Choice { panel: 2, ..Choice::default() }).contains("stall of 4.1 ms"));
        assert!(text(Choice { shows_help: true, ..Choice::default() }).contains("this help"));
    }
}
