//! Rows that the readers of traces take in per second on one CPU, and a generator of a trace.
//!
//! `trace_readers` prints a table; `trace_readers generate ROWS [ROWS_PER_SECOND]` writes a trace in Twitter's format to standard
//! output: zipf:0.99 over a million keys, nine reads to one store, 10,000 rows a second unless told otherwise.

use std::io::{self, BufWriter, Write};
use std::time::Instant;

use pummel_logic::plan::Popularity;
use pummel_logic::protocol::Verb;
use pummel_logic::rng::Stream;
use pummel_logic::time::SECOND;
use pummel_logic::workload::popularity::Chooser;
use pummel_traffic::trace::ptr::{self, Header};
use pummel_traffic::trace::row::Row;
use pummel_traffic::trace::{Format, Reader};

/// Rows of each trace that is read.
const ROWS: u64 = 1_000_000;

/// Keys of a generated trace.
const KEYS: u64 = 1_000_000;

/// Bytes that a reader is given at once.
const BLOCK_BYTES: usize = 1 << 18;

/// Draws one row: its key, whether it stores, its client, the length of its value.
fn drawn(chooser: &Chooser, stream: &Stream, number: u64) -> (u64, bool, u64, u64) {
    let bits = Stream::from_seed(7).draw(number);
    (chooser.choose(stream, number), bits.is_multiple_of(10), (bits >> 8) % 500, 50 + (bits >> 32) % 400)
}

fn generate(rows: u64, per_second: u64, out: &mut dyn Write) -> io::Result<()> {
    let (chooser, stream) =
        (Chooser::new(&Popularity::Zipf { exponent: 0.99 }, KEYS, 0, 1), Stream::from_seed(1));
    for number in 0..rows {
        let (key, stores, client, size) = drawn(&chooser, &stream, number);
        let (op, ttl) = if stores { ("set", 86_400) } else { ("get", 0) };
        writeln!(out, "{},key:{key:012},16,{size},{client},{op},{ttl}", number / per_second)?;
    }
    out.flush()
}

/// The rows that are generated, in each format that the readers are timed with.
fn traces() -> Vec<(Format, Vec<u8>)> {
    let mut twitter = Vec::new();
    generate(ROWS, 10_000, &mut twitter).expect("memory");
    let mut kvcache = b"op_time,key,key_size,op,op_count,size,cache_hits,ttl\n".to_vec();
    let header = Header { resolution_ns: SECOND as u32, rows: ROWS, source: 1, lost: 0 };
    let (mut oracle, mut own) = (Vec::new(), header.to_bytes().to_vec());
    let (chooser, stream) =
        (Chooser::new(&Popularity::Zipf { exponent: 0.99 }, KEYS, 0, 1), Stream::from_seed(1));
    for number in 0..ROWS {
        let (key, stores, client, size) = drawn(&chooser, &stream, number);
        let second = number / 10_000;
        let op = if stores { "SET" } else { "GET" };
        writeln!(kvcache, "{second},{key:010},40,{op},1,{size},0,0").expect("memory");
        oracle.extend_from_slice(&(second as u32).to_le_bytes());
        oracle.extend_from_slice(&key.to_le_bytes());
        oracle.extend_from_slice(&(size as u32).to_le_bytes());
        oracle.extend_from_slice(&(-1i64).to_le_bytes());
        let name = format!("key:{key:012}");
        let verb = if stores { Verb::Set } else { Verb::Get };
        let row = Row {
            at_ns: second * SECOND,
            verb,
            value_bytes: Some(size as u32),
            client: Some(client),
            ..Row::read(name.as_bytes())
        };
        own.extend_from_slice(&ptr::record(&row.within_second(), header.resolution_ns));
    }
    vec![(Format::Twitter, twitter), (Format::Kvcache, kvcache), (Format::Oracle, oracle), (Format::Ptr, own)]
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, rest @ ..] = &words[..]
        && verb == "generate"
    {
        let number =
            |place: usize, default| rest.get(place).and_then(|text| text.parse().ok()).unwrap_or(default);
        return generate(number(0, ROWS), number(1, 10_000).max(1), &mut BufWriter::new(io::stdout().lock()));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{:<10} {:>12} {:>14} {:>10}", "format", "rows", "rows/s", "MB/s")?;
    for (format, bytes) in traces() {
        let mut best = f64::INFINITY;
        let mut rows = 0;
        for _ in 0..5 {
            let started = Instant::now();
            let mut reader = Reader::new(&format, None);
            for block in bytes.chunks(BLOCK_BYTES) {
                // Every field of the row and every byte of its key is made.
                reader.read(block, &mut |row| {
                    std::hint::black_box((row, row.key));
                });
            }
            rows = reader.end(&mut |_| {}).rows;
            best = best.min(started.elapsed().as_secs_f64());
        }
        let speed = rows as f64 / best;
        writeln!(
            out,
            "{:<10} {rows:>12} {speed:>14.0} {:>10.0}",
            format.name(),
            bytes.len() as f64 / best / 1e6
        )?;
    }
    Ok(())
}
