//! `pummel trace`: summaries, first rows and conversions of traces, in bounded memory whatever their length.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use flate2::Compression;
use flate2::write::GzEncoder;
use pummel_engine::run::{TraceFiles, fill_block};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_logic::trace::hash::is_sampled;
use pummel_logic::trace::ptr::{self, Header, LOST_COUNTS, LOST_KEYS};
use pummel_logic::trace::reader::Account;
use pummel_logic::trace::row::Row;
use pummel_logic::trace::stat::Stat;
use pummel_logic::trace::{Format, Reader, detect};

use crate::exit_status::{Exit, answer};
use crate::job::UsageError;
use crate::job::trace_files::FilesByPath;
use crate::report::output::print;
use crate::stderr::say;
use crate::values;

/// Bytes that are read at once, and that a format is found from.
const BLOCK_BYTES: usize = 1 << 18;

/// Options of `pummel trace`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct TraceCommandArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// What is done with a trace.
#[derive(Subcommand, Clone, Debug)]
pub enum Action {
    /// Print what a trace holds: requests by operation, keys, lengths, times
    Stat(SourceArgs),
    /// Print the first rows of a trace
    Head(HeadArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Write the rows of a share of the keys
    Sample(SampleArgs),
    /// Write one of several parts of a trace, by client or by key
    Shard(ShardArgs),
}

/// Which trace.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// The files of the trace, in order: plain, .gz or .zst, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// The format of the trace. Default: detected from its content
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
}

/// Options of `pummel trace head`.
#[derive(Args, Clone, Debug)]
pub struct HeadArgs {
    /// Which trace.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Number of rows
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = values::count)]
    pub rows: u64,
}

/// Where a trace is written to.
#[derive(Args, Clone, Debug)]
pub struct TargetFile {
    /// The output file, gzipped if its name ends in .gz; - is standard output
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    pub output: PathBuf,
    /// The output format: ptr (pummel's own, small and fast to read; keys keep their identity and length, but not their
    /// characters), csv or twitter. Default: csv if the name ends in .csv or .csv.gz, else ptr
    #[arg(long, value_name = "FORMAT", value_parser = ["ptr", "csv", "twitter"])]
    pub to: Option<String>,
}

/// Options of `pummel trace convert`.
#[derive(Args, Clone, Debug)]
pub struct ConvertArgs {
    /// Which trace.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Where to.
    #[command(flatten)]
    pub target: TargetFile,
}

/// Options of `pummel trace sample`.
#[derive(Args, Clone, Debug)]
pub struct SampleArgs {
    /// Share of the keys whose rows are kept, above 0
    #[arg(long, value_name = "SHARE", value_parser = values::fraction)]
    pub share: f64,
    /// Selects the keys: samples with different salts are independent
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count)]
    pub salt: u64,
    /// Which trace.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Where to.
    #[command(flatten)]
    pub target: TargetFile,
}

/// Options of `pummel trace shard`.
#[derive(Args, Clone, Debug)]
pub struct ShardArgs {
    /// Which part, of how many, such as 1/4
    #[arg(value_name = "K/N", value_parser = shard)]
    pub part: (u64, u64),
    /// What stays together: the rows of a client, or those of a key. Default: client if rows name one, else key
    #[arg(long, value_name = "BY", value_parser = ["client", "key"])]
    pub by: Option<String>,
    /// Which trace.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Where to.
    #[command(flatten)]
    pub target: TargetFile,
}

const EXAMPLES: &str = "\
Formats: twitter, kvcache, cdn, csv[:time=1,key=3,...], oracle, twr, twr-ns, monitor, watch, metadump, ptr, mutilate-0 to -2.

Examples:
  pummel trace stat cluster52.0.zst
  pummel trace head -n 5 monitor.log
  pummel trace convert cluster52.0.zst -o cluster52.ptr
  pummel trace sample --share 0.01 cluster52.ptr -o small.csv.gz
  pummel trace shard 1/2 cluster52.ptr -o first.ptr
  pummel run -s 127.0.0.1 --trace cluster52.ptr --pace trace:10";

fn shard(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    numbers
        .filter(|&(part, of): &(u64, u64)| part >= 1 && part <= of)
        .ok_or_else(|| "expected a part of so many, from 1 on, such as 1/4".to_owned())
}

/// Follows a command line of `pummel trace`.
pub fn trace(args: &TraceCommandArgs) -> Exit {
    let done = match &args.action {
        Action::Stat(source) => stat(source),
        Action::Head(args) => head(args),
        Action::Convert(args) => write(&args.source, &args.target, &|_| true),
        Action::Sample(args) if args.share <= 0.0 => {
            let accepted = "expected a share above 0 and at most 1".to_owned();
            let (flag, value) = ("--share".to_owned(), args.share.to_string());
            return answer(&UsageError::Value { flag, value, accepted }.into());
        }
        Action::Sample(args) => {
            write(&args.source, &args.target, &|row| is_sampled(row.key_hash(), args.salt, args.share))
        }
        Action::Shard(args) => write(&args.source, &args.target, &|row| in_shard(args, row)),
    };
    done.map_or_else(Stopped::answer, |()| Exit::Complete)
}

/// Whether a row is in the part that is asked for.
fn in_shard(args: &ShardArgs, row: &Row<'_>) -> bool {
    let by_key = args.by.as_deref() == Some("key");
    let name = match row.client.filter(|_| !by_key) {
        Some(client) => pummel_logic::rng::mix(&[client, 1]),
        None => row.key_hash(),
    };
    let (part, of) = args.part;
    ((u128::from(name) * u128::from(of)) >> 64) as u64 == part - 1
}

/// Why a command did not come to its end.
pub enum Stopped {
    /// The command line cannot be followed.
    Usage(UsageError),
    /// A file cannot be read or written, or holds nothing.
    Failed(io::Error),
}

impl Stopped {
    /// Says why, and how the program ends.
    pub fn answer(self) -> Exit {
        match self {
            Stopped::Usage(error) => answer(&error.into()),
            Stopped::Failed(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Complete,
            Stopped::Failed(error) => {
                say(format_args!("error: {error}"));
                Exit::Failed
            }
        }
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Failed(error)
    }
}

/// Reads all files of a trace. The rows go to `sink`, which returns whether it wants more. Returns the format of the
/// first file and the counts; rows that are left out are reported on standard error.
///
/// # Errors
/// Returns [`Stopped`] for a format that is none, for a file that cannot be read, for a format that is not known from the content, for
/// files without a request, and what `sink` returns.
pub fn read(
    source: &SourceArgs,
    sink: &mut dyn FnMut(&Row<'_>, &Format) -> io::Result<bool>,
) -> Result<(Format, Account), Stopped> {
    let named = match source.format.as_deref().map(Format::named).transpose() {
        Ok(named) => named,
        Err(expected) => {
            let (flag, value) = ("--format".to_owned(), source.format.clone().unwrap_or_default());
            return Err(Stopped::Usage(UsageError::Value {
                flag,
                value,
                accepted: format!("expected {expected}"),
            }));
        }
    };
    let files = FilesByPath(source.files.clone());
    let (mut first_format, mut account) = (None, Account::default());
    let mut state = Sinking { sink, error: None, is_done: false };
    for number in 0..files.count() {
        let name = files.name(number);
        let unread = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read '{}': {error}", name.escape_debug()))
        };
        let mut file = files.open(number).map_err(unread)?;
        let mut block = vec![0; BLOCK_BYTES];
        let mut count = fill_block(&mut *file, &mut block).map_err(unread)?;
        let format = named.clone().or_else(|| detect(&block[..count])).ok_or_else(|| {
            let what = format!(
                "the format of '{}' is not known from its content: --format names it",
                name.escape_debug()
            );
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        let mut reader = Reader::new(&format, None);
        while count > 0 && !state.is_done {
            reader.read(&block[..count], &mut |row| state.take(row, &format));
            count = fill_block(&mut *file, &mut block).map_err(unread)?;
        }
        let met = reader.end(&mut |row| state.take(row, &format));
        if !state.is_done {
            met.notices(&name, &format).into_iter().for_each(say);
        }
        account.add(met);
        first_format.get_or_insert(format);
        if let Some(error) = state.error.take() {
            return Err(error.into());
        }
    }
    let format = first_format.expect("a trace has at least one file");
    if account.rows == 0 {
        let what = format!("no request of format {} is there", format.name());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
    }
    Ok((format, account))
}

/// A receiver of rows that may fail, or want no more.
struct Sinking<'a> {
    sink: &'a mut dyn FnMut(&Row<'_>, &Format) -> io::Result<bool>,
    error: Option<io::Error>,
    is_done: bool,
}

impl Sinking<'_> {
    fn take(&mut self, row: &Row<'_>, format: &Format) {
        if self.is_done {
            return;
        }
        match (self.sink)(row, format) {
            Ok(goes_on) => self.is_done = !goes_on,
            Err(error) => (self.error, self.is_done) = (Some(error), true),
        }
    }
}

fn stat(source: &SourceArgs) -> Result<(), Stopped> {
    let mut stat = Stat::default();
    let (format, account) = read(source, &mut |row, _| {
        stat.take(row);
        Ok(true)
    })?;
    Ok(print(stat_text(&stat, &format, &account).as_bytes())?)
}

/// The figures of a trace as text.
fn stat_text(stat: &Stat, format: &Format, account: &Account) -> String {
    let requests = stat.requests();
    let share = |count: u64| 100.0 * count as f64 / requests.max(1) as f64;
    let mut lines = vec![
        format!("format     {}", format.name()),
        format!("rows       {} in {} lines or records", account.rows, account.lines),
        format!("requests   {requests}"),
    ];
    for verb in Verb::ALL {
        let count = stat.by_verb[verb as usize];
        if count > 0 {
            lines.push(format!("  {:<8} {count} ({:.2} %)", verb.name(), share(count)));
        }
    }
    lines.push(format!("keys       about {}", stat.keys()));
    if stat.has_clients {
        lines.push(format!("clients    about {}", stat.clients()));
    }
    if let Some((first, last)) = stat.span.filter(|(first, last)| last > first) {
        let seconds = (last - first) as f64 / SECOND as f64;
        lines.push(format!(
            "time       {seconds:.3} s, {:.1} requests/s, busiest second {}",
            requests as f64 / seconds,
            stat.peak_second
        ));
    } else {
        lines.push("time       the rows have no times: --pace fast or --rate".to_owned());
    }
    if stat.whole_seconds && stat.span.is_some_and(|(first, last)| last > first) {
        lines.push("           whole seconds: see --within-second".to_owned());
    }
    lines.push(quantiles("key", &stat.key_bytes, "bytes"));
    lines.push(quantiles("value", &stat.value_bytes, "bytes"));
    if stat.ttl_s.count() > 0 {
        lines.push(quantiles("TTL", &stat.ttl_s, "s, of stores that have one"));
    }
    for (count, what) in [
        (stat.missed, "reads missed when they were recorded"),
        (stat.sizes_unknown, "requests do not say the length of their value"),
        (stat.out_of_order, "rows are earlier than the one before them"),
        (account.bad, "lines or records hold no request"),
        (account.skipped, "lines ask what is not replayed"),
        (account.lost, "requests were lost when it was recorded"),
    ] {
        if count > 0 {
            lines.push(format!("note       {count} {what}"));
        }
    }
    lines.join("\n") + "\n"
}

fn quantiles(what: &str, histogram: &Histogram, unit: &str) -> String {
    let mean = histogram.moments().mean_ns().unwrap_or(0.0);
    let at = |quantile| histogram.quantile(quantile).unwrap_or(0);
    let (median, most, last) = (at(0.5), at(0.9), at(0.99));
    format!("{what:<10} mean {mean:.1}, median {median}, p90 {most}, p99 {last} {unit}")
}

fn head(args: &HeadArgs) -> Result<(), Stopped> {
    let mut text = String::from("time_s,op,key,key_size,size,ttl,client,count\n");
    let mut left = args.rows;
    read(&args.source, &mut |row, _| {
        if left > 0 {
            text += &format!("{},{}\n", csv_row(row), row.count);
        }
        left = left.saturating_sub(1);
        Ok(left > 0)
    })?;
    Ok(print(text.as_bytes())?)
}

/// A row as `time,op,key,key_size,size,ttl,client`.
fn csv_row(row: &Row<'_>) -> String {
    let (seconds, rest) = (row.at_ns / SECOND, row.at_ns % SECOND);
    let time = match u64::from(row.resolution_ns) == SECOND {
        true => seconds.to_string(),
        false => format!("{seconds}.{rest:09}"),
    };
    let size = row.value_bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let client = row.client.map_or_else(String::new, |client| client.to_string());
    let key = String::from_utf8_lossy(row.key);
    format!("{time},{},{key},{},{size},{},{client}", row.verb.name(), row.key_bytes, row.ttl_s)
}

/// Writes the rows of a trace that are wanted into a file.
fn write(source: &SourceArgs, target: &TargetFile, wanted: &dyn Fn(&Row<'_>) -> bool) -> Result<(), Stopped> {
    let name = target.output.to_string_lossy().into_owned();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let form = target.to.as_deref().unwrap_or(if plain.ends_with(".csv") { "csv" } else { "ptr" });
    let unwritten = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write '{}': {error}", name.escape_debug()))
    };
    let mut out = Output::create(&name).map_err(unwritten)?;
    let (mut kept, mut all, mut has_header) = (0u64, 0u64, false);
    read(source, &mut |row, format| {
        all += u64::from(row.count);
        if !wanted(row) {
            return Ok(true);
        }
        kept += u64::from(row.count);
        if !std::mem::replace(&mut has_header, true) {
            write_header(&mut out, form, row, format)?;
        }
        write_row(&mut out, form, row)?;
        Ok(true)
    })?;
    if !has_header && form == "csv" {
        writeln!(out, "{CSV_HEADER}").map_err(unwritten)?;
    }
    out.finish().map_err(unwritten)?;
    say(format_args!("{kept} of {all} requests are written to '{}'", name.escape_debug()));
    Ok(())
}

/// The destination of a trace.
enum Output {
    Plain(BufWriter<Box<dyn Write>>),
    Packed(BufWriter<GzEncoder<File>>),
}

impl Output {
    /// Creates the file of this name; `-` is standard output.
    fn create(name: &str) -> io::Result<Output> {
        let plain = |file: Box<dyn Write>| Output::Plain(BufWriter::with_capacity(BLOCK_BYTES, file));
        if name == "-" {
            return Ok(plain(Box::new(io::stdout().lock())));
        }
        let file = File::create(name)?;
        Ok(match name.ends_with(".gz") {
            true => {
                let packer = GzEncoder::new(file, Compression::default());
                Output::Packed(BufWriter::with_capacity(BLOCK_BYTES, packer))
            }
            false => plain(Box::new(file)),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Output::Plain(mut out) => out.flush(),
            Output::Packed(out) => {
                out.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(out) => out.write(bytes),
            Output::Packed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(out) => out.flush(),
            Output::Packed(out) => out.flush(),
        }
    }
}

/// The names of the columns that are written.
const CSV_HEADER: &str = "time,op,key,key_size,size,ttl,client,count";

fn write_header(out: &mut dyn Write, form: &str, row: &Row<'_>, format: &Format) -> io::Result<()> {
    match form {
        "csv" => writeln!(out, "{CSV_HEADER}"),
        "ptr" => {
            let place =
                pummel_logic::trace::format::NAMES.iter().position(|(name, _)| *name == format.name());
            let header = Header {
                resolution_ns: row.resolution_ns,
                rows: 0,
                source: place.map_or(0, |place| place as u32 + 1),
                lost: LOST_KEYS | LOST_COUNTS,
            };
            out.write_all(&header.to_bytes())
        }
        _ => Ok(()),
    }
}

fn write_row(out: &mut dyn Write, form: &str, row: &Row<'_>) -> io::Result<()> {
    match form {
        "csv" => writeln!(out, "{},{}", csv_row(row), row.count),
        "ptr" => {
            let record = ptr::record(row);
            (0..row.count).try_for_each(|_| out.write_all(&record))
        }
        _ => {
            // The format has whole seconds, no counts, and 0 for what a read missed.
            let size = row.value_bytes.filter(|_| !row.missed).unwrap_or(0);
            let (seconds, key, client) =
                (row.at_ns / SECOND, String::from_utf8_lossy(row.key), row.client.unwrap_or(0));
            let line = format!(
                "{seconds},{key},{},{size},{client},{},{}\n",
                row.key_bytes,
                row.verb.name(),
                row.ttl_s
            );
            (0..row.count).try_for_each(|_| out.write_all(line.as_bytes()))
        }
    }
}
