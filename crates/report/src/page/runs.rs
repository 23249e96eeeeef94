//! A figure of several runs, one after the other: points with their intervals within the run.

use maud::Markup;

use super::axis::{CountAxis, TimeAxis, round_step, time, title_below};
use super::svg::{Anchor, Layout, Picture};
use crate::numbers::number;

/// One figure of each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLine {
    /// The name at the end of the line.
    pub name: String,
    /// Its class.
    pub class: &'static str,
    /// The figure of each run in order; `None` where the run does not know it.
    pub points: Vec<Option<RunPoint>>,
}

/// The figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPoint {
    /// Microseconds, or requests per second.
    pub value: f64,
    /// Its 95 % interval within the run, in the same unit; `None` where it is not known.
    pub within: Option<(f64, f64)>,
}

/// What the figures are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunScale {
    /// Times in microseconds, on a logarithmic axis.
    Times,
    /// Rates per second, on an axis from 0.
    Rates,
}

const TOP: f64 = 28.0;

/// The vertical axis of either kind of figure.
enum Upwards {
    Times(TimeAxis),
    Rates(CountAxis),
}

impl Upwards {
    fn at(&self, value: f64) -> f64 {
        match self {
            Upwards::Times(axis) => axis.at(value),
            Upwards::Rates(axis) => axis.at(value),
        }
    }
}

impl RunScale {
    fn text(self, value: f64) -> String {
        match self {
            RunScale::Times => time(value),
            RunScale::Rates => format!("{}/s", number(value)),
        }
    }

    /// The height of the lower end of the picture: times have more to tell than rates.
    fn bottom(self) -> f64 {
        match self {
            RunScale::Times => 250.0,
            RunScale::Rates => 170.0,
        }
    }

    fn axis(self, picture: &mut Picture, values: impl Iterator<Item = f64>) -> Option<Upwards> {
        let bottom = self.bottom();
        match self {
            RunScale::Times => {
                let axis = TimeAxis::of(values, TOP, bottom)?;
                axis.draw(picture, "time, logarithmic");
                Some(Upwards::Times(axis))
            }
            RunScale::Rates => {
                let axis = CountAxis::of(values.fold(0.0, f64::max), TOP, bottom);
                axis.draw(picture, "requests per second");
                Some(Upwards::Rates(axis))
            }
        }
    }
}

/// The picture; `None` where no run knows a figure. `word` is what a place on the horizontal axis is: a run, or a pair.
pub fn draw(
    layout: Layout,
    name: &str,
    lines: &[RunLine],
    scale: RunScale,
    (word, title): (&str, &str),
) -> Option<Markup> {
    let runs = lines.iter().map(|line| line.points.len()).max().filter(|runs| *runs > 0)?;
    let known = || lines.iter().flat_map(|line| line.points.iter().flatten());
    known().next()?;
    let values = known().flat_map(|point| {
        let (low, high) = point.within.unwrap_or((point.value, point.value));
        [point.value, low, high]
    });
    let bottom = scale.bottom();
    let mut picture = Picture::new(layout, bottom + 36.0);
    let y = scale.axis(&mut picture, values)?;
    let width = layout.across() / runs as f64;
    let x = |run: usize, line: usize| {
        // Lines stand beside each other, so that their intervals do not cover each other.
        let aside = (line as f64 + 0.5) / lines.len() as f64 - 0.5;
        layout.left + width * (run as f64 + 0.5) + aside * (width * 0.5).min(24.0)
    };
    let mut names = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let class = line.class;
        let places: Vec<(RunPoint, f64)> = line
            .points
            .iter()
            .enumerate()
            .filter_map(|(run, point)| Some(((*point)?, x(run, number))))
            .collect();
        let points: Vec<(f64, f64)> = places.iter().map(|(point, at)| (*at, y.at(point.value))).collect();
        picture.polyline(&format!("line faint {class}"), &points);
        for (point, at) in &places {
            if let Some((low, high)) = point.within {
                picture.line(&format!("interval {class}"), (*at, y.at(low)), (*at, y.at(high)));
            }
            picture.dot(&format!("dot {class}"), (*at, y.at(point.value)), 3.5);
        }
        names.extend(points.last().map(|last| (last.1 + 4.0, class, line.name.as_str())));
    }
    picture.names(names);
    across(&mut picture, runs, bottom, word);
    let said: Vec<(f64, f64, String)> = (0..runs)
        .map(|run| (layout.left + width * run as f64, width, words_of(lines, run, scale, word)))
        .collect();
    picture.columns(TOP, bottom, &said);
    let description =
        format!("One place for each {word} to the right, in order; the figure upwards, with its interval.");
    Some(picture.finish(name, title, &description))
}

/// Draws the numbers of the runs below `bottom`.
fn across(picture: &mut Picture, runs: usize, bottom: f64, word: &str) {
    let layout = picture.layout;
    let width = layout.across() / runs as f64;
    let few = layout.fitting(20);
    let step = if runs <= few { 1 } else { round_step(2.0 * runs as f64 / few as f64) as usize };
    for number in (1..=runs).filter(|number| number % step == 0 || *number == 1 && runs <= few) {
        let at = layout.left + width * (number as f64 - 0.5);
        picture.line("axis", (at, bottom), (at, bottom + 4.0));
        picture.words("tick", (at, bottom + 17.0), Anchor::Middle, &number.to_string());
    }
    picture.line("axis", (layout.left, bottom), (layout.right, bottom));
    title_below(picture, bottom, &format!("number of the {word}"));
}

fn words_of(lines: &[RunLine], run: usize, scale: RunScale, word: &str) -> String {
    let each: Vec<String> = lines
        .iter()
        .map(|line| match line.points.get(run).copied().flatten() {
            None => format!("{} not known", line.name),
            Some(point) => format!("{} {}", line.name, scale.text(point.value)),
        })
        .collect();
    format!("{word} {}: {}", run + 1, each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    fn line(values: &[Option<f64>]) -> RunLine {
        let point = |value: f64| RunPoint { value, within: Some((value * 0.9, value * 1.1)) };
        RunLine {
            name: "p99".to_owned(),
            class: "p99",
            points: values.iter().map(|one| one.map(point)).collect(),
        }
    }

    #[test]
    fn each_run_that_knows_a_figure_has_a_point_with_its_interval() {
        let lines = [line(&[Some(100.0), None, Some(300.0)])];
        let drawn = draw(WIDE, "times", &lines, RunScale::Times, ("run", "title")).expect("a picture");
        let drawn = drawn.into_string();
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert_eq!(drawn.matches("class=\"interval p99\"").count(), 2);
        assert!(drawn.contains("run 2: p99 not known") && drawn.contains("run 3: p99 300 us"), "{drawn}");
    }

    #[test]
    fn runs_that_know_nothing_are_no_picture() {
        for lines in [vec![], vec![line(&[])], vec![line(&[None, None])]] {
            assert!(draw(WIDE, "times", &lines, RunScale::Rates, ("run", "title")).is_none(), "{lines:?}");
        }
    }

    #[test]
    fn a_thousand_runs_have_as_few_numbers_as_ten() {
        let lines = [line(&vec![Some(5.0); 1_000])];
        let drawn = draw(WIDE, "rates", &lines, RunScale::Rates, ("run", "title")).expect("one");
        let drawn = drawn.into_string();
        assert!(drawn.contains(">1,000<") || drawn.contains(">1000<"), "{drawn}");
        assert!(drawn.matches("class=\"tick\"").count() < 20);
    }
}
