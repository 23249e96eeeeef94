//! Picture 4, the anatomy: whose the time was, of the fast requests and of the slow ones.

use super::axis::Unit;
use super::svg::{Anchor, LEFT, Picture, RIGHT};
use crate::report::numbers::grouped;

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
const BARS_LEFT: f64 = LEFT + 128.0;

/// The picture; `None` where no band has enough requests.
pub fn draw(name: &str, bands: &[Band], unit: Unit, title: &str) -> Option<String> {
    let shown: Vec<&Band> =
        bands.iter().filter(|band| band.count >= ENOUGH && band.response_us() > 0.0).collect();
    if shown.is_empty() {
        return None;
    }
    let bottom = TOP + EACH * shown.len() as f64;
    let mut picture = Picture::new(bottom + 24.0);
    for (at, tick) in [(0.0, "0"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (1.0, "100 %")] {
        let x = BARS_LEFT + at * (RIGHT - BARS_LEFT);
        picture.line("grid", (x, TOP - 6.0), (x, bottom - 8.0));
        picture.words("tick", (x, bottom + 8.0), Anchor::Middle, tick);
    }
    for (number, band) in shown.iter().enumerate() {
        let y = TOP + EACH * number as f64;
        picture.words("tick", (LEFT + 44.0, y + 14.0), Anchor::End, &band.name);
        picture.words("tick strong", (BARS_LEFT - 8.0, y + 14.0), Anchor::End, &unit.text(band.response_us()));
        let mut x = BARS_LEFT;
        for (class, part) in
            [("fill wait", band.wait_us), ("fill lag", band.lag_us), ("fill service", band.service_us)]
        {
            let share = part / band.response_us();
            let width = share * (RIGHT - BARS_LEFT);
            picture.rect(class, (x, y), (width, BAR));
            if width > 34.0 {
                let words = format!("{:.0} %", share * 100.0);
                picture.words("inside", (x + width / 2.0, y + 14.0), Anchor::Middle, &words);
            }
            x += width;
        }
        picture.words("tick", (RIGHT + 8.0, y + 14.0), Anchor::Start, &grouped(band.count));
    }
    let mut x = BARS_LEFT;
    for (class, words) in [("fill wait", "wait"), ("fill lag", "lag"), ("fill service", "service")] {
        picture.rect(class, (x, 4.0), (10.0, 10.0));
        picture.words("tick", (x + 14.0, 13.0), Anchor::Start, words);
        x += 70.0;
    }
    picture.words("tick", (RIGHT + 8.0, 13.0), Anchor::Start, "requests");
    let description = "One bar for each band of the response: how much of the mean response of its requests was wait, lag and service.";
    Some(picture.finish(name, title, description))
}
