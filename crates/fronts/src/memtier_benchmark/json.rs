//! memtier_benchmark's JSON: the names, the nesting and the number formats of the original, in a document that is whole at any end.

use std::fmt::Write as _;

use pummel_logic::secrets::{HIDDEN, Secret};

use super::display::Display;
use super::figures::{
    RowFigures, RunFigures, SecondRow, distribution, in_microseconds, milliseconds, percentile_ms,
};
use super::options::Options;
use super::report::accumulated_ms;

/// The version of the format of `run information`.
const FORMAT_VERSION: u32 = 2;

/// Length of a percentile's name, behind which the original cuts it.
const NAME_CHARS: usize = 6;

/// Writes nested objects and lists with tabs, as the original does.
#[derive(Debug, Default)]
struct Writer {
    text: String,
    depth: usize,
    /// Whether something stands before the next member of the current object or list.
    has_member: bool,
}

impl Writer {
    fn begin_member(&mut self) {
        let tabs = "\t".repeat(self.depth);
        let comma = if self.has_member { "," } else { "" };
        self.text.push_str(&format!("\n{tabs}{comma}"));
        self.has_member = true;
    }

    fn member(&mut self, name: &str, value: impl std::fmt::Display) {
        self.begin_member();
        self.text.push_str(&format!("{}: {value}", quoted(name)));
    }

    /// Members between braces, or items between brackets. A list's items have no name.
    fn nested(&mut self, name: Option<&str>, brackets: (char, char), inside: impl FnOnce(&mut Writer)) {
        self.begin_member();
        if let Some(name) = name {
            self.text.push_str(&format!("{}:", quoted(name)));
        }
        self.text.push(brackets.0);
        (self.depth, self.has_member) = (self.depth + 1, false);
        inside(self);
        self.text.push_str(&format!("\n{}{}", "\t".repeat(self.depth), brackets.1));
        (self.depth, self.has_member) = (self.depth - 1, true);
    }

    fn object(&mut self, name: &str, inside: impl FnOnce(&mut Writer)) {
        self.nested(Some(name), ('{', '}'), inside);
    }
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text can always be written as JSON")
}

/// A number with so many decimals; `null` for what is no number.
fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "null".to_owned() }
}

/// The whole document of these runs.
pub fn document(display: &Display, runs: &[RunFigures]) -> String {
    let options = &display.options;
    let mut writer = Writer { text: "{".to_owned(), depth: 1, has_member: false };
    writer.object("configuration", |writer| {
        for (name, setting) in settings(options) {
            writer.member(name, setting.json());
        }
    });
    writer.object("run information", |writer| {
        writer.member("Threads", options.threads);
        writer.member("Connections per thread", options.clients);
        match display.requests {
            Some(requests) => writer.member("Requests per client", requests),
            None => writer.member("Seconds", options.test_time_s),
        }
        writer.member("Format version", FORMAT_VERSION);
    });
    for (title, run) in RunFigures::titled(runs, options.run_count, options.print_all_runs) {
        writer.object(&title, |writer| write_run(display, &run, writer));
    }
    writer.text + "\n}\n"
}

fn write_run(display: &Display, run: &RunFigures, writer: &mut Writer) {
    let options = &display.options;
    writer.object("Runtime", |writer| {
        writer.member("Start time", run.started_ms);
        writer.member("Finish time", run.started_ms + run.length_ms);
        writer.member("Total duration", run.length_ms);
        writer.member("Time unit", quoted("MILLISECONDS"));
        writer.member("Interrupted", quoted(if run.is_interrupted { "true" } else { "false" }));
    });
    let names = display.rows.iter().map(|row| &*row.name).chain(["Totals"]);
    for (at, (name, row)) in names.zip(&run.rows).enumerate() {
        writer.object(name, |writer| write_row(options, run, (at, row), writer));
    }
    if options.clients_start > 0 {
        writer.object("Active Clients", |writer| {
            for second in &run.seconds {
                let steps = second.second / u64::from(options.step_duration_s.max(1));
                let active = u64::from(options.clients_start) + steps * u64::from(options.clients_step);
                let active = active.min(options.clients.into());
                writer.object(&second.second.to_string(), |writer| {
                    writer.member("Clients per thread", active);
                    writer.member("Total clients", active * u64::from(options.threads));
                });
            }
        });
    }
    if options.hide_histogram {
        return;
    }
    for (row, figures) in display.rows.iter().zip(&run.rows) {
        writer.nested(Some(&row.title), ('[', ']'), |writer| {
            for (ns, percent) in distribution(&figures.times) {
                writer.nested(None, ('{', '}'), |writer| {
                    writer.member("<=msec", number(milliseconds(ns as f64), 3));
                    writer.member("percent", number(percent, 3));
                });
            }
        });
    }
}

fn write_row(options: &Options, run: &RunFigures, (at, row): (usize, &RowFigures), writer: &mut Writer) {
    let is_total = at + 1 == run.rows.len();
    let is_of_reads = is_total || options.commands.is_empty() && at == 1;
    let of_reads = |value: f64| number(if is_of_reads { value } else { 0.0 }, 2);
    writer.member("Count", row.count);
    writer.member("Ops/sec", number(row.rate, 2));
    writer.member("Hits/sec", of_reads(row.hits));
    writer.member("Misses/sec", of_reads(row.misses));
    if options.cluster {
        let known = |value: Option<f64>| value.map_or_else(|| "null".to_owned(), |value| number(value, 2));
        writer.member("MOVED/sec", known(row.redirects.map(|(moved, _)| moved)));
        writer.member("ASK/sec", known(row.redirects.map(|(_, ask)| ask)));
    }
    writer.member("Connection Errors/sec", number(row.connection_error_rate, 2));
    writer.member("Connection Errors", row.connection_errors);
    let mean = row.times.moments().mean_ns().map_or(0.0, milliseconds);
    writer.member("Latency", number(mean, 3));
    writer.member("Average Latency", number(mean, 3));
    writer.member("Accumulated Latency", accumulated_ms(&row.times));
    let is_any = row.times.count() > 0;
    let greatest = milliseconds(row.times.moments().max as f64);
    writer.member("Min Latency", number(percentile_ms(&row.times, 0.0), 3));
    writer.member("Max Latency", number(if is_any { greatest } else { 0.0 }, 3));
    let kilobytes = |of: fn((f64, f64)) -> f64| {
        row.kilobytes.map_or_else(|| "null".to_owned(), |pair| number(of(pair), 2))
    };
    writer.member("KB/sec", kilobytes(|(received, sent)| received + sent));
    writer.member("KB/sec RX/TX", kilobytes(|(received, sent)| received + sent));
    writer.member("KB/sec RX", kilobytes(|(received, _)| received));
    writer.member("KB/sec TX", kilobytes(|(_, sent)| sent));
    writer.object("Time-Serie", |writer| {
        for second in &run.seconds {
            let Some(row) = second.rows.get(at) else { continue };
            writer.object(&second.second.to_string(), |writer| write_second(options, row, writer));
        }
    });
    writer.object("Percentile Latencies", |writer| {
        for percent in &options.percentiles {
            writer.member(&cut_name(*percent, 3), number(percentile_ms(&row.times, *percent), 3));
        }
        writer.object("Histogram log format", |writer| {
            writer.member("Compressed Histogram", quoted(&in_microseconds(&row.times).to_base64()));
        });
    });
}

fn write_second(options: &Options, row: &SecondRow, writer: &mut Writer) {
    let bytes = |value: Option<u64>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    writer.member("Bytes RX", bytes(row.bytes.map(|bytes| bytes.received)));
    writer.member("Bytes TX", bytes(row.bytes.map(|bytes| bytes.sent)));
    writer.member("Count", row.count);
    if row.count == 0 {
        return;
    }
    writer.member("Average Latency", number(row.mean_ms, 3));
    writer.member("Accumulated Latency", number(row.sum_ms.floor(), 0));
    writer.member("Min Latency", number(row.least_ms, 3));
    writer.member("Max Latency", number(row.greatest_ms, 3));
    for (percent, ms) in options.percentiles.iter().zip(&row.percentiles_ms) {
        writer.member(&cut_name(*percent, 2), number(*ms, 3));
    }
}

/// The name of a percentile with so many decimals, as far as the original has room for it.
fn cut_name(percent: f64, decimals: usize) -> String {
    format!("p{percent:.decimals$}").chars().take(NAME_CHARS).collect()
}

/// A value of the configuration.
enum Setting {
    /// A text; absent where the option is not given.
    Text(Option<String>),
    /// A number in its format.
    Number(String),
    /// Whether something is so.
    Flag(bool),
    /// Two numbers, and the mark between them in lines and in JSON.
    Pair((u32, u32), (char, char)),
}

impl Setting {
    fn json(&self) -> String {
        match self {
            Setting::Text(text) => text.as_deref().map_or_else(|| "null".to_owned(), quoted),
            Setting::Number(number) => number.clone(),
            Setting::Flag(is_so) => quoted(if *is_so { "true" } else { "false" }),
            Setting::Pair((first, second), (_, mark)) => quoted(&format!("{first}{mark}{second}")),
        }
    }

    fn line(&self) -> String {
        match self {
            Setting::Text(text) => text.clone().unwrap_or_else(|| "(null)".to_owned()),
            Setting::Number(number) => number.trim().to_owned(),
            Setting::Flag(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            Setting::Pair((first, second), (mark, _)) => format!("{first}{mark}{second}"),
        }
    }
}

/// The lines of `--show-config`.
pub(super) fn configuration_lines(options: &Options) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, setting: Setting| {
        writeln!(lines, "{name} = {}", setting.line()).expect("text can always be added to");
    };
    for (name, setting) in settings(options) {
        match name {
            // It is in the document alone, as the name of the document's file is in these lines.
            "key_zipf_exp" => {}
            "print-all-runs" => {
                line("json-out-file", Setting::Text(options.json_out_file.clone()));
                line(name, setting);
            }
            name => line(name, setting),
        }
    }
    lines
}

/// The options by the names of the original's configuration. No password is among them, and no address of an anonymous run.
fn settings(options: &Options) -> Vec<(&'static str, Setting)> {
    let text = |value: &Option<String>| Setting::Text(value.clone());
    let known = |value: &Option<String>| text(&value.clone().filter(|_| !options.anonymous));
    let word = |value: &str| Setting::Text(Some(value.to_owned()));
    let number = |value: u64| Setting::Number(value.to_string());
    let (ratio, range) = ((':', ':'), ('-', ':'));
    let given = |range: Option<(u32, u32)>| range.unwrap_or_default();
    let is_tcp = options.socket.is_none();
    let server = options.server.clone().unwrap_or_else(|| "localhost".to_owned());
    let (set, get) = options.key_pattern.map_or(('R', 'R'), |(set, get)| (set.letter(), get.letter()));
    let hidden = |value: &Option<Secret>| word(if value.is_some() { HIDDEN } else { "" });
    let sizes: Vec<String> =
        options.size_list.iter().map(|(size, weight)| format!("{size}:{weight}")).collect();
    let is_default_size =
        options.data_size == 0 && options.size_list.is_empty() && options.size_range.is_none();
    let requests = if options.test_time_s > 0 { 0 } else { options.requests_each() };
    let is_normal = options.key_deviation > 0.0 || options.key_median > 0.0;
    let exponent = if options.has_zipf() { options.zipf_exponent } else { 0.0 };
    let float = |value: f64| Setting::Number(format!("{value:.6}"));
    let mut settings = vec![
        ("server", known(&Some(server).filter(|_| is_tcp))),
        ("port", number(if is_tcp { options.port.unwrap_or(6_379).into() } else { 0 })),
        ("uri", hidden(&options.uri)),
        ("unix socket", known(&options.socket)),
        (
            "address family",
            word(match options.family {
                Some('4') => "AF_INET",
                Some(_) => "AF_INET6",
                None => "Unspecified",
            }),
        ),
        ("protocol", word(options.protocol.name())),
        ("out_file", text(&options.out_file)),
        ("tls", Setting::Flag(options.tls)),
        ("cert", text(&options.certificate)),
        ("key", text(&options.private_key)),
        ("cacert", text(&options.authorities)),
        ("tls_skip_verify", Setting::Flag(options.skips_verification)),
        ("sni", known(&options.server_name)),
        ("client_stats", text(&options.client_stats)),
        ("run_count", number(options.run_count.into())),
        ("debug", number(options.debug.into())),
        ("requests", number(requests)),
        ("rate_limit", number(options.rate_limit.into())),
        ("clients", number(options.clients.into())),
        ("threads", number(options.threads.into())),
        ("test_time", number(options.test_time_s.into())),
        ("ratio", Setting::Pair(options.ratio, ratio)),
        ("pipeline", number(options.pipeline.into())),
        ("data_size", number(if is_default_size { 32 } else { options.data_size.into() })),
        ("data_offset", number(options.data_offset.into())),
        ("random_data", Setting::Flag(options.random_data)),
        ("data_size_range", Setting::Pair(given(options.size_range), range)),
        ("data_size_list", word(&sizes.join(","))),
        ("data_size_pattern", word(if options.sizes_follow_keys { "S" } else { "R" })),
        ("expiry_range", Setting::Pair(given(options.expiry_range), range)),
        ("data_import", Setting::Text(None)),
        ("data_verify", Setting::Flag(false)),
        ("verify_only", Setting::Flag(false)),
        ("generate_keys", Setting::Flag(false)),
        ("key_prefix", word(&options.key_prefix)),
        ("key_minimum", Setting::Number(format!("{:11}", options.key_minimum))),
        ("key_maximum", Setting::Number(format!("{:11}", options.key_maximum))),
        ("key_pattern", word(&format!("{set}:{get}"))),
        ("key_stddev", float(if is_normal { options.key_deviation } else { 0.0 })),
        ("key_median", float(if is_normal { options.key_median } else { 0.0 })),
        ("key_zipf_exp", float(exponent)),
        ("reconnect_interval", number(options.reconnect_interval.into())),
        ("connection_timeout", number(options.connection_timeout_s.into())),
        ("thread_conn_start_min_jitter_micros", number(options.jitter_us.0.into())),
        ("thread_conn_start_max_jitter_micros", number(options.jitter_us.1.into())),
        ("multi_key_get", number(options.multi_key_get.into())),
        ("authenticate", hidden(&options.credentials)),
        ("select-db", number(options.database.into())),
        ("no-expiry", Setting::Flag(false)),
        ("wait-ratio", Setting::Pair(options.wait_ratio, ratio)),
        ("num-slaves", Setting::Pair(given(options.replicas), range)),
        ("wait-timeout", Setting::Pair(given(options.wait_timeout_ms), ('-', '-'))),
        ("print-all-runs", Setting::Flag(options.print_all_runs)),
    ];
    if options.clients_start > 0 {
        settings.extend([
            ("clients_start", number(options.clients_start.into())),
            ("clients_step", number(options.clients_step.into())),
            ("step_duration", number(options.step_duration_s.into())),
        ]);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_percentiles_are_cut_where_the_original_cuts_them() {
        let names = [50.0, 99.9, 99.99, 99.999, 100.0, 5.0].map(|percent| cut_name(percent, 3));
        assert_eq!(names, ["p50.00", "p99.90", "p99.99", "p99.99", "p100.0", "p5.000"]);
        assert_eq!(cut_name(5.0, 2), "p5.00");
    }

    #[test]
    fn what_is_no_number_is_null() {
        assert_eq!((number(f64::NAN, 2), number(1.0 / 3.0, 2)), ("null".to_owned(), "0.33".to_owned()));
    }

    #[test]
    fn passwords_stand_in_no_configuration() {
        let options = Options {
            credentials: Some(Secret::new("user:secret")),
            uri: Some(Secret::new("redis://user:secret@host")),
            ..Options::default()
        };
        assert!(!configuration_lines(&options).contains("secret"));
        assert!(!format!("{options:?}").contains("secret"));
    }
}
