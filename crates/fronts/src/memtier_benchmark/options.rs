//! memtier_benchmark's options as they are written, the values of each, and the words for values that mean nothing.

use pummel_logic::secrets::Secret;

use crate::c_numbers::{strtod, strtol};
use crate::getopt::{Choice, Event, Getopt, Takes, Wrong};
use crate::outputs::ResultPaths;

/// The name of the front in results, metrics and subcommands.
pub const NAME: &str = "memtier_benchmark";

/// The longest time that an option can say: a year, in seconds.
const TIME_MAX_S: f64 = 365.0 * 24.0 * 3_600.0;

/// Least and greatest exponent of Zipf's law, both excluded.
const ZIPF_BOUNDS: (f64, f64) = (0.0, 5.0);

/// Every option: those of the original in its order, then what pummel adds.
pub const CHOICES: [Choice; 97] = [
    Choice::both('s', "server", Takes::Value),
    Choice::both('h', "host", Takes::Value),
    Choice::both('p', "port", Takes::Value),
    Choice::both('S', "unix-socket", Takes::Value),
    Choice::both('4', "ipv4", Takes::Nothing),
    Choice::both('6', "ipv6", Takes::Nothing),
    Choice::both('P', "protocol", Takes::Value),
    Choice::long("tls", Takes::Nothing),
    Choice::long("cert", Takes::Value),
    Choice::long("key", Takes::Value),
    Choice::long("cacert", Takes::Value),
    Choice::long("tls-skip-verify", Takes::Nothing),
    Choice::long("sni", Takes::Value),
    Choice::long("tls-protocols", Takes::Value),
    Choice::both('o', "out-file", Takes::Value),
    Choice::long("hdr-file-prefix", Takes::Value),
    Choice::long("client-stats", Takes::Value),
    Choice::both('x', "run-count", Takes::Value),
    Choice::both('D', "debug", Takes::Nothing),
    Choice::long("show-config", Takes::Nothing),
    Choice::long("hide-histogram", Takes::Nothing),
    Choice::long("print-percentiles", Takes::Value),
    Choice::long("print-all-runs", Takes::Nothing),
    Choice::long("distinct-client-seed", Takes::Nothing),
    Choice::long("randomize", Takes::Nothing),
    Choice::both('n', "requests", Takes::Value),
    Choice::both('c', "clients", Takes::Value),
    Choice::both('t', "threads", Takes::Value),
    Choice::long("test-time", Takes::Value),
    Choice::long("ratio", Takes::Value),
    Choice::long("pipeline", Takes::Value),
    Choice::both('d', "data-size", Takes::Value),
    Choice::long("data-offset", Takes::Value),
    Choice::both('R', "random-data", Takes::Nothing),
    Choice::long("data-size-range", Takes::Value),
    Choice::long("data-size-list", Takes::Value),
    Choice::long("data-size-pattern", Takes::Value),
    Choice::long("expiry-range", Takes::Value),
    Choice::long("data-import", Takes::Value),
    Choice::long("data-verify", Takes::Nothing),
    Choice::long("verify-only", Takes::Nothing),
    Choice::long("generate-keys", Takes::Nothing),
    Choice::long("key-prefix", Takes::Value),
    Choice::long("key-minimum", Takes::Value),
    Choice::long("key-maximum", Takes::Value),
    Choice::long("key-pattern", Takes::Value),
    Choice::long("key-stddev", Takes::Value),
    Choice::long("key-median", Takes::Value),
    Choice::long("key-zipf-exp", Takes::Value),
    Choice::long("reconnect-interval", Takes::Value),
    Choice::long("reconnect-on-error", Takes::Nothing),
    Choice::long("max-reconnect-attempts", Takes::Value),
    Choice::long("reconnect-backoff-factor", Takes::Value),
    Choice::long("connection-timeout", Takes::Value),
    Choice::long("thread-conn-start-min-jitter-micros", Takes::Value),
    Choice::long("thread-conn-start-max-jitter-micros", Takes::Value),
    Choice::long("multi-key-get", Takes::Value),
    Choice::both('a', "authenticate", Takes::Value),
    Choice::long("select-db", Takes::Value),
    Choice::long("no-expiry", Takes::Nothing),
    Choice::long("wait-ratio", Takes::Value),
    Choice::long("num-slaves", Takes::Value),
    Choice::long("wait-timeout", Takes::Value),
    Choice::long("json-out-file", Takes::Value),
    Choice::long("cluster-mode", Takes::Nothing),
    Choice::long("help", Takes::Nothing),
    Choice::both('v', "version", Takes::Nothing),
    Choice::long("command", Takes::Value),
    Choice::long("command-key-pattern", Takes::Value),
    Choice::long("command-ratio", Takes::Value),
    Choice::long("monitor-input", Takes::Value),
    Choice::long("monitor-pattern", Takes::Value),
    Choice::long("command-stats-breakdown", Takes::Value),
    Choice::long("rate-limiting", Takes::Value),
    Choice::both('u', "uri", Takes::Value),
    Choice::long("statsd-host", Takes::Value),
    Choice::long("statsd-port", Takes::Value),
    Choice::long("statsd-prefix", Takes::Value),
    Choice::long("statsd-run-label", Takes::Value),
    Choice::long("graphite-port", Takes::Value),
    Choice::long("scan-incremental-iteration", Takes::Nothing),
    Choice::long("scan-incremental-max-iterations", Takes::Value),
    Choice::long("clients-start", Takes::Value),
    Choice::long("clients-step", Takes::Value),
    Choice::long("step-duration", Takes::Value),
    Choice::long("retry-on-error", Takes::Nothing),
    Choice::long("transaction", Takes::Nothing),
    Choice::added("json", Takes::Value),
    Choice::added("csv", Takes::Value),
    Choice::added("hdr", Takes::Value),
    Choice::added("report", Takes::Value),
    Choice::added("timeout", Takes::Value),
    Choice::added("strict", Takes::Nothing),
    Choice::added("no-evidence", Takes::Nothing),
    Choice::added("anonymous", Takes::Nothing),
    Choice::added("clock", Takes::Value),
    Choice::added("backend", Takes::Value),
];

/// Options that are refused, with what to use instead.
const REFUSED: [(&str, &str); 13] = [
    ("data-import", "no items are imported; pummel load --fill FILE stores those of a dump"),
    ("data-verify", "no items are imported; pummel run --verify checks every value that is read"),
    ("verify-only", "no items are imported; pummel run --verify checks every value that is read"),
    ("generate-keys", "no items are imported; pummel load --fill FILE stores those of a dump"),
    ("no-expiry", "no items are imported; pummel load --fill FILE stores those of a dump"),
    ("statsd-host", "metrics go to Prometheus: pummel run --metrics and --push-result"),
    ("statsd-port", "metrics go to Prometheus: pummel run --metrics and --push-result"),
    ("statsd-prefix", "metrics go to Prometheus: pummel run --metrics and --push-result"),
    ("statsd-run-label", "metrics go to Prometheus: pummel run --metrics and --push-result"),
    ("graphite-port", "metrics go to Prometheus: pummel run --metrics and --push-result"),
    ("scan-incremental-iteration", "cursors are not followed; --command 'SCAN 0' asks for the first page"),
    (
        "scan-incremental-max-iterations",
        "cursors are not followed; --command 'SCAN 0' asks for the first page",
    ),
    (
        "transaction",
        "the commands of a transaction are one command here: pummel run --command 'MULTI ; ... ; EXEC'",
    ),
];

/// The protocol of `-P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenProtocol {
    /// `redis`: RESP2 without a greeting.
    Redis,
    /// `resp2`.
    Resp2,
    /// `resp3`.
    Resp3,
    /// `memcache_text`.
    Text,
    /// `memcache_binary`.
    Binary,
}

impl GivenProtocol {
    const NAMED: [(&str, GivenProtocol); 5] = [
        ("redis", GivenProtocol::Redis),
        ("resp2", GivenProtocol::Resp2),
        ("resp3", GivenProtocol::Resp3),
        ("memcache_text", GivenProtocol::Text),
        ("memcache_binary", GivenProtocol::Binary),
    ];

    /// The word of `-P`.
    pub fn name(self) -> &'static str {
        let found = GivenProtocol::NAMED.iter().find(|(_, protocol)| *protocol == self);
        found.map_or("redis", |(name, _)| name)
    }

    /// Whether it is that of Redis.
    pub fn is_resp(self) -> bool {
        matches!(self, GivenProtocol::Redis | GivenProtocol::Resp2 | GivenProtocol::Resp3)
    }
}

/// `-n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// Number of requests of each client.
    Each(u64),
    /// `allkeys`.
    AllKeys,
}

/// A letter of a key pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `R`: uniform.
    Random,
    /// `G`: a normal law.
    Normal,
    /// `Z`: Zipf's law.
    Zipf,
    /// `S`: one after the other.
    Sequential,
    /// `P`: one after the other, each client in its own share.
    Parallel,
}

impl Pattern {
    const LETTERS: [(char, Pattern); 5] = [
        ('R', Pattern::Random),
        ('G', Pattern::Normal),
        ('Z', Pattern::Zipf),
        ('S', Pattern::Sequential),
        ('P', Pattern::Parallel),
    ];

    fn of(letter: char) -> Option<Pattern> {
        Pattern::LETTERS.iter().find_map(|&(known, pattern)| (known == letter).then_some(pattern))
    }

    /// The letter of the pattern.
    pub fn letter(self) -> char {
        let found = Pattern::LETTERS.iter().find(|(_, pattern)| *pattern == self);
        found.map_or('R', |(letter, _)| *letter)
    }
}

/// A `--command` with the options behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenCommand {
    /// The text.
    pub text: String,
    /// `--command-ratio`.
    pub ratio: u32,
    /// `--command-key-pattern`.
    pub pattern: Pattern,
}

/// Why a command line is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// In the words of the original, behind which the usage stands; exit status 2.
    Usage(String),
    /// In the words of the original, without the usage; exit status 1.
    Configuration(String),
    /// The help is asked for, whose exit status is 2 there.
    Help,
}

/// What a command line asks for.
#[derive(Debug)]
pub(super) enum Given {
    /// `--version`.
    Version,
    /// Load.
    Options(Box<Options>),
}

/// The values of the options: 0 and `None` where they are not given, as the original has them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub server: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<String>,
    /// `-4` and `-6`: the number of the last one.
    pub family: Option<char>,
    pub protocol: GivenProtocol,
    pub tls: bool,
    pub certificate: Option<String>,
    pub private_key: Option<String>,
    pub authorities: Option<String>,
    pub skips_verification: bool,
    pub server_name: Option<String>,
    pub out_file: Option<String>,
    pub json_out_file: Option<String>,
    pub hdr_prefix: Option<String>,
    pub client_stats: Option<String>,
    pub run_count: u32,
    pub debug: u32,
    pub show_config: bool,
    pub hide_histogram: bool,
    pub percentiles: Vec<f64>,
    pub print_all_runs: bool,
    pub distinct_seed: bool,
    pub randomize: bool,
    pub requests: Option<Requests>,
    pub clients: u32,
    pub threads: u32,
    pub test_time_s: u32,
    pub ratio: (u32, u32),
    pub pipeline: u32,
    /// `-d`; 0 where other options decide.
    pub data_size: u32,
    pub data_offset: u32,
    pub random_data: bool,
    pub size_range: Option<(u32, u32)>,
    pub size_list: Vec<(u32, u32)>,
    /// `--data-size-pattern S`.
    pub sizes_follow_keys: bool,
    pub expiry_range: Option<(u32, u32)>,
    pub key_prefix: String,
    pub key_minimum: u64,
    pub key_maximum: u64,
    /// `--key-pattern`; absent where it is not given.
    pub key_pattern: Option<(Pattern, Pattern)>,
    pub key_deviation: f64,
    pub key_median: f64,
    pub zipf_exponent: f64,
    pub reconnect_interval: u32,
    pub reconnects: bool,
    pub connection_timeout_s: u32,
    pub jitter_us: (u32, u32),
    pub multi_key_get: u32,
    pub credentials: Option<Secret>,
    pub database: u32,
    pub wait_ratio: (u32, u32),
    pub replicas: Option<(u32, u32)>,
    pub wait_timeout_ms: Option<(u32, u32)>,
    pub cluster: bool,
    pub commands: Vec<GivenCommand>,
    pub monitor_input: Option<String>,
    pub monitor_is_random: bool,
    /// `--command-stats-breakdown line`.
    pub rows_by_line: bool,
    pub rate_limit: u32,
    pub uri: Option<Secret>,
    pub clients_start: u32,
    pub clients_step: u32,
    pub step_duration_s: u32,
    pub files: ResultPaths,
    /// `--timeout`, in seconds.
    pub timeout_s: f64,
    pub strict: bool,
    pub evidence: bool,
    pub anonymous: bool,
    pub clock: Option<String>,
    pub backend: Option<String>,
    /// What is done otherwise than it was asked for, in sentences without their full stop.
    pub remarks: Vec<String>,
    /// Whether `--ratio` is given.
    pub has_ratio: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            server: None,
            port: None,
            socket: None,
            family: None,
            protocol: GivenProtocol::Redis,
            tls: false,
            certificate: None,
            private_key: None,
            authorities: None,
            skips_verification: false,
            server_name: None,
            out_file: None,
            json_out_file: None,
            hdr_prefix: None,
            client_stats: None,
            run_count: 1,
            debug: 0,
            show_config: false,
            hide_histogram: false,
            percentiles: vec![50.0, 99.0, 99.9],
            print_all_runs: false,
            distinct_seed: false,
            randomize: false,
            requests: None,
            clients: 50,
            threads: 4,
            test_time_s: 0,
            ratio: (1, 10),
            pipeline: 1,
            data_size: 0,
            data_offset: 0,
            random_data: false,
            size_range: None,
            size_list: Vec::new(),
            sizes_follow_keys: false,
            expiry_range: None,
            key_prefix: "memtier-".to_owned(),
            key_minimum: 0,
            key_maximum: 10_000_000,
            key_pattern: None,
            key_deviation: 0.0,
            key_median: 0.0,
            zipf_exponent: 1.0,
            reconnect_interval: 0,
            reconnects: false,
            connection_timeout_s: 0,
            jitter_us: (0, 0),
            multi_key_get: 0,
            credentials: None,
            database: 0,
            wait_ratio: (0, 0),
            replicas: None,
            wait_timeout_ms: None,
            cluster: false,
            commands: Vec::new(),
            monitor_input: None,
            monitor_is_random: false,
            rows_by_line: false,
            rate_limit: 0,
            uri: None,
            clients_start: 0,
            clients_step: 0,
            step_duration_s: 0,
            files: ResultPaths::default(),
            timeout_s: 60.0,
            strict: false,
            evidence: true,
            anonymous: false,
            clock: None,
            backend: None,
            remarks: Vec::new(),
            has_ratio: false,
        }
    }
}

/// Reads the words behind the program's name.
///
/// # Errors
/// Returns the [`Refusal`] of the first word that is wrong, or of options that do not fit each other.
pub(super) fn parse(words: impl Iterator<Item = String>) -> Result<Given, Refusal> {
    let mut options = Options::default();
    for event in Getopt::new(&CHOICES, words) {
        match event {
            // The original passes over words that are no options.
            Ok(Event::Word(_)) => {}
            Ok(Event::Option { choice, value }) => {
                let name = CHOICES[choice].long.expect("every option has a long name");
                match name {
                    "help" => return Err(Refusal::Help),
                    "version" => return Ok(Given::Version),
                    name => options.take(name, value.unwrap_or_default())?,
                }
            }
            Err(wrong) => return Err(Refusal::Usage(of_getopt(&wrong))),
        }
    }
    options.check()?;
    Ok(Given::Options(Box::new(options)))
}

/// The line of the C library, which begins with the program's name.
fn of_getopt(wrong: &Wrong) -> String {
    format!("{}: {wrong}", NAME)
}

fn usage<T>(words: &str) -> Result<T, Refusal> {
    Err(Refusal::Usage(format!("error: {words}")))
}

impl Options {
    fn take(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(Refusal::Usage(format!("error: --{name}: {why}")));
        }
        let above_0 = |what: &str| count(&value, what);
        match name {
            "server" | "host" => self.server = Some(value),
            "port" => self.port = Some(port(&value)?),
            "unix-socket" => self.socket = Some(value),
            "ipv4" => self.family = Some('4'),
            "ipv6" => self.family = Some('6'),
            "protocol" => self.protocol = protocol(&value)?,
            "uri" => self.uri = Some(Secret::new(value)),
            "tls" => self.tls = true,
            "cert" => self.certificate = Some(value),
            "key" => self.private_key = Some(value),
            "cacert" => self.authorities = Some(value),
            "tls-skip-verify" => self.skips_verification = true,
            "sni" => self.server_name = Some(value),
            "tls-protocols" => self.remark_protocols(&value)?,
            "out-file" => self.out_file = Some(value),
            "json-out-file" => self.json_out_file = Some(value),
            "client-stats" => self.client_stats = Some(value),
            "hdr-file-prefix" => self.hdr_prefix = Some(value).filter(|prefix| !prefix.is_empty()),
            "run-count" => self.run_count = above_0("run count must be greater than zero.")?,
            "debug" => self.debug += 1,
            "show-config" => self.show_config = true,
            "hide-histogram" => self.hide_histogram = true,
            "print-percentiles" => self.percentiles = percentiles(&value)?,
            "print-all-runs" => self.print_all_runs = true,
            "distinct-client-seed" => self.distinct_seed = true,
            "randomize" => self.randomize = true,
            "requests" => self.requests = Some(self.requests_of(&value)?),
            "clients" => self.clients = above_0("clients must be greater than zero.")?,
            "threads" => self.threads = above_0("threads must be greater than zero.")?,
            "test-time" => {
                self.test_time_s = above_0("test time must be greater than zero.")?;
                if self.requests.is_some() {
                    return usage("--test-time and --requests are mutually exclusive.");
                }
            }
            "ratio" => {
                (self.ratio, self.has_ratio) =
                    (ratio(&value, "ratio must be expressed as [0-n]:[0-n].")?, true);
            }
            "pipeline" => self.pipeline = above_0("pipeline must be greater than zero.")?,
            "command" => self.commands.push(GivenCommand { text: value, ratio: 1, pattern: Pattern::Random }),
            "command-ratio" => {
                let command = self.last_command()?;
                let words = format!("failed to set ratio for command {}.", command_name(&command.text));
                command.ratio = count(&value, &words)?;
            }
            "command-key-pattern" => {
                let command = self.last_command()?;
                let name = command_name(&command.text);
                let words = format!("key-pattern for command {name} must be in the format of [S/R/Z/G/P].");
                command.pattern = single(&value).and_then(Pattern::of).map_or_else(|| usage(&words), Ok)?;
            }
            "command-stats-breakdown" => {
                self.rows_by_line = match value.to_ascii_lowercase().as_str() {
                    "line" => true,
                    "command" => false,
                    _ => return usage("command-stats-breakdown must be 'command' or 'line'."),
                }
            }
            "monitor-input" => self.monitor_input = Some(value),
            "monitor-pattern" => {
                self.monitor_is_random = match single(&value) {
                    Some('R') => true,
                    Some('S') => false,
                    _ => return usage("monitor-pattern must be 'S' (sequential) or 'R' (random)."),
                }
            }
            "json" | "csv" | "hdr" | "report" => self.files.set(static_name(name), value),
            "timeout" => self.timeout_s = seconds(&value)?,
            "strict" => self.strict = true,
            "no-evidence" => self.evidence = false,
            "anonymous" => self.anonymous = true,
            "clock" => self.clock = Some(value),
            "backend" => self.backend = Some(value),
            name => self.take_of_data(name, value)?,
        }
        Ok(())
    }

    /// Follows an option about keys, values or connections.
    fn take_of_data(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        let above_0 = |what: &str| count(&value, what);
        match name {
            "data-size" => self.data_size = above_0("data-size must be greater than zero.")?,
            "data-offset" => {
                let words = "data-offset must be greater than or equal to zero.";
                self.data_offset = number(&value, words)?;
            }
            "random-data" => self.random_data = true,
            "data-size-range" => {
                let words = "data-size-range must be expressed as [1-n]-[1-n].";
                self.size_range = Some(range(&value, 1, words)?);
            }
            "data-size-list" => self.size_list = size_list(&value)?,
            "data-size-pattern" => {
                self.sizes_follow_keys = match single(&value) {
                    Some('S') => true,
                    Some('R') => false,
                    _ => return usage("data-size-pattern must be either R or S."),
                }
            }
            "expiry-range" => {
                self.expiry_range = Some(range(&value, 0, "expiry-range must be expressed as [0-n]-[1-n].")?);
            }
            "key-prefix" => self.key_prefix = value,
            "key-minimum" => self.key_minimum = key_number(&value, "key-minimum must be greater than zero.")?,
            "key-maximum" => self.key_maximum = key_number(&value, "key-maximum must be greater than zero.")?,
            "key-pattern" => {
                let (pattern, is_half_parallel) = key_pattern(&value)?;
                if is_half_parallel {
                    return usage("parallel key-pattern must be configured for both SET and GET commands.");
                }
                self.key_pattern = Some(pattern);
            }
            "key-stddev" => {
                self.key_deviation = key_number(&value, "key-stddev must be greater than zero.")? as f64
            }
            "key-median" => {
                self.key_median = key_number(&value, "key-median must be greater than zero.")? as f64
            }
            "key-zipf-exp" => {
                let (exponent, rest) = strtod(&value);
                if !(rest.is_empty() && exponent > ZIPF_BOUNDS.0 && exponent < ZIPF_BOUNDS.1) {
                    return usage("key-zipf-exp must be within interval (0, 5).");
                }
                self.zipf_exponent = exponent;
            }
            "reconnect-interval" => {
                self.reconnect_interval = above_0("reconnect-interval must be greater than zero.")?;
            }
            "reconnect-on-error" | "retry-on-error" => self.take_of_errors(name),
            "max-reconnect-attempts" => {
                number(&value, "max-reconnect-attempts must be a valid number.")?;
                self.remarks.push(format!(
                    "--{name} {value} changes nothing: a connection is opened again until the run ends"
                ));
            }
            "reconnect-backoff-factor" => {
                let (factor, rest) = strtod(&value);
                if !rest.is_empty() || factor <= 0.0 {
                    return usage("reconnect-backoff-factor must be greater than zero.");
                }
                self.remarks
                    .push(format!("--{name} {value} changes nothing: the delay doubles up to a second"));
            }
            "connection-timeout" => {
                self.connection_timeout_s = number(&value, "connection-timeout must be a valid number.")?;
            }
            "thread-conn-start-min-jitter-micros" | "thread-conn-start-max-jitter-micros" => {
                let micros = number(&value, &format!("{name} must be a valid number."))?;
                let is_min = name.contains("-min-");
                if is_min { self.jitter_us.0 = micros } else { self.jitter_us.1 = micros }
            }
            "multi-key-get" => self.multi_key_get = above_0("multi-key-get must be greater than zero.")?,
            "authenticate" => self.credentials = Some(Secret::new(value)),
            "select-db" => self.database = number(&value, "select-db must be greater or equal zero.")?,
            "wait-ratio" => self.wait_ratio = ratio(&value, "wait-ratio must be expressed as [0-n]:[0-n].")?,
            "num-slaves" => {
                self.replicas = Some(range(&value, 0, "num-slaves must be expressed as [0-n]-[1-n].")?);
            }
            "wait-timeout" => {
                let words = "wait-timeout must be expressed as [0-n]-[1-n].";
                self.wait_timeout_ms = Some(range(&value, 0, words)?);
            }
            "cluster-mode" => self.cluster = true,
            "rate-limiting" => self.rate_limit = above_0("rate must be greater than zero.")?,
            "clients-start" => self.clients_start = above_0("clients-start must be greater than zero.")?,
            "clients-step" => self.clients_step = above_0("clients-step must be greater than zero.")?,
            "step-duration" => self.step_duration_s = above_0("step-duration must be greater than zero.")?,
            _ => unreachable!("every option of the table is followed"),
        }
        Ok(())
    }

    fn take_of_errors(&mut self, name: &str) {
        self.reconnects = true;
        if name == "retry-on-error" {
            let words =
                "--retry-on-error opens lost connections again; pummel run --retry sends requests again";
            self.remarks.push(words.to_owned());
        }
    }

    fn last_command(&mut self) -> Result<&mut GivenCommand, Refusal> {
        self.commands.last_mut().map_or_else(|| usage("no arbitrary command found."), Ok)
    }

    fn requests_of(&self, value: &str) -> Result<Requests, Refusal> {
        if value == "allkeys" {
            return Ok(Requests::AllKeys);
        }
        let each = key_number(value, "requests must be greater than zero.")?;
        if self.test_time_s > 0 {
            return usage("--test-time and --requests are mutually exclusive.");
        }
        Ok(Requests::Each(each))
    }

    /// Notes the versions of TLS, which are not chosen.
    fn remark_protocols(&mut self, value: &str) -> Result<(), Refusal> {
        const KNOWN: [&str; 4] = ["tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"];
        let is_known = |name: &str| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name));
        if !value.split([',', ' ']).filter(|name| !name.is_empty()).all(is_known) {
            return usage(
                "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'.",
            );
        }
        self.remarks.push(format!("--tls-protocols {value} changes nothing: TLS 1.2 and 1.3 are offered"));
        Ok(())
    }

    /// Refuses options that do not fit each other, as the original does once it has read them all.
    fn check(&self) -> Result<(), Refusal> {
        if self.cluster {
            let conflicts = [
                (self.reconnect_interval > 0, "cluster mode dose not support reconnect-interval option."),
                (self.multi_key_get > 0, "cluster mode dose not support multi-key-get option."),
                (self.wait_ratio != (0, 0), "cluster mode dose not support wait-ratio option."),
                (!self.protocol.is_resp(), "cluster mode supported only in redis protocol."),
                (self.socket.is_some(), "cluster mode dose not support unix-socket option."),
            ];
            if let Some((_, words)) = conflicts.iter().find(|(is_there, _)| *is_there) {
                return usage(words);
            }
        }
        if !self.commands.is_empty() {
            if self.key_pattern.is_some() {
                let words = "when using arbitrary command, key pattern is configured with --command-key-pattern option.";
                return usage(words);
            }
            if self.has_ratio {
                return usage(
                    "when using arbitrary command, ratio is configured with --command-ratio option.",
                );
            }
            let parallel =
                self.commands.iter().filter(|command| command.pattern == Pattern::Parallel).count();
            if parallel > 0 && parallel < self.commands.len() {
                return usage("parallel key-pattern must be configured to all commands.");
            }
        }
        let steps = [self.clients_start, self.clients_step, self.step_duration_s];
        if steps.iter().any(|step| *step > 0) {
            if steps.contains(&0) {
                return usage(
                    "--clients-start, --clients-step, and --step-duration must all be specified together.",
                );
            }
            if self.requests.is_some() {
                return usage(
                    "--requests cannot be used with client staircase mode. Use --test-time instead.",
                );
            }
        }
        Ok(())
    }
}

/// The name under which an option's result is known.
fn static_name(name: &str) -> &'static str {
    CHOICES.iter().find_map(|choice| choice.long.filter(|long| *long == name)).unwrap_or("json")
}

/// The first word of a command in capitals, as it is named in words about it.
pub fn command_name(text: &str) -> String {
    text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase()
}

/// A whole number from 1 to the greatest of 32 bits.
fn count(value: &str, words: &str) -> Result<u32, Refusal> {
    match number(value, words)? {
        0 => usage(words),
        count => Ok(count),
    }
}

/// A whole number from 0 to the greatest of 32 bits.
fn number(value: &str, words: &str) -> Result<u32, Refusal> {
    let (number, rest) = strtol(value, 10);
    match u32::try_from(number) {
        Ok(number) if rest.is_empty() && !value.is_empty() => Ok(number),
        _ => usage(words),
    }
}

/// A whole number from 1 on.
fn key_number(value: &str, words: &str) -> Result<u64, Refusal> {
    match strtol(value, 10) {
        (number @ 1.., "") => Ok(number as u64),
        _ => usage(words),
    }
}

fn port(value: &str) -> Result<u16, Refusal> {
    match strtol(value, 10) {
        (port @ 1..=65_535, "") => Ok(port as u16),
        _ => usage("port must be a number in the range [1-65535]."),
    }
}

fn protocol(value: &str) -> Result<GivenProtocol, Refusal> {
    let found = GivenProtocol::NAMED.iter().find(|(name, _)| *name == value);
    found.map_or_else(
        || usage("supported protocols are 'memcache_text', 'memcache_binary', 'redis', 'resp2' and resp3'."),
        |&(_, protocol)| Ok(protocol),
    )
}

/// The two numbers on both sides of a mark.
fn pair(value: &str, mark: char) -> Option<(u32, u32)> {
    let (first, rest) = strtol(value, 10);
    let (second, end) = strtol(rest.strip_prefix(mark)?, 10);
    if !end.is_empty() {
        return None;
    }
    Some((u32::try_from(first).ok()?, u32::try_from(second).ok()?))
}

fn ratio(value: &str, words: &str) -> Result<(u32, u32), Refusal> {
    pair(value, ':').filter(|pair| *pair != (0, 0)).map_or_else(|| usage(words), Ok)
}

/// Two numbers in rising order, the lower one from `least` on.
fn range(value: &str, least: u32, words: &str) -> Result<(u32, u32), Refusal> {
    let sorted = pair(value, '-').map(|(first, second)| (first.min(second), first.max(second)));
    sorted.filter(|(low, high)| *low >= least && *high > 0).map_or_else(|| usage(words), Ok)
}

fn size_list(value: &str) -> Result<Vec<(u32, u32)>, Refusal> {
    let items: Option<Vec<_>> = value.split(',').map(|item| pair(item, ':')).collect();
    let is_valid = |items: &Vec<(u32, u32)>| {
        items.iter().all(|(size, _)| *size > 0) && items.iter().any(|(_, weight)| *weight > 0)
    };
    let words = "data-size-list must be expressed as [size1:weight1],...[sizeN:weightN].";
    items.filter(is_valid).map_or_else(|| usage(words), Ok)
}

fn percentiles(value: &str) -> Result<Vec<f64>, Refusal> {
    let read = |text: &str| match strtod(text) {
        (number, "") if !text.is_empty() && (0.0..=100.0).contains(&number) => Some(number),
        _ => None,
    };
    let all: Option<Vec<f64>> = value.split(',').map(read).collect();
    all.map_or_else(|| usage("quantiles must be expressed as [0.0-100.0],[0.0-100.0](,...) ."), Ok)
}

/// The only letter of a text, as it is.
fn single(value: &str) -> Option<char> {
    let mut letters = value.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The two patterns, and whether one of them alone is parallel.
fn key_pattern(value: &str) -> Result<((Pattern, Pattern), bool), Refusal> {
    let read = || {
        let (set, get) = value.split_once(':')?;
        Some((single(set).and_then(Pattern::of)?, single(get).and_then(Pattern::of)?))
    };
    let words = "key-pattern must be in the format of [S/R/G/P/Z]:[S/R/G/P/Z].";
    let (set, get) = read().map_or_else(|| usage(words), Ok)?;
    Ok(((set, get), (set == Pattern::Parallel) != (get == Pattern::Parallel)))
}

fn seconds(value: &str) -> Result<f64, Refusal> {
    match strtod(value) {
        (seconds, "") if seconds > 0.0 && seconds <= TIME_MAX_S => Ok(seconds),
        _ => usage("timeout must be a number of seconds greater than zero."),
    }
}
