//! A report as one page of HTML: readable without script and network, with its data inside.

pub mod anatomy;
pub mod axis;
pub mod curve;
pub mod difference;
pub mod distribution;
pub mod heat;
pub mod links;
pub mod members;
pub mod overlay;
pub mod rate;
pub mod runs;
pub mod servers;
pub mod svg;
pub mod throughput;

mod compared;
mod data;
mod frame;
mod repeated;
mod sections;
mod series;
mod surroundings;
mod words;

#[cfg(test)]
mod tests;

use ring::digest::{SHA256, digest};

use self::axis::Unit;
use self::svg::escaped;
use crate::curve::Curve;
use crate::document::{CurveDocument, Document};
use crate::stored::base64_of;
use crate::{VERSION, curve as curve_file};

pub use self::compared::{ComparedSides, of_comparison, of_pair, render_pair};
pub use self::data::Embed;
pub use self::repeated::{of_repetition, render as render_repetition};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Length of a page whose data may be merged to fit.
const PAGE_MAX_BYTES: usize = 400_000;

/// Length of the sections of a run beyond which the heat map of service times is left out, so that there is room for the data.
const TEXT_MAX_BYTES: usize = 200_000;

/// Room for what stands around the body, the footer's words included.
const FRAME_BYTES: usize = 6_000;

/// How a page is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// The title; absent: the headline.
    pub title: Option<String>,
    /// How much of the data goes into the page.
    pub embed: Embed,
}

/// The page of a run, as `--report` writes it.
pub fn render(document: &Document) -> Vec<u8> {
    of_run(document, &PageOptions::default())
}

/// The page of a search or a scan, as `--report` writes it.
///
/// # Panics
/// Panics when the JSON of the series cannot be read again.
pub fn render_series(curve: &Curve) -> Vec<u8> {
    let json = curve_file::json(curve);
    let document = CurveDocument::read(&json).expect("the JSON of a series can be read");
    of_curve(&document, &json, &PageOptions::default())
}

/// The page of a run.
pub fn of_run(document: &Document, options: &PageOptions) -> Vec<u8> {
    let unit = Unit::of(sections::median_us(document));
    let headline = words::headline(document, unit);
    let mut body = heading(&headline, &words::badges(document, unit), options);
    let mut text = sections::of_run(document, unit, true);
    if text.len() > TEXT_MAX_BYTES {
        text = sections::of_run(document, unit, false);
    }
    body.push_str(&text);
    let room_bytes = PAGE_MAX_BYTES.saturating_sub(body.len() + STYLE.len() + SCRIPT.len() + FRAME_BYTES);
    let data = data::of_run(document, options.embed, room_bytes);
    body.push_str(&sections::footer(&document.tool.version, data, sections::DataKind::Run));
    whole(options.title.as_deref().unwrap_or(&headline), &body)
}

/// The page of a search or a scan, of which `json` is the stored result.
pub fn of_curve(curve: &CurveDocument, json: &[u8], options: &PageOptions) -> Vec<u8> {
    let headline = words::curve_headline(curve);
    let mut body = heading(&headline, &[], options);
    body.push_str(&sections::of_curve(curve));
    let data = data::of_json(json, options.embed);
    body.push_str(&sections::footer(&curve.tool.version, data, sections::DataKind::Series));
    whole(options.title.as_deref().unwrap_or(&headline), &body)
}

fn heading(headline: &str, badges: &[(String, Option<bool>)], options: &PageOptions) -> String {
    let mut text = String::new();
    if let Some(title) = &options.title {
        text += &format!("<p class=\"dim\">{}</p>\n", escaped(title));
    }
    text += &format!("<h1>{}</h1>\n", escaped(headline));
    if !badges.is_empty() {
        text.push_str("<ul class=\"badges\">\n");
        for (words, is_good) in badges {
            let class = match is_good {
                Some(true) => " class=\"good\"",
                Some(false) => " class=\"bad\"",
                None => "",
            };
            text += &format!("<li{class}>{}</li>\n", escaped(words));
        }
        text.push_str("</ul>\n");
    }
    text
}

/// A page around its body. Nothing runs and nothing is drawn but the page's own script and style, by their hashes.
fn whole(title: &str, body: &str) -> Vec<u8> {
    let hash = |text: &str| base64_of(digest(&SHA256, text.as_bytes()).as_ref());
    let (style, script, title) = (hash(STYLE), hash(SCRIPT), escaped(title));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; script-src \
         'sha256-{script}'; base-uri 'none'; form-action 'none'\"/>\n\
         <meta name=\"generator\" content=\"pummel {VERSION}\"/>\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    .into_bytes()
}
