//! The share of hits of reads through to a database beside its closed forms, at the built-in server and at a real memcached.
//!
//! The share of hits of an LRU does not depend on how fast the machine is. That of records that expire does where requests come late,
//! so that it is asked for in some quiet moment.

use crate::common::{Json, Memcached, Serve, in_some_quiet_moment, pummel};

/// The share of hits of an LRU of `items` equal items, when record i is asked for in proportion to (i + 1)^-`exponent`: the
/// approximation of Che, Tung and Wang (IEEE JSAC 2002), which Fagin had in 1977.
fn hits_of_lru(records: u32, exponent: f64, items: f64) -> f64 {
    let weights: Vec<f64> = (1..=records).map(|rank| f64::from(rank).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let held = |time: f64| shares.iter().map(|share| 1.0 - (-share * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if held(middle) < items { low = middle } else { high = middle }
    }
    shares.iter().map(|share| share * (1.0 - (-share * low).exp())).sum()
}

/// The share of hits of keys that are asked for `rate_s` times a second, live for `life_s` on the mean and are added by the first
/// of those that missed them, `delay_s` after its miss: of 1 + l D + l T requests in a row the last l T find the key.
fn hits_of_ttl(rate_s: f64, life_s: f64, delay_s: f64) -> f64 {
    rate_s * life_s / (1.0 + rate_s * delay_s + rate_s * life_s)
}

/// Hits and misses of reads, whose misses have the cause that the test knows of but for a few.
#[track_caller]
fn read(result: &Json, cause: &str) -> (u64, u64) {
    let (hits, misses) = (result.count("ops/get/hits"), result.count("ops/get/misses"));
    let of_cause = result.count(&format!("cache/{cause}"));
    assert!(of_cause * 50 >= misses * 49, "{of_cause} of {misses} misses are {cause}");
    (hits, misses)
}

/// Checks that a share of hits is as near to the closed form as it is to be.
fn is_near((hits, misses): (u64, u64), expected: f64, within: f64) -> Result<(), String> {
    let share = hits as f64 / (hits + misses) as f64;
    match (share - expected).abs() < within {
        true => Ok(()),
        false => Err(format!("{share:.4} of {} keys were hits, and not {expected:.4}", hits + misses)),
    }
}

/// Hits and misses of reads of a server that is too small, when they have filled it. Few runs are longer than a busy machine makes
/// a run of so many requests wait.
fn reading_through(server: &str, records: u32, (warm, measured): (u32, u32)) -> (u64, u64) {
    let words = format!(
        "run -s {server} --mix get:1 --no-load --read-through --popularity zipf:0.9 --records {records} -c 8 --value-size 200 \
         --key-size 20 --quiet -n 20000"
    );
    let mut sums = (0, 0);
    for seed in 1..=warm + measured {
        let (hits, misses) = read(&pummel(&format!("{words} --seed {seed}")).expect(0).json(), "other");
        if seed > warm {
            sums = (sums.0 + hits, sums.1 + misses);
        }
    }
    sums
}

#[test]
fn the_hits_of_a_server_with_so_many_items_are_those_of_its_lru() {
    let serve = Serve::start("--items 400");
    let counts = reading_through(&serve.name, 2_000, (1, 5));
    is_near(counts, hits_of_lru(2_000, 0.9, 400.0), 0.005).expect("they are near");
}

#[test]
fn the_hits_of_a_memcached_that_is_too_small_are_near_those_of_an_lru() {
    let memcached = Memcached::start_of_megabytes(2);
    let records = 20_000;
    let counts = reading_through(&memcached.name, records, (3, 2));
    let stats = memcached.connect().stats();
    let items = stats.get("curr_items");
    assert!(stats.get("evictions") > 5_000 && items < u64::from(records) / 2, "{items} items fit");
    is_near(counts, hits_of_lru(records, 0.9, items as f64), 0.03).expect("they are near");
}

/// Checks that the hits of records that expire, each of which is asked for twice a second, are near the closed form for lives of this
/// mean. The lives differ, so that the records soon forget that all of them were missed at the beginning.
fn expires_as_said(
    server: &str,
    (ttl, life_s): (&str, f64),
    (seed, within): (u32, f64),
) -> Result<(), String> {
    let (records, rate) = (2_000, 4_000);
    let words = format!(
        "run -s {server} --mix get:1 --no-load --read-through=250ms --fill add --popularity uniform --records {records} -c 4 \
         -d unlimited --rate {rate} --ttl {ttl} -t 20s --quiet --seed {seed}"
    );
    let result = pummel(&words).expect(0).json();
    // A warm-up of its own would leave misses at its end without their stores.
    let intervals = result.at("intervals").as_array().expect("they are a list").iter();
    let warm = intervals.filter(|interval| interval["at_s"].as_f64() >= Some(5.0));
    let mut counts = (0, 0);
    for interval in warm {
        let get = |name: &str| interval["ops"]["get"][name].as_u64().expect("a count");
        let expired = interval["cache"]["expired"].as_u64().expect("a count");
        // memcached reads its clock a second after the last time, and somewhat later each time, so that now and then it leaves
        // out a second: records die younger than they ever should.
        if expired * 50 < get("misses") * 49 {
            return Err(format!("records were missed for other causes than their age: {interval}"));
        }
        counts = (counts.0 + get("hits"), counts.1 + get("misses"));
    }
    // The database takes its time, and until it is asked and its answer is stored some more passes.
    let more_us = result.number("ops/add/response_us/mean") + result.number("ops/get/reaction_us/mean");
    is_near(counts, hits_of_ttl(2.0, life_s, 0.25 + more_us * 1e-6), within)
}

#[test]
fn the_hits_of_records_that_expire_are_those_of_the_closed_form() {
    let serve = Serve::start("");
    let ttl = "weighted:1-1@1,3-3@1";
    let mut seeds = 1..;
    in_some_quiet_moment(|| expires_as_said(&serve.name, (ttl, 2.0), (seeds.next().unwrap_or(0), 0.005)));
}

#[test]
fn the_hits_of_records_that_expire_in_memcached_are_near_those_of_the_closed_form() {
    let memcached = Memcached::start();
    // memcached's clock has whole seconds, of which the one of the store counts in full.
    let ttl = "weighted:2-2@1,4-4@1";
    let mut seeds = 1..;
    in_some_quiet_moment(|| expires_as_said(&memcached.name, (ttl, 2.5), (seeds.next().unwrap_or(0), 0.03)));
}
