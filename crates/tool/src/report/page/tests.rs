//! Pages of runs in miniature: readable as XML, with nothing foreign in them, within their size.

use super::*;
use crate::report::document::{Document, TrustResult};
use crate::report::example::{Run, sample};
use crate::report::stored;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::recorder::Sample;
use pummel_logic::plan::{Clock, Goal};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::{MILLISECOND, SECOND};

/// The page without its own script and style, whose text is not that of XML.
fn body(page: &[u8]) -> String {
    let page = String::from_utf8(page.to_vec()).expect("UTF-8");
    page.replace(STYLE, "").replace(SCRIPT, "").replace("<!doctype html>\n", "")
}

/// Asserts that every element is closed in order, that attributes are quoted, and that no text holds a bare mark.
#[track_caller]
fn is_well_formed(text: &str) {
    let (mut open, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a bare > in: {}", &rest[..at]);
        let end = rest[at..].find('>').expect("a tag has an end") + at;
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
        let name = |tag: &str| tag.split_whitespace().next().unwrap_or_default().to_owned();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "closed in order");
        } else if !tag.ends_with('/') {
            open.push(name(tag));
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "not closed: {open:?}");
}

#[track_caller]
fn page_of(run: &Run) -> String {
    let page = run.document(render);
    let body = body(&page);
    is_well_formed(&body);
    assert!(!body.contains("NaN") && !body.contains("inf "), "{body}");
    body
}

#[test]
fn a_run_has_its_four_pictures_each_with_title_description_and_numbers() {
    let mut run = Run::new(Keep::Figures).with_windows();
    run.plan.goals = vec![
        Goal { quantile: 0.99, limit_ns: MILLISECOND },
        Goal { quantile: 0.5, limit_ns: MILLISECOND / 100 },
    ];
    let page = page_of(&run);
    for name in ["curve", "heat", "rate", "anatomy"] {
        assert!(page.contains(&format!("aria-labelledby=\"{name}-t {name}-d\"")), "{name}");
        assert!(page.contains(&format!("<title id=\"{name}-t\">")), "{name}");
        assert!(page.contains(&format!("<desc id=\"{name}-d\">")), "{name}");
    }
    assert_eq!(page.matches("<svg ").count(), 4);
    assert_eq!(page.matches("<summary>The numbers</summary>").count(), 4);
    assert!(
        page.contains(
            "127.0.0.1:11211 answered 1,000 req/s; p99 92.9 us, p99.9 93.6 us; nobody was the limit."
        ),
        "{page}"
    );
    assert!(page.contains("class=\"goal missed\"") && page.contains("class=\"goal\""));
    assert!(page.contains("class=\"whisker\""));
    assert!(page.contains("<h2>99 % of the requests within 92.9 us</h2>"), "{page}");
}

#[test]
fn a_page_refers_to_nothing_outside_and_runs_nothing_but_its_own() {
    let page = String::from_utf8(Run::new(Keep::Figures).document(render)).unwrap();
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http://", "https://", "src=", "@import", "url(", "style=", "onload"] {
        assert!(!outside.contains(word), "{word}");
    }
    let hash = |text: &str| base64_of(digest(&SHA256, text.as_bytes()).as_ref());
    for text in [STYLE, SCRIPT] {
        assert!(page.contains(&format!("'sha256-{}'", hash(text))));
        assert_eq!(page.matches(text).count(), 1);
    }
    assert!(SCRIPT.len() <= 16 * 1024, "{} bytes of script", SCRIPT.len());
}

#[test]
fn a_run_in_which_nothing_completed_says_so_in_place_of_pictures() {
    let mut run = Run::new(Keep::Figures);
    run.measurement = Measurement::new(["all".to_owned()], Clock::User, MILLISECOND);
    run.measurement.mark(Status::Partial, "connection refused");
    let page = page_of(&run);
    assert!(page.contains("<h1>127.0.0.1:11211 completed no request.</h1>"), "{page}");
    assert!(page.contains("<dt>Reason</dt><dd>connection refused</dd>"));
    assert!(page.contains("No request was answered, so there are no times to draw."));
    assert_eq!(page.matches("<svg ").count(), 0);
}

#[test]
fn one_interval_is_enough_for_every_picture() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.intervals.truncate(1);
    let page = page_of(&run);
    assert_eq!(page.matches("<svg ").count(), 4);
    assert!(page.contains("class=\"bar\""), "a rate of one interval is a bar");
}

#[test]
fn requests_without_an_answer_are_drawn_and_counted() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..500 {
            let outcome = Outcome::Error(Fault::Timeout);
            interval.groups[0].record(&Sample { outcome, ..sample(i) });
        }
        interval.groups[0].unsent(Verb::Get, 20);
    });
    run.plan.phases[0].stop.time_ns = Some(10 * SECOND);
    let page = page_of(&run);
    assert!(page.contains("class=\"unanswered\"") && page.contains("520 without an answer"), "{page}");
    assert!(page.contains("Triangle: what lies beyond got no answer."));
    assert!(page.contains("ended before its time"));
    assert!(page.contains("500 timeout, 20 unsent"), "{page}");
}

#[test]
fn a_run_of_only_unknown_quantiles_has_a_page() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| interval.groups[0].unsent(Verb::Get, 1_000_000));
    let page = page_of(&run);
    assert!(page.contains("Too many requests got no answer"), "{page}");
}

#[test]
fn times_that_are_partly_the_generators_own_are_marked() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    document.trust = Some(TrustResult { ok: false, says: "lag".to_owned(), ..TrustResult::default() });
    let page = body(&render(&document));
    assert!(page.contains("class=\"doubt\"") && page.contains("times are partly the generator&#39;s own"));
}

#[test]
fn hostile_names_and_messages_are_text() {
    let hostile = "</script><img src=x onerror=\"alert('1')\">\u{202e}\u{0}";
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    document.plan.servers = vec![hostile.to_owned()];
    document.reason = Some(hostile.to_owned());
    document.error_messages = [(hostile, 3)].into_iter().collect();
    document.ops.0[0].0 = hostile.to_owned();
    document.tool.version = hostile.to_owned();
    let page = body(&render(&document));
    is_well_formed(&page);
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{0}'));
    let options = PageOptions { title: Some(hostile.to_owned()), embed: Embed::None };
    is_well_formed(&body(&of_run(&document, &options)));
}

/// A run of many intervals of two operations.
fn long_run(intervals: u64) -> Document {
    let mut run = Run::new(Keep::Figures);
    run.measurement.intervals.clear();
    for index in 0..intervals {
        run.interval(index, Keep::Figures, |interval| {
            for i in 0..60 {
                let one = sample(i * 7 + index * 13);
                let slow = (index * i) % 97 * 31_000 + (i * i * 1_777) % 60_000;
                interval.groups[0].record(&Sample {
                    arrived: one.arrived + slow,
                    read: one.read + slow,
                    ..one
                });
            }
        });
    }
    run.measurement.measured_ns = intervals * SECOND;
    run.document(Clone::clone)
}

#[test]
fn ten_minutes_of_two_operations_take_less_than_400_kilobytes() {
    let document = long_run(600);
    let page = render(&document);
    assert!(page.len() < 400_000, "{} bytes", page.len());
    is_well_formed(&body(&page));
    let text = String::from_utf8(page).unwrap();
    assert!(text.contains("A column is 3 intervals."));
}

#[test]
fn a_page_is_a_result_that_can_be_read_again() {
    let document = Run::new(Keep::Figures).document(Clone::clone);
    let whole = of_run(&document, &PageOptions { title: None, embed: Embed::Full });
    let json = stored::json_of(&whole).expect("it holds the data");
    assert_eq!(Document::read(&json).expect("a result"), document);
    let reduced = stored::json_of(&render(&long_run(2_000))).expect("it holds the data");
    let reduced = Document::read(&reduced).expect("a result");
    assert!(reduced.intervals.len() < 2_000);
    assert_eq!(reduced.totals, long_run(2_000).totals, "figures of the run stay as they are");
    let sum: u64 = reduced.intervals.iter().flat_map(|one| one.ops.iter().map(|(_, op)| op.completed)).sum();
    assert_eq!(sum, 60 * 2_000, "counts of merged intervals are exact");
    let none = of_run(&document, &PageOptions { title: None, embed: Embed::None });
    assert_eq!(stored::json_of(&none), Err(stored::NotStored::Page));
}

#[test]
fn a_search_is_drawn_with_what_it_found() {
    let run = |asked: Option<f64>, rate: f64, p99: f64| {
        serde_json::json!({
            "role": "search", "asked_rate": asked, "rate": rate, "seconds": 2.0, "requests": 9,
            "response_us": {"p50": 40.0, "p90": 60.0, "p95": 70.0, "p99": p99, "p99.9": null, "p99.99": null},
            "met": p99 < 1_000.0, "carried": p99 < 50_000.0, "limit": "server", "says": "x", "trust": true
        })
    };
    let json = serde_json::json!({
        "schema": 1, "tool": {"name": "pummel", "version": "1"}, "command": "search",
        "goals": [{"quantile": 0.99, "limit_us": 1_000.0}], "found_rate": 50_000.0, "fit": null, "reason": null,
        "runs": [run(None, 100_000.0, 3_000.0), run(Some(50_000.0), 50_000.0, 400.0), run(Some(75_000.0), 75_000.0, 2_000.0),
                 run(Some(99_000.0), 90_000.0, 90_000.0)]
    });
    let json = serde_json::to_vec(&json).unwrap();
    let document = CurveDocument::read(&json).expect("a search");
    let page = body(&of_curve(&document, &json, &PageOptions::default()));
    is_well_formed(&page);
    assert!(page.contains("The goal is met at 50,000 requests per second (4 runs)."));
    assert!(
        page.contains("found 50,000/s")
            && page.contains("class=\"hollow p99\"")
            && page.contains("closed loop")
    );
    assert_eq!(stored::json_of(&of_curve(&document, &json, &PageOptions::default())).unwrap(), json);
}
