//! Each rule with a result that has the fact, its nearest neighbour that does not, and a result of which nothing is found.

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Goal, Load, Phase, Plan, Popularity, Protocol, Stop, TlsOptions, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::MILLISECOND;
use pummel_measure::evidence::ServerCounts;
use pummel_measure::limit::Subject;
use pummel_measure::measurement::{Keep, Status};
use pummel_measure::outcome::RunOutcome;

use super::*;
use crate::comparison::{
    Comparison, PairCommand, Question, ServerSoftware, Side, SideNames, SideSource, json_of_all,
};
use crate::document::{
    CurveDocument, CurveRun, Document, EvidenceResult, GoalOutcome, NoIntervals, ObservationResult,
    ReadingResult, ReliableFigures, ServerResult, TimeFigures, TrustResult, VerdictResult,
};
use crate::example::Run;
use crate::json::render;
use crate::repetition::Repetition;
use crate::run_figures::RunFigures;
use crate::run_figures::tests::run_at;
use crate::screen::{Paper, draw};
use crate::stored::{self, ResultDocument};

/// A run of ten connections that loads 500 records of 4 kB, finds them all, and is long enough for its figures.
fn clean() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows();
    let work = Work::Load(Load { depth: 8, ..Load::default() });
    let load = Phase { name: "load".to_owned(), work, stop: Stop::default(), recorded: false };
    run.plan.phases.insert(0, load);
    (run.plan.data.records, run.plan.data.value_size) = (500, Dist::Fixed(4_000.0));
    let mut document = run.document(Clone::clone);
    for (_, op) in &mut document.ops.0 {
        (op.hits, op.misses) = (op.hits + op.misses, 0);
    }
    document.unexpected_misses = Some(0);
    document.steady = Some(true);
    document.change = None;
    document.certainty_missing_kind = None;
    let response = document.totals.times.response_us.as_mut().expect("it has times");
    response.ci = Some([("p99", [Some(90.0), Some(92.0)])].into_iter().collect());
    document.evidence = Some(evidence(|_| {}));
    document
}

/// Evidence of a memcached with four threads that counted what the clean run asked for.
fn evidence(change: impl Fn(&mut ReadingResult)) -> EvidenceResult {
    let counts = ServerCounts {
        requests: Some(2_000),
        hits: Some(1_800),
        misses: Some(0),
        evictions: Some(0),
        ..ServerCounts::default()
    };
    let mut reading = ReadingResult { serving_threads: Some(4), counts, ..ReadingResult::default() };
    change(&mut reading);
    let server = ServerResult { reading: Some(reading), ..ServerResult::default() };
    EvidenceResult { servers: vec![server], ..EvidenceResult::default() }
}

/// The sentences of a run after a change, those of findings behind an exclamation mark.
fn told(change: impl Fn(&mut Document)) -> Vec<String> {
    let mut document = clean();
    change(&mut document);
    sentences(&findings(&[Examined::of_run("a", &document)], false))
}

fn sentences(findings: &[Finding]) -> Vec<String> {
    let mark = |finding: &Finding| if finding.grade == Grade::Finding { "! " } else { "" };
    findings.iter().map(|finding| format!("{}{}", mark(finding), finding.says)).collect()
}

/// Gives a run a goal that it reached like this.
fn goal(document: &mut Document, quantile: f64, limit_us: f64, reached: (Option<f64>, Option<f64>)) {
    let goal = Goal { quantile, limit_ns: (limit_us * 1e3) as u64 };
    document.plan.goals = vec![goal];
    let (reached_us, above_us) = reached;
    document.goals =
        vec![GoalOutcome { quantile, limit_us, reached_us, above_us, met: Some(true), trust: true }];
}

fn ends(document: &mut Document, low: Option<f64>, high: Option<f64>) {
    let response = document.totals.times.response_us.get_or_insert_with(TimeFigures::default);
    response.ci = Some([("p99", [low, high])].into_iter().collect());
}

/// Makes the keys that the gets of a run missed so many of 1,800.
fn missed(document: &mut Document, misses: u64) {
    let gets = document.ops.0.iter_mut().find(|(name, _)| name == "get").expect("it has gets");
    (gets.1.hits, gets.1.misses) = (1_800 - misses, misses);
}

/// The mix of the measured phase.
fn mix(plan: &mut Plan) -> &mut pummel_logic::plan::Mix {
    let measured = plan.phases.iter_mut().find(|phase| phase.recorded).expect("a phase is measured");
    match &mut measured.work {
        Work::Mix(mix) => mix,
        other => panic!("{other:?} is no mix"),
    }
}

fn others(document: &mut Document, share: f64) {
    let seen = ObservationResult {
        value: Some(share),
        limit: Some(0.01),
        subject: Some(Subject::OtherClients { requests: 900 }),
        ..ObservationResult::default()
    };
    document.verdict.as_mut().expect("it was judged").evidence = vec![seen];
}

type Change = fn(&mut Document);

#[test]
fn nothing_is_found_of_a_clean_run() {
    assert_eq!(told(|_| {}), Vec::<String>::new());
}

#[test]
fn each_rule_finds_its_fact_and_not_the_neighbour_of_it() {
    let rows: [(Change, &str, Change); 25] = [
        (
            |run| {
                run.verdict = Some(VerdictResult {
                    limit: "generator".to_owned(),
                    says: "pummel: its thread was busy".to_owned(),
                    ..VerdictResult::default()
                });
            },
            "! pummel itself was the limit: pummel: its thread was busy",
            |run| {
                run.verdict = Some(VerdictResult { limit: "server".to_owned(), ..VerdictResult::default() });
            },
        ),
        (
            |run| {
                run.trust = Some(TrustResult {
                    says: "the moon was full".to_owned(),
                    kind: ReliableFigures::Other,
                    ..TrustResult::default()
                });
            },
            "! not all times are reliable: the moon was full",
            |run| run.trust = None,
        ),
        (
            |run| {
                goal(run, 0.99, 1_000.0, (Some(91.0), None));
                run.trust.as_mut().expect("it says").mostly_lag = vec!["p99".to_owned()];
            },
            "! half or more of p99, which a goal is about, is pummel's own delay",
            |run| {
                goal(run, 0.99, 1_000.0, (Some(91.0), None));
                run.trust.as_mut().expect("it says").mostly_lag = vec!["p99.9".to_owned()];
            },
        ),
        (
            |run| run.steady = Some(false),
            "! not at one level: the warm-up was over before the load had settled: no intervals",
            |run| run.steady = None,
        ),
        (
            |run| goal(run, 0.999, 1_000.0, (Some(91.0), None)),
            "! too short for a goal at p99.9: of 2,000 requests fewer than 10 lie beyond it, which takes 10,000",
            |run| goal(run, 0.99, 1_000.0, (Some(91.0), None)),
        ),
        (
            |run| goal(run, 0.99, 1_000.0, (None, Some(900.0))),
            "! p99, which a goal is about, falls among requests without an answer: it is more than 900 us",
            |run| goal(run, 0.99, 1_000.0, (Some(900.0), None)),
        ),
        (
            |run| {
                goal(run, 0.99, 1_000.0, (Some(900.0), None));
                ends(run, Some(800.0), Some(1_100.0));
            },
            "! a goal is not decided: p99 is between 800 us and 1.10 ms with 95 % confidence, and the limit of 1 ms is inside",
            |run| {
                goal(run, 0.99, 1_000.0, (Some(1_200.0), None));
                ends(run, Some(1_100.0), None);
            },
        ),
        (
            |run| {
                goal(run, 0.99, 1_000.0, (Some(900.0), None));
                run.totals.times.response_us.as_mut().expect("it has times").ci = None;
                run.certainty_missing_kind = Some(NoIntervals::Short);
            },
            "! too short to say how sure p99, which a goal is about, is",
            |run| {
                goal(run, 0.99, 1_000.0, (Some(900.0), None));
                run.totals.times.response_us.as_mut().expect("it has times").ci = None;
                run.certainty_missing_kind = Some(NoIntervals::LoadChanges);
            },
        ),
        (
            |run| run.certainty_missing_kind = Some(NoIntervals::Short),
            "too short to say how sure p99 is",
            |run| run.certainty_missing_kind = Some(NoIntervals::Trace),
        ),
        (
            |run| ends(run, Some(800.0), None),
            "too short to bound p99 from above",
            |run| {
                ends(run, Some(800.0), None);
                let response = run.totals.times.response_us.as_mut().expect("it has times");
                response.ci_unanswered = vec!["p99".to_owned()];
            },
        ),
        (
            |run| {
                (run.unexpected_misses, run.evidence) = (Some(100), None);
                missed(run, 100);
            },
            "! misses among 1,800 keys read: 100 of records that were loaded",
            |run| mix(&mut run.plan).ops.retain(|(verb, _)| *verb == Verb::Set),
        ),
        (
            |run| {
                run.plan.phases.remove(0);
                (run.unexpected_misses, run.evidence, run.load) = (None, None, None);
                missed(run, 1_800);
            },
            "! 1,800 of 1,800 keys read were misses, and the run loads nothing",
            |run| {
                run.plan.phases.remove(0);
                (run.unexpected_misses, run.evidence, run.load) = (None, None, None);
                missed(run, 1_800);
                mix(&mut run.plan).read_through_ns = Some(MILLISECOND);
            },
        ),
        (
            |run| {
                run.evidence = Some(evidence(|reading| {
                    (reading.counts.hits, reading.counts.misses) = (Some(900), Some(900));
                }))
            },
            "! of 1,800 keys read 900 were misses by the server's count, and 0 by the replies",
            |run| {
                run.evidence = Some(evidence(|reading| {
                    (reading.counts.hits, reading.counts.misses) = (Some(1_800), Some(900));
                }))
            },
        ),
        (
            |run| {
                let set = run.ops.0.iter_mut().find(|(name, _)| name == "set").expect("it has sets");
                set.0 = "add".to_owned();
                set.1.outcomes = [("not_stored", 200)].into_iter().collect();
            },
            "! add: 200 of 200 answered requests stored or found nothing, and its times are those of such requests",
            |run| {
                let set = run.ops.0.iter_mut().find(|(name, _)| name == "set").expect("it has sets");
                set.0 = "add".to_owned();
                set.1.outcomes = [("not_stored", 100), ("stored", 100)].into_iter().collect();
            },
        ),
        (
            |run| run.plan.data.records = 10_000,
            "! about 18 % of 10,000 records were asked for while it was measured (2,000 draws)",
            |run| {
                run.plan.data.records = 10_000;
                mix(&mut run.plan).popularity = Popularity::Ycsb;
            },
        ),
        (
            |run| run.plan.data.records = 2_000,
            "about 63 % of 2,000 records were asked for while it was measured (2,000 draws)",
            |run| run.plan.data.records = 600,
        ),
        (
            |run| {
                run.plan.data.records = 10_000;
                mix(&mut run.plan).popularity = Popularity::Zipf { exponent: 0.99 };
            },
            "about 9 % of 10,000 records were asked for while it was measured (2,000 draws by zipf:0.99)",
            |run| {
                run.plan.data.records = 300;
                mix(&mut run.plan).popularity = Popularity::Zipf { exponent: 0.99 };
            },
        ),
        (
            |run| run.plan.groups[0].clients = 1,
            "one connection: one thread of the server answered everything",
            |run| run.plan.groups[0].clients = 2,
        ),
        (
            |run| run.evidence = Some(evidence(|reading| reading.serving_threads = Some(1))),
            "one thread of the server answered everything",
            |run| {
                run.evidence = Some(evidence(|reading| reading.serving_threads = Some(1)));
                run.plan.protocol = Protocol::Resp3;
            },
        ),
        (
            |run| run.plan.data.value_size = Dist::Fixed(470.0),
            "all records together are 250 kB, less than 1 MiB: they may stay in the cache of a CPU",
            |run| run.plan.data.value_size = Dist::Fixed(2_100.0),
        ),
        (
            |run| run.evidence = Some(evidence(|reading| reading.counts.evictions = Some(3))),
            "! 3 records were evicted while the run was measured",
            |run| {
                run.evidence = Some(evidence(|reading| reading.counts.evictions = Some(3)));
                run.plan.data.expiry_s = Dist::Fixed(60.0);
            },
        ),
        (
            |run| others(run, 0.4),
            "! other clients made 900 requests, 40 % of the number of this run's",
            |run| others(run, 0.01),
        ),
        (|run| run.totals.errors = 20, "! 20 of 2,000 requests failed", |run| run.totals.errors = 0),
        (
            |run| {
                (run.status, run.reason) = (Status::Partial, Some("the server went away.".to_owned()));
            },
            "! not complete: the server went away",
            |run| run.reason = Some("nothing".to_owned()),
        ),
        (
            |run| {
                run.outcome = RunOutcome::Overloaded;
                run.outcome_says = Some("1,000/s answered of 2,000/s asked".to_owned());
            },
            "! overloaded: 1,000/s answered of 2,000/s asked",
            |run| run.outcome_says = Some("1,000/s answered of 2,000/s asked".to_owned()),
        ),
    ];
    for (place, (fault, sentence, neighbour)) in rows.into_iter().enumerate() {
        assert_eq!(told(fault), [sentence], "row {place}");
        assert_eq!(told(neighbour), Vec::<String>::new(), "beside row {place}: {sentence}");
    }
}

#[test]
fn faults_beside_the_table_have_their_weight() {
    assert_eq!(told(|run| run.totals.errors = 1), ["1 of 2,000 requests failed"], "a note");
    let wrong = told(|run| run.verify.failed = 1);
    assert_eq!(wrong, ["! 1 value was wrong or too old"]);
    let interrupted = told(|run| {
        (run.status, run.reason) = (Status::Interrupted, Some("interrupted".to_owned()));
    });
    assert_eq!(interrupted, ["! interrupted"]);
    let failed = told(|run| {
        run.outcome = RunOutcome::Failed;
        run.outcome_says = Some("90 % of 2,000 requests were errors".to_owned());
        run.totals.errors = 1_800;
    });
    assert_eq!(failed, ["! failed: 90 % of 2,000 requests were errors"], "once");
    let few = told(|run| {
        run.unexpected_misses = Some(1);
        missed(run, 1);
    });
    assert_eq!(few, ["misses among 1,800 keys read: 1 of records that were loaded"], "a note");
    let evicted = told(|run| {
        run.evidence = Some(evidence(|reading| {
            (reading.counts.evictions, reading.counts.hits, reading.counts.misses) =
                (Some(500), Some(900), Some(900));
        }));
        run.unexpected_misses = None;
        missed(run, 900);
    });
    let sentence =
        "! 500 records were evicted while the run was measured; 900 of 1,800 keys read were misses";
    assert_eq!(evicted, [sentence], "its misses have a cause");
    let limited = told(|run| {
        let verdict = run.verdict.as_mut().expect("it was judged");
        (verdict.limit, verdict.cause) = ("others".to_owned(), None);
        verdict.says = "other clients: 9 requests beside our 1".to_owned();
    });
    assert_eq!(limited, ["! other clients: 9 requests beside our 1"]);
}

#[test]
fn an_expectation_of_a_suite_is_held_to_what_a_goal_is() {
    let document = clean();
    let run = |quantile, limit_us| Examined::of_run("a", &document).expecting(quantile, limit_us);
    let of = |quantile, limit_us| sentences(&findings(&[run(quantile, limit_us)], false));
    assert_eq!(of(0.99, 100.0), Vec::<String>::new());
    assert!(of(0.999, 100.0)[0].starts_with("! too short for a goal at p99.9"));
    assert!(of(0.99, 91.0)[0].starts_with("! a goal is not decided"));
    for wild in [f64::NAN, 1.0, 0.0, -1.0, 2.0] {
        assert_eq!(of(wild, f64::NAN), Vec::<String>::new());
    }
}

/// The findings of all together of two clean results with these names, the second one changed.
fn together(names: [&str; 2], change: impl Fn(&mut Document)) -> Vec<String> {
    let (first, mut second) = (clean(), clean());
    change(&mut second);
    let runs = [Examined::of_run(names[0], &first), Examined::of_run(names[1], &second)];
    let all = findings(&runs, false);
    sentences(&all.into_iter().filter(|finding| finding.run.is_none()).collect::<Vec<_>>())
}

#[test]
fn results_with_names_alike_are_told_what_they_differ_in() {
    let larger: Change = |run| run.plan.data.value_size = Dist::Fixed(9_000.0);
    let sentence = "! a1, a2 have names alike and differ in --value-size 4000, 9000";
    assert_eq!(together(["a1", "a2"], larger), [sentence]);
    assert_eq!(together(["a", "b"], larger), Vec::<String>::new(), "their names differ");
    assert_eq!(together(["a4000", "a9000"], larger), Vec::<String>::new(), "their names say it");
    let reseeded: Change = |run| {
        run.plan.seed += 1;
        run.plan.servers = vec!["127.0.0.1:1".to_owned()];
        run.plan.labels.insert("branch".to_owned(), "main".to_owned());
        run.labels = run.plan.labels.clone();
        run.tool.version = "9.9".to_owned();
    };
    assert_eq!(together(["a1", "a2"], reseeded), Vec::<String>::new());
    let other_version: Change = |run| {
        run.evidence = Some(evidence(|reading| {
            (reading.software, reading.version) = ("memcached".to_owned(), "1.6.9".to_owned());
        }));
    };
    let told = together(["x/a1.json", "y/a1.json"], other_version);
    assert!(told.len() == 1 && told[0].contains("server 1: version"), "{told:?}");
}

#[test]
fn loads_that_no_run_has_are_notes_of_a_suite() {
    let all = |change: Change| {
        let (first, mut second) = (clean(), clean());
        change(&mut second);
        let runs = [Examined::of_run("a", &first), Examined::of_run("b", &second)];
        assert_eq!(findings(&runs, false).iter().filter(|own| own.run.is_none()).count(), 0);
        let all = findings(&runs, true);
        sentences(&all.into_iter().filter(|finding| finding.run.is_none()).collect::<Vec<_>>())
    };
    let (tls, large) = ("no run is encrypted (--tls)", "no run has values of 10 KiB or more");
    assert_eq!(all(|_| {}), [tls, large]);
    assert_eq!(all(|run| run.plan.tls = Some(TlsOptions::default())), [large]);
    assert_eq!(all(|run| run.plan.data.value_size = Dist::Fixed(10_240.0)), [tls]);
    assert_eq!(all(|run| run.plan.data.value_size = Dist::Exponential { mean: 9.0 }), [tls]);
    let mut one = clean();
    one.plan.groups[0].clients = 1;
    let alone = findings(&[Examined::of_run("a", &one)], true);
    assert!(sentences(&alone).contains(&"no run has more than one connection".to_owned()), "{alone:?}");
    assert_eq!(findings(&[], true), []);
}

#[test]
fn facts_of_several_runs_are_one_finding() {
    let plan = clean().plan;
    let source = SideSource {
        servers: vec![ServerSoftware { serving_threads: Some(1), ..ServerSoftware::default() }],
        ..SideSource::default()
    };
    let runs: Vec<RunFigures> = (0..10)
        .map(|place| {
            let limit = if [2, 3, 7, 9].contains(&place) { "generator" } else { "none" };
            RunFigures { limit: limit.to_owned(), ..run_at(f64::from(place), 1.0) }
        })
        .collect();
    let examined: Vec<Examined<'_>> =
        runs.iter().map(|run| Examined::of_figures("a", &plan, &source, run)).collect();
    let found = findings(&examined, false);
    let limit = "! in 4 of 10 runs; in run 3: pummel itself was the limit";
    assert_eq!(sentences(&found), [limit, "one thread of the server answered everything"]);
    assert_eq!(found[0].runs, Some(FoundRuns { found: 4, all: 10, first: 3 }));
    assert_eq!(found[1].runs, None, "it is the same in all runs");
    let missing =
        RunFigures { lookups: Some(crate::run_figures::Lookups { hits: 0, misses: 9 }), ..runs[0].clone() };
    let one = [Examined::of_figures("a", &plan, &source, &missing)];
    let misses = "! 9 of 9 keys read were misses, although the run loads records";
    assert!(sentences(&findings(&one, false)).contains(&misses.to_owned()));
}

#[test]
fn times_that_are_doubtful_in_half_of_the_runs_or_fewer_are_a_note() {
    let plan = clean().plan;
    let source = SideSource::default();
    let graded = |doubtful: u32| {
        let runs: Vec<RunFigures> = (0..10)
            .map(|place| {
                let is_doubtful = place < doubtful;
                let names = if is_doubtful { vec!["p99".to_owned()] } else { Vec::new() };
                RunFigures { trust: Some(!is_doubtful), doubtful: names, ..run_at(f64::from(place), 1.0) }
            })
            .collect();
        let examined: Vec<Examined<'_>> =
            runs.iter().map(|run| Examined::of_figures("a", &plan, &source, run)).collect();
        findings(&examined, false).first().map(|finding| finding.grade)
    };
    assert_eq!((graded(0), graded(5), graded(6)), (None, Some(Grade::Note), Some(Grade::Finding)));
}

#[test]
fn a_result_without_a_run_is_a_finding() {
    let plan = clean().plan;
    let nothing = Examined::of_nothing("a", Some(&plan)).within(Status::Partial, Some("no server"));
    let told = sentences(&findings(&[nothing], false));
    assert_eq!(told[..2], ["! not complete: no server", "! no run was made"]);
}

#[test]
fn an_old_result_that_lacks_nearly_everything_says_nothing_of_what_it_lacks() {
    let plan = serde_json::to_value(Run::new(Keep::Figures).plan).expect("a plan");
    let old = serde_json::json!({"schema": 1, "status": "complete", "clock": "kernel", "plan": plan});
    let bytes = serde_json::to_vec(&old).expect("JSON");
    let Ok(ResultDocument::Run(run)) = stored::read(&bytes) else { panic!("a result of a run") };
    let told = sentences(&findings(&[Examined::of_run("old", &run)], false));
    let small = "all records together are 230 kB, less than 1 MiB: they may stay in the cache of a CPU";
    assert_eq!(told, [small], "the plan alone is known");
}

#[test]
fn wild_values_lead_to_no_panic_and_no_number_that_is_none() {
    let most = u64::MAX;
    let wild: [Change; 6] = [
        |run| {
            let most = u64::MAX;
            run.totals.requests = most;
            run.totals.errors = most;
            run.verify.failed = most;
            run.verify.stale = most;
            run.unexpected_misses = Some(most);
            run.ops.0.iter_mut().for_each(|(_, op)| {
                (op.hits, op.misses, op.keys, op.completed) = (most, most, most, most);
            });
        },
        |run| run.plan.data.records = 0,
        |run| run.plan.data.records = u64::MAX,
        |run| {
            run.plan.data.value_size = Dist::Fixed(f64::NAN);
            mix(&mut run.plan).popularity = Popularity::Zipf { exponent: f64::NAN };
        },
        |run| {
            goal(run, f64::NAN, f64::NAN, (Some(f64::NAN), None));
            ends(run, Some(f64::NAN), Some(f64::INFINITY));
            others(run, f64::NAN);
        },
        |run| {
            goal(run, 0.99, 1_000.0, (None, Some(f64::NAN)));
            ends(run, Some(f64::NAN), Some(f64::INFINITY));
            run.evidence = Some(evidence(|reading| {
                let most = Some(u64::MAX);
                reading.counts = ServerCounts { hits: most, misses: most, evictions: most, ..reading.counts };
            }));
        },
    ];
    for change in wild {
        for sentence in told(change) {
            assert!(!sentence.contains("NaN") && !sentence.contains("inf"), "{sentence}");
        }
    }
    let mut figures = run_at(f64::NAN, f64::NAN);
    (figures.requests, figures.rate) = (most, f64::NAN);
    let plan = Plan::default();
    let source = SideSource::default();
    for sentence in sentences(&findings(&[Examined::of_figures("a", &plan, &source, &figures)], true)) {
        assert!(!sentence.contains("NaN"), "{sentence}");
    }
}

#[test]
fn results_of_every_command_are_examined() {
    let single = Run::new(Keep::Figures).with_windows().document(render);
    let one = stored::read(&single).expect("a result");
    assert_eq!(names_of(&one), ["a"]);
    let plan = clean().plan;
    let mut repeated = Repetition::new(&plan, Vec::new(), 3, Some(false));
    repeated.extend([run_at(1.0, 1.0), run_at(2.0, 1.1)], SideSource::default());
    repeated.end(Some("the server went away".to_owned()), false);
    let repeated = ResultDocument::Repeated(Box::new(repeated));
    assert_eq!(names_of(&repeated), ["a", "a"]);
    let told = sentences(&findings(&examined("a", &repeated), false));
    assert_eq!(told, ["! not complete: the server went away"], "once");
    let side = || Side::new(String::new(), &plan, SideSource::default(), vec![run_at(1.0, 1.0)]);
    let pair = |names: [&'static str; 2]| {
        let question = Question { names: SideNames(names), ..Question::default() };
        Comparison::of_pairs(PairCommand::Ab, [side(), side()], &question)
    };
    assert_eq!(names_of(&ResultDocument::Pair(Box::new(pair(["A", "B"])))), ["a: A", "a: B"]);
    let several = stored::read(&json_of_all(&[pair(["A", "B"]), pair(["A", "C"])])).expect("a result");
    assert_eq!(names_of(&several), ["a: A", "a: B", "a: C"]);
    let run = |role: &str, requests| CurveRun {
        role: role.to_owned(),
        requests,
        trust: true,
        outcome: RunOutcome::Overloaded,
        ..CurveRun::default()
    };
    let runs = vec![run("scan", 100), run("scan", 0), run("overload", 9), run("after", 9)];
    let series = CurveDocument { runs, ..CurveDocument::new("scan", &plan, Vec::new()) };
    let series = ResultDocument::Series(Box::new(series));
    assert_eq!(names_of(&series), ["a"], "an overload, and a run without requests, are left out");
    let told = sentences(&findings(&examined("a", &series), false));
    assert_eq!(told.iter().filter(|says| says.starts_with('!')).count(), 1, "{told:?}");
    assert!(told[0].starts_with("! about 18 % of 500 records"), "{told:?}");
}

/// The names of the runs of a result that is called `a`.
fn names_of(result: &ResultDocument) -> Vec<String> {
    examined("a", result).into_iter().map(|run| run.name).collect()
}

#[test]
fn each_result_has_a_name_of_its_own() {
    let files = ["x/a.json", "y/a.json.gz", "b.html", "b.html"].map(str::to_owned);
    let names: Vec<String> = named(&files).into_iter().map(|result| result.name).collect();
    assert_eq!(names, ["x/a.json", "y/a.json.gz", "b.html", "b.html (2)"]);
    assert_eq!(named(&["x/c.json.gz".to_owned()])[0].name, "c");
}

#[test]
fn the_view_has_each_result_with_its_findings_and_hides_nothing_of_a_name() {
    let mut late = clean();
    late.plan.groups[0].clients = 1;
    late.status = Status::Interrupted;
    let calm = clean();
    let names = ["late\u{1b}[2J".to_owned(), "calm".to_owned()];
    let runs = [Examined::of_run(&names[0], &late), Examined::of_run(&names[1], &calm)];
    let found = findings(&runs, true);
    let text = draw(&view(&names, &found), Paper::default());
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "audit of late\u{fffd}[2J, calm",
            "Result   2 results: 1 finding, 3 notes",
            "Run      late\u{fffd}[2J",
            "Finding  interrupted",
            "Note     one connection: one thread of the server answered everything",
            "Together",
            "Note     no run is encrypted (--tls)",
            "Note     no run has values of 10 KiB or more",
            "Clean    calm",
        ]
    );
    assert_eq!(brief(2, &found), "2 results: 1 finding, 3 notes");
    assert_eq!(brief(1, &[]), "1 result: nothing found");
}

#[test]
fn a_finding_is_read_as_it_was_written_and_one_of_another_version_by_its_words() {
    let mut document = clean();
    document.status = Status::Partial;
    let audit = AuditDocument::of(named(&["a.json".to_owned()]), &[ResultDocument::Run(Box::new(document))]);
    let bytes = render(&audit);
    let read: AuditDocument = serde_json::from_slice(&bytes).expect("its own JSON");
    assert_eq!(read, audit);
    let text = String::from_utf8(bytes).expect("UTF-8").replace("not-complete", "moonlit");
    let later: AuditDocument = serde_json::from_str(&text).expect("of a later version");
    assert_eq!((later.findings[0].fact.clone(), &*later.findings[0].says), (None, "not complete"));
}
