//! Every named workload as a plan, and the figures of some against their sources.

use std::ffi::OsString;
use std::io;

use pummel_logic::plan::{Mix, Plan, Work};
use pummel_logic::protocol::Verb;

use super::*;
use crate::job::Job;

fn inputs() -> FrontInputs {
    FrontInputs {
        read_text: |path| match path {
            "own.toml" => Ok(OWN.to_owned()),
            "pop.json" => Ok(r#"{"popularityBuckets": [1, 9], "popularityWeights": [3, 1]}"#.to_owned()),
            "sizes.json" => Ok(r#"{"valSizeRange": [31, 63], "valSizeRangeProbability": [2, 1]}"#.to_owned()),
            "broken.toml" => Ok("schema = 1\nsource = 3".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        },
        ..FrontInputs::without_files(7)
    }
}

const OWN: &str = r#"
schema = 1
source = "here"
records = 500
mix = { get = 3, set = 1 }
key_size = "20"
value_size = "uniform:10,90"
ttl = "1h"
popularity = "zipf:0.8"
absent = 0.25
read_through = "5ms"
"#;

fn job(words: &[&str]) -> Result<Job, String> {
    let words = words.iter().map(OsString::from);
    crate::native::job(words, &inputs()).map_err(|error| error.to_string())
}

fn plan(words: &[&str]) -> Plan {
    (*job(words).unwrap_or_else(|error| panic!("{words:?}: {error}")).plan).clone()
}

fn mix_of(plan: &Plan) -> &Mix {
    let mut mixes = plan.phases.iter().rev().filter_map(|phase| match &phase.work {
        Work::Mix(mix) => Some(mix),
        _ => None,
    });
    mixes.next().expect("a run has a mix")
}

#[test]
fn every_workload_of_the_list_is_a_plan_and_says_where_it_comes_from() {
    let names = listed();
    assert!(names.len() >= 72, "{}", names.len());
    for Listed { name, .. } in names {
        let profile = profile(&name, &inputs()).unwrap();
        let scans: &[&str] = if profile.scan.is_some() { &["--scan-as", "multiget"] } else { &[] };
        let plan = plan(&[&["run", "-s", "h", "--workload", &name], scans].concat());
        assert!(!profile.source.is_empty() && !profile.assumed.is_empty(), "{name}");
        assert_eq!(Profile::read(&profile.text), Ok(profile.clone()), "{name}");
        assert_eq!((plan.data.records, &mix_of(&plan).ops), (profile.records, &profile.mix), "{name}");
        assert_eq!(plan.data.value_size, profile.value_size, "{name}");
        job(&["load", "-s", "h", "--workload", &name]).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_cluster_of_twitter_has_the_figures_of_its_row() {
    let profile = profile("twitter-52", &inputs()).unwrap();
    let mix: Vec<(Verb, f64)> = vec![(Verb::Add, 0.04), (Verb::Cas, 0.02), (Verb::Get, 0.91)];
    assert_eq!(profile.mix, mix);
    assert_eq!(profile.value_size.to_string(), "pareto:0,177.931,0.348238");
    assert_eq!(profile.ttl.to_string(), "weighted:86400-86400@65,1209600-1209600@27,43200-43200@7");
    assert_eq!((profile.popularity.to_string().as_str(), profile.rate), ("zipf:1.2117", Some(24_250.0)));
    assert!((profile.fresh - 0.0059).abs() < 1e-4 && (42_900_000..43_000_000).contains(&profile.records));
    // 3.07 % of the requests are first ones, of keys of which 19.36 % are asked for once.
    assert_eq!(profile.churn.as_ref().map(|churn| churn.to_string()).as_deref(), Some("share:0.024756"));
}

#[test]
fn a_churn_that_is_typed_wins_over_that_of_the_workload() {
    let churn_of = |more: &[&str]| {
        let words = ["run", "-s", "h", "--workload", "twitter-52", "--records", "5k"];
        mix_of(&plan(&[&words, more].concat())).churn.as_ref().map(|churn| churn.to_string())
    };
    assert_eq!(churn_of(&[]).as_deref(), Some("share:0.024756"));
    assert_eq!(churn_of(&["--churn", "15m", "--rate", "1k"]).as_deref(), Some("900"));
    assert_eq!(churn_of(&["--churn", "requests:10k"]).as_deref(), Some("requests:10000"));
    assert_eq!(churn_of(&["--churn", "none"]), None);
}

#[test]
fn clusters_whose_columns_say_nothing_say_what_was_assumed() {
    let assumed = |name: &str| profile(name, &inputs()).unwrap().assumed.join("\n");
    assert!(assumed("twitter-1").contains("records: "));
    assert!(assumed("twitter-43").contains("popularity: no slope"));
    assert!(assumed("twitter-31").contains("popularity: the slope given is 0"));
    assert!(assumed("twitter-33").contains("ttl: the list is a sample"));
    assert!(assumed("twitter-27").contains("cut to 30 days"));
}

#[test]
fn what_is_typed_wins_over_the_workload() {
    let words =
        ["run", "-s", "h", "--workload", "fb-etc", "--records", "5k", "--mix", "get:1", "--value-size", "10"];
    let plan = plan(&words);
    assert_eq!((plan.data.records, plan.data.value_size.to_string().as_str()), (5_000, "10"));
    assert_eq!(mix_of(&plan).ops, [(Verb::Get, 1.0)]);
    assert_eq!(plan.data.key_size.to_string(), "etc-key");
    assert_eq!(mix_of(&plan).popularity.to_string(), "ranks:1%=0.55,50%=0.99,100%=1");
}

#[test]
fn a_profile_may_stand_in_a_file() {
    let plan = plan(&["run", "-s", "h", "--workload", "own.toml"]);
    let mix = mix_of(&plan);
    assert_eq!((mix.absent, mix.read_through_ns), (0.25, Some(5_000_000)));
    assert_eq!((plan.data.records, plan.data.expiry_s.to_string().as_str()), (500, "3600"));
}

#[test]
fn the_workloads_of_ycsb_whose_requests_depend_on_each_other_are_mixes_that_say_so() {
    let d = plan(&["run", "-s", "h", "--workload", "ycsb-d"]);
    let mix = mix_of(&d);
    assert_eq!((mix.popularity.to_string().as_str(), mix.inserts, mix.scans), ("latest:0.99", true, false));
    assert_eq!(mix.ops, [(Verb::Add, 0.05), (Verb::Get, 0.95)]);
    let f = plan(&["run", "-s", "h", "--workload", "ycsb-f"]);
    assert_eq!((mix_of(&f).read_modify_write, &mix_of(&f).ops), (0.5, &vec![(Verb::Get, 1.0)]));
    let e = plan(&["run", "-s", "h", "--workload", "ycsb-e", "--scan-as", "multiget"]);
    assert_eq!((mix_of(&e).scans, mix_of(&e).multiget, mix_of(&e).inserts), (true, 100, true));
    assert_eq!(e.labels.get("workload").map(String::as_str), Some("ycsb-e-multiget"));
    let named =
        ["run", "-s", "h", "--workload", "ycsb-e", "--scan-as", "multiget", "--label", "workload=mine"];
    assert_eq!(plan(&named).labels.get("workload").map(String::as_str), Some("mine"));
    let own = plan(&["run", "-s", "h", "--popularity", "latest:1.1", "--mix", "get:9,add:1"]);
    assert!(mix_of(&own).inserts, "adds to the latest records are inserts");
    for (words, says) in [
        (&["--scan-as", "multiget"][..], "--workload"),
        (&["--workload", "ycsb-a", "--scan-as", "multiget"], "a workload that scans"),
        (&["--read-modify-write", "0.5", "--multiget", "2"], "--multiget"),
        (&["--read-modify-write", "0.5", "--mix", "set:1"], "only with get"),
        (&["--insert"], "only with add"),
        (&["--popularity", "latest:0.9", "--multiget", "2"], "each request has one key"),
    ] {
        let error = job(&[&["run", "-s", "h"], words].concat()).unwrap_err();
        assert!(error.contains(says), "{words:?}: {error}");
    }
}

#[test]
fn the_rate_may_be_a_part_of_that_of_the_source() {
    let rate = |words: &[&str]| plan(&[&["run", "-s", "h"], words].concat()).groups[0].rate;
    assert_eq!(rate(&["--workload", "twitter-52", "--rate", "1x"]), Some(24_250.0));
    assert_eq!(rate(&["--workload", "twitter-52", "--rate", "0.5x"]), Some(12_125.0));
    for (words, says) in [
        (&["--rate", "1x"][..], "with --workload"),
        (&["--workload", "cache", "--rate", "1x"], "the source of this workload has none"),
        (&["--workload", "twitter-52", "--rate", "0x"], "0.5x for half"),
        (&["--workload", "twitter-52", "--rate", "1x", "--stage", "1s:2k"], "expected one rate"),
    ] {
        match job(&[&["run", "-s", "h"], words].concat()) {
            Err(error) => assert!(error.contains(says), "{words:?}: {error}"),
            Ok(job) => assert!(words.contains(&"--stage") && !job.plan.changes.parts.is_empty(), "{words:?}"),
        }
    }
}

#[test]
fn a_rate_of_the_source_that_changes_is_followed_in_its_form() {
    let of =
        |times: &str| plan(&["run", "-s", "h", "-t", "1h", "--workload", "rocksdb-zippydb", "--rate", times]);
    for (times, factor) in [("1x", 1.0), ("2x", 2.0)] {
        let Some(RateShape::Sine(sine)) = of(times).changes.rate else { panic!("{times}: it is a sine") };
        assert_eq!((sine.mean, sine.amplitude), (factor * 4_500.0, factor * 1_000.0));
        // 2 pi / 0.000073 s.
        assert!((sine.period_ns as f64 / 1e9 - std::f64::consts::TAU / 0.000_073).abs() < 1.0);
    }
    assert_eq!(of("500").changes.rate, None, "a rate that was typed stays");
    for rate in ["'1k..2k'", "'5x'", "'file:r'", "'sine:1,2,3s'", "''"] {
        let refusal = Profile::read(&format!("{OWN}rate = {rate}\n")).expect_err(rate);
        assert!(refusal.0.contains("sine:MEAN"), "{rate}: {}", refusal.0);
    }
}

#[test]
fn popularity_and_sizes_may_come_from_files_of_cachelib() {
    let words = ["--popularity", "cachelib:pop.json", "--value-size", "cachelib:sizes.json"];
    let plan = plan(&[&["run", "-s", "h"], &words[..]].concat());
    assert_eq!(mix_of(&plan).popularity.to_string(), "buckets:1@3,9@1");
    assert_eq!(plan.data.value_size.to_string(), "weighted:0-31@2,32-63@1");
    for (words, says) in [
        (["--popularity", "cachelib:none.json"], "'none.json' cannot"),
        (["--popularity", "cachelib:own.toml"], "popularityWeights"),
        (["--value-size", "cachelib:pop.json"], "valSizeRange"),
        (["--ttl", "cachelib:sizes.json"], "where sizes are"),
        (["--popularity", "cachelib:"], "expected "),
    ] {
        let error = job(&[&["run", "-s", "h"], &words[..]].concat()).unwrap_err();
        assert!(error.contains(says), "{words:?}: {error}");
    }
}

#[test]
fn names_that_mean_nothing_are_refused_with_the_reason_and_the_nearest_name() {
    for (name, says) in [
        ("ycsb-e", "memcached has no scan"),
        ("fb-var", "how often it reads and writes"),
        ("fb-app", "as curves only"),
        ("twitter-5", "no figures of cluster 5"),
        ("kvcach", "did you mean 'kvcache'?"),
        ("nothing-like-it", "pummel workloads"),
        ("broken.toml", "source"),
    ] {
        let error = job(&["run", "-s", "h", "--workload", name]).unwrap_err();
        assert!(error.contains(says), "{name}: {error}");
        assert!(error.contains("--workload"), "{error}");
    }
}
