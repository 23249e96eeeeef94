//! `cargo xtask workloads`: whether the requests of named workloads to real servers match their profiles, and whether
//! the hits of a memcached that is too small, or forgets, are near their closed forms.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use toml::Table;

use crate::bench::Site;
use crate::bench::server::{Kind, Server};
use crate::programs::said_by;

/// The workloads that are run.
const NAMES: [&str; 12] = [
    "cache",
    "fb-etc",
    "fb-usr",
    "mutilate-fb",
    "kvcache",
    "graph-follower-obj",
    "social-graph",
    "rocksdb-zippydb",
    "twitter-52",
    "twitter-19",
    "ycsb-d",
    "ycsb-f",
];

/// Standard deviations that a count may lie from its mean.
const DEVIATIONS: f64 = 5.0;

/// Greatest deviation of the shares of a table in addition to that.
const SHARE_WITHIN: f64 = 0.005;

/// Greatest deviation of the mean size of an item, in addition to chance, as a share of it: the effect of cutting sizes
/// at their ends.
const SIZE_WITHIN: f64 = 0.005;

/// Bytes that memcached accounts for an item in addition to its key and its value: the item's head, the CAS unique, the
/// end of the key and the line end of the value.
const ITEM_BYTES: f64 = 48.0 + 8.0 + 1.0 + 2.0;

/// First number of the keys that are not records.
const RECORDS_END: u64 = 1 << 42;

/// The numbers of the keys that records get by churn, in the order of the records, generation after generation.
const RENEWED: std::ops::Range<u64> = 6_000_000_000_000_000..10_000_000_000_000_000;

/// Compares what named workloads ask of real servers with their profiles.
///
/// Compared are the shares of the operations, the share of hits, the requests for the most popular records and, as memcached
/// accounts for them, the sizes of keys and values, against memcached and redis-server. Then memcached with too little memory (`lru`)
/// and with records that expire (`ttl`) is read through, and the share of hits is compared with Che's approximation and with the
/// form of a cache that forgets. Exit status 1 when one of them is further away than chance and the table of bounds allow.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds of each run.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Requests per second.
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Records of each run, at most those of the profile.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// This workload alone, or `lru` or `ttl`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The program that is run.
    #[arg(long, value_name = "FILE", default_value = "target/debug/pummel")]
    pummel: PathBuf,
}

/// The server of a kind that takes values of 2 MB, with so many megabytes where it is memcached.
fn server(site: &Site, kind: Kind, megabytes: u32) -> io::Result<Server> {
    let words = match kind {
        Kind::Memcached => format!("-m {megabytes} -I 2m"),
        Kind::Redis => String::new(),
    };
    Server::start_with(kind, &words, site.server_cpu(), 64, site.scratch())
}

/// The number after `STAT name` in memcached's statistics.
fn stat(server: &Server, name: &str) -> io::Result<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port))?;
    stream.write_all(b"stats\r\nquit\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let found =
        text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} "))?.trim().parse().ok());
    found.ok_or_else(|| io::Error::other(format!("memcached does not say {name}")))
}

/// One comparison of a figure.
struct Row {
    what: String,
    expected: f64,
    found: f64,
    within: f64,
}

impl Row {
    /// A share of `of` draws.
    fn share(what: impl Into<String>, expected: f64, found: f64, of: f64, table: f64) -> Row {
        let sd = (expected * (1.0 - expected) / of.max(1.0)).sqrt();
        Row { what: what.into(), expected, found, within: DEVIATIONS * sd + table }
    }

    fn print(&self, name: &str, program: &str) {
        let mark = if self.is_right() { "" } else { "  WRONG" };
        println!(
            "{name:<20} {program:<10.10} {:<22} {:>12.5} {:>12.5} {:>10.5}{mark}",
            self.what, self.expected, self.found, self.within
        );
    }

    fn is_right(&self) -> bool {
        (self.expected - self.found).abs() <= self.within
    }
}

/// Runs all workloads and prints a table; returns whether all match their profiles.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let site = Site::of(root, Some(&root.join(&options.pummel)))?;
    let mut good = true;
    println!(
        "{:<20} {:<10} {:<22} {:>12} {:>12} {:>10}",
        "workload", "server", "figure", "expected", "found", "within"
    );
    for name in NAMES.into_iter().filter(|name| options.only.as_deref().is_none_or(|only| only == *name)) {
        for kind in [Kind::Memcached, Kind::Redis] {
            let program = kind.program();
            let Some(rows) = compare(&site, options, name, kind)? else {
                println!("{name:<20} {program:<10.10} asks what RESP has not");
                continue;
            };
            rows.iter().for_each(|row| row.print(name, program));
            good &= rows.iter().all(Row::is_right);
        }
    }
    for (name, rows) in [("lru", lru_rows as ClosedForm), ("ttl", ttl_rows)] {
        if options.only.as_deref().is_none_or(|only| only == name) {
            let rows = rows(&site, options)?;
            rows.iter().for_each(|row| row.print(name, "memcached"));
            good &= rows.iter().all(Row::is_right);
        }
    }
    Ok(good)
}

/// Rows that compare hits with a closed form.
type ClosedForm = fn(&Site, &Options) -> io::Result<Vec<Row>>;

/// Distance that the share of hits of memcached may have from a closed form: its LRU has segments, and its clock whole seconds.
const CLOSED_FORM_WITHIN: f64 = 0.03;

/// The share of hits of a run with these words, and how many keys were read.
fn hits_of(pummel: &Path, words: &str) -> io::Result<(f64, f64)> {
    let said = said_by(Command::new(pummel).args(words.split_whitespace()))?;
    let result: Value = serde_json::from_str(&said)?;
    let count = |field: &str| result["ops"]["get"][field].as_f64().unwrap_or(0.0);
    let keys = count("hits") + count("misses");
    Ok((count("hits") / keys.max(1.0), keys))
}

/// Reads of a memcached that has room for a part of the records, by the exponent of their popularity.
fn lru_rows(site: &Site, options: &Options) -> io::Result<Vec<Row>> {
    let records = 40_000;
    let row = |exponent: f64| {
        let server = server(site, Kind::Memcached, 4)?;
        let words = format!(
            "run -s 127.0.0.1:{} --mix get:1 --no-load --read-through --popularity zipf:{exponent} --records {records} \
             --value-size 200 --key-size 20 -c 8 --json - --quiet",
            server.port
        );
        let requests = options.rate * options.seconds;
        hits_of(site.pummel(), &format!("{words} --seed 1 -n {}", requests.max(150_000)))?;
        let (hits, keys) = hits_of(site.pummel(), &format!("{words} --seed 2 -n {}", requests.max(50_000)))?;
        let expected = hits_of_lru(records, exponent, stat(&server, "curr_items")?);
        Ok(Row::share(format!("hits, zipf:{exponent}"), expected, hits, keys, CLOSED_FORM_WITHIN))
    };
    [0.6, 0.9, 1.1].into_iter().map(row).collect()
}

/// Reads of records that expire, by their expiry in seconds, each of which is asked for twice a second.
fn ttl_rows(site: &Site, options: &Options) -> io::Result<Vec<Row>> {
    let (rate_s, delay_s) = (2.0, 0.25);
    let row = |ttl_s: u32| {
        let server = server(site, Kind::Memcached, 2_048)?;
        let words = format!(
            "run -s 127.0.0.1:{} --mix get:1 --no-load --read-through=250ms --fill add --popularity uniform --records {} \
             -c 8 -d unlimited --rate {} --ttl {ttl_s} --warmup {}s -t {}s --json - --quiet",
            server.port,
            options.rate.div_ceil(2),
            options.rate,
            2 * ttl_s,
            options.seconds.max(3 * u64::from(ttl_s))
        );
        let (hits, keys) = hits_of(site.pummel(), &words)?;
        // The second of the store counts in full.
        let life_s = f64::from(ttl_s) - 0.5;
        let expected = rate_s * life_s / (1.0 + rate_s * delay_s + rate_s * life_s);
        Ok(Row::share(format!("hits, {ttl_s} s"), expected, hits, keys, CLOSED_FORM_WITHIN))
    };
    [2, 5, 10].into_iter().map(row).collect()
}

/// The share of hits of an LRU of `items` equal items, when record i is asked for in proportion to (i + 1)^-`exponent`: the
/// approximation of Che, Tung and Wang (IEEE JSAC 2002), which Fagin had in 1977.
fn hits_of_lru(records: u32, exponent: f64, items: f64) -> f64 {
    let weights: Vec<f64> = (1..=records).map(|rank| f64::from(rank).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let held = |time: f64| shares.iter().map(|share| 1.0 - (-share * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if held(middle) < items { low = middle } else { high = middle }
    }
    shares.iter().map(|share| share * (1.0 - (-share * low).exp())).sum()
}

/// Runs one workload against one server; `None` where the server has not all of its operations.
fn compare(site: &Site, options: &Options, name: &str, kind: Kind) -> io::Result<Option<Vec<Row>>> {
    let profile = Profile::read(&said_by(Command::new(site.pummel()).args(["workloads", name]))?)?;
    let has_cas = profile.ops.iter().any(|(op, _)| matches!(op.as_str(), "cas" | "gets" | "prepend"));
    if has_cas && kind != Kind::Memcached {
        return Ok(None);
    }
    let server = server(site, kind, 2_048)?;
    let (result, sizes) = run_on(site, options, &profile, name, &server)?;
    let records = options.records.min(profile.number("records") as u64);
    let samples = fs::File::open(site.scratch().join("samples.csv"))?;
    let asked = asked_of(BufReader::new(samples), records)?;
    let mut rows = mix_rows(&profile, &result);
    rows.extend(hit_row(&profile, &result, records));
    rows.extend(popularity_rows(&profile, &asked));
    if let Some(bytes) = sizes {
        let ((keys, key_sd), (values, value_sd)) = (profile.size("key_size"), profile.size("value_size"));
        let expected = ITEM_BYTES + keys + values;
        let within = DEVIATIONS * key_sd.hypot(value_sd) / (records as f64).sqrt() + expected * SIZE_WITHIN;
        rows.push(Row { what: "bytes of an item".to_owned(), expected, found: bytes, within });
    }
    Ok(Some(rows))
}

/// Stores the records and makes a run; returns its result and the mean size of an item in memcached after storing.
fn run_on(
    site: &Site,
    options: &Options,
    profile: &Profile,
    name: &str,
    server: &Server,
) -> io::Result<(Value, Option<f64>)> {
    let (pummel, scratch) = (site.pummel(), site.scratch());
    let records = options.records.min(profile.number("records") as u64);
    let common =
        format!("-s 127.0.0.1:{} --protocol auto --workload {name} --records {records} --quiet", server.port);
    said_by(Command::new(pummel).arg("load").args(common.split_whitespace()))?;
    let sizes = stat(server, "bytes").and_then(|bytes| Ok(bytes / stat(server, "curr_items")?)).ok();
    let run = format!(
        "run {common} --no-load -c 8 -d 8 -T 1 -t {} --rate {} --json {} --samples {}",
        options.seconds,
        options.rate,
        scratch.join("result.json").display(),
        scratch.join("samples.csv").display()
    );
    said_by(Command::new(pummel).args(run.split_whitespace()))?;
    let text = fs::read_to_string(scratch.join("result.json"))?;
    Ok((serde_json::from_str(&text)?, sizes))
}

/// A profile, as far as it is compared.
struct Profile {
    fields: Table,
    ops: Vec<(String, f64)>,
}

impl Profile {
    /// Reads the text of a profile, as `pummel workloads` prints it.
    fn read(text: &str) -> io::Result<Profile> {
        let fields: Table = text.parse().map_err(io::Error::other)?;
        let mix = fields.get("mix").and_then(toml::Value::as_table).into_iter().flatten();
        let ops = mix.map(|(op, weight)| (op.clone(), number(weight))).collect();
        Ok(Profile { fields, ops })
    }

    fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// A number; 0 if there is none.
    fn number(&self, name: &str) -> f64 {
        self.fields.get(name).map_or(0.0, number)
    }

    /// The mean and the standard deviation of a distribution of sizes.
    fn size(&self, name: &str) -> (f64, f64) {
        let text = self.text(name);
        let (form, rest) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = rest.split(',').filter_map(|number| number.parse().ok()).collect();
        match (form, &numbers[..]) {
            ("uniform", [low, high]) => ((low + high) / 2.0, (high - low) / 12f64.sqrt()),
            ("pareto", [location, scale, shape]) => {
                let spread = scale / (1.0 - shape);
                (location + spread, spread / (1.0 - 2.0 * shape).sqrt())
            }
            // Generalised extreme values and a table with a Pareto tail, whose figures stand in the paper on ETC.
            ("etc-key", _) => (36.2, 12.0),
            ("etc-value", _) => (194.4, 470.0),
            ("weighted", _) => weighted_size(rest),
            _ => (text.parse().unwrap_or(f64::NAN), 0.0),
        }
    }
}

/// The number in a value; 0 where it has none.
fn number(value: &toml::Value) -> f64 {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64)).unwrap_or(0.0)
}

/// The mean and the standard deviation of `LO-HI@WEIGHT,...`.
fn weighted_size(text: &str) -> (f64, f64) {
    let range = |part: &str| {
        let (bounds, weight) = part.split_once('@')?;
        let (low, high) = bounds.split_once('-').unwrap_or((bounds, bounds));
        Some((low.parse::<f64>().ok()?, high.parse::<f64>().ok()?, weight.parse::<f64>().ok()?))
    };
    let ranges: Vec<(f64, f64, f64)> = text.split(',').filter_map(range).collect();
    let total: f64 = ranges.iter().map(|(_, _, weight)| weight).sum();
    let mean = ranges.iter().map(|(low, high, weight)| (low + high) / 2.0 * weight / total).sum::<f64>();
    let square = |low: f64, high: f64| (low * low + low * high + high * high) / 3.0;
    let squares = ranges.iter().map(|(low, high, weight)| square(*low, *high) * weight / total).sum::<f64>();
    (mean, (squares - mean * mean).max(0.0).sqrt())
}

/// Number of requests of each operation, without those that follow from replies.
fn mix_rows(profile: &Profile, result: &Value) -> Vec<Row> {
    let count = |op: &str| result["ops"][op]["requests"].as_f64().unwrap_or(0.0);
    let is_read_through = profile.fields.get("read_through").and_then(toml::Value::as_bool) == Some(true);
    let fills = if is_read_through { "set" } else { "" };
    let pairs = profile.number("read_modify_write") > 0.0;
    let ops: Vec<&(String, f64)> = profile.ops.iter().filter(|(op, _)| op != fills).collect();
    let weights: f64 = ops.iter().map(|(_, weight)| weight).sum();
    let asked: f64 = ops.iter().map(|(op, _)| count(op)).sum();
    let mut rows: Vec<Row> = ops
        .iter()
        .filter(|_| ops.len() > 1)
        .map(|(op, weight)| {
            Row::share(format!("share of {op}"), weight / weights, count(op) / asked, asked, 0.0)
        })
        .collect();
    if pairs {
        let gets = count("get");
        rows.push(Row::share(
            "gets with a set",
            profile.number("read_modify_write"),
            count("set") / gets,
            gets,
            1e-3,
        ));
    }
    rows
}

/// The share of the keys read that were found: all records but those that are new by churn and that no request has stored,
/// where nothing is deleted and nothing expires in the run.
fn hit_row(profile: &Profile, result: &Value, records: u64) -> Option<Row> {
    let removes = |op: &str| profile.ops.iter().any(|(name, _)| name == op);
    if removes("delete") || profile.text("ttl").starts_with("weighted:1-") {
        return None;
    }
    let sum = |field: &str| {
        let ops = result["ops"].as_object().into_iter().flatten();
        ops.filter_map(|(_, op)| op[field].as_f64()).sum::<f64>()
    };
    let (hits, misses) = (sum("hits"), sum("misses"));
    let unstored = profile.number("fresh") + profile.number("absent");
    let of_records = (hits + misses) * (1.0 - unstored);
    let renewed =
        if of_records > 0.0 { unstored_by_churn(profile, records, of_records) / of_records } else { 0.0 };
    let expected = (1.0 - unstored) * (1.0 - renewed);
    (hits + misses > 0.0).then(|| Row::share("hits", expected, hits / (hits + misses), hits + misses, 1e-4))
}

/// Number of `reads` of records that ask, in the mean, for a key that is new by churn and that nobody has stored yet.
///
/// A record with the share p of the requests gets a new key once in L = records / share requests. When m requests are left of
/// its life or of the run, the key is read (g / s) (1 - exp(-s p m)) times before it is stored, where g and s are the shares
/// of reads and of stores among the requests; integrated over the moments at which the key may change.
fn unstored_by_churn(profile: &Profile, records: u64, reads: f64) -> f64 {
    const STEPS: u32 = 200;
    let share = profile.text("churn").strip_prefix("share:").and_then(|share| share.parse::<f64>().ok());
    let (Some(share), Some(weights)) = (share, zipf_shares(profile, records)) else { return 0.0 };
    let weight_of = |verbs: &[&str]| -> f64 {
        profile.ops.iter().filter(|(op, _)| verbs.contains(&op.as_str())).map(|(_, weight)| weight).sum()
    };
    // A cas reads first, and stores what it found.
    let all = weight_of(&["get", "gets", "cas", "set", "add"]);
    let (reading, storing) = (weight_of(&["get", "gets", "cas"]) / all, weight_of(&["set", "add"]) / all);
    let (requests, life) = (reads / reading, records as f64 / share);
    let unstored = |left: f64| -> f64 {
        let of = |weight: &f64| match storing {
            0.0 => reading * weight * left,
            _ => reading / storing * -(-storing * weight * left).exp_m1(),
        };
        weights.iter().map(of).sum()
    };
    let moments = (0..STEPS).map(|step| requests * (f64::from(step) + 0.5) / f64::from(STEPS));
    let mean = moments.map(|at| unstored(life.min(requests - at))).sum::<f64>() / f64::from(STEPS);
    mean * requests / life
}

/// Number of requests for each of `records` records, by whatever key the record had.
fn asked_of(samples: impl BufRead, records: u64) -> io::Result<HashMap<u64, u64>> {
    let mut asked = HashMap::new();
    for line in samples.lines().skip(1) {
        let line = line?;
        let key = line.split(',').nth(7).and_then(|key| key.parse::<u64>().ok());
        let record = |key: u64| if RENEWED.contains(&key) { (key - RENEWED.start) % records } else { key };
        if let Some(key) = key.map(record).filter(|key| *key < RECORDS_END) {
            *asked.entry(key).or_insert(0) += 1;
        }
    }
    Ok(asked)
}

/// The shares of the requests for records by a popularity of the form `zipf:EXPONENT`; `None` for other forms.
fn zipf_shares(profile: &Profile, records: u64) -> Option<Vec<f64>> {
    let exponent: f64 = profile.text("popularity").strip_prefix("zipf:")?.parse().ok()?;
    let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-exponent)).collect();
    let zeta: f64 = weights.iter().sum();
    Some(weights.into_iter().map(|weight| weight / zeta).collect())
}

/// The shares of the requests for the most popular records, where the popularity ranks them by their numbers.
fn popularity_rows(profile: &Profile, asked: &HashMap<u64, u64>) -> Vec<Row> {
    let records = asked.keys().max().map_or(0, |most| most + 1).max(1);
    let total: u64 = asked.values().sum();
    let below = |rank: u64| asked.iter().filter(|(key, _)| **key < rank).map(|(_, count)| count).sum::<u64>();
    let text = profile.text("popularity");
    let row = |rank: u64, expected: f64, table: f64| {
        let found = below(rank) as f64 / total as f64;
        Row::share(format!("requests of ranks 1-{rank}"), expected, found, total as f64, table)
    };
    if text == "uniform" {
        return vec![row(records / 10, (records / 10) as f64 / records as f64, SHARE_WITHIN)];
    }
    if let Some(shares) = zipf_shares(profile, records) {
        let until = |rank: u64| shares[..rank as usize].iter().sum::<f64>();
        let ranks = [1, 10, records / 100, records / 10, records / 2];
        return ranks
            .into_iter()
            .filter(|rank| *rank > 0)
            .map(|rank| row(rank, until(rank), SHARE_WITHIN))
            .collect();
    }
    let Some(points) = text.strip_prefix("ranks:") else { return Vec::new() };
    let point = |text: &str| {
        let (rank, share) = text.split_once('=')?;
        Some((rank.parse::<u64>().ok()?, share.parse::<f64>().ok()?))
    };
    let points = points.split(',').filter_map(point).filter(|(rank, _)| *rank < records);
    points.map(|(rank, share)| row(rank, share, SHARE_WITHIN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_in_both_ways_of_writing_a_mix() {
        let one = Profile::read(
            "records = 1_000\nmix = { get = 0.5, set = 0.5 }\nvalue_size = \"pareto:0,146,0.25\"\n",
        )
        .unwrap();
        assert_eq!(one.ops, [("get".to_owned(), 0.5), ("set".to_owned(), 0.5)]);
        assert_eq!((one.number("records"), one.number("fresh")), (1_000.0, 0.0));
        assert!((one.size("value_size").0 - 146.0 / 0.75).abs() < 1e-9);
        let other = Profile::read(
            "records = 9\nkey_size = \"weighted:8-8@30,8-64@70\"\n\n[mix]\nadd = 0.04\nget = 0.91\n",
        )
        .unwrap();
        assert_eq!(other.ops, [("add".to_owned(), 0.04), ("get".to_owned(), 0.91)]);
        assert!((other.size("key_size").0 - (0.3 * 8.0 + 0.7 * 36.0)).abs() < 1e-9);
    }

    #[test]
    fn shares_beyond_chance_and_the_table_are_wrong() {
        assert!(Row::share("", 0.5, 0.504, 100_000.0, 0.0).is_right());
        assert!(!Row::share("", 0.5, 0.51, 100_000.0, 0.0).is_right());
        assert!(Row::share("", 0.5, 0.51, 100_000.0, 0.005).is_right());
    }

    #[test]
    fn requests_of_the_first_ranks_are_compared_with_the_law() {
        let samples = "due,ready,sent,arrived,read,op,outcome,key,client,group\n";
        let rows: String = (0..100).map(|at| format!("0,0,0,0,0,get,hit,{},0,0\n", at % 10)).collect();
        let asked =
            asked_of(format!("{samples}{rows}0,0,0,0,0,get,miss,2000000000000000,0,0\n").as_bytes(), 10)
                .unwrap();
        assert_eq!(asked.values().sum::<u64>(), 100, "fresh keys are no records");
        let uniform = Profile::read("popularity = \"uniform\"\n").unwrap();
        assert!(popularity_rows(&uniform, &asked).iter().all(Row::is_right));
        let zipf = Profile::read("popularity = \"zipf:2\"\n").unwrap();
        assert!(popularity_rows(&zipf, &asked).iter().any(|row| !row.is_right()));
    }

    #[test]
    fn requests_of_a_record_count_for_it_under_every_key() {
        let samples = "due,ready,sent,arrived,read,op,outcome,key,client,group\n";
        let rows = [3u64, 6_000_000_000_000_003, 6_000_000_000_000_013]
            .map(|key| format!("0,0,0,0,0,get,miss,{key},0,0\n"));
        let asked = asked_of(format!("{samples}{}", rows.concat()).as_bytes(), 10).unwrap();
        assert_eq!(asked, HashMap::from([(3, 3)]));
    }

    #[test]
    fn keys_that_are_new_by_churn_are_not_found_until_they_are_stored() {
        let profile = |mix: &str| {
            Profile::read(&format!("popularity = \"zipf:0.5\"\nchurn = \"share:0.1\"\nmix = {{ {mix} }}\n"))
                .unwrap()
        };
        // One record, whose key changes every ten requests: with as many stores as reads, one read in a life of five is
        // not found where the store comes late, and fewer where it comes early.
        let churned = profile("get = 0.5, set = 0.5");
        let share = unstored_by_churn(&churned, 1, 50_000.0) / 50_000.0;
        assert!((share - (1.0 - (-5f64).exp()) / 5.0).abs() < 1e-3, "{share}");
        assert_eq!(unstored_by_churn(&Profile::read("popularity = \"zipf:1\"\n").unwrap(), 9, 50.0), 0.0);
    }
}
