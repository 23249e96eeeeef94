//! Picture 4, the anatomy: what the response times of the fast requests and of the slow ones consist of.

use maud::Markup;

use super::axis::time;
use super::svg::{Anchor, Layout, Picture};
use crate::numbers::grouped;

/// Requests of a band below which its means are chance.
pub const ENOUGH: u64 = 10;

/// The requests between two quantiles of the response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// The name of the band.
    pub name: String,
    /// Number of requests.
    pub count: u64,
    /// Mean wait of these requests, in microseconds.
    pub wait_us: f64,
    /// Mean lag of these requests.
    pub lag_us: f64,
    /// Mean service of these requests.
    pub service_us: f64,
}

impl Band {
    /// Mean response of the requests.
    pub fn response_us(&self) -> f64 {
        self.wait_us + self.lag_us + self.service_us
    }
}

const TOP: f64 = 26.0;
const EACH: f64 = 34.0;
const BAR: f64 = 20.0;

/// Where the bars of a layout begin.
fn bars_left(layout: Layout) -> f64 {
    layout.left + if layout.is_narrow() { 100.0 } else { 128.0 }
}

/// Where the names of bands begin, and those of results behind them: left of the longest time.
const BAND_LEFT: f64 = 4.0;
const SIDE_LEFT: f64 = 84.0;

/// The picture; `None` where no band has enough requests.
pub fn draw(layout: Layout, name: &str, bands: &[Band], title: &str) -> Option<Markup> {
    let shown: Vec<&Band> =
        bands.iter().filter(|band| band.count >= ENOUGH && band.response_us() > 0.0).collect();
    if shown.is_empty() {
        return None;
    }
    let bottom = TOP + EACH * shown.len() as f64;
    let mut picture = Picture::new(layout, bottom + 24.0);
    shares(&mut picture, bottom);
    for (number, band) in shown.iter().enumerate() {
        let y = TOP + EACH * number as f64;
        picture.words("tick", (BAND_LEFT, y + 14.0), Anchor::Start, &band.name);
        bar(&mut picture, band, (y, BAR));
    }
    let description = "One bar for each band of the response: how much of the mean response of its requests was wait, lag and service.";
    Some(picture.finish(name, title, description))
}

/// Height of a bar, and of the room of a bar, of one of several results.
const SIDE_BAR: f64 = 14.0;
const SIDE_EACH: f64 = 17.0;

/// The bars of several results, band by band; `None` where no band of any result has enough requests.
pub fn draw_sides(layout: Layout, name: &str, sides: &[(String, Vec<Band>)], title: &str) -> Option<Markup> {
    let is_shown = |band: &&Band| band.count >= ENOUGH && band.response_us() > 0.0;
    let most = sides.iter().map(|(_, bands)| bands.len()).max()?;
    let groups: Vec<Vec<(&str, &Band)>> = (0..most)
        .map(|place| {
            sides
                .iter()
                .filter_map(|(name, bands)| Some((name.as_str(), bands.get(place).filter(is_shown)?)))
                .collect()
        })
        .filter(|group: &Vec<_>| !group.is_empty())
        .collect();
    let height: f64 = groups.iter().map(|group| SIDE_EACH * group.len() as f64 + 10.0).sum();
    if groups.is_empty() {
        return None;
    }
    let bottom = TOP + height;
    let mut picture = Picture::new(layout, bottom + 24.0);
    shares(&mut picture, bottom);
    let mut y = TOP;
    for group in &groups {
        for (place, (side, band)) in group.iter().enumerate() {
            if place == 0 {
                picture.words("tick", (BAND_LEFT, y + 11.0), Anchor::Start, &band.name);
            }
            let at = SIDE_LEFT.min(bars_left(layout) - 62.0);
            picture.words("tick strong", (at, y + 11.0), Anchor::Start, side);
            bar(&mut picture, band, (y, SIDE_BAR));
            y += SIDE_EACH;
        }
        y += 10.0;
    }
    let description = "For each band of the response one bar for each result: how much of the mean response of its requests was wait, lag and service.";
    Some(picture.finish(name, title, description))
}

/// The axis of shares with its legend.
fn shares(picture: &mut Picture, bottom: f64) {
    let (bars_left, right) = (bars_left(picture.layout), picture.layout.right);
    for (at, tick) in [(0.0, "0"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (1.0, "100 %")] {
        let x = bars_left + at * (right - bars_left);
        picture.line("grid", (x, TOP - 6.0), (x, bottom - 8.0));
        picture.words("tick", (x, bottom + 8.0), Anchor::Middle, tick);
    }
    let mut x = if picture.layout.is_narrow() { BAND_LEFT } else { bars_left };
    for (class, words) in [("fill wait", "wait"), ("fill lag", "lag"), ("fill service", "service")] {
        picture.rect(class, (x, 4.0), (10.0, 10.0));
        picture.words("tick", (x + 14.0, 13.0), Anchor::Start, words);
        x += 70.0;
    }
    picture.words("tick", (right + 8.0, 13.0), Anchor::Start, "requests");
}

/// One bar with the mean response before it and the number of requests behind it.
fn bar(picture: &mut Picture, band: &Band, (y, height): (f64, f64)) {
    let (bars_left, right) = (bars_left(picture.layout), picture.layout.right);
    let base = y + height / 2.0 + 4.0;
    picture.words("tick strong", (bars_left - 8.0, base), Anchor::End, &time(band.response_us()));
    let mut x = bars_left;
    for (class, part) in [("wait", band.wait_us), ("lag", band.lag_us), ("service", band.service_us)] {
        let share = part / band.response_us();
        let width = share * (right - bars_left);
        picture.rect(&format!("fill {class}"), (x, y), (width, height));
        if width > 34.0 {
            let words = format!("{:.0} %", share * 100.0);
            picture.words(&format!("inside {class}"), (x + width / 2.0, base), Anchor::Middle, &words);
        }
        x += width;
    }
    picture.words("tick", (right + 8.0, base), Anchor::Start, &grouped(band.count));
}
