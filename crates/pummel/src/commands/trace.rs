//! `pummel trace`: summaries, first rows and conversions of traces, in bounded memory whatever their length.

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use flate2::Compression;
use flate2::write::GzEncoder;
use pummel_engine::run::FilesByPath;
use pummel_engine::run::{TraceFiles, fill_block};
use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::UsageError;
use pummel_fronts::values;
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_logic::workload::hash::is_sampled;
use pummel_measure::words::counted;
use pummel_traffic::fit::{Stat, ValueCounts};
use pummel_traffic::trace::ptr::{self, Header, LOST_COUNTS, LOST_KEYS};
use pummel_traffic::trace::reader::Account;
use pummel_traffic::trace::row::Row;
use pummel_traffic::trace::{Format, Reader, detect};

use crate::output::{Output, Pieces, explained, print};
use crate::parser_answer::answer;
use crate::stderr::say;

/// Bytes that are read at once, and from which a format is detected.
const BLOCK_BYTES: usize = 1 << 18;

/// Requests that counts of rows may stand for beyond one each, before they are too many for a file without counts: this many,
/// and so many for each row.
const SPREAD_MAX: u64 = 10_000_000;
const SPREAD_MAX_OF_ROW: u64 = 100;

/// Requests of one row that are written between two looks for a signal.
const REQUESTS_PER_LOOK: u32 = 1 << 16;

/// Options of `pummel trace`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES}"))]
pub struct TraceCommandArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// The action on a trace.
#[derive(Subcommand, Clone, Debug)]
pub enum Action {
    /// Print what a trace holds: requests by operation, keys, lengths, times
    #[command(after_long_help = STATUSES)]
    Stat(SourceArgs),
    /// Print the first rows of a trace
    #[command(after_long_help = STATUSES)]
    Head(HeadArgs),
    /// Write a trace in another format
    #[command(after_long_help = STATUSES)]
    Convert(ConvertArgs),
    /// Write the rows of a share of the keys
    #[command(after_long_help = STATUSES)]
    Sample(SampleArgs),
    /// Write one of several parts of a trace, by client or by key
    #[command(after_long_help = STATUSES)]
    Shard(ShardArgs),
}

/// Which trace.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// The files of the trace, in order: plain, .gz or .zst, or - for standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The format of the trace. Default: detected from its content
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
}

/// Options of `pummel trace head`.
#[derive(Args, Clone, Debug)]
pub struct HeadArgs {
    /// The source.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Number of rows
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = values::count)]
    pub rows: u64,
}

/// The destination of a trace.
#[derive(Args, Clone, Debug)]
pub struct TargetFile {
    /// The output file, gzipped if its name ends in .gz; - is standard output
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    pub output: PathBuf,
    /// The output format: ptr (pummel's own, small and fast to read; keys keep their identity and length, but not their
    /// characters), csv or twitter. Default: csv if the name ends in .csv or .csv.gz, else ptr
    #[arg(long, value_name = "FORMAT", value_parser = ["ptr", "csv", "twitter"])]
    pub to: Option<String>,
    /// Number of requests at most; the rest of the trace is left out. Default: all, unless counts of rows stand for too many
    #[arg(long, value_name = "N", value_parser = values::count_above_zero)]
    pub limit: Option<u64>,
}

/// Options of `pummel trace convert`.
#[derive(Args, Clone, Debug)]
pub struct ConvertArgs {
    /// The source.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The destination.
    #[command(flatten)]
    pub target: TargetFile,
}

/// Options of `pummel trace sample`.
#[derive(Args, Clone, Debug)]
pub struct SampleArgs {
    /// Share of the keys whose rows are kept, above 0
    #[arg(long, value_name = "SHARE", value_parser = values::fraction)]
    pub share: f64,
    /// Number that selects the keys: samples with different salts are independent
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count)]
    pub salt: u64,
    /// The source.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The destination.
    #[command(flatten)]
    pub target: TargetFile,
}

/// Options of `pummel trace shard`.
#[derive(Args, Clone, Debug)]
pub struct ShardArgs {
    /// The part, and the number of parts, such as 1/4
    #[arg(value_name = "K/N", value_parser = shard)]
    pub part: (u64, u64),
    /// Rows that stay together: those of a client, or those of a key. Default: client if rows name one, else key
    #[arg(long, value_name = "BY", value_parser = ["client", "key"])]
    pub by: Option<String>,
    /// The source.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The destination.
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

const STATUSES: &str = "\
Exit status:
  0    done
  1    a file cannot be read or written, or holds no request
  2    wrong usage
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); nothing is written";

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

/// Whether a row is in the requested part.
fn in_shard(args: &ShardArgs, row: &Row<'_>) -> bool {
    let by_key = args.by.as_deref() == Some("key");
    let name = match row.client.filter(|_| !by_key) {
        Some(client) => pummel_logic::rng::mix(&[client, 1]),
        None => row.key_hash(),
    };
    let (part, of) = args.part;
    ((u128::from(name) * u128::from(of)) >> 64) as u64 == part - 1
}

/// The reason why a command did not finish.
pub enum Stopped {
    /// The command line cannot be followed.
    Usage(UsageError),
    /// A file cannot be read or written, or holds nothing.
    Failed(io::Error),
}

impl Stopped {
    /// Reports the reason, and returns the exit status.
    pub fn answer(self) -> Exit {
        match self {
            Stopped::Usage(error) => answer(&error.into()),
            Stopped::Failed(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Complete,
            Stopped::Failed(error) if error.kind() == io::ErrorKind::Interrupted => {
                say("interrupted: nothing is written");
                Exit::Interrupted
            }
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
/// Returns [`Stopped`] for an unknown format, for a file that cannot be read, for content of no known format, for files
/// without a request, and the error that `sink` returns.
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
        let mut count = next_block(&mut *file, &mut block).map_err(unread)?;
        let format = named.clone().or_else(|| detect(&block[..count])).ok_or_else(|| {
            let name = name.escape_debug();
            let what = match count {
                0 => format!("'{name}' is empty"),
                _ => format!("the format of '{name}' is not known from its content: --format names it"),
            };
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        let mut reader = Reader::new(&format, None);
        while count > 0 && !state.is_done {
            reader.read(&block[..count], &mut |row| state.take(row, &format));
            count = next_block(&mut *file, &mut block).map_err(unread)?;
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

/// Reads the next block of a file.
///
/// # Errors
/// Returns the error of the file, and one of the kind `Interrupted` after a signal that this process handles.
fn next_block(file: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let count = fill_block(&mut UntilInterrupted(file), block)?;
    if sys::interrupts() > 0 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(count) }
}

/// A file that has no more bytes once a signal has cut short the wait for them.
struct UntilInterrupted<'a>(&'a mut dyn Read);

impl Read for UntilInterrupted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && sys::interrupts() > 0 => Ok(0),
            result => result,
        }
    }
}

/// A receiver of rows that may fail, or ask for the end.
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
    let number = |(count, is_exact)| if is_exact { format!("{count}") } else { format!("about {count}") };
    lines.push(format!("keys       {}", number(stat.keys())));
    if stat.has_clients {
        lines.push(format!("clients    {}", number(stat.clients())));
    }
    if let Some(length_ns) = stat.length_ns() {
        let seconds = length_ns as f64 / SECOND as f64;
        lines.push(format!(
            "time       {seconds:.3} s, {:.1} requests/s, busiest second {}",
            requests as f64 / seconds,
            stat.peak_second
        ));
        if stat.whole_seconds() {
            lines.push("           whole seconds: see --within-second".to_owned());
        }
    } else {
        lines.push("time       the rows have no times, or all the same: --pace fast or --rate".to_owned());
    }
    lines.push(quantiles("key", &stat.key_bytes, "bytes"));
    lines.push(quantiles("value", &stat.value_bytes, "bytes"));
    if stat.ttl_s.total() > 0.0 {
        lines.push(quantiles("TTL", &stat.ttl_s, "s, of stores that have one"));
    }
    for (count, what) in [
        (stat.missed, "reads missed when they were recorded"),
        (stat.sizes_unknown, "requests do not say the length of their value"),
        (stat.out_of_order, "rows are earlier than the one before them, and count as made at its time"),
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

fn quantiles(what: &str, counts: &ValueCounts, unit: &str) -> String {
    if counts.total() <= 0.0 {
        return format!("{what:<10} unknown");
    }
    let (mean, median, most, last) =
        (counts.mean(), counts.quantile(0.5), counts.quantile(0.9), counts.quantile(0.99));
    format!("{what:<10} mean {mean:.1}, median {median}, p90 {most}, p99 {last} {unit}")
}

fn head(args: &HeadArgs) -> Result<(), Stopped> {
    let mut text = b"time_s,op,key,key_size,size,ttl,client,count\n".to_vec();
    let mut left = args.rows;
    read(&args.source, &mut |row, _| {
        if left > 0 {
            write_columns(&mut text, row, String::from_utf8_lossy(row.key).as_bytes())?;
            text.push(b'\n');
        }
        left = left.saturating_sub(1);
        Ok(left > 0)
    })?;
    Ok(print(&text)?)
}

/// Writes a row as `time,op,key,key_size,size,ttl,client,count`.
fn write_columns(out: &mut dyn Write, row: &Row<'_>, key: &[u8]) -> io::Result<()> {
    let (seconds, rest) = (row.at_ns / SECOND, row.at_ns % SECOND);
    match u64::from(row.resolution_ns) == SECOND {
        true => write!(out, "{seconds},{},", row.verb.name())?,
        false => write!(out, "{seconds}.{rest:09},{},", row.verb.name())?,
    }
    out.write_all(key)?;
    let size = row.value_bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let client = row.client.map_or_else(String::new, |client| client.to_string());
    write!(out, ",{},{size},{},{client},{}", row.key_bytes, row.ttl_s, row.count)
}

/// Writes the rows of a trace that are wanted into a file, which takes its place when the trace was read to its end: it may be one
/// of those that are read.
fn write(source: &SourceArgs, target: &TargetFile, wanted: &dyn Fn(&Row<'_>) -> bool) -> Result<(), Stopped> {
    let name = target.output.to_string_lossy().into_owned();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let form = target.to.as_deref().unwrap_or(if plain.ends_with(".csv") { "csv" } else { "ptr" });
    let unwritten = |error: io::Error| explained(&target.output, &error);
    let output = Output::prepare(&target.output)?;
    if output.is_kept() {
        // A signal that ended the process would leave the unfinished file beside its place.
        sys::on_interrupt()?;
    }
    let mut out = Packing::begin(&output, name.ends_with(".gz")).map_err(unwritten)?;
    let (mut all, mut resolution_ns, mut losses) = (0u64, None, Losses::default());
    let mut spread = Spread { is_counted: form == "csv", limit: target.limit, ..Spread::default() };
    read(source, &mut |row, format| {
        all += u64::from(row.count);
        if !wanted(row) || !losses.note(form, row) {
            return Ok(true);
        }
        let count = spread.note(row.count)?;
        if count == 0 {
            return Ok(false);
        }
        if resolution_ns.is_none() {
            write_header(&mut out, form, row, format).map_err(unwritten)?;
        }
        let resolution_ns = *resolution_ns.get_or_insert(row.resolution_ns);
        write_row(&mut out, form, &Row { count, ..*row }, resolution_ns).map_err(unwritten)?;
        Ok(!spread.is_cut)
    })?;
    if resolution_ns.is_none() && form == "csv" {
        writeln!(out, "{CSV_HEADER}").map_err(unwritten)?;
    }
    out.finish().map_err(unwritten)?;
    say(format_args!("{} of {all} requests are written to '{}'", spread.requests, name.escape_debug()));
    spread.notices(form).into_iter().for_each(say);
    losses.notices(form).into_iter().for_each(say);
    Ok(())
}

/// The rows that were written, and the requests that they stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    rows: u64,
    requests: u64,
    /// The format holds how many requests a row stands for.
    is_counted: bool,
    limit: Option<u64>,
    /// Requests were left out because of the limit.
    is_cut: bool,
}

impl Spread {
    /// Adds a row of so many requests. Returns how many of them are written: 0 if as many are as may be.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::InvalidData`] if a format without counts would hold too many requests and there is
    /// no limit.
    fn note(&mut self, count: u32) -> io::Result<u32> {
        let room = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.requests));
        self.is_cut |= u64::from(count) > room;
        let count = room.min(count.into()) as u32;
        self.rows += u64::from(count > 0);
        self.requests += u64::from(count);
        let most = self.rows.saturating_mul(SPREAD_MAX_OF_ROW).saturating_add(SPREAD_MAX);
        if self.is_counted || self.limit.is_some() || self.requests <= most {
            return Ok(count);
        }
        let (rows, requests) = (counted(self.rows, "row"), self.requests);
        let what = format!(
            "each of the {requests} requests of the first {rows} would be written: '--limit N' says how many at most, and '--to \
             csv' writes each row once, with its count"
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Sentences about the rest of a trace that is left out, and about counts that became rows.
    fn notices(&self, form: &str) -> Vec<String> {
        let mut notices = Vec::new();
        if self.is_cut {
            notices.push(format!("the rest of the trace is left out: '--limit' is {}", self.requests));
        }
        if !self.is_counted && self.requests > self.rows {
            let (rows, requests) = (counted(self.rows, "row"), self.requests);
            notices.push(format!(
                "each of the {requests} requests of {rows} is written by itself: format {form} has no counts"
            ));
        }
        notices
    }
}

/// The requests that a format of a file cannot hold as they were.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Requests that are left out, by their keys and by their operations.
    keys: u64,
    operations: u64,
    /// Requests that are written, and mean something else when they are read: by their lengths, clients and times.
    lengths: u64,
    clients: u64,
    times: u64,
}

impl Losses {
    /// Counts the requests of a row that the format cannot hold. Returns whether the row can be written.
    fn note(&mut self, form: &str, row: &Row<'_>) -> bool {
        let count = u64::from(row.count);
        let is_twitter = match form {
            "ptr" => return true,
            form => form == "twitter",
        };
        // No reader takes a comma for a part of a column.
        if row.key.contains(&b',') {
            self.keys += count;
            return false;
        }
        // No reader of these formats knows more operations.
        if matches!(row.verb, Verb::Gat | Verb::Gats) || is_twitter && row.verb == Verb::Touch {
            self.operations += count;
            return false;
        }
        if is_twitter {
            let is_empty = row.value_bytes.unwrap_or(0) == 0;
            let is_other =
                row.verb.reads() && !row.missed && is_empty || row.stores() && row.value_bytes.is_none();
            self.lengths += if is_other { count } else { 0 };
            self.clients += if row.client.is_none() { count } else { 0 };
            self.times += if row.at_ns.is_multiple_of(SECOND) { 0 } else { count };
        }
        true
    }

    /// A sentence for each kind of loss.
    fn notices(&self, form: &str) -> Vec<String> {
        let each = [
            (self.keys, format!("are left out: format {form} holds no keys with commas")),
            (self.operations, format!("are left out: format {form} has no word for their operation")),
            (self.lengths, format!("are written with length 0, that of missed reads in format {form}")),
            (self.clients, "name no client, and are written as those of client 0".to_owned()),
            (self.times, "are written with the time of the whole second before theirs".to_owned()),
        ];
        let told = each.into_iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| format!("{count} requests {what}")).collect()
    }
}

/// The destination of a trace, packed or not.
enum Packing {
    Plain(BufWriter<Pieces>),
    Packed(BufWriter<GzEncoder<Pieces>>),
}

impl Packing {
    fn begin(output: &Output, is_packed: bool) -> io::Result<Packing> {
        let pieces = output.begin()?;
        Ok(match is_packed {
            true => {
                let packer = GzEncoder::new(pieces, Compression::default());
                Packing::Packed(BufWriter::with_capacity(BLOCK_BYTES, packer))
            }
            false => Packing::Plain(BufWriter::with_capacity(BLOCK_BYTES, pieces)),
        })
    }

    fn finish(self) -> io::Result<()> {
        let pieces = match self {
            Packing::Plain(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?,
            Packing::Packed(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
        };
        pieces.complete()
    }
}

impl Write for Packing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packing::Plain(out) => out.write(bytes),
            Packing::Packed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packing::Plain(out) => out.flush(),
            Packing::Packed(out) => out.flush(),
        }
    }
}

/// The names of the columns that are written.
const CSV_HEADER: &str = "time,op,key,key_size,size,ttl,client,count,missed";

fn write_header(out: &mut dyn Write, form: &str, row: &Row<'_>, format: &Format) -> io::Result<()> {
    match form {
        "csv" => writeln!(out, "{CSV_HEADER}"),
        "ptr" => {
            let header = Header {
                resolution_ns: row.resolution_ns,
                rows: 0,
                source: format.place() as u32 + 1,
                lost: LOST_KEYS | LOST_COUNTS,
            };
            out.write_all(&header.to_bytes())
        }
        _ => Ok(()),
    }
}

/// Writes a row into a file whose header says `resolution_ns`.
fn write_row(out: &mut dyn Write, form: &str, row: &Row<'_>, resolution_ns: u32) -> io::Result<()> {
    match form {
        "csv" => {
            write_columns(out, row, row.key)?;
            writeln!(out, ",{}", u8::from(row.missed))
        }
        "ptr" => {
            let record = ptr::record(row, resolution_ns);
            repeat(out, &record, row.count)
        }
        _ => {
            // The format has whole seconds, no counts, and 0 for what a read missed.
            let size = row.value_bytes.filter(|_| !row.missed).unwrap_or(0);
            let (seconds, client, verb) = (row.at_ns / SECOND, row.client.unwrap_or(0), row.verb.name());
            let mut line = format!("{seconds},").into_bytes();
            line.extend_from_slice(row.key);
            writeln!(line, ",{},{size},{client},{verb},{}", row.key_bytes, row.ttl_s)?;
            repeat(out, &line, row.count)
        }
    }
}

/// Writes the bytes of a request so many times.
///
/// # Errors
/// Returns the error of `out`, and one of the kind `Interrupted` after a signal that this process handles.
fn repeat(out: &mut dyn Write, bytes: &[u8], count: u32) -> io::Result<()> {
    (0..count).try_for_each(|number| match number % REQUESTS_PER_LOOK == REQUESTS_PER_LOOK - 1 {
        true if sys::interrupts() > 0 => Err(io::ErrorKind::Interrupted.into()),
        _ => out.write_all(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_stand_for_too_many_requests_need_a_limit() {
        let of = |limit, is_counted| Spread { limit, is_counted, ..Spread::default() };
        let mut spread = of(None, false);
        assert_eq!(spread.note(7).ok(), Some(7));
        let why = spread.note(4_000_000_000).expect_err("it would be a file of 128 GB").to_string();
        assert!(why.starts_with("each of the 4000000007 requests of the first 2 rows"), "{why}");
        assert_eq!(
            of(None, true).note(u32::MAX).ok(),
            Some(u32::MAX),
            "a format with counts holds it in one row"
        );
        let mut spread = of(Some(10), false);
        assert_eq!((spread.note(7).ok(), spread.is_cut), (Some(7), false));
        assert_eq!((spread.note(u32::MAX).ok(), spread.is_cut), (Some(3), true));
        assert_eq!((spread.note(1).ok(), spread.rows, spread.notices("ptr").len()), (Some(0), 2, 2));
        let mut whole = of(Some(10), false);
        assert_eq!((whole.note(10).ok(), whole.is_cut), (Some(10), false), "nothing is left out");
        // Rows of a hundred requests each are no trouble, however many they are.
        let mut spread = of(None, false);
        assert!((0..1_000_000).all(|_| spread.note(100).is_ok()));
        assert!(spread.note(SPREAD_MAX as u32).is_ok() && spread.note(1_000).is_err());
    }

    #[test]
    fn a_row_without_a_count_is_no_reason_for_a_notice() {
        let mut spread = Spread::default();
        assert!((0..100).all(|_| spread.note(1).is_ok()));
        assert!(spread.notices("ptr").is_empty());
    }
}
