//! The formats of traces: a table of their names, and for each how a line or a record of it becomes a row.

mod binary;
mod metadump;
mod monitor;
mod mutilate;
mod quoted;
mod twitter;
mod watch;

pub(super) use self::binary::Record;
use self::watch::Watch;
use crate::trace::columns::{ColumnKind, Columns, is_cdn_line};
use crate::trace::row::{Found, Sink};

/// A format of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Twitter's: seven columns between commas, times in whole seconds.
    Twitter,
    /// CacheLib's key-value traces: a header with `key,op,size` in any order.
    Kvcache,
    /// CacheLib's CDN traces: a header, or twelve columns and more.
    Cdn,
    /// Columns between commas, named by a header, or by numbers from 1 where they are given here.
    Csv(Option<Columns>),
    /// libCacheSim's oracleGeneral: records of 24 bytes.
    Oracle,
    /// libCacheSim's twr: records of 20 bytes.
    Twr,
    /// libCacheSim's twrNS: records of 22 bytes, with a name space.
    TwrNs,
    /// The output of Redis and Valkey for MONITOR.
    Monitor,
    /// The output of memcached for `watch fetchers mutations deletions`.
    Watch,
    /// The output of memcached for `lru_crawler metadump`: items that are stored, not requests.
    Metadump,
    /// Recordings of mutilate, by the number of its option `--twitter_trace`, from 0 to 2.
    Mutilate(u8),
    /// Recordings of pummel: a header of 64 bytes and records of 32.
    Ptr,
}

/// The formats by their names on command lines and in Plans. Recordings of pummel name their source by its place here.
pub const FORMATS: &[(&str, Format)] = &[
    ("twitter", Format::Twitter),
    ("kvcache", Format::Kvcache),
    ("cdn", Format::Cdn),
    ("csv", Format::Csv(None)),
    ("oracle", Format::Oracle),
    ("twr", Format::Twr),
    ("twr-ns", Format::TwrNs),
    ("monitor", Format::Monitor),
    ("watch", Format::Watch),
    ("metadump", Format::Metadump),
    ("mutilate-0", Format::Mutilate(0)),
    ("mutilate-1", Format::Mutilate(1)),
    ("mutilate-2", Format::Mutilate(2)),
    ("ptr", Format::Ptr),
];

impl Format {
    /// The format of a name, such as `twitter` or `csv:time=1,key=3`.
    ///
    /// # Errors
    /// Returns the expected form of the name.
    pub fn named(name: &str) -> Result<Format, String> {
        if let Some(numbers) = name.strip_prefix("csv:") {
            return Columns::numbered(numbers).map(|columns| Format::Csv(Some(columns)));
        }
        let known = FORMATS.iter().find(|(known, _)| *known == name);
        known.map(|(_, format)| format.clone()).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
            format!("one of {}", names.join(", "))
        })
    }

    /// Place of the format among the [`FORMATS`].
    pub fn place(&self) -> usize {
        let is_it = |(_, format): &(&str, Format)| match (format, self) {
            (Format::Csv(_), Format::Csv(_)) => true,
            (format, own) => format == own,
        };
        FORMATS.iter().position(is_it).expect("each format has a name")
    }

    /// The name of the format, without columns.
    pub fn name(&self) -> &'static str {
        FORMATS[self.place()].0
    }

    /// The kind of the records of the format, where they are libCacheSim's.
    pub(super) fn record(&self) -> Option<Record> {
        match self {
            Format::Oracle => Some(Record::Oracle),
            Format::Twr => Some(Record::Twr),
            Format::TwrNs => Some(Record::TwrNs),
            _ => None,
        }
    }

    /// Whether rows name their operation. Without one, every row is a read.
    pub fn has_operations(&self) -> bool {
        !matches!(self, Format::Oracle | Format::Cdn)
    }

    /// Whether rows name their client.
    pub fn has_clients(&self) -> bool {
        match self {
            Format::Twitter | Format::Monitor | Format::Watch => true,
            // Their rows say it one by one.
            Format::Csv(_) | Format::Ptr => true,
            _ => false,
        }
    }
}

/// The parser that turns lines of text into rows.
#[derive(Clone, Debug)]
pub(super) enum Lines {
    Twitter,
    /// Lines of columns, with a header that is read first, and with the scratch of its columns.
    Columns {
        columns: Option<Columns>,
        kind: ColumnKind,
    },
    Monitor(monitor::Monitor),
    Watch(Box<Watch>),
    Metadump {
        now_s: Option<u64>,
        key: Vec<u8>,
    },
    Mutilate(u8),
}

impl Lines {
    /// The lines of a format; `None` for formats of records.
    pub(super) fn of(format: &Format, now_s: Option<u64>) -> Option<Lines> {
        Some(match format {
            Format::Twitter => Lines::Twitter,
            Format::Kvcache => Lines::Columns { columns: None, kind: ColumnKind::Kvcache },
            Format::Cdn => Lines::Columns { columns: None, kind: ColumnKind::Cdn },
            Format::Csv(columns) => Lines::Columns { columns: columns.clone(), kind: ColumnKind::Csv },
            Format::Monitor => Lines::Monitor(monitor::Monitor::default()),
            Format::Watch => Lines::Watch(Box::default()),
            Format::Metadump => Lines::Metadump { now_s, key: Vec::new() },
            Format::Mutilate(number) => Lines::Mutilate(*number),
            Format::Oracle | Format::Twr | Format::TwrNs | Format::Ptr => return None,
        })
    }

    /// Reads a line without its line end.
    pub(super) fn take(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Found {
        if line.is_empty() && !matches!(self, Lines::Mutilate(_)) {
            return Found::Nothing;
        }
        match self {
            Lines::Twitter => twitter::line(line, sink),
            Lines::Columns { columns: Some(columns), .. } => columns.line(line, sink),
            Lines::Columns { columns, kind } => match Columns::of_header(line, *kind) {
                Ok(header) => {
                    *columns = Some(header);
                    Found::Nothing
                }
                Err(_) if *kind == ColumnKind::Cdn && is_cdn_line(line) => {
                    let fixed = columns.insert(Columns::of_cdn());
                    fixed.line(line, sink)
                }
                Err(_) => Found::Bad,
            },
            Lines::Monitor(monitor) => monitor.line(line, sink),
            Lines::Watch(watch) => watch.line(line, sink),
            Lines::Metadump { now_s, key } => metadump::line(line, *now_s, key, sink),
            Lines::Mutilate(number) => mutilate::line(*number, line, sink),
        }
    }

    /// Hands over the rows that wait for lines which will not come. Returns how many requests are known to be lost.
    pub(super) fn end(&mut self, sink: &mut Sink<'_>) -> u64 {
        match self {
            Lines::Watch(watch) => watch.end(sink),
            _ => 0,
        }
    }
}
