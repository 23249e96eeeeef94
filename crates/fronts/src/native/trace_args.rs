//! The options of a replay, as the words of the user.

use clap::{Args, ValueEnum};
use pummel_logic::plan::{MappedVerb, Stop, TRACE_VERBS, TracePace};
use pummel_logic::time::Nanos;
use pummel_traffic::trace::Format;
use pummel_traffic::trace::format::FORMATS;

use crate::values::nearest::hint;
use crate::values::{self, Measure, UnreadDist, ValueError};

/// Options of a replay.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Trace")]
pub struct TraceArgs {
    /// Replay the requests of this trace: a file, plain, .gz or .zst, or - for standard input. May be repeated: the files are
    /// replayed in order
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub trace: Vec<String>,
    /// The format of the trace: twitter, kvcache, cdn, csv[:time=1,key=3,...], oracle, twr, twr-ns, monitor, watch, ptr,
    /// mutilate-0 to mutilate-2. Default: detected from its content
    #[arg(long, value_name = "FORMAT", requires = "trace", value_parser = format)]
    pub trace_format: Option<String>,
    /// When the requests are due: at the times of the trace (trace), SPEED times as fast (trace:SPEED), or as soon as their client
    /// is free (fast). Default: trace; with --rate the rate decides and the order is kept
    #[arg(long, value_name = "trace[:SPEED]|fast", requires = "trace", conflicts_with = "rate", value_parser = pace)]
    pub pace: Option<TracePace>,
    /// Where within its second a request is due, in traces that only have whole seconds. Default: spread
    #[arg(long, value_name = "RULE", requires = "trace", value_enum)]
    pub within_second: Option<WithinSecondName>,
    /// What decides which client sends the request of a row. Default: client if rows name one, else key
    #[arg(long, value_name = "BY", requires = "trace", value_enum)]
    pub trace_by: Option<DealByName>,
    /// Send other operations than those of the trace, such as get=set,gets=get
    #[arg(long, value_name = "FROM=TO,...", requires = "trace", value_delimiter = ',', value_parser = mapped_verb)]
    pub trace_map: Vec<MappedVerb>,
    /// What happens to times to live. Default: scale
    #[arg(long, value_name = "RULE", requires = "trace", value_enum)]
    pub trace_ttl: Option<TraceTtlName>,
    /// Replay the trace N times; without a number, until --time or --requests ends the run
    #[arg(id = "loop", long = "loop", value_name = "N", requires = "trace", num_args = 0..=1, require_equals = true,
          default_missing_value = "0", value_parser = values::count)]
    pub passes: Option<u64>,
    /// Use different keys in every pass of --loop
    #[arg(long, requires = "loop")]
    pub loop_fresh: bool,
    /// Skip rows earlier than this after the first row
    #[arg(long, value_name = "TIME", requires = "trace", value_parser = values::time)]
    pub trace_from: Option<Nanos>,
    /// Skip rows this long after the first row, and later ones
    #[arg(long, value_name = "TIME", requires = "trace", value_parser = values::time_above_zero)]
    pub trace_to: Option<Nanos>,
    /// Replay this much of the trace before the measurement begins: a time such as 30s, or a number of rows
    #[arg(long, value_name = "TIME|ROWS", requires = "trace", value_parser = warm_up)]
    pub trace_warmup: Option<Stop>,
    /// Keep this share of the keys, with all their rows. Give the server the same share of the memory
    #[arg(long, value_name = "SHARE", requires = "trace", value_parser = values::fraction)]
    pub trace_sample: Option<f64>,
    /// Make this many requests of each row, each with a different key and client
    #[arg(long, value_name = "N", requires = "trace", value_parser = values::count_cut)]
    pub trace_amplify: Option<u32>,
    /// What stores the keys that reads miss: the recorded stores of the trace, or the replay itself on each miss, at once or after
    /// --read-through=DELAY. Default: recorded; own if --trace-format names a format without
    /// operations
    #[arg(long, value_name = "WHO", requires = "trace", value_enum)]
    pub fills: Option<FillsName>,
    /// Length of a value that --fills own stores if no store of the trace, before it or within the next 65,536 rows, gives its length;
    /// always the same for a key. Default: lengths of the stores so far
    #[arg(long, value_name = "DIST", requires = "trace", value_parser = bytes, allow_hyphen_values = true)]
    pub missing_size: Option<UnreadDist>,
    /// Shorten longer values to this length in bytes. Default: 1,000,000
    #[arg(long, value_name = "BYTES", requires = "trace", value_parser = values::count_cut)]
    pub max_value: Option<u32>,
}

/// The rule of --within-second.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WithinSecondName {
    /// Evenly spread: row j of m at j/m of the second.
    Spread,
    /// At random times.
    Poisson,
    /// All at the beginning of the second.
    Burst,
}

/// The rule of --trace-by.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DealByName {
    /// The requests of each client of the trace keep their order.
    Client,
    /// The requests for each key keep their order.
    Key,
    /// Row by row.
    Row,
}

/// The rule of --trace-ttl.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TraceTtlName {
    /// Divided by SPEED of --pace.
    Scale,
    /// Kept as in the trace.
    Keep,
    /// Left out.
    None,
}

/// The rule of --fills.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FillsName {
    /// The stores of the trace.
    Recorded,
    /// The replay, on its own misses.
    Own,
}

/// The format of an option's value.
fn format(text: &str) -> Result<String, String> {
    match Format::named(text) {
        Ok(Format::Metadump) => {
            Err("a metadump holds items and no requests: load --fill stores them".to_owned())
        }
        Ok(_) => Ok(text.to_owned()),
        Err(expected) => {
            let near =
                hint(text.split(':').next().unwrap_or_default(), FORMATS.iter().map(|(name, _)| *name));
            Err(format!("expected {expected}{near}"))
        }
    }
}

/// An operation of the trace, and the one that is sent in its place.
fn mapped_verb(text: &str) -> Result<MappedVerb, String> {
    let names = || TRACE_VERBS.iter().map(|verb| verb.name());
    let Some((from, to)) = text.split_once('=') else {
        return Err("expected an operation of the trace and the one that is sent, such as get=set".to_owned());
    };
    let verb = |name: &str| {
        let found = TRACE_VERBS.into_iter().find(|verb| verb.name() == name);
        let all = || names().collect::<Vec<&str>>().join(", ");
        found.ok_or_else(|| {
            format!("'{name}' is no operation of a trace, which are {}{}", all(), hint(name, names()))
        })
    };
    Ok(MappedVerb { from: verb(from)?, to: verb(to)? })
}

fn bytes(text: &str) -> Result<UnreadDist, ValueError> {
    values::dist(text, Measure::Bytes)
}

fn pace(text: &str) -> Result<TracePace, String> {
    let expected = || {
        let near = hint(text.split(':').next().unwrap_or_default(), ["trace", "fast"]);
        format!(
            "expected trace, trace:SPEED with a speed from 0.000001 to 1000000 such as trace:10, or fast{near}"
        )
    };
    match text.split_once(':') {
        None if text == "trace" => Ok(TracePace::Trace { speed: 1.0 }),
        None if text == "fast" => Ok(TracePace::Fast),
        Some(("trace", speed)) => match speed.parse::<f64>() {
            Ok(speed) if (1e-6..=1e6).contains(&speed) => Ok(TracePace::Trace { speed }),
            _ => Err(expected()),
        },
        _ => Err(expected()),
    }
}

fn warm_up(text: &str) -> Result<Stop, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let rows = text.parse().ok().filter(|rows| *rows > 0);
        let expected = || "expected a time such as 30s, or a number of rows such as 100000".to_owned();
        return Ok(Stop { time_ns: None, requests: Some(rows.ok_or_else(expected)?) });
    }
    let time_ns = values::time_above_zero(text).map_err(|error| error.to_string())?;
    Ok(Stop { time_ns: Some(time_ns), requests: None })
}
