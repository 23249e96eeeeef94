//! The profile of a fitted trace, as TOML.

use pummel_logic::dist::Dist;
use pummel_logic::protocol::Verb;
use pummel_logic::workload::key::{KEY_MAX_BYTES, Spaces};
use pummel_traffic::fit::{CLASS_ENDS, Fit, ValueCounts, ZIPF_DISTANCE_MAX};

/// The longest expiry that memcached takes as a span, in seconds.
const EXPIRY_MAX_S: u64 = 30 * 24 * 3600;

/// Greatest deviation of a burst's dispersion from that of the trace; other bursts are not written.
const BURST_OFF_MAX: f64 = 0.5;

/// Arrivals that vary less than this share of Poisson ones are even.
const EVEN_IDC: f64 = 0.5;

/// Fewest keys of a class with lengths of its own.
const CLASS_KEYS_LEAST: f64 = 50.0;

/// The shortest fresh or renewed key: its number has this many digits.
const FRESH_KEY_BYTES: u64 = 16;

/// The origin of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The files of the trace.
    pub files: &'a [String],
    /// The name of their format.
    pub format: &'a str,
}

/// The profile of a fit that has requests, as text that a person reads and [`super::Profile::read`] takes. `misses` says what of the
/// trace it is known not to carry.
pub fn profile_text(fit: &Fit, source: Source<'_>, misses: &[String]) -> String {
    let mut lines = Lines::default();
    let records = fit.records();
    let requests = fit.requests;
    let names = source.files.join(", ");
    lines.comment(&format!("pummel fit of {}: {requests} requests", names.escape_debug()));
    lines.field("schema", "1");
    lines.text("source", &format!("pummel fit of {names} ({}), {requests} requests", source.format));
    let sizes = Sizes::of(fit, records);
    let assumed = assumed(fit, &sizes);
    let assumed: Vec<String> = assumed.iter().chain(misses).map(|text| quoted(text)).collect();
    lines.field("assumed", &format!("[{}]", assumed.join(", ")));
    lines.field("records", &records.to_string());
    lines.field("mix", &format!("{{ {} }}", mix_text(&fit.mix())));
    lines.text("key_size", &sizes.key.to_string());
    lines.text("value_size", &sizes.value.to_string());
    if sizes.ttl != Dist::Fixed(0.0) {
        lines.text("ttl", &sizes.ttl.to_string());
    }
    lines.comment(&zipf_text(fit));
    lines.text("popularity", &popularity_text(fit, records));
    let fresh = rounded(fit.fresh());
    if fresh > 0.0 {
        lines.field("fresh", &fresh.to_string());
    }
    if fit.fills_misses() {
        match fit.fill_delay_ns as u64 / 1_000_000 {
            0 => lines.field("read_through", "true"),
            delay_ms => lines.text("read_through", &format!("{delay_ms}ms")),
        }
    }
    arrivals(&mut lines, fit);
    if let (Some(churn), Some(lifetimes)) = (fit.key_churn(), &fit.churn.lifetimes) {
        lines.comment(&format!("lives of keys in seconds at the rate of the trace: {lifetimes}"));
        lines.text("churn", &churn.to_string());
    }
    for (until, size) in &sizes.classes {
        lines.0.push_str("\n[[value_class]]\n");
        lines.text("records", &format!("{until}%"));
        lines.text("value_size", &size.to_string());
    }
    lines.0
}

/// Writes the rate and its bursts.
fn arrivals(lines: &mut Lines, fit: &Fit) {
    let arrivals = &fit.arrivals;
    if let Some(rate) = arrivals.rate {
        lines.field("rate", &float_text(significant(rate, 6)));
    }
    let shortest = arrivals.dispersions.first();
    if shortest.is_some_and(|one| one.idc < EVEN_IDC && !arrivals.whole_seconds && one.windows >= 100.0) {
        lines.text("arrivals", "constant");
    }
    let Some(burst) = arrivals.burst else { return };
    let states = burst.states;
    let seconds = |time_ns: u64| format!("{}us", (time_ns / 1_000).max(1));
    let words = format!("{},{},{}", states.factor, seconds(states.on_ns), seconds(states.off_ns));
    if burst.off <= BURST_OFF_MAX {
        lines.text("burst", &words);
    } else {
        let off = 100.0 * burst.off;
        lines.comment(&format!(
            "two states do not describe its bursts ({off:.0} % off at some window): burst = {words}"
        ));
    }
}

/// Lengths and expiry as a run can have them.
struct Sizes {
    key: Dist,
    value: Dist,
    ttl: Dist,
    /// Up to which share of the records, in percent, and the lengths of their values.
    classes: Vec<(f64, Dist)>,
    /// The shortest key that has room for the number of its record.
    key_least: u64,
}

impl Sizes {
    fn of(fit: &Fit, records: u64) -> Sizes {
        let key_least = u64::from((Spaces::new(records.min(1 << 40)).end() - 1).max(1).ilog10()) + 1;
        let dist = |counts: &ValueCounts| counts.dist().unwrap_or(Dist::Fixed(0.0));
        let mut sizes = Sizes {
            key: dist(&fit.key_bytes.clamped(key_least, KEY_MAX_BYTES as u64)),
            value: dist(&fit.value_bytes),
            ttl: dist(&fit.ttl_s.clamped(0, EXPIRY_MAX_S)),
            classes: Vec::new(),
            key_least,
        };
        if fit.sizes_differ() {
            sizes.divide(fit, records);
        }
        sizes
    }

    /// Gives the most popular records lengths of their own. Classes end at shares of the keys that were seen.
    fn divide(&mut self, fit: &Fit, records: u64) {
        for (end, counts) in CLASS_ENDS.into_iter().zip(&fit.class_bytes) {
            let percent = significant(100.0 * end * fit.keys / records as f64, 6);
            let Some(dist) = counts.dist().filter(|_| counts.total() >= CLASS_KEYS_LEAST) else { continue };
            if end == 1.0 {
                self.value = dist;
            } else if percent < 100.0 {
                self.classes.push((percent, dist));
            }
        }
    }
}

/// Facts that the trace does not say, or that a run cannot reproduce.
fn assumed(fit: &Fit, sizes: &Sizes) -> Vec<String> {
    let mut assumed = Vec::new();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let short = fit.key_bytes.outside(sizes.key_least, u64::MAX);
    if short > 0.0 {
        let (least, share) = (sizes.key_least, percent(short));
        assumed.push(format!("key_size: {share} of the keys are shorter than the {least} bytes that the numbers of the records need"));
    }
    let short = fit.key_bytes.outside(FRESH_KEY_BYTES, u64::MAX);
    let long = [
        (fit.fresh() > 0.0, "keys that never come again"),
        (fit.churn.lifetimes.is_some(), "keys that records get later"),
    ];
    for (_, what) in long.iter().filter(|(are_there, _)| *are_there && short > 0.0) {
        let share = percent(short);
        assumed.push(format!(
            "key_size: {what} have {FRESH_KEY_BYTES} bytes or more, {share} of the keys have less"
        ));
    }
    if fit.fresh_most() > fit.fresh() && rounded(fit.fresh_most()) > 0.0 {
        let most = percent(fit.fresh_most());
        assumed.push(format!("fresh: none; up to {most} of the reads may be for keys that never come again: the trace does not tell them from rare ones"));
    }
    if let Some(few) = fit.arrivals.few_bursts {
        assumed.push(format!(
            "burst: none; the rate varies more than by chance, and about {few:.0} bursts do not tell how"
        ));
    }
    let long = fit.ttl_s.outside(0, EXPIRY_MAX_S);
    if long > 0.0 {
        assumed.push(format!(
            "ttl: {} of the stores live longer than 30 days, and are cut to that",
            percent(long)
        ));
    }
    if fit.value_bytes.total() <= 0.0 {
        assumed.push("value_size: the trace says no length of a value".to_owned());
    } else if fit.value_bytes.total() < 0.99 * fit.keys {
        let known = percent(fit.value_bytes.total() / fit.keys);
        assumed.push(format!("value_size: known of {known} of the keys"));
    }
    if fit.sampled < 1.0 {
        let share = percent(fit.sampled);
        assumed
            .push(format!("records, sizes and ranks beyond the first: from a sample of {share} of the keys"));
    }
    match (fit.arrivals.rate, fit.arrivals.whole_seconds) {
        (None, _) => assumed.push("rate: the rows have no times".to_owned()),
        (_, true) => {
            assumed.push("arrivals: the times are whole seconds, and Poisson within them".to_owned())
        }
        _ => {}
    }
    let apart = [Verb::Append, Verb::Prepend, Verb::Incr, Verb::Decr];
    if fit.mix().iter().any(|(verb, _)| apart.contains(verb)) {
        assumed.push("popularity: append, prepend, incr and decr have keys of their own in a run".to_owned());
    }
    assumed
}

fn mix_text(mix: &[(Verb, f64)]) -> String {
    let share = |(verb, share): &(Verb, f64)| (verb.name(), rounded(*share));
    let shares = mix.iter().map(share).filter(|(_, share)| *share > 0.0);
    shares.map(|(name, share)| format!("{name} = {}", float_text(share))).collect::<Vec<_>>().join(", ")
}

fn popularity_text(fit: &Fit, records: u64) -> String {
    let table = fit.spread.records.table(records);
    let points: Vec<String> = table.iter().map(|(rank, share)| format!("{rank}={share}")).collect();
    format!("ranks:{}", points.join(","))
}

/// Zipf's law for the popularity, in words.
fn zipf_text(fit: &Fit) -> String {
    let Some((zipf, _)) = fit.spread.zipf else {
        return "too few keys were asked for often enough to say how near the popularity is to Zipf's law"
            .to_owned();
    };
    let (exponent, last, distance) = (zipf.exponent, zipf.last_rank, zipf.distance);
    match distance > ZIPF_DISTANCE_MAX {
        true => format!(
            "not Zipf's law: the nearest, zipf:{exponent:.3}, is {distance:.3} off on ranks 1 to {last:.0}"
        ),
        false => format!("zipf:{exponent:.3} is {distance:.3} off on ranks 1 to {last:.0}"),
    }
}

/// A share with six digits behind the point.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

/// A number with this many significant digits.
fn significant(number: f64, digits: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let places = digits - 1 - number.abs().log10().floor() as i32;
    format!("{number:.*}", places.clamp(0, 300) as usize).parse().unwrap_or(number)
}

/// A number as TOML writes one that is no whole number.
fn float_text(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The lines of a file of TOML.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn comment(&mut self, text: &str) {
        self.0.push_str(&format!("# {text}\n"));
    }

    fn field(&mut self, name: &str, value: &str) {
        self.0.push_str(&format!("{name} = {value}\n"));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.field(name, &quoted(value));
    }
}

#[cfg(test)]
mod tests {
    use pummel_traffic::fit::Fitter;
    use pummel_traffic::trace::row::Row;

    use super::*;
    use crate::native::workloads::Profile;

    fn fit_of(rows: &[Row<'_>]) -> Fit {
        let mut fitter = Fitter::default();
        rows.iter().for_each(|row| fitter.take(row));
        fitter.end()
    }

    fn profile(fit: &Fit) -> Profile {
        let files = ["a \"b\"\n.csv".to_owned()];
        let misses = ["not carried: a \"figure\"".to_owned()];
        let text = profile_text(fit, Source { files: &files, format: "csv" }, &misses);
        Profile::read(&text).unwrap_or_else(|refusal| panic!("{refusal:?}: {text}"))
    }

    #[test]
    fn profiles_of_hardly_any_rows_are_read_again() {
        let store = Row { verb: Verb::Set, value_bytes: Some(7), ttl_s: u32::MAX, ..Row::read(b"k") };
        for rows in [&[Row::read(b"a")][..], &[store], &[store, Row { at_ns: u64::MAX, ..store }]] {
            let profile = profile(&fit_of(rows));
            assert_eq!((profile.records, profile.mix.len()), (1, 1));
        }
    }

    #[test]
    fn a_profile_says_what_a_run_cannot_have() {
        let store = Row { verb: Verb::Set, value_bytes: Some(7), ttl_s: u32::MAX, ..Row::read(b"k") };
        let profile = profile(&fit_of(&[store, store, Row { verb: Verb::Incr, ..Row::read(b"n") }]));
        let assumed = profile.assumed.join("\n");
        for words in ["not carried: a \"figure\"", "longer than 30 days", "no times", "keys of their own"] {
            assert!(assumed.contains(words), "{words}: {assumed}");
        }
        assert_eq!(profile.ttl, Dist::Fixed(EXPIRY_MAX_S as f64));
    }

    #[test]
    fn popular_records_get_their_lengths() {
        let keys: Vec<[u8; 8]> =
            (0..20_000u64).map(|key| (key + 0x6161_6161_6161_6161).to_le_bytes()).collect();
        let mut rows = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let (count, bytes) = if number < 200 { (500, 10) } else { (5, 1_000) };
            rows.push(Row { verb: Verb::Set, value_bytes: Some(bytes), count, ..Row::read(key) });
        }
        let profile = profile(&fit_of(&rows));
        assert_eq!(profile.value_classes[0].value_size, Dist::Fixed(10.0));
        assert!((profile.value_classes[0].until - 0.01).abs() < 1e-3, "{:?}", profile.value_classes);
        assert_eq!(profile.value_size, Dist::Fixed(1_000.0));
    }
}
