//! Every named workload as a plan, and the figures of some against their sources.

use std::ffi::OsString;
use std::io;

use pummel_logic::plan::{Mix, Plan, Work};
use pummel_logic::protocol::Verb;

use super::*;
use crate::job::Job;

fn inputs() -> FrontInputs {
    FrontInputs {
        servers: None,
        seed: 7,
        read_text: |path| match path {
            "own.toml" => Ok(OWN.to_owned()),
            "broken.toml" => Ok("schema = 1\nsource = 3".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        },
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
    assert!(names.len() >= 69, "{}", names.len());
    for Listed { name, .. } in names {
        let plan = plan(&["run", "-s", "h", "--workload", &name]);
        let profile = profile(&name, &inputs()).unwrap();
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
fn names_that_mean_nothing_are_refused_with_the_reason_and_the_nearest_name() {
    for (name, says) in [
        ("ycsb-e", "memcached has no scan"),
        ("ycsb-d", "inserted last"),
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
