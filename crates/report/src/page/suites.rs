//! The page of two suites: what came out, all changes in one picture and one table, and the figures of each run.

use maud::{Markup, html};

use super::compared::{badge_of, differences, side_list};
use super::forest::{self, ForestRow};
use super::frame::{details_of, figure, said, section, tables_of};
use super::svg::{WORDS_MAX, cut_name, in_layouts};
use super::{Heading, PageOptions, data, sections};
use crate::VERSION;
use crate::comparison::{NamedPair, Row, SuitesComparison};
use crate::json::render;
use crate::view::run::Wanted;
use crate::view::several::name_of;
use crate::view::{pair, suites};

/// Gates that have a badge of their own.
const BADGES_MAX: usize = 24;

/// The page of a comparison of two suites.
pub fn of_suites(compared: &SuitesComparison, options: &PageOptions) -> Vec<u8> {
    let heading =
        Heading { headline: suites::title(compared), badges: badges(compared), ..Heading::default() };
    let view = suites::view(compared, Wanted::Screen);
    let data = data::of_json(&render(compared), options.embed);
    let body = html! {
        (heading.markup(options))
        (side_list(&view))
        (said(&view, &["Result"]))
        (section("All runs", html! { (changes(compared)) (tables_of(&view)) }))
        @if !compared.pairs.is_empty() {
            (section("Each run", html! { @for pair in &compared.pairs { (run(pair)) } }))
        }
        (sections::footer_of(data, sections::DataKind::Comparison))
        p.dim { "Compared and drawn by pummel " (VERSION) "." }
    };
    heading.page(options, body)
}

/// What became of the gates of each run, those first that do not hold.
fn badges(compared: &SuitesComparison) -> Vec<(String, Option<bool>)> {
    let of_pair = |pair: &NamedPair| {
        let name = pair.name.clone();
        let claims = pair.comparison.claims.iter().map(badge_of).collect::<Vec<_>>();
        claims.into_iter().map(move |(words, is_good)| (format!("{name}: {words}"), is_good))
    };
    let mut badges: Vec<(String, Option<bool>)> = compared.pairs.iter().flat_map(of_pair).collect();
    badges.sort_by_key(|(_, is_good)| *is_good == Some(true));
    let more = badges.len().saturating_sub(BADGES_MAX);
    badges.truncate(BADGES_MAX);
    if more > 0 {
        badges.push((format!("and {more} more gates"), None));
    }
    badges
}

/// The changes of the judged figures of all runs.
fn changes(compared: &SuitesComparison) -> Markup {
    let judged = || {
        let rows =
            compared.pairs.iter().flat_map(|pair| pair.comparison.rows.iter().map(move |row| (pair, row)));
        rows.filter(|(_, row)| row.is_judged)
    };
    let first = judged().next().map(|(_, row)| row.metric);
    let is_one_figure = judged().all(|(_, row)| Some(row.metric) == first);
    let row = |(pair, row): (&NamedPair, &Row)| {
        let change = row.change?;
        let name = match is_one_figure {
            true => pair.name.clone(),
            false => format!("{} {}", name_of(row.metric), pair.name),
        };
        Some(ForestRow {
            name,
            change,
            words: suites::change_unit(row, change).cell(change),
            interval: row.ci,
            is_different: suites::is_different(&pair.comparison, row),
        })
    };
    let rows: Vec<ForestRow> = judged().filter_map(row).collect();
    let title = match first.filter(|_| is_one_figure) {
        Some(metric) => format!("By how much {} of B differs from A", name_of(metric)),
        None => "By how much B differs from A".to_owned(),
    };
    let mut words = "How to read it: a point is the estimated change of a run.".to_owned();
    words += match rows.iter().any(|row| row.interval.is_some()) {
        true => {
            " Bars: 95 % intervals, each of its run alone. Runs in bold and another colour differ, corrected for the number of all \
             judged figures."
        }
        false => " Hollow: too few rounds to know an interval.",
    };
    let picture = in_layouts(|layout| forest::draw(layout, "changes", &rows, &title));
    picture.map_or(Markup::default(), |picture| html! { h3 { (title) } (figure(&picture, "", &words)) })
}

/// The figures of one run in both suites.
fn run(pair: &NamedPair) -> Markup {
    let NamedPair { name, comparison } = pair;
    let view = pair::view(std::slice::from_ref(comparison), Wanted::Screen);
    let words = format!("{name}: {}", pair::title(comparison));
    details_of(
        &cut_name(&words, WORDS_MAX),
        html! { (differences(comparison)) (said(&view, &["Result", "Differs", "Order"])) (tables_of(&view)) },
        false,
    )
}
