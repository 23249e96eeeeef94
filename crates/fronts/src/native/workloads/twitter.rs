//! The clusters of Twitter's caches: a published table of figures, and the profile that each row means.
//!
//! The table is `stat/2020Mar.md` of twitter/cache-trace (Yang, Yue and Rashmi, "A large scale analysis of hundreds of in-memory
//! cache clusters at Twitter", OSDI 2020). Its columns do not agree with independent draws from one Zipf law: a profile promises
//! the mix, the sizes, the expiry and the head of the popularity, and not how soon a key is asked for again.

use std::collections::BTreeMap;

use super::profile::{Listed, Profile, RateWritten, Refusal, Written};

/// The table, its first line being the names of its columns.
const TABLE: &str = include_str!("twitter.tsv");

/// What names begin with.
const PREFIX: &str = "twitter-";

/// Columns of the table.
const COLUMNS: usize = 12;

/// Most records of a profile whose working set the table does not give.
const RECORDS_MAX: f64 = 1e8;

/// Seconds of the week that was traced.
const WEEK_S: f64 = 7.0 * 24.0 * 3600.0;

/// The longest expiry that memcached takes as a span, in seconds.
const EXPIRY_MAX_S: u64 = 30 * 24 * 3600;

/// Shape of the tail of value sizes, and what makes its scale of a mean: Facebook's ETC.
const TAIL_SHAPE: f64 = 0.348_238;

/// One cluster.
struct Row<'a>([&'a str; COLUMNS]);

impl<'a> Row<'a> {
    fn all() -> impl Iterator<Item = Row<'a>> {
        let cells = |line: &'a str| -> Option<[&'a str; COLUMNS]> {
            line.split('\t').collect::<Vec<_>>().try_into().ok()
        };
        TABLE.lines().skip(1).filter_map(cells).map(Row)
    }

    /// A number; `None` where the table has none.
    fn number(&self, column: usize) -> Option<f64> {
        self.0[column].parse().ok()
    }

    fn name(&self) -> String {
        format!("{PREFIX}{}", self.0[0])
    }
}

/// The clusters that have figures.
pub(super) fn listed() -> impl Iterator<Item = Listed> {
    let described = |row: Row<'_>| {
        let (key, value) = (row.number(2)?, row.number(3)?);
        let what = format!("Twitter: keys {key} B, values {value} B, {}", row.0[10]);
        Some(Listed { name: row.name(), what })
    };
    Row::all().filter_map(described)
}

/// The cluster with this name.
pub(super) fn find(name: &str) -> Option<Result<Profile, Refusal>> {
    let row = Row::all().find(|row| row.name() == name)?;
    let written = written(&row)?;
    let text = toml::to_string(&written).map_err(|error| Refusal(error.to_string()));
    Some(text.and_then(|text| Profile::of(written, text)))
}

/// The profile of a row; `None` where it has no figures.
fn written(row: &Row<'_>) -> Option<Written> {
    let (key_bytes, value_bytes) = (row.number(2)?, row.number(3)?);
    let mut assumed = vec![
        "key_size: the mean of the cluster for all keys".to_owned(),
        "value_size: the mean of the cluster; the shape is that of Facebook's ETC".to_owned(),
    ];
    let rate = row.number(4)? * 1e3;
    let (one_hit, compulsory) = (row.number(6)? / 100.0, row.number(7)? / 100.0);
    let records = match row.number(9)? {
        mb if mb > 0.0 => mb * 1e6 / (key_bytes + value_bytes),
        _ => {
            assumed.push(
                "records: requests of a week by the mean frequency of a key; no working set is given"
                    .to_owned(),
            );
            rate * WEEK_S / row.number(5)?
        }
    };
    let popularity = match row.number(11) {
        Some(alpha) if alpha > 0.0 => format!("zipf:{}", alpha.min(3.0)),
        Some(_) => {
            assumed.push("popularity: the slope given is 0".to_owned());
            "uniform".to_owned()
        }
        None => {
            assumed.push("popularity: no slope is given".to_owned());
            "zipf:1".to_owned()
        }
    };
    let mix = mix(row.0[10]);
    // First requests of keys that come again are those of records that were replaced.
    let replaced = (compulsory * (1.0 - one_hit) * 1e6).round() / 1e6;
    if replaced > 0.0 {
        assumed.push("churn: all records live equally long; no lives are given".to_owned());
    }
    Some(Written {
        schema: 1,
        source: format!("twitter/cache-trace, stat/2020Mar.md: cluster {}", row.0[0]),
        records: (records.clamp(1.0, RECORDS_MAX)).round() as u64,
        fresh: if reads(&mix) { (compulsory * one_hit * 1e6).round() / 1e6 } else { 0.0 },
        mix,
        key_prefix: String::new(),
        key_size: key_bytes.to_string(),
        value_size: format!("pareto:0,{:.3},{TAIL_SHAPE}", value_bytes * (1.0 - TAIL_SHAPE)),
        ttl: ttl(row.0[8], &mut assumed),
        popularity,
        absent: 0.0,
        churn: (replaced > 0.0).then(|| format!("share:{replaced}")),
        read_modify_write: 0.0,
        insert: false,
        scan: None,
        read_through: None,
        arrivals: None,
        rate: Some(RateWritten::Constant(rate)),
        burst: None,
        value_class: Vec::new(),
        assumed,
    })
}

/// The operations and their shares. A cas reads first by itself, so that its reads are no gets of their own.
fn mix(text: &str) -> BTreeMap<String, f64> {
    let share = |word: &str| {
        let (name, share) = word.split_once(':')?;
        Some((name.to_owned(), share.parse::<f64>().ok()?))
    };
    let mut mix: BTreeMap<String, f64> = text.split(' ').filter_map(share).collect();
    let cas = mix.get("cas").copied().unwrap_or(0.0);
    if let Some(gets) = mix.get_mut("gets") {
        *gets = ((*gets - cas) * 100.0).round() / 100.0;
    }
    mix.retain(|_, share| *share > 0.0);
    mix
}

/// Whether a mix reads keys. A share of these keys is fresh: the share of first requests (compulsory misses) times the share
/// of keys that were seen once.
fn reads(mix: &BTreeMap<String, f64>) -> bool {
    mix.contains_key("get") || mix.contains_key("gets")
}

/// The expiries and their shares. Where the list covers less than half of the requests it is a sample of a range.
fn ttl(text: &str, assumed: &mut Vec<String>) -> String {
    let expiry = |word: &str| {
        let (time, share) = word.split_once(':')?;
        let unit = time.find(|letter: char| letter.is_ascii_alphabetic())?;
        let seconds = match &time[unit..] {
            "s" => 1.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        Some((time[..unit].parse::<f64>().ok()? * seconds, share.parse::<f64>().ok()?))
    };
    let mut expiries: Vec<(u64, f64)> = Vec::new();
    for (seconds, share) in text.split(' ').filter_map(expiry) {
        let whole = seconds.round() as u64;
        if whole > EXPIRY_MAX_S {
            assumed.push(format!(
                "ttl: {whole} s is beyond what memcached takes as a span, and is cut to 30 days"
            ));
        }
        expiries.push((whole.min(EXPIRY_MAX_S), share));
    }
    let covered: f64 = expiries.iter().map(|(_, share)| share).sum();
    let (Some(low), Some(high)) = (
        expiries.iter().map(|(seconds, _)| *seconds).min(),
        expiries.iter().map(|(seconds, _)| *seconds).max(),
    ) else {
        return "0".to_owned();
    };
    if covered < 0.5 {
        assumed.push("ttl: the list is a sample of a range, over which it is even".to_owned());
        return format!("uniform:{low},{high}");
    }
    let weight = |share: f64| (share * 100.0).round();
    let parts: Vec<String> =
        expiries.iter().map(|(seconds, share)| format!("{seconds}-{seconds}@{}", weight(*share))).collect();
    format!("weighted:{}", parts.join(","))
}
