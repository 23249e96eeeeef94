//! The page of a comparison: a sentence for each pair, what differs, the figures, and the pictures of all sides together.

use maud::{Markup, html};
use pummel_measure::compare::{Design, median};
use pummel_measure::histogram::{Histogram, rank};
use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;

use super::anatomy::{self, Band};
use super::axis::{known_time, time};
use super::change::change_text;
use super::curve::{self, CurveLine, CurvePicture};
use super::data;
use super::difference::{self, DifferenceLine};
use super::distribution::{self, DistributionLine};
use super::estimates::{self, Estimate};
use super::frame::{Framed, details, details_of, fields, figure, plan_text, said, section, table, tables_of};
use super::overlay::{self, RateLine};
use super::runs::{self, RunLine, RunScale};
use super::svg::{WORDS_MAX, cut_name, in_layouts};
use super::words::command_line;
use super::{Heading, PageOptions, picture_data, repeated, sections};
use crate::VERSION;
use crate::comparison::{ClaimResult, Comparison, Outcome, PairCommand, SIDE_NAMES, Side, json_of_all};
use crate::document::{Document, ToolResult};
use crate::numbers::{grouped, number};
use crate::run_figures::Metric;
use crate::view::change::ChangeUnit;
use crate::view::run::Wanted;
use crate::view::several::name_of;
use crate::view::{View, pair};

/// Classes of the lines of sides, in order.
const CLASSES: [&str; 8] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

/// Points of a distribution.
const DISTRIBUTION_STEPS: u32 = 200;

/// Quantiles of sides that keep only figures.
const FIGURES: [(Metric, f64); 4] =
    [(Metric::P50, 0.5), (Metric::P90, 0.9), (Metric::P99, 0.99), (Metric::P999, 0.999)];

/// What a page of a comparison is made from.
#[derive(Clone, Copy, Debug)]
pub struct ComparedSides<'a> {
    /// Each side beside the first.
    pub comparisons: &'a [Comparison],
    /// The whole results of each side, the first side's in front; empty of a side that keeps only figures.
    pub documents: &'a [Vec<Document>],
}

/// One side with what is drawn of it.
struct DrawnSide<'a> {
    name: &'static str,
    class: &'static str,
    side: &'a Side,
    documents: &'a [Document],
}
/// The page of two sides that were measured by turns.
pub fn of_pair(comparison: &Comparison, options: &PageOptions) -> Vec<u8> {
    let sides = ComparedSides { comparisons: std::slice::from_ref(comparison), documents: &[] };
    of_comparison(&sides, options)
}

/// The page of a comparison of two sides or more.
///
/// # Panics
/// Panics when there is no comparison.
pub fn of_comparison(sides: &ComparedSides<'_>, options: &PageOptions) -> Vec<u8> {
    let drawn = drawn_sides(sides);
    let headline = match sides.comparisons {
        [only] => pair::title(only),
        several => format!("{} results beside A, {}", several.len(), drawn[0].side.name()),
    };
    let heading = Heading { headline, badges: badges(sides.comparisons), ..Heading::default() };
    let kind = match sides.comparisons {
        [only] if only.command == PairCommand::Ab => sections::DataKind::Several,
        _ => sections::DataKind::Comparison,
    };
    // Sides that keep only the figures of their runs have no rates over time, and the rates of their runs stand above.
    let has_documents = drawn.iter().any(|side| !side.documents.is_empty());
    let data = data::of_json(&json_of_all(sides.comparisons), options.embed);
    let body = html! {
        (heading.markup(options))
        @if sides.comparisons.len() > 1 {
            ul { @for pair in sides.comparisons { li { (pair.names.0[1]) " against " (pair.names.0[0]) ": " (pair::title(pair)) } } }
        }
        (side_list(&pair::view(sides.comparisons, Wanted::Screen)))
        @for pair in sides.comparisons { (pair_section(pair)) }
        (every_run(sides.comparisons, &drawn))
        (curves(&drawn))
        @if has_documents { (rates(&drawn)) (anatomies(&drawn)) }
        (verdicts(&drawn))
        @if let [only] = sides.comparisons { (fields(&[("Command", command_line(&only.argv))])) }
        (sections::footer_of(data, kind))
        p.dim { "Compared and drawn by pummel " (VERSION) "." }
    };
    heading.page(options, body)
}

fn drawn_sides<'a>(sides: &ComparedSides<'a>) -> Vec<DrawnSide<'a>> {
    let first = sides.comparisons.first().expect("a comparison has two sides");
    let each = std::iter::once(&first.sides[0]).chain(sides.comparisons.iter().map(|pair| &pair.sides[1]));
    let documents = sides.documents.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    let names = SIDE_NAMES.into_iter().zip(CLASSES);
    let drawn = each.zip(documents).zip(names);
    drawn.map(|((side, documents), (name, class))| DrawnSide { name, class, side, documents }).collect()
}

/// What became of the claims.
fn badges(comparisons: &[Comparison]) -> Vec<(String, Option<bool>)> {
    let claims = comparisons.iter().flat_map(|pair| {
        pair.claims.iter().map(|claim| {
            let (words, is_good) = badge_of(claim);
            (format!("{} against {}, {words}", pair.names.0[1], pair.names.0[0]), is_good)
        })
    });
    claims.collect()
}

/// Words for a claim and its outcome, with whether it holds.
pub(super) fn badge_of(claim: &ClaimResult) -> (String, Option<bool>) {
    let is_good = match claim.outcome {
        Outcome::Held => true,
        Outcome::Violated | Outcome::NotJudged(_) => false,
    };
    let subject = format!("{} {}", claim.claim.flag(), claim.claim.metric.name());
    (format!("{subject}: {}", claim.name()), Some(is_good))
}

/// The sides by their letters, and how they were measured.
pub(super) fn side_list(view: &View) -> Markup {
    let ran = ("", view.ran.iter().map(|parts| parts.join(", ")).collect::<Vec<_>>().join("; "));
    let sides = view.sides.iter().map(|side| (side.name, side.parts.join(", ")));
    let sides: Vec<(&str, String)> = sides.chain([ran]).collect();
    fields(&sides)
}

fn pair_section(pair: &Comparison) -> Markup {
    let [first, second] = pair.names.0;
    let view = pair::view(std::slice::from_ref(pair), Wanted::Screen);
    section(
        &format!("{second} against {first}"),
        html! {
            (differences(pair))
            (said(&view, &["Result", "Differs"]))
            (tables_of(&view))
            (estimated(pair))
        },
    )
}

/// The estimated changes with their intervals, of sides of several runs.
fn estimated(pair: &Comparison) -> Markup {
    let [first, second] = pair.names.0;
    if pair.sides.iter().all(|side| side.runs.len() < 2) {
        return Markup::default();
    }
    let estimates: Vec<Estimate> = pair
        .rows
        .iter()
        .filter_map(|row| {
            let change = row.change?;
            Some(Estimate {
                name: name_of(row.metric).to_owned(),
                change,
                words: ChangeUnit::of(pair.design, change, row.ci).cell(change),
                interval: row.ci,
                is_judged: row.is_judged,
            })
        })
        .collect();
    let title = format!("By how much {second} differs from {first}");
    let picture =
        in_layouts(|layout| estimates::draw(layout, &format!("estimates-{second}"), &estimates, &title));
    let mut words = "How to read it: a point is the estimated change of a figure.".to_owned();
    words += match estimates.iter().any(|estimate| estimate.interval.is_some()) {
        true => {
            " Bars: 95 % intervals; the sides differ where a bar does not reach over the line of no change."
        }
        false => " Hollow: too few runs to know an interval.",
    };
    picture.map_or(Markup::default(), |picture| html! { h3 { (title) } (figure(&picture, "", &words)) })
}

/// What differs besides the figures, as a table; a sentence where nothing does.
pub(super) fn differences(pair: &Comparison) -> Markup {
    let [first, second] = pair.names.0;
    let all = pair.difference_words().into_iter();
    let rows: Vec<Vec<String>> =
        all.map(|words| [vec![words.name], words.values.to_vec()].concat()).collect();
    if rows.is_empty() {
        return html! { p { "Plans, servers and machines are the same, as far as the results say." } };
    }
    let words = format!("What differs besides the figures: {}", rows.len());
    details_of(&words, table(&["", first, second], &rows), rows.len() <= 6)
}

/// p99 and rate of every run where sides have several, pair by pair where they were pairs.
fn every_run(comparisons: &[Comparison], drawn: &[DrawnSide<'_>]) -> Markup {
    if drawn.iter().all(|side| side.side.runs.len() < 2) {
        return Markup::default();
    }
    let is_paired = comparisons.iter().all(|pair| pair.design == Design::Paired);
    let word = if is_paired { "pair" } else { "run" };
    let lines = |metric: Metric| -> Vec<RunLine> {
        drawn.iter().map(|side| repeated::line_of(side.name, side.class, &side.side.runs, metric)).collect()
    };
    let names: Vec<&str> = std::iter::once(word).chain(drawn.iter().map(|side| side.name)).collect();
    let rows = |metric: Metric| -> Vec<Vec<String>> {
        let most = drawn.iter().map(|side| side.side.runs.len()).max().unwrap_or(0);
        let cell = |side: &DrawnSide<'_>, run: usize| {
            let figure = side.side.runs.get(run).and_then(|run| run.figure(metric));
            figure.map_or("-".to_owned(), |figure| metric.text(figure.value))
        };
        let row = |run: usize| {
            std::iter::once((run + 1).to_string()).chain(drawn.iter().map(|side| cell(side, run))).collect()
        };
        (0..most).map(row).collect()
    };
    let how = format!(
        "How to read it: one place for each {word}, in order. Bars: 95 % intervals within the run, where they are known."
    );
    let framed = |metric, scale, name, statement: String, instead| Framed {
        picture: in_layouts(|layout| runs::draw(layout, name, &lines(metric), scale, (word, &statement))),
        statement,
        instead,
        how: how.clone(),
        numbers: table(&names, &rows(metric)),
        axis: "runs",
    };
    let p99 = framed(
        Metric::P99,
        RunScale::Times,
        "run-times",
        format!("p99 of each {word}"),
        "No run knows its p99.",
    );
    let rate = framed(
        Metric::Rate,
        RunScale::Rates,
        "run-rates",
        format!("Completed requests per second of each {word}"),
        "No run completed a request.",
    );
    html! { (p99.markup()) (rate.markup()) }
}

/// The distribution of the response times of a side, of results that keep histograms.
fn distribution_of(side: &DrawnSide<'_>) -> Option<DistributionLine> {
    let histogram = whole_histogram(side)?;
    let unanswered: u64 = side.documents.iter().map(picture_data::unanswered).sum();
    let count = histogram.count().saturating_add(unanswered);
    let points = (0..=DISTRIBUTION_STEPS).filter_map(|step| {
        let share = f64::from(step) / f64::from(DISTRIBUTION_STEPS);
        let ns = histogram.at_rank(rank(share, count).max(1))?;
        (ns > 0).then_some((ns as f64 / 1e3, share))
    });
    Some(DistributionLine { name: side.name.to_owned(), class: side.class, points: points.collect() })
}

/// The response times of all requests of all runs of a side; `None` where a run keeps none.
fn whole_histogram(side: &DrawnSide<'_>) -> Option<Histogram> {
    let each: Option<Vec<Histogram>> =
        side.documents.iter().map(|document| picture_data::histogram_of(document, Span::Response)).collect();
    let all = each.filter(|all| all.len() == side.side.runs.len() && !all.is_empty())?;
    let mut histogram = all.first()?.clone();
    all.iter().skip(1).for_each(|more| histogram.merge(more));
    Some(histogram)
}

/// The percentile curve of a side: of all its requests where the results keep them, else of the medians of its figures.
fn line_of(side: &DrawnSide<'_>) -> Option<CurveLine> {
    let line = match whole_histogram(side) {
        Some(histogram) => {
            let unanswered = side.documents.iter().map(picture_data::unanswered).sum();
            let mut line = picture_data::line_of(side.name, side.class, &histogram, unanswered);
            if let [only] = side.documents {
                line.band = picture_data::band_of(only);
            }
            line
        }
        None => CurveLine {
            name: side.name.to_owned(),
            class: side.class,
            points: FIGURES.iter().filter_map(|figure| median_of(side.side, *figure)).collect(),
            count: 1e4,
            is_open: false,
            band: Vec::new(),
        },
    };
    (!line.points.is_empty()).then_some(line)
}

/// The median of a figure over the runs of a side, which all know it: nines and microseconds.
fn median_of(side: &Side, (metric, quantile): (Metric, f64)) -> Option<(f64, f64)> {
    let known: Option<Vec<f64>> =
        side.runs.iter().map(|run| run.figure(metric).map(|figure| figure.value)).collect();
    Some((picture_data::nines_of(quantile), median(&known?)?))
}

/// Pictures 9 and 10.
fn curves(drawn: &[DrawnSide<'_>]) -> Markup {
    let lines: Vec<CurveLine> = drawn.iter().filter_map(line_of).collect();
    let is_doubtful = drawn.iter().any(|side| side.side.runs.iter().any(|run| run.trust == Some(false)));
    let statement = statement_of_curves(drawn);
    let picture = CurvePicture { lines: lines.clone(), is_doubtful, ..CurvePicture::default() };
    let rows: Vec<Vec<String>> = QUANTILES
        .iter()
        .map(|(name, quantile)| {
            let nines = picture_data::nines_of(*quantile);
            let cell = |line: &CurveLine| {
                let us = difference::at(line, nines).filter(|_| nines <= line.known_nines() + 1e-9);
                known_time(us)
            };
            std::iter::once((*name).to_owned()).chain(lines.iter().map(cell)).collect()
        })
        .collect();
    let names: Vec<&str> =
        std::iter::once("quantile").chain(lines.iter().map(|line| line.name.as_str())).collect();
    let mut how = "How to read it: at 99 on the horizontal axis a line shows how long the slowest of the fastest 99 % of a result's \
                   requests took; dotted where fewer than ten requests lie beyond."
        .to_owned();
    if lines.iter().any(|line| !line.band.is_empty()) {
        how += " Pale bands: 95 % intervals within each run; how far runs differ from each other is not in them.";
    }
    if drawn.iter().any(|side| side.side.runs.len() > side.documents.len()) {
        how += " Of results without histograms a line joins p50, p90, p99 and p99.9, and of repeated runs their medians.";
    }
    if is_doubtful {
        how += " Striped edge: a part of some of these times was added by pummel itself.";
    }
    let framed = Framed {
        statement,
        picture: in_layouts(|layout| {
            curve::draw(layout, "curves", &picture, "Response times of all results")
        }),
        instead: "No result has response times to draw.",
        how,
        numbers: table(&names, &rows),
        axis: "quantile",
    };
    let distributions: Vec<DistributionLine> = drawn.iter().filter_map(distribution_of).collect();
    // Differences of medians are not what pairs or several runs say.
    let is_of_single_runs = drawn.iter().all(|side| side.side.runs.len() == 1);
    html! {
        (framed.markup())
        @if is_of_single_runs { (differences_drawn(&lines)) }
        (distributions_drawn(&distributions))
    }
}

/// The distributions, which are opened on demand; nothing where fewer than two results keep histograms.
fn distributions_drawn(lines: &[DistributionLine]) -> Markup {
    if lines.len() < 2 {
        return Markup::default();
    }
    let title = "Distributions of the response times";
    let words = "How to read it: at a time on the horizontal axis a line shows the share of the requests that took at most that long. It ends \
                 below 100 % where requests got no answer.";
    let picture = in_layouts(|layout| distribution::draw(layout, "distributions", lines, title));
    picture.map_or(Markup::default(), |picture| {
        details("Distributions instead", figure(&picture, "times", words))
    })
}

fn statement_of_curves(drawn: &[DrawnSide<'_>]) -> String {
    let p99: Vec<String> = drawn
        .iter()
        .filter_map(|side| {
            let (_, us) = median_of(side.side, (Metric::P99, 0.99))?;
            Some(format!("{} {}", side.name, time(us)))
        })
        .collect();
    if p99.is_empty() {
        "Response times".to_owned()
    } else {
        format!("99 % of the requests within: {}", p99.join(", "))
    }
}

fn differences_drawn(lines: &[CurveLine]) -> Markup {
    let Some((first, others)) = lines.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Markup::default();
    };
    let differences: Vec<DifferenceLine> =
        others.iter().map(|other| DifferenceLine::of(first, other)).collect();
    let at = |line: &DifferenceLine, nines: f64| {
        let point = line.points.iter().find(|point| (point.0 - nines).abs() < 1e-6)?;
        (nines <= line.known_nines + 1e-9).then_some(point.1)
    };
    let words = |share: Option<f64>| share.map_or("-".to_owned(), change_text);
    let names: Vec<&str> =
        std::iter::once("quantile").chain(differences.iter().map(|line| line.name.as_str())).collect();
    let rows: Vec<Vec<String>> = QUANTILES
        .iter()
        .map(|(name, quantile)| {
            let nines = picture_data::nines_of(*quantile);
            std::iter::once((*name).to_owned())
                .chain(differences.iter().map(|line| words(at(line, nines))))
                .collect()
        })
        .collect();
    let mut how =
        "How to read it: above the line of no change the requests took longer. The axis reaches as far as the lines do from p50 on where ten \
         requests or more lie beyond; what is outside of it is not drawn."
            .to_owned();
    if differences.iter().any(|line| !line.band.is_empty()) {
        how += " Pale bands reach between the outer ends of both intervals within the runs.";
    }
    if difference::grey_from(&differences).is_some() {
        how += " In the grey part fewer than ten requests lie beyond, and the lines are chance.";
    }
    Framed {
        statement: format!("By how much the response times differ from those of {}", first.name),
        picture: in_layouts(|layout| difference::draw(layout, "difference", &differences, "The difference")),
        instead: "The results have no quantile in common.",
        how,
        numbers: table(&names, &rows),
        axis: "quantile",
    }
    .markup()
}

/// Picture 3 of all sides, one over the other.
fn rates(drawn: &[DrawnSide<'_>]) -> Markup {
    let lines: Vec<RateLine> = drawn
        .iter()
        .filter_map(|side| {
            let columns = picture_data::rates_of(side.documents.first()?);
            Some(RateLine { name: side.name.to_owned(), class: side.class, columns })
        })
        .collect();
    let each: Vec<String> = drawn
        .iter()
        .filter_map(|side| {
            let rates: Vec<f64> = side.side.runs.iter().map(|run| run.rate).collect();
            Some(format!("{} {}", side.name, number(median(&rates)?)))
        })
        .collect();
    let rows: Vec<Vec<String>> = drawn
        .iter()
        .map(|side| {
            let sum = |of: fn(&Document) -> u64| grouped(side.documents.iter().map(of).sum::<u64>());
            let rates: Vec<f64> = side.side.runs.iter().map(|run| run.rate).collect();
            let mut cells = vec![side.name.to_owned(), median(&rates).map_or("-".to_owned(), number)];
            if side.documents.is_empty() {
                cells.extend(["-", "-", "-"].map(str::to_owned));
            } else {
                cells.extend([
                    sum(|document| document.totals.completed),
                    sum(|document| document.totals.errors),
                    sum(picture_data::unanswered),
                ]);
            }
            cells
        })
        .collect();
    let mut how = "How to read it: completed requests per second, each result from its own start.".to_owned();
    if drawn.iter().any(|side| side.documents.len() > 1) {
        how += " Of several runs of a side the first is drawn.";
    }
    Framed {
        statement: format!("Completed per second: {}", each.join(", ")),
        picture: in_layouts(|layout| {
            overlay::draw(layout, "rates", &lines, "Completed requests per second of all results")
        }),
        instead: "These results keep the figures of their runs, and no intervals.",
        how,
        numbers: table(&["", "per second", "completed", "failed", "without an answer"], &rows),
        axis: "time",
    }
    .markup()
}

/// Picture 4 of all sides, band by band.
fn anatomies(drawn: &[DrawnSide<'_>]) -> Markup {
    let sides: Vec<(String, Vec<Band>)> = drawn
        .iter()
        .filter_map(|side| Some((side.name.to_owned(), picture_data::bands_of(side.documents.first()?))))
        .collect();
    let statement = "What the response times consist of";
    let rows: Vec<Vec<String>> = sides
        .iter()
        .flat_map(|(name, bands)| {
            bands.iter().map(move |band| {
                let parts = [band.response_us(), band.wait_us, band.lag_us, band.service_us];
                let mut cells = vec![format!("{name} {}", band.name), grouped(band.count)];
                let mean = |us: f64| if band.count == 0 { "-".to_owned() } else { time(us) };
                cells.extend(parts.map(mean));
                cells
            })
        })
        .collect();
    Framed {
        statement: statement.to_owned(),
        picture: in_layouts(|layout| anatomy::draw_sides(layout, "anatomies", &sides, statement)),
        instead: "These results do not say what their response times consist of.",
        how: "How to read it: each bar is the mean response time of the requests of one result between two quantiles, split into wait, lag and \
              service."
            .to_owned(),
        numbers: table(&["requests", "count", "mean response", "wait", "lag", "service"], &rows),
        axis: "",
    }
    .markup()
}

/// What each result says of itself.
fn verdicts(drawn: &[DrawnSide<'_>]) -> Markup {
    section(
        "What each result says of itself",
        html! { @for side in drawn {
            h3 { (side.name) ": " (cut_name(&side.side.name(), WORDS_MAX)) }
            @if side.documents.len() > 1 { p.dim { "The first of its runs:" } }
            @match side.documents.first() {
                Some(document) => (sections::answers(document)),
                None => (limits(side.side)),
            }
            (how_it_was_run(side))
        } },
    )
}

/// The servers, the program that measured, and the plan of a side.
fn how_it_was_run(side: &DrawnSide<'_>) -> Markup {
    let (plan, source) = (&side.side.plan, &side.side.source);
    let facts = fields(&[
        ("Servers", plan.servers.join(", ")),
        ("Started", source.program.clone().unwrap_or_default()),
        ("Made by", source.tool.as_ref().map_or_else(String::new, ToolResult::words)),
    ]);
    let text = plan_text(plan, &format!("plan-{}", side.name));
    html! { (facts) (details(&format!("The plan of {}", side.name), text)) }
}

/// What limited the runs of a side that keeps only figures.
fn limits(side: &Side) -> Markup {
    let mut words: Vec<&str> =
        side.runs.iter().map(|run| run.limit.as_str()).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    let counted = words.chunk_by(|one, other| one == other);
    let each: Vec<String> =
        counted.map(|same| format!("{} in {} of {} runs", same[0], same.len(), side.runs.len())).collect();
    fields(&[("Limit", each.join(", "))])
}
