//! Pages of runs in miniature: readable as XML, with nothing foreign in them, within their size.

use super::*;
use crate::comparison::suite_tests::{in_any_order, planted, suites};
use crate::comparison::{
    Claim, ClaimKind, Comparison, PairCommand, Question, SIDE_NAMES, Side, SideNames, SideSource, StoredFile,
    SuiteSide, SuitesComparison, side_of,
};
use crate::document::{
    AgentsResult, CurveSearch, Document, EventResult, LossResult, MemberResult, PartResult, PhaseResult,
    ServerRequestsResult, ServerTimes, SliceConnectionsResult, StopResult, TrustResult,
};
use crate::example::{Run, sample};
use crate::repetition::Repetition;
use crate::run_figures::Metric;
use crate::run_figures::tests::run_at;
use crate::stored;
use crate::stored::ResultDocument;
use pummel_logic::plan::{Clock, Command, FailOn, Goal};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::{MILLISECOND, SECOND};
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::reason::Reason;
use pummel_measure::recorder::Sample;

/// The page of a run, as `--report` writes it.
fn render(document: &Document) -> Vec<u8> {
    of_run(document, &PageOptions::default())
}

/// The page as screens show it: without its own script and style, whose text is not that of a page, and without the pictures of
/// telephones, which have the same words. Blanks that do not end a line are blanks.
fn body(page: &[u8]) -> String {
    let page = String::from_utf8(page.to_vec()).expect("UTF-8").replace('\u{a0}', " ");
    let page = page.replace(STYLE, "").replace(SCRIPT, "").replace("<!doctype html>\n", "");
    is_well_formed(&page);
    let mut parts = page.split("<div class=\"narrow\">");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("</svg></div>").expect("a picture ends").1)
}

/// A picture, of which parts are elements of their own.
const PICTURE: &str = "role=\"img\"";

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
        } else if !["meta", "wbr"].contains(&name(tag).as_str()) {
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
    // The data of the page are base64, which may spell anything.
    let is_text = |c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c);
    assert!(!body.split(is_text).any(|word| ["NaN", "inf"].contains(&word)), "{body}");
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
    // The panels of the operations are beside them, and the heat map of the service times, which is opened on demand.
    assert_eq!(page.matches(PICTURE).count(), 6);
    assert!(page.contains("<summary>Service times instead</summary>"));
    assert!(
        page.contains("<h1>GOAL MISSED. 1,000 req/s of 1,000 asked; 94.4 % hits, no errors</h1>"),
        "{page}"
    );
    assert!(page.contains("<p class=\"dim\">127.0.0.1:11211, 2.00 s measured</p>"), "{page}");
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
    run.measurement.mark(Status::Partial, Reason::NotBegun { what: "connection refused".to_owned() });
    let page = page_of(&run);
    assert!(page.contains("<h1>PARTIAL: connection refused. No request was completed</h1>"), "{page}");
    assert!(page.contains("No request was answered, so there are no times to draw."));
    assert_eq!(page.matches(PICTURE).count(), 0);
}

#[test]
fn one_interval_is_enough_for_every_picture() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.intervals.truncate(1);
    let page = page_of(&run);
    assert_eq!(page.matches(PICTURE).count(), 6);
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
        interval.groups[0].counts(Verb::Get).unsent += 20;
    });
    let page = page_of(&run);
    assert!(page.contains("class=\"unanswered\"") && page.contains("520 without an answer"), "{page}");
    assert!(page.contains("Triangle: what lies beyond got no answer."));
    assert!(page.contains("Beyond the triangles of wait and lag it was not even sent."));
    let (lines, missing) = run.document(|document| {
        let missing = document.ops.iter().map(|(_, op)| op.unsent).sum::<u64>();
        (picture_data::curve_of(document).lines, missing)
    });
    for class in ["wait", "lag"] {
        let line = lines.iter().find(|line| line.class == class).expect("a line");
        assert!(line.is_open && missing == 20, "{class}");
        assert_eq!(line.count, 2_520.0, "every request that was due counts in {class}");
    }
    assert!(page.contains("500 timeout, 20 unsent"), "{page}");
}

#[test]
fn only_a_run_that_is_not_complete_ended_before_its_time() {
    let mut run = Run::new(Keep::Figures);
    run.plan.phases[0].stop.time_ns = Some(10 * SECOND);
    assert!(!page_of(&run).contains("ended before its time"), "a number of requests ended it");
    run.measurement.mark(Status::Interrupted, Reason::Interrupted);
    assert!(page_of(&run).contains("ended before its time"));
}

#[test]
fn what_became_of_the_requests_adds_up() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..3 {
            let outcome = Outcome::Error(Fault::Timeout);
            interval.groups[0].record(&Sample { outcome, ..sample(i) });
        }
        interval.groups[0].counts(Verb::Get).unsent += 4;
    });
    let page = page_of(&run);
    assert!(page.contains("<h2>2,000 of 2,007 requests completed, 3 failed, 4 never sent</h2>"), "{page}");
}

#[test]
fn a_headline_says_what_was_found_whatever_the_server_is_called() {
    let mut run = Run::new(Keep::Figures);
    run.plan.servers = vec!["x".repeat(10_000)];
    let page = page_of(&run);
    let headline = page.split("<h1>").nth(1).and_then(|rest| rest.split("</h1>").next()).expect("a headline");
    assert!(headline.contains("1,000 req/s") && page.contains("xxx\u{2026}, 2.00 s measured"), "{headline}");
}

#[test]
fn a_run_of_only_unknown_quantiles_has_a_page() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| interval.groups[0].counts(Verb::Get).unsent += 1_000_000);
    let page = page_of(&run);
    assert!(page.contains("Too many requests got no answer"), "{page}");
}

#[test]
fn the_title_of_a_run_that_failed_or_was_overloaded_says_so() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    assert!(!body(&render(&document)).contains("OVERLOADED"));
    for (outcome, word) in [(RunOutcome::Failed, "FAILED"), (RunOutcome::Overloaded, "OVERLOADED")] {
        document.outcome = outcome;
        let page = body(&render(&document));
        assert!(
            page.contains(&format!("<title>{word}: ")) && page.contains(&format!("<h1>{word}: ")),
            "{page}"
        );
    }
}

#[test]
fn a_run_in_which_the_server_stopped_has_no_intervals_on_the_page_either() {
    let mut document = Run::new(Keep::Figures).with_windows().document(Clone::clone);
    let sure = "<dt>Intervals</dt><dd>95 % within the run";
    let page = body(&render(&document));
    assert!(page.contains("class=\"whisker\"") && page.contains(sure), "{page}");
    document.stops = vec![StopResult { from_s: 0.1, to_s: 1.9, lasted: false }];
    let page = body(&render(&document));
    assert!(!page.contains("whisker") && !page.contains(sure), "{page}");
    assert!(
        page.contains("<dt>No intervals</dt><dd>One stop does not tell how often it happens</dd>"),
        "{page}"
    );
}

#[test]
fn times_are_called_reliable_as_far_as_they_are() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    let trust = TrustResult { ok: true, says: "lag".to_owned(), ..TrustResult::default() };
    document.trust = Some(trust.clone());
    assert!(body(&render(&document)).contains("times are reliable"));
    document.trust = Some(TrustResult { mostly_lag: vec!["p99.9".to_owned()], ..trust });
    assert!(body(&render(&document)).contains("times up to p99 are reliable"));
}

#[test]
fn times_with_a_part_of_pummels_are_marked() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    document.trust = Some(TrustResult { ok: false, says: "lag".to_owned(), ..TrustResult::default() });
    let page = body(&render(&document));
    assert!(page.contains("class=\"doubt\"") && page.contains("part of the times was added by pummel"));
}

#[test]
fn a_run_that_failed_on_something_has_a_badge_for_it() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    document.plan.fail_on = vec![FailOn::Untrusted, FailOn::Errors];
    assert!(!body(&render(&document)).contains("FAILED"));
    document.trust = Some(TrustResult { ok: false, says: "lag".to_owned(), ..TrustResult::default() });
    let page = body(&render(&document));
    assert!(page.contains("<li class=\"bad\">FAILED on untrusted</li>"), "{page}");
    assert!(!page.contains("FAILED on errors"), "{page}");
    document.plan.fail_on = vec![FailOn::Unsteady];
    document.steady = None;
    let page = body(&render(&document));
    assert!(page.contains("<li class=\"bad\">unsteady: not judged</li>"), "{page}");
    assert!(!page.contains("FAILED"), "{page}");
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
    let merged = 2_000 - reduced.intervals.len() as u64;
    assert_eq!(reduced.intervals_merged, merged, "they are of other times than those of other results");
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
    let document = series(&json);
    let page = body(&of_curve(&document, &json, &PageOptions::default()));
    is_well_formed(&page);
    assert!(
        page.contains(
            "<h1>50,000 req/s meet p99 &lt;= 1 ms, with 95 % confidence</h1><p class=\"dim\">4 runs</p>"
        ),
        "{page}"
    );
    assert!(
        page.contains("found 50,000/s")
            && page.contains("class=\"hollow p99\"")
            && page.contains("closed loop")
    );
    assert_eq!(stored::json_of(&of_curve(&document, &json, &PageOptions::default())).unwrap(), json);
    assert!(page.contains("crosses are rates that were not carried"), "{page}");
    for unseen in ["pale points", "shaded field", "class=\"between\""] {
        assert!(!page.contains(unseen), "what is not drawn is not explained");
    }
    let statement = "<h2>p99 400 us at 50,000 completed per second, 90.0 ms at 90,000</h2>";
    assert!(page.contains(statement), "{page}");
    assert!(page.contains("<code>pummel show --format json</code> also takes this page."), "{page}");
    assert!(page.contains("<dt>Trust</dt><dd>reliable in all runs</dd>"), "{page}");
    let mut unknown = document;
    unknown.found_rate = None;
    unknown.runs[1].trust = false;
    unknown.runs[1].mostly_lag = vec!["p99".to_owned(), "max".to_owned()];
    unknown.runs[2].outcome = RunOutcome::Overloaded;
    let page = body(&of_curve(&unknown, &json, &PageOptions::default()));
    let heading = "<h1>NOT SURE: 50,000 req/s met p99 &lt;= 1 ms (400 us), but 2 s is too short to be 95 % sure. Again with -t 10s</h1>";
    assert!(page.contains(heading), "{page}");
    let trust = "<dt>Trust</dt><dd>reliable in 3 of 4 runs, the times partly pummel's own in 1</dd>";
    assert!(page.contains(trust), "{page}");
    assert!(
        page.contains("<th class=\"name\">goal</th>") && page.contains("<td class=\"name\">missed"),
        "{page}"
    );
    unknown.search =
        Some(CurveSearch { low: Some(50_000.0), high: Some(75_000.0), ..CurveSearch::default() });
    let ends = |low| [Some(low), None];
    unknown.runs[2].response_ci_us =
        [("p50".to_owned(), ends(30.0)), ("p99".to_owned(), ends(900.0))].into_iter().collect();
    let page = body(&of_curve(&unknown, &json, &PageOptions::default()));
    assert!(page.contains("class=\"dot p50 doubtful\"") && page.contains("pale points"), "{page}");
    assert!(
        page.contains("class=\"between\"") && page.contains("the limit lies in the shaded field"),
        "{page}"
    );
    assert!(page.contains("class=\"interval p99\"") && !page.contains("class=\"interval p50\""), "{page}");
}

/// The series in this JSON.
fn series(json: &[u8]) -> CurveDocument {
    match stored::read(json) {
        Ok(ResultDocument::Series(series)) => *series,
        other => panic!("a series: {other:?}"),
    }
}

/// Comparisons of documents with the first of them.
fn compared(documents: &[Document]) -> (Vec<Comparison>, Vec<Vec<Document>>) {
    let side = |(place, document): (usize, &Document)| {
        let result = ResultDocument::Run(Box::new(document.clone()));
        side_of(&[StoredFile { name: format!("{place}</script>.json"), result }]).expect("a side")
    };
    let sides: Vec<_> = documents.iter().enumerate().map(side).collect();
    let pairs = sides.iter().enumerate().skip(1).map(|(place, other)| {
        let names = SideNames([SIDE_NAMES[0], SIDE_NAMES[place]]);
        Comparison::of_results([sides[0].clone(), other.clone()], &Question { names, ..Question::default() })
    });
    (pairs.collect(), documents.iter().map(|document| vec![document.clone()]).collect())
}

#[test]
fn two_to_eight_results_have_a_page_of_their_own() {
    let documents: Vec<Document> =
        (1..=8).map(|scale| long_run(4 * scale)).chain(std::iter::once(long_run(5))).take(8).collect();
    for count in [2, 3, 8] {
        let (comparisons, documents) = compared(&documents[..count]);
        let sides = ComparedSides { comparisons: &comparisons, documents: &documents };
        let options = PageOptions { title: None, embed: Embed::Full };
        let page = of_comparison(&sides, &options);
        let body = body(&page);
        is_well_formed(&body);
        for name in ["curves", "difference", "rates", "anatomies"] {
            assert!(body.contains(&format!("<title id=\"{name}-t\">")), "{name} of {count}");
        }
        assert!(!body.contains("</script>.json") && body.contains("&lt;/script&gt;.json"), "names are text");
        assert_eq!(body.matches("<h3>").count(), count, "each result says what it says of itself");
        let last = SIDE_NAMES[count - 1];
        assert!(body.contains(&format!("<h2>{last} against A</h2>")), "{last}");
        assert!(body.contains(&format!("c{count}\"")), "each side has its line");
        let json = stored::json_of(&page).expect("the page holds the comparison");
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    }
}

#[test]
fn two_suites_have_a_page_with_a_row_for_each_run_in_its_picture_and_its_table() {
    let mut compared = suites(6, &planted(1.3), &in_any_order());
    compared.pairs[3].name = "reads </script>".to_owned();
    let page = of_suites(&compared, &PageOptions { title: None, embed: Embed::Full });
    let shown = body(&page);
    is_well_formed(&shown);
    assert!(shown.contains("<h1>1 of 12 runs differs: &quot;reads &lt;/script&gt;&quot; p99 +"), "{shown}");
    for (piece, count) in [
        ("class=\"interval c1\"", 11),
        ("class=\"interval c2\"", 1),
        ("<details><summary>run ", 11),
        (">differs</td>", 1),
        (">not shown</td>", 11),
        ("<title id=\"changes-t\">By how much p99 of B differs from A</title>", 1),
    ] {
        assert_eq!(shown.matches(piece).count(), count, "{piece}: {shown}");
    }
    let Ok(ResultDocument::Suites(read)) = stored::read(&stored::json_of(&page).expect("data")) else {
        panic!("the page holds the comparison")
    };
    assert_eq!(*read, compared);
    // Several figures are told apart, and gates have a badge each.
    let gates = Question {
        metrics: vec![Metric::P50, Metric::P99],
        claims: vec![Claim { metric: Metric::P99, limit: 0.1, kind: ClaimKind::Worse }],
        ..in_any_order()
    };
    let page = of_suites(&suites(7, &planted(1.3), &gates), &PageOptions::default());
    let page = body(&page);
    is_well_formed(&page);
    assert!(
        page.contains(">p50 run 3<") && page.contains("<li class=\"bad\">run 3: --worse p99: failed</li>"),
        "{page}"
    );
    assert_eq!(page.matches("<li class=\"good\">").count(), 11, "{page}");
    let none = SuitesComparison::of(SuiteSide::default(), SuiteSide::default(), &in_any_order());
    let page = body(&of_suites(&none, &PageOptions::default()));
    is_well_formed(&page);
    assert!(page.contains("no run is in both suites") && !page.contains("Each run"), "{page}");
}

#[test]
fn hits_and_misses_have_a_table_where_misses_are_told_apart() {
    let mut run = Run::new(Keep::Figures);
    assert!(!body(&run.document(render)).contains("first touch"));
    let cache = CacheCounts {
        first_touch: 30,
        other: 70,
        hit_bytes: 900,
        missed_bytes: 300,
        ..CacheCounts::default()
    };
    run.interval(2, Keep::Figures, |interval| {
        interval.groups[0].record(&sample(1));
        interval.groups[0].counts(Verb::Get).cache.add(&cache);
    });
    let page = body(&run.document(render));
    is_well_formed(&page);
    assert!(page.contains(" % of the keys read were found</h2>"), "{page}");
    assert!(page.contains("<th>first touch</th>") && page.contains("<td>75.0</td><td>30</td>"), "{page}");
}

#[test]
fn phases_have_a_table_and_part_the_picture_of_the_rate() {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    assert!(!body(&render(&document)).contains("<th>phase</th>"));
    let part = |name: &str, at_s: f64| PhaseResult {
        name: name.to_owned(),
        at_s,
        seconds: 1.0,
        connections: None,
        totals: document.totals.clone(),
        ops: document.ops.clone(),
        cache: None,
    };
    document.phases = vec![part("calm", 0.0), part("flash</script>", 1.0)];
    let page = body(&render(&document));
    is_well_formed(&page);
    assert!(page.contains("<th>phase</th>") && page.contains("flash&lt;/script&gt;</td>"), "{page}");
    assert!(page.contains("Slowest phase: ") && !page.contains("<th>connections</th>"), "{page}");
    assert_eq!(
        page.matches("class=\"line dotted part\"").count(),
        1,
        "the first phase begins with the picture"
    );
    assert!(page.contains("Dotted lines part the phases."));
    document.phases[1].connections = Some(1_200);
    let page = body(&render(&document));
    is_well_formed(&page);
    assert!(page.contains("<th>connections</th>") && page.contains("1,200</td>"), "{page}");
}

#[test]
fn results_that_keep_histograms_have_their_distributions_on_demand() {
    let (comparisons, documents) = compared(&[long_run(4), long_run(8)]);
    let sides = ComparedSides { comparisons: &comparisons, documents: &documents };
    let page = body(&of_comparison(&sides, &PageOptions::default()));
    is_well_formed(&page);
    assert!(page.contains("<summary>Distributions instead</summary>"));
    // The difference at a quantile is that of the table of the pair, which has it as a factor.
    let rows: Vec<&str> = page.split("<tr><td>p50</td>").skip(1).collect();
    let figure = |row: &str, mark: &str| -> f64 {
        let words = row.split(mark).nth(1).and_then(|rest| rest.split([' ', '<']).next()).expect("a figure");
        words.parse().unwrap_or_else(|_| panic!("{words} is no number"))
    };
    let told = (figure(rows[0], "<td>x ") - 1.0) * 100.0;
    let drawn = figure(rows[rows.len() - 1], "<td>+");
    assert!((told - drawn).abs() <= 0.5, "{told} % is told and {drawn} % drawn");
    assert!(page.contains("<title id=\"distributions-t\">") && page.contains("within "), "{page}");
}

/// Repeated runs whose times differ.
fn repetition(runs: usize) -> Repetition {
    let scale = |run: usize| 1.0 + (run % 3) as f64 / 4.0;
    let argv = ["pummel", "run", "--label", "a=<b>"].map(str::to_owned).to_vec();
    let mut made = Repetition::new(&Run::new(Keep::Figures).plan, argv, runs as u32, Some(true));
    made.extend((0..runs).map(|run| run_at(run as f64, scale(run))), SideSource::default());
    made
}

#[test]
fn the_title_of_repeated_runs_names_an_outcome_of_more_than_half_of_them() {
    let mut made = repetition(3);
    let title = |made: &Repetition| {
        let page = body(&of_repetition(made, &PageOptions::default()));
        page.split("<title>").nth(1).expect("a title").split('<').next().unwrap_or_default().to_owned()
    };
    made.runs[0].outcome = RunOutcome::Overloaded;
    assert!(!title(&made).starts_with("OVERLOADED"), "{}", title(&made));
    made.runs[1].outcome = RunOutcome::Overloaded;
    assert!(title(&made).starts_with("OVERLOADED"), "{}", title(&made));
    let page = body(&of_repetition(&made, &PageOptions::default()));
    assert!(
        page.contains("2 of 3 runs: more requests were due")
            && page.contains("<td class=\"name\">OVERLOADED</td>"),
        "{page}"
    );
}

#[test]
fn repeated_runs_have_a_page_of_their_medians_and_of_each_run() {
    for runs in [0, 1, 2, 7, 60] {
        let mut made = repetition(runs);
        if runs == 2 {
            made.end(Some("</script>".to_owned()), true);
        }
        let page = of_repetition(&made, &PageOptions::default());
        let text = body(&page);
        is_well_formed(&text);
        assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
        assert_eq!(text.matches(PICTURE).count(), if runs == 0 { 0 } else { 2 }, "{runs} runs");
        let stored = stored::json_of(&page).expect("it holds the data");
        assert_eq!(stored, crate::repetition::json(&made));
        assert!(text.contains("pummel run --label 'a=&lt;b&gt;'"), "{text}");
        if runs == 7 {
            assert!(text.contains("<tr class=\"about\"><td>95 % sure</td>"), "{text}");
            assert!(text.contains("which chance does not explain"), "{text}");
            assert_eq!(text.matches("<circle class=\"dot p99\"").count(), 7);
        }
    }
}

#[test]
fn sides_by_turns_show_each_pair() {
    let sides = [1.0, 1.1].map(|scale| {
        let runs = (0..7).map(|run| run_at(f64::from(run), scale)).collect();
        Side::new(format!("</b> {scale}"), &Run::new(Keep::Figures).plan, SideSource::default(), runs)
    });
    let pair = Comparison::of_pairs(PairCommand::Ab, sides, &Question::default());
    let page = of_pair(&pair, &PageOptions::default());
    let text = body(&page);
    is_well_formed(&text);
    assert!(text.contains("<h2>p99 of each pair</h2>"), "{text}");
    assert_eq!(text.matches("<circle class=\"dot c2\"").count(), 14, "p99 and rate of seven pairs");
    assert_eq!(stored::json_of(&page).expect("data"), crate::comparison::json(&pair));
    assert!(!text.contains("Distributions instead"), "results of pairs keep no histograms");
}

#[test]
fn repeated_runs_are_drawn_by_the_medians_of_their_figures() {
    let (comparisons, _) = compared(&[long_run(4), long_run(8)]);
    let nothing = [Vec::new(), Vec::new()];
    let sides = ComparedSides { comparisons: &comparisons, documents: &nothing };
    let body = body(&of_comparison(&sides, &PageOptions::default()));
    is_well_formed(&body);
    assert!(body.contains("Of results without histograms a line joins p50"), "{body}");
    assert!(
        !body.contains("<h2>Completed per second") && !body.contains("no intervals"),
        "no empty sections"
    );
    assert!(body.contains("<pre id=\"plan-A\">") && body.contains("<pre id=\"plan-B\">"), "{body}");
}

/// A run of several agents and servers in which connections were lost.
fn crowded(members: usize) -> Document {
    let mut document = long_run(12);
    let part = |place: usize, at: usize| PartResult {
        rate: 100.0,
        failed: 0,
        p50_us: Some(50.0),
        p99_us: Some(if place == 1 { 900.0 } else { 100.0 + at as f64 }),
    };
    for (at, interval) in document.intervals.iter_mut().enumerate() {
        interval.agents = (0..members.min(24)).map(|place| part(place, at)).collect();
        interval.servers = (0..2).map(|place| part(place, at)).collect();
        let lost = u64::from(at == 5) * 3;
        interval.connections = Some(SliceConnectionsResult { open: 10 - lost, lost, ..Default::default() });
    }
    let member = |place: usize| MemberResult {
        name: format!("agent-{place}<b>"),
        lost: (place == 2).then(|| LossResult {
            at_s: Some(3.0),
            why: "it said nothing".to_owned(),
            ..LossResult::default()
        }),
        times: document.totals.times.clone(),
        ..MemberResult::default()
    };
    document.agents = Some(AgentsResult {
        start_spread_us: Some(12.0),
        lost: 1,
        members: (0..members).map(member).collect(),
    });
    let server = |address: &str, p99: f64| ServerRequestsResult {
        address: address.to_owned(),
        completed: 7,
        service_us: ServerTimes { p99: Some(p99), ..ServerTimes::default() },
        ..ServerRequestsResult::default()
    };
    document.servers = vec![server("a:1", 100.0), server("b:1", 900.0)];
    document.plan.servers = vec!["a:1".to_owned(), "b:1".to_owned()];
    (document.connections.asked, document.connections.open, document.connections.lost) = (10, 10, 3);
    let event =
        EventResult { at_s: 5.0, kind: "connections".to_owned(), what: "3 connections <lost>".to_owned() };
    (document.events, document.events_beyond) = (vec![event], 1_000);
    document
}

#[test]
fn agents_servers_connections_and_events_have_their_place_where_there_are_some() {
    for members in [2, 24, 40] {
        let document = crowded(members);
        let body = body(&render(&document));
        is_well_formed(&body);
        for name in ["agents", "servers", "connections"] {
            assert!(body.contains(&format!("<title id=\"{name}-t\">")), "{name} of {members}");
        }
        assert!(body.contains("3 of 10") || body.contains("3 lost"), "connections");
        assert!(
            body.contains("What happened: 1,001 events")
                && body.contains("1,000 more events are not listed.")
        );
        assert!(!body.contains("<b>") && !body.contains("<lost>"), "names are text");
    }
    let plain = body(&render(&long_run(4)));
    for name in ["agents-t", "servers-t", "connections-t", "own-t", "What happened"] {
        assert!(!plain.contains(name), "{name}");
    }
}

#[test]
fn an_anonymous_page_does_not_say_that_its_plan_repeats_the_run() {
    let mut document = long_run(4);
    assert!(body(&render(&document)).contains("pummel run --plan FILE"));
    document.plan.anonymous = true;
    let page = body(&render(&document));
    assert!(!page.contains("--plan") && page.contains("this is not the plan of the same run"), "{page}");
}

#[test]
fn a_page_has_no_password_of_its_command_and_does_not_say_that_its_plan_repeats_the_run() {
    let mut document = long_run(4);
    document.plan.commands = vec![Command::unnamed("AUTH u SECRET")];
    document.plan = document.plan.told();
    let page = body(&render(&document));
    assert!(page.contains("AUTH u ***") && !page.contains("SECRET"), "{page}");
    assert!(!page.contains("--plan") && page.contains("Passwords in the command are masked"), "{page}");
}

#[test]
fn a_scan_over_connections_is_drawn_by_level_with_intervals() {
    let run = |n: u32, rate: f64| {
        serde_json::json!({
            "role": "scan", "asked_rate": null, "level": {"of": "connections", "n": n}, "rate": rate, "rate_ci": [rate - 9.0, rate + 9.0],
            "seconds": 2.0, "requests": 9, "response_us": {"p50": 40.0, "p99": 80.0 * f64::from(n)},
            "response_ci_us": {"p50": [39.0, 41.0], "p99": [70.0, null]}, "met": null, "carried": true, "limit": "server",
            "says": "x", "trust": true
        })
    };
    let json = serde_json::json!({
        "schema": 1, "tool": {"name": "pummel", "version": "1"}, "command": "scan", "goals": [], "found_rate": null,
        "fit": null, "reason": null, "runs": [run(1, 1_000.0), run(4, 3_500.0), run(16, 5_000.0)]
    });
    let json = serde_json::to_vec(&json).unwrap();
    let page = body(&of_curve(&series(&json), &json, &PageOptions::default()));
    is_well_formed(&page);
    assert!(page.contains("<h1>5,000 req/s at 16 connections</h1>"), "{page}");
    assert!(
        page.contains("class=\"line p99\"") && !page.contains("closed loop"),
        "levels are joined: {page}"
    );
    assert_eq!(page.matches("class=\"interval p50\"").count(), 3);
    assert!(page.contains("<th>connections</th>") && page.contains("<td>40.0 us</td>"), "{page}");
}
