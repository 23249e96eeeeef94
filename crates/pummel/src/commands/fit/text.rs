//! The figures of a fit, and of a comparison, as a person reads them.

use pummel_logic::time::SECOND;
use pummel_measure::words::counted;
use pummel_report::numbers::{grouped, number};
use pummel_traffic::fit::{BURSTS_LEAST, Bound, Compared, Comparison, Fit, ValueCounts, ZIPF_DISTANCE_MAX};
use pummel_traffic::trace::reader::Account;

use super::check::Check;
use super::figures::cache_sizes;

/// Columns of the names of parts.
const NAME_COLUMNS: usize = 13;

/// Lines with names.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// A line under a name; without one it goes on with the part above.
    fn add(&mut self, name: &str, text: &str) {
        self.0.push_str(format!("{name:<NAME_COLUMNS$}{text}").trim_end());
        self.0.push('\n');
    }
}

/// The report of a fit.
pub(super) fn report(fit: &Fit, format: &str, account: &Account) -> String {
    let mut lines = Lines::default();
    trace(&mut lines, fit, format, account);
    mix(&mut lines, fit);
    lengths(&mut lines, fit);
    popularity(&mut lines, fit);
    working_sets(&mut lines, fit);
    churn(&mut lines, fit);
    arrivals(&mut lines, fit);
    misses(&mut lines, fit);
    lines.0
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.01 => "< 0.01 %".to_owned(),
        percent => format!("{percent:.2} %"),
    }
}

fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes < 1e4 => (bytes, "B"),
        bytes if bytes < 1e7 => (bytes / 1e3, "kB"),
        bytes if bytes < 1e10 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e9, "GB"),
    };
    format!("{} {unit}", number(value))
}

fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

fn trace(lines: &mut Lines, fit: &Fit, format: &str, account: &Account) {
    let span_s = fit.span_ns as f64 / SECOND as f64;
    let has_span = fit.arrivals.rate.is_some() && fit.span_ns > 0;
    let time = if has_span { format!(" in {} s", number(span_s)) } else { String::new() };
    let about = if fit.sampled < 1.0 { "about " } else { "" };
    let (requests, keys) = (grouped(fit.requests), whole(fit.keys));
    lines.add("Trace", &format!("{requests} requests for {about}{keys} keys{time}, format {format}"));
    if fit.sampled < 1.0 {
        let share = percent(fit.sampled);
        lines.add(
            "",
            &format!(
                "what is said of single keys comes from {share} of them; the most popular are all known"
            ),
        );
    }
    for (count, what) in [
        (fit.out_of_order, "rows are earlier than the one before them, and count as made at its time"),
        (account.bad, "lines or records hold no request"),
        (account.skipped, "lines ask what is not replayed"),
        (account.lost, "requests were lost when it was recorded"),
    ] {
        if count > 0 {
            lines.add("", &format!("{} {what}", grouped(count)));
        }
    }
}

fn mix(lines: &mut Lines, fit: &Fit) {
    let mix = fit.mix();
    let shares: Vec<String> =
        mix.iter().map(|(verb, share)| format!("{} {}", verb.name(), percent(*share))).collect();
    lines.add("Mix", &shares.join(", "));
    if fit.missed == 0 {
        return;
    }
    let (missed, fills) = (grouped(fit.missed), grouped(fit.fills()));
    lines.add(
        "Fills",
        &format!("{missed} reads missed; {fills} were followed by a store of their client within 5 s"),
    );
    let delay = fit.fill_delay_ns / 1e6;
    match fit.fills_misses() {
        true => lines.add(
            "",
            &format!("after {} ms in the mean: the profile fills its own misses instead", number(delay)),
        ),
        false => lines.add("", "too few for read-through: the mix has them as stores"),
    }
}

fn quantiles(counts: &ValueCounts, unit: &str) -> String {
    if counts.total() <= 0.0 {
        return "unknown".to_owned();
    }
    let at = |quantile: f64| grouped(counts.quantile(quantile));
    let mean = number(counts.mean());
    format!("mean {mean}, median {}, p90 {}, p99 {} {unit}", at(0.5), at(0.9), at(0.99))
}

fn lengths(lines: &mut Lines, fit: &Fit) {
    lines.add("Keys", &quantiles(&fit.key_bytes, "B"));
    lines.add("Values", &format!("by key: {}", quantiles(&fit.value_bytes, "B")));
    lines.add("", &format!("by request: {}", quantiles(&fit.request_bytes, "B")));
    if fit.sizes_differ() {
        let classes = ["top 1 % of the keys", "to 10 %", "to 50 %", "others"];
        let medians = classes.iter().zip(&fit.class_bytes).filter(|(_, class)| class.total() > 0.0);
        let medians: Vec<String> =
            medians.map(|(name, class)| format!("{name} {}", grouped(class.quantile(0.5)))).collect();
        lines.add(
            "",
            &format!("medians by popularity: {} B; the profile has these classes", medians.join(", ")),
        );
    }
    if fit.ttl_s.total() > 0.0 {
        lines.add("TTL", &format!("{}, by store; 0 is no expiry", quantiles(&fit.ttl_s, "s")));
    }
}

fn popularity(lines: &mut Lines, fit: &Fit) {
    let seen = &fit.spread.seen;
    let keys = seen.keys();
    let top = |count: f64| percent(seen.top(count));
    let (one, ten, thousand) = (top(1.0), top(10.0), top(1_000.0));
    let (hundredth, tenth) = (top(keys / 100.0), top(keys / 10.0));
    lines.add(
        "Popularity",
        &format!("top key {one}, top 10 {ten}, top 1,000 {thousand}, top 1 % {hundredth}, top 10 % {tenth} of the requests"),
    );
    match fit.spread.zipf {
        None => lines.add("", "too few keys were asked for often enough to compare with Zipf's law"),
        Some((all, tenth)) => {
            let (alpha, error, last) = (all.exponent, all.error, whole(all.last_rank));
            let verdict = if all.distance > ZIPF_DISTANCE_MAX { "not Zipf's law" } else { "near Zipf's law" };
            let first = tenth.map_or(String::new(), |tenth| {
                format!("; {:.3} on the first tenth of these", tenth.exponent)
            });
            lines.add(
                "",
                &format!(
                    "alpha {alpha:.3} +- {error:.3} on ranks 1 to {last}{first}; {verdict}: {:.3} off",
                    all.distance
                ),
            );
        }
    }
    let (records, fresh) = (grouped(fit.records()), percent(fit.fresh()));
    lines.add(
        "",
        &format!(
            "about {records} records are behind this; {fresh} of the reads are for keys that never come again"
        ),
    );
    if fit.fresh_most() > fit.fresh() {
        let most = percent(fit.fresh_most());
        lines.add("", &format!("the trace does not tell such keys from rare ones: up to {most} may be so"));
    }
    let karlin =
        fit.spread.zipf.filter(|(all, _)| all.exponent > 1.0).map(|(all, _)| percent(1.0 / all.exponent));
    let karlin = karlin
        .map_or(String::new(), |share| format!(" (independent draws of that alpha: up to {share}, Karlin)"));
    lines.add("One-hit", &format!("{} of the keys were asked for once{karlin}", percent(fit.one_hit())));
    lines.add(
        "Compulsory",
        &format!("{} of the requests are the first for their key", percent(fit.compulsory())),
    );
}

fn working_sets(lines: &mut Lines, fit: &Fit) {
    let mut name = "Working set";
    if fit.arrivals.rate.is_some() {
        let sets = fit.working_sets.iter().zip(["1 min", "10 min", "1 h"]);
        for (set, window) in sets.filter(|(set, _)| set.windows > 0) {
            let (keys, size, most) = (whole(set.keys), bytes(set.bytes), whole(set.most_keys));
            lines.add(
                name,
                &format!(
                    "{window:<7}{keys} keys, {size} in the mean of {}; most {most} keys",
                    counted(set.windows, "window")
                ),
            );
            name = "";
        }
    }
    lines.add(name, &format!("{:<7}{} keys, {}", "all", whole(fit.keys), bytes(fit.all_bytes)));
}

fn churn(lines: &mut Lines, fit: &Fit) {
    let churn = &fit.churn;
    if churn.survival.is_empty() {
        lines.add("Churn", "unknown: the trace is too short, or asks for too few keys in a minute");
        return;
    }
    let shown = churn.survival.iter().filter(|one| [60.0, 600.0, 3_600.0].contains(&one.after_s));
    let left: Vec<String> =
        shown.map(|one| format!("{} after {} min", percent(one.share), one.after_s / 60.0)).collect();
    lines.add("Churn", &format!("of the top 10 % of the keys of a minute, still there: {}", left.join(", ")));
    match (&churn.lifetimes, churn.half_life_s) {
        (None, _) => lines.add("", "keys stay"),
        (Some(lifetimes), Some(half)) => {
            lines.add("", &format!("half have left after {} s; lifetimes {lifetimes}", number(half)))
        }
        (Some(lifetimes), None) => lines.add(
            "",
            &format!("half-life longer than the trace; lifetimes {lifetimes}, where they are longer than it by extrapolation"),
        ),
    }
}

fn arrivals(lines: &mut Lines, fit: &Fit) {
    let arrivals = &fit.arrivals;
    let Some(rate) = arrivals.rate else {
        lines.add("Arrivals", "unknown: the rows have no times");
        return;
    };
    let peak = |peak: Option<f64>, of: &str| {
        peak.map_or(String::new(), |peak| format!("; busiest {of} {}x", number(peak)))
    };
    let (second, minute) = (peak(arrivals.peak_1s, "second"), peak(arrivals.peak_60s, "minute"));
    lines.add("Arrivals", &format!("{} requests/s{second}{minute}", number(rate)));
    let shown = [0.01, 0.16, 1.0, 60.0, 3_600.0];
    let of = |window_s: f64| arrivals.dispersions.iter().find(|one| one.window_s == window_s);
    let idc: Vec<String> = shown
        .into_iter()
        .filter_map(of)
        .filter(|one| one.windows >= 10.0)
        .map(|one| format!("{} at {} s", number(one.idc), one.window_s))
        .collect();
    if !idc.is_empty() {
        let hurst = arrivals.hurst.map_or(String::new(), |hurst| format!("; Hurst {hurst:.2}"));
        lines.add("", &format!("index of dispersion {} (Poisson: 1){hurst}", idc.join(", ")));
    }
    if arrivals.whole_seconds {
        lines.add("", "below 1 s unknown: Poisson assumed");
    }
    if let Some(burst) = arrivals.burst {
        let seconds = |time_ns: u64| number(time_ns as f64 / SECOND as f64);
        let (on, off) = (seconds(burst.states.on_ns), seconds(burst.states.off_ns));
        let factor = number(burst.states.factor);
        lines.add(
            "",
            &format!(
                "bursts: {factor}x for {on} s, then {off} s between them; its dispersion is up to {} off",
                percent(burst.off)
            ),
        );
    }
    if let Some(few) = arrivals.few_bursts {
        lines.add(
            "",
            &format!("bursts: unknown; about {few:.0} in this trace, and {BURSTS_LEAST} tell how long and how high they are"),
        );
    }
    if let (Some(low), Some(high)) =
        (arrivals.hours.iter().copied().reduce(f64::min), arrivals.hours.iter().copied().reduce(f64::max))
    {
        lines.add(
            "",
            &format!(
                "by the hour of the day from {} to {} requests/s: --rates writes them",
                number(low),
                number(high)
            ),
        );
    }
}

fn misses(lines: &mut Lines, fit: &Fit) {
    if fit.hit_ratio(1.0).is_none() {
        lines.add("LRU", "nothing is read");
        return;
    }
    lines.add("LRU", "    objects   missed               bytes   missed");
    let objects = cache_sizes(fit.keys);
    let bytes_sizes = cache_sizes(fit.all_bytes);
    for place in 0..objects.len().max(bytes_sizes.len()) {
        let left = objects.get(place).and_then(|&size| Some((size, fit.hit_ratio(size)?)));
        let left = left.map_or(String::new(), |(size, (hits, error))| {
            let error = if error > 0.0 { format!(" +- {:.2}", 100.0 * error) } else { String::new() };
            format!("{:>11} {:>8}{error:<9}", whole(size), percent(1.0 - hits))
        });
        let right = bytes_sizes.get(place).and_then(|&size| Some((size, fit.by_bytes.hit_ratio(size)?)));
        let right = right
            .map_or(String::new(), |(size, hits)| format!("{:>11} {:>8}", bytes(size), percent(1.0 - hits)));
        lines.add("", &format!("{left:<30}{right}"));
    }
}

/// The figures of the trace that its own profile does not carry.
pub(super) fn carried(own: &Result<Check, String>) -> String {
    let mut lines = Lines::default();
    let check = match own {
        Ok(check) => check,
        Err(why) => {
            lines.add("Profile", &format!("not compared with the trace: {why}"));
            return lines.0;
        }
    };
    let promised = promised(&check.comparison);
    let beyond: Vec<&Compared> = check.comparison.beyond().collect();
    let text = match beyond.len() {
        0 => format!(
            "{} are like the trace: all of {promised} figures with a bound are within it",
            requests_of(check)
        ),
        beyond => format!(
            "{} differ from the trace in {beyond} of {promised} figures with a bound:",
            requests_of(check)
        ),
    };
    lines.add("Profile", &text);
    beyond.into_iter().for_each(|row| lines.add("", &miss(row)));
    if !check.is_whole() {
        lines.add(
            "",
            "more would take too long: numbers of keys, lengths, arrivals and hits of LRU are not compared",
        );
    }
    lines.0
}

/// The figures of a trace that a profile does not carry, as its file says them.
pub(super) fn misses_of_profile(check: &Check) -> Vec<String> {
    let miss = |row| format!("not carried: {}", miss(row));
    check.comparison.beyond().map(miss).collect()
}

/// A figure that is beyond its bound.
fn miss(row: &Compared) -> String {
    let Compared { what, trace, profile, difference, .. } = row;
    match (trace, profile) {
        (Some(trace), Some(profile)) => {
            format!("{what}: {} in the trace, {} of the profile", figure_text(*trace), figure_text(*profile))
        }
        _ => format!("{what}: {} between the trace and the profile", figure_text(*difference)),
    }
}

/// The requests that were made of a profile.
fn requests_of(check: &Check) -> String {
    match check.is_whole() {
        true => "as many requests made from it".to_owned(),
        false => {
            format!("the first {} of {} requests made from it", grouped(check.made), grouped(check.wanted))
        }
    }
}

/// How many figures have a bound.
fn promised(comparison: &Comparison) -> usize {
    comparison.rows.iter().filter(|row| row.bound != Bound::None).count()
}

/// The rows of a comparison as a table, and how many are beyond their bounds.
pub(super) fn comparison(check: &Check, profile: &str) -> String {
    let comparison = &check.comparison;
    let requests = match check.is_whole() {
        true => "as many requests".to_owned(),
        false => format!("the first {} of {} requests", grouped(check.made), grouped(check.wanted)),
    };
    let columns = comparison.rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
    let mut text = format!(
        "\nThe trace, and {requests} of '{}':\n{:<columns$}  {:>12} {:>12} {:>12} {:>9}\n",
        profile.escape_debug(),
        "",
        "trace",
        "profile",
        "difference",
        "bound"
    );
    for row in &comparison.rows {
        let figure = |figure: Option<f64>| figure.map_or(String::new(), figure_text);
        let bound = match row.bound {
            Bound::Difference(most) => figure_text(most),
            Bound::Share(most) => format!("{} %", 100.0 * most),
            Bound::Factor(most) => format!("{most}x"),
            Bound::None => "-".to_owned(),
        };
        let mark = if row.is_beyond() { "  beyond" } else { "" };
        text += &format!(
            "{:<columns$}  {:>12} {:>12} {:>12} {bound:>9}{mark}\n",
            row.what,
            figure(row.trace),
            figure(row.profile),
            difference_text(row),
        );
    }
    let beyond = comparison.beyond().count();
    let promised = promised(comparison);
    text += &format!("{beyond} of {promised} figures with a bound are beyond it\n");
    text
}

fn difference_text(row: &Compared) -> String {
    match row.bound {
        Bound::Share(_) => format!("{:+.1} %", 100.0 * row.difference),
        Bound::Factor(_) => format!("{}x", number(row.difference)),
        _ if row.trace.is_none() => figure_text(row.difference),
        _ if row.difference == 0.0 => "0".to_owned(),
        _ => format!("{}{}", if row.difference < 0.0 { "-" } else { "+" }, figure_text(row.difference.abs())),
    }
}

fn figure_text(figure: f64) -> String {
    match figure {
        figure if figure.abs() >= 1_000.0 => whole(figure),
        figure if figure.fract() == 0.0 => format!("{figure}"),
        figure if figure.abs() >= 10.0 => format!("{figure:.2}"),
        figure => format!("{figure:.4}"),
    }
}

/// The rate over time as lines that `--rate file:` reads.
pub(super) fn rates(fit: &Fit) -> String {
    let arrivals = &fit.arrivals;
    let line = |(step, rate): (usize, &f64)| {
        // A rate is that of the middle of its step.
        let middle_s = (step as f64 + 0.5) * arrivals.step_s as f64;
        format!("{middle_s},{rate:.3}\n")
    };
    let lines: String = arrivals.rates.iter().enumerate().map(line).collect();
    format!("# seconds,requests per second\n{lines}")
}
