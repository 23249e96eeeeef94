//! A report as one page of HTML: readable without script and network, with its data inside.

pub mod anatomy;
pub mod axis;
pub mod change;
pub mod curve;
pub mod difference;
pub mod distribution;
pub mod estimates;
pub mod forest;
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
mod of_series;
mod picture_data;
mod repeated;
mod sections;
mod suite;
mod suites;
mod surroundings;
mod top;
mod words;

#[cfg(test)]
mod tests;

use maud::{Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use self::frame::unbroken;
use self::svg::{WORDS_MAX, cut_name};
use crate::VERSION;
use crate::document::{CurveDocument, Document};
use crate::stored::base64_of;
use crate::view::run::result_words;
use crate::view::series::heading;

pub use self::compared::{ComparedSides, of_comparison, of_pair};
pub use self::data::Embed;
pub use self::repeated::of_repetition;
pub use self::suite::of_suite;
pub use self::suites::of_suites;

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

/// The page of a run.
pub fn of_run(document: &Document, options: &PageOptions) -> Vec<u8> {
    let heading = Heading {
        headline: result_words(document),
        subject: words::subject(document),
        badges: words::badges(document),
    };
    let top = html! { (heading.markup(options)) (top::tiles(document)) (top::goals(document)) };
    let mut text = sections::of_run(document, true);
    if text.0.len() > TEXT_MAX_BYTES {
        text = sections::of_run(document, false);
    }
    let text_bytes = top.0.len() + text.0.len() + STYLE.len() + SCRIPT.len() + FRAME_BYTES;
    let data = data::of_run(document, options.embed, PAGE_MAX_BYTES.saturating_sub(text_bytes));
    let footer = sections::footer(&document.tool.version, data, sections::DataKind::Run);
    heading.page(options, html! { (top) (text) (footer) })
}

/// The page of a search or a scan, of which `json` is the stored result.
pub fn of_curve(curve: &CurveDocument, json: &[u8], options: &PageOptions) -> Vec<u8> {
    let [headline, subject] = heading(curve);
    let heading = Heading { headline, subject, ..Heading::default() };
    let data = data::of_json(json, options.embed);
    let footer = sections::footer(&curve.tool.version, data, sections::DataKind::Series);
    heading.page(options, html! { (heading.markup(options)) (of_series::sections(curve)) (footer) })
}

/// The top of a page: what came out, of what, and short marks.
#[derive(Clone, Debug, Default)]
struct Heading {
    /// The one sentence, which is the title too.
    headline: String,
    /// The servers and the time that it is of; empty where the headline names them.
    subject: String,
    /// Words, and whether each is good; `None` for what is neither.
    badges: Vec<(String, Option<bool>)>,
}

impl Heading {
    fn markup(&self, options: &PageOptions) -> Markup {
        html! {
            @if let Some(title) = &options.title { p.dim { (cut_name(title, WORDS_MAX)) } }
            h1 { (unbroken(&self.headline)) }
            @if !self.subject.is_empty() { p.dim { (unbroken(&self.subject)) } }
            @if !self.badges.is_empty() {
                ul.badges { @for (words, is_good) in &self.badges {
                    li class=[is_good.map(|is_good| if is_good { "good" } else { "bad" })] { (cut_name(words, WORDS_MAX)) }
                } }
            }
        }
    }

    /// A page around its body. Nothing runs and nothing is drawn but the page's own script and style, by their hashes.
    fn page(&self, options: &PageOptions, body: Markup) -> Vec<u8> {
        let hash = |text: &str| base64_of(digest(&SHA256, text.as_bytes()).as_ref());
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            hash(STYLE),
            hash(SCRIPT)
        );
        let own = match self.subject.is_empty() {
            true => self.headline.clone(),
            false => format!("{} - {}", self.headline, self.subject),
        };
        let title = cut_name(options.title.as_ref().unwrap_or(&own), WORDS_MAX);
        let page = html! {
            (PreEscaped("<!doctype html>\n"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="generator" content=(format!("pummel {VERSION}"));
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body { main { (body) } script { (PreEscaped(SCRIPT)) } }
            }
            (PreEscaped("\n"))
        };
        frame::visible(&page).into_bytes()
    }
}
