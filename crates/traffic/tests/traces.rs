//! Tests of readers of traces: golden files of every format, every cut, wrong bytes, and the requests of rows in a
//! replay.

use pummel_logic::arrival::Pace;
use pummel_logic::plan::{Arrivals, DealBy, Fills, MappedVerb, TracePace, TraceReplay, TraceTtl};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::{Stream, StreamOwner, scramble};
use pummel_logic::time::{Nanos, SECOND};
use pummel_traffic::trace::reader::LINE_MAX_BYTES;
use pummel_traffic::trace::row::Row;
use pummel_traffic::trace::shaper::{Part, Shaped};
use pummel_traffic::trace::{Account, Format, Reader, Shaper, detect, ptr};

/// A row as text: time in nanoseconds and `~` where it is exact to a second, verb, key with its length, value, TTL, client, the
/// count, a mark for misses, and one for the rest of a row.
fn shown(row: &Row<'_>) -> String {
    let second = if u64::from(row.resolution_ns) == SECOND { "~" } else { "" };
    let value = row.value_bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
    let client = row
        .client
        .map_or("-".to_owned(), |client| if client < 1_000 { client.to_string() } else { "#".to_owned() });
    let missed = if row.missed { " missed" } else { "" };
    let rest = if row.continues { REST } else { "" };
    let key = String::from_utf8_lossy(row.key);
    format!(
        "{}{second} {} {key}/{} {value} {} {client} x{}{missed}{rest}",
        row.at_ns,
        row.verb.name(),
        row.key_bytes,
        row.ttl_s,
        row.count
    )
}

/// The mark of a row that continues the one before it.
const REST: &str = " rest";

/// Number of rows of the trace that these rows are.
fn count_of(rows: &[impl AsRef<str>]) -> u64 {
    rows.iter().filter(|row| !row.as_ref().ends_with(REST)).count() as u64
}

/// The rows of a text that is read in pieces of these lengths, and the counts of the reader.
fn read_in(format: &Format, bytes: &[u8], pieces: &mut dyn Iterator<Item = usize>) -> (Vec<String>, Account) {
    let mut rows = Vec::new();
    let mut reader = Reader::new(format, Some(1_700_000_000));
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pieces.next().unwrap_or(rest.len()).clamp(1, rest.len()));
        reader.read(piece, &mut |row| rows.push(shown(row)));
        rest = after;
    }
    let account = reader.end(&mut |row| rows.push(shown(row)));
    (rows, account)
}

fn read(format: &Format, bytes: &[u8]) -> (Vec<String>, Account) {
    read_in(format, bytes, &mut std::iter::empty())
}

/// A trace of a format, with the rows that are in it and the numbers of lines that are bad and that are skipped.
struct Golden {
    format: Format,
    bytes: Vec<u8>,
    rows: &'static [&'static str],
    bad: u64,
    skipped: u64,
    /// Whether the format is found by the content.
    detected: bool,
}

fn text(format: Format, text: &str, rows: &'static [&'static str], bad: u64, skipped: u64) -> Golden {
    let detected = !matches!(format, Format::Mutilate(_));
    Golden { format, bytes: text.as_bytes().to_vec(), rows, bad, skipped, detected }
}

fn oracle(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
}

fn twr(time: u32, object: u64, sizes: (u32, u32), op: u32, ttl: u32) -> Vec<u8> {
    let (sizes, op) = (sizes.0 << 22 | sizes.1, op << 24 | ttl);
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &sizes.to_le_bytes(), &op.to_le_bytes()].concat()
}

#[allow(clippy::too_many_lines, reason = "a table of one trace for each format")]
fn goldens() -> Vec<Golden> {
    let of_records = |format, records: Vec<Vec<u8>>, rows, bad| Golden {
        format,
        bytes: records.concat(),
        rows,
        bad,
        skipped: 0,
        detected: bad == 0,
    };
    let ptr_rows = [
        Row {
            at_ns: 5,
            verb: Verb::Set,
            value_bytes: Some(9),
            ttl_s: 60,
            client: Some(3),
            ..Row::read(b"eleven-long")
        },
        Row { at_ns: 7, missed: true, ..Row::read(b"twelve-chars") },
    ];
    let header = ptr::Header { resolution_ns: 1, rows: 2, source: 0, lost: 0 };
    let record = |row: &Row<'_>| ptr::record(row, header.resolution_ns).to_vec();
    let ptr_bytes = [header.to_bytes().to_vec(), record(&ptr_rows[0]), record(&ptr_rows[1])];
    vec![
        text(
            Format::Twitter,
            "0,ns:u:8Wq1aB,11,213,4,get,0\n0,ns:u:9,11,0,4,get,0\r\n1,k,1,77,5,set,86400\nnonsense\n1,k,1,77,5,flush,0\n\
             2,k,1,5,5,cas,9\n2,k,1,x,5,get,0\n2,k,1,5,5,incr",
            &[
                "0~ get ns:u:8Wq1aB/11 213 0 4 x1",
                "0~ get ns:u:9/11 ? 0 4 x1 missed",
                "1000000000~ set k/1 77 86400 5 x1",
                "2000000000~ cas k/1 5 9 5 x1",
            ],
            4,
            0,
        ),
        text(
            Format::Kvcache,
            "key,op,size,op_count,key_size\n1668757755,SET,82,1,40\n1668757756,GET,0,3,40\n1668757757,GET_LEASE,10,1,8\n\
             x,TRIM,1,1,1\ny,DELETE,0,1,1\nz,GET,q,1,1\nw,GET,1\n",
            &[
                "0 set 1668757755/40 82 0 - x1",
                "0 get 1668757756/40 ? 0 - x3 missed",
                "0 get 1668757757/10 10 0 - x1",
                "0 delete y/1 0 0 - x1",
            ],
            2,
            1,
        ),
        text(
            Format::Kvcache,
            "op_time,key,key_size,op,op_count,size,cache_hits,ttl\n10,a,10,SET_LEASE,2,7,0,60\n11,a,10,GET,1,7,1,0\n\
             12,a,10,GET_LEASE,3,7,1,0\n13,a,10,GET,2,7,0,0\n14,e,10,GET,2,0,2,0\n15,e,10,GET,2,0,1,0\n16,a,10,GET,1,7,9,0\n\
             17,e,10,GET,1,0,?,0\n17,a,10,GET,1,7,,0\n18,a,10,DELETE,2,0,0,0\n",
            &[
                "10000000000~ set a/10 7 60 - x2",
                "11000000000~ get a/10 7 0 - x1",
                "12000000000~ get a/10 7 0 - x2 missed",
                "12000000000~ get a/10 7 0 - x1 rest",
                "13000000000~ get a/10 7 0 - x2 missed",
                "14000000000~ get e/10 0 0 - x2",
                "15000000000~ get e/10 ? 0 - x1 missed",
                "15000000000~ get e/10 0 0 - x1 rest",
                "16000000000~ get a/10 7 0 - x1",
                "17000000000~ get e/10 ? 0 - x1 missed",
                "17000000000~ get a/10 7 0 - x1",
                "18000000000~ delete a/10 0 0 - x2",
            ],
            0,
            0,
        ),
        text(
            Format::Cdn,
            "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,SamplingRate,cacheHit\n\
             1.5,obj,1,1000,500,10,0,0,3600,1,1\n2,obj2,1,7,7,1,0,0,-1,1,0\n3,obj3\n",
            &["1500000000 get obj/3 1000 3600 - x1", "2000000000 get obj2/4 7 0 - x1 missed"],
            1,
            0,
        ),
        text(
            Format::Cdn,
            "7,a,1,10,10,1,0,0,60,1,1,x\n8,b,1,20,10,1,0,0,60,1,0,x\n9,c,1,20,10,1,0,0,60,1,,x\n",
            &[
                "7000000000~ get a/1 10 60 - x1",
                "8000000000~ get b/1 20 60 - x1 missed",
                "9000000000~ get c/1 20 60 - x1",
            ],
            0,
            0,
        ),
        text(
            Format::Csv(None),
            "time_ms,op,key,size,client,ttl\n1500,get,a,,7,\n1600.5,SET,b,10,7,60\nx,get,c,,1,\n1700,keys,d,,1,\n",
            &["1500000000 get a/1 ? 0 7 x1", "1600500000 set b/1 10 60 7 x1"],
            1,
            1,
        ),
        text(
            Format::Csv(None),
            "time,key\n1970-01-01T00:00:01Z,a\n1970-01-01T00:00:01.5Z,b\n2,c\n",
            &["1000000000~ get a/1 ? 0 - x1", "1500000000 get b/1 ? 0 - x1", "2000000000 get c/1 ? 0 - x1"],
            0,
            0,
        ),
        text(
            Format::Csv(None),
            "time,op,key,missed\n1,get,a,True\n2,get,b,false\n2,get,c,\n3,set,d,1\n3,get,e,yes\n4,get,f\n",
            &[
                "1000000000~ get a/1 ? 0 - x1 missed",
                "2000000000~ get b/1 ? 0 - x1",
                "2000000000~ get c/1 ? 0 - x1",
                "3000000000~ set d/1 ? 0 - x1",
            ],
            2,
            0,
        ),
        of_records(
            Format::Oracle,
            vec![oracle(1, 5, 100, 3), oracle(1, u64::MAX, 7, -1), oracle(2, 5, 100, i64::MAX)],
            &[
                "1000000000~ get 5/1 100 0 - x1",
                "1000000000~ get 18446744073709551615/20 7 0 - x1",
                "2000000000~ get 5/1 100 0 - x1",
            ],
            0,
        ),
        of_records(
            Format::Twr,
            vec![
                twr(1, 5, (30, 100), 1, 0),
                twr(1, 5, (30, 0), 2, 0),
                twr(2, 5, (30, 100), 3, 60),
                twr(2, 5, (30, 1), 12, 0),
            ],
            &[
                "1000000000~ get 5/30 100 0 - x1",
                "1000000000~ gets 5/30 ? 0 - x1 missed",
                "2000000000~ set 5/30 100 60 - x1",
            ],
            1,
        ),
        of_records(
            Format::TwrNs,
            vec![
                [twr(1, 5, (30, 100), 9, 0), vec![2, 1]].concat(),
                [twr(2, 5, (30, 100), 10, 0), vec![0, 0]].concat(),
            ],
            &["1000000000~ delete 258:5/30 100 0 - x1", "2000000000~ incr 0:5/30 100 0 - x1"],
            0,
        ),
        text(
            Format::Monitor,
            "OK\n1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"\n1339518087.877697 [0 127.0.0.1:60866] \"dbsize\"\n\
             1339518090.420270 [0 127.0.0.1:60866] \"set\" \"x\" \"6\"\n\
             +1339518096.506257 [0 unix:/tmp/s] \"MGET\" \"x\" \"y\\x41\\\"\"\n\
             1339518099.363765 [0 lua] \"get\" \"x\"\n1339518100.000001 [3 [::1]:5] \"SET\" \"k\" \"a\\nb\" \"PX\" \"1500\" \"nx\"\n\
             1339518101.5 [0 h:1] \"expire\" \"k\" \"60\"\n1339518102.5 [0 h:1] \"get\" \"cut\n",
            &[
                "1339518090420270000 set x/1 1 0 # x1",
                "1339518096506257000 get x/1 ? 0 # x1",
                "1339518096506257000 get yA\"/3 ? 0 # x1",
                "1339518101500000000 touch k/1 ? 60 # x1",
            ],
            2,
            3,
        ),
        text(
            Format::Watch,
            "OK\nts=1466120156.99667 gid=2 type=item_get key=foo%20 status=not_found clsid=0 cfd=27\n\
             ts=1466120156.5 gid=1 type=item_get key=foo status=not_found clsid=0 cfd=27\n\
             ts=1466120157.1 gid=3 type=item_get key=a%2fb status=not_found cfd=27 size=0\n\
             ts=1466120157.2 gid=4 type=item_store key=a%2Fb status=stored cmd=set ttl=60 clsid=1 cfd=27 size=10\n\
             ts=1466120157.3 gid=6 type=deleted key=a%2fb cmd=delete clsid=1 cfd=27 size=10\n\
             ts=1466120157.4 gid=7 type=conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=2\n\
             ts=1466120157.5 gid=8 type=item_get key=zz%4 status=found\nskipped=12\n",
            &[
                "1466120156000005000 get foo/3 ? 0 27 x1 missed",
                "1466120157000002000 set a/b/3 10 60 27 x1",
                "1466120157000003000 delete a/b/3 ? 0 27 x1",
            ],
            2,
            1,
        ),
        text(
            Format::Metadump,
            "key=key exp=-1 la=1588598718 cas=1 fetch=no cls=1 size=80\nkey=k%41 exp=1700000060 la=5 cas=0 fetch=yes cls=1 size=100 \
             flags=7\nkey=old exp=1600000000 la=5 cas=1 fetch=no cls=1 size=90\nkey=nosize exp=-1\nEND\n",
            &["1588598718000000000~ set key/3 18 0 - x1", "5000000000~ set kA/2 43 60 - x1"],
            1,
            1,
        ),
        text(
            Format::Mutilate(0),
            "1,app,read,k1,10\nk3,30\r\n3,app,touch,k4,1\n\n1,app,write,k2,20",
            &["0 get k1/2 10 0 - x1", "0 get k3/2 30 0 - x1", "0 set k2/2 20 0 - x1"],
            2,
            0,
        ),
        text(
            Format::Mutilate(1),
            "0,k1,2,100,7,get,0\n3,k4,2,0,7,get,0\n4,k5,2,999999,7,set,0\n",
            &["0 get k1/2 100 0 - x1", "0 get k4/2 1 0 - x1", "0 set k5/2 524000 0 - x1"],
            0,
            0,
        ),
        text(
            Format::Mutilate(2),
            "1,a,1,k1,5\n1,a,2,k2,6\n1,a,3,k3,7\n",
            &["0 get k1/2 5 0 - x1", "0 set k2/2 6 0 - x1"],
            1,
            0,
        ),
        Golden {
            format: Format::Ptr,
            bytes: ptr_bytes.concat(),
            rows: &["5 set #/11 9 60 3 x1", "7 get #/12 ? 0 - x1 missed"],
            bad: 0,
            skipped: 0,
            detected: true,
        },
    ]
}

/// Rows of pummel's own format have keys that are made of hashes.
fn compared(golden: &Golden, rows: Vec<String>) -> Vec<String> {
    if golden.format != Format::Ptr {
        return rows;
    }
    let masked = |row: String| {
        let (head, tail) = row.split_once('/').expect("a key");
        let (head, _) = head.rsplit_once(' ').expect("a verb");
        format!("{head} #/{tail}")
    };
    rows.into_iter().map(masked).collect()
}

#[test]
fn every_format_is_read_and_what_is_no_request_is_counted() {
    for golden in goldens() {
        let (rows, account) = read(&golden.format, &golden.bytes);
        let name = golden.format.name();
        assert_eq!(compared(&golden, rows), golden.rows, "{name}");
        assert_eq!((account.bad, account.skipped), (golden.bad, golden.skipped), "{name}: {account:?}");
        assert_eq!(account.rows, count_of(golden.rows), "{name}");
        assert_eq!(account.first_bad.is_some(), golden.bad > 0, "{name}");
    }
}

#[test]
fn the_first_line_that_is_left_out_is_named_by_its_number() {
    let golden = &goldens()[0];
    let (_, account) = read(&golden.format, &golden.bytes);
    assert_eq!(account.first_bad, Some((4, "nonsense".to_owned())));
    let notices = account.notices("t.csv", &golden.format);
    assert_eq!(
        notices,
        [
            "4 of 8 lines of 't.csv' hold no request of format twitter and are left out; the first is line 4: 'nonsense'"
        ]
    );
    let (_, account) = read(&Format::Watch, b"ts=1.1 gid=1 type=item_get key=a status=found\nts=1.2 gid=5 type=item_get key=a status=found\n[skipped=12]\n");
    assert_eq!(account.lost, 3 + 12, "gaps in the numbers, and what the server says it dropped");
}

#[test]
fn formats_are_found_by_their_content_and_by_their_names() {
    for golden in goldens().iter().filter(|golden| golden.detected) {
        assert_eq!(detect(&golden.bytes).as_ref(), Some(&golden.format));
        assert_eq!(Format::named(golden.format.name()), Ok(golden.format.clone()));
    }
    for nothing in [&b""[..], b"hello\nworld\n", &[0xff; 100]] {
        assert_eq!(detect(nothing), None, "{nothing:?}");
    }
    let numbered = Format::named("csv:time=1,key=3,op=2").expect("columns");
    assert_eq!(read(&numbered, b"5,set,k\n").0, ["5000000000~ set k/1 ? 0 - x1"]);
    for bad in ["csv:", "csv:time=1", "csv:key=0", "csv:key=x", "csv:nothing=1,key=2", "CSV", ""] {
        assert!(Format::named(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    for golden in goldens() {
        let whole = read(&golden.format, &golden.bytes);
        for cut in 1..golden.bytes.len() {
            let cut = read_in(&golden.format, &golden.bytes, &mut [cut].into_iter());
            assert_eq!(cut, whole, "{}", golden.format.name());
        }
        let one_by_one = read_in(&golden.format, &golden.bytes, &mut std::iter::repeat(1));
        assert_eq!(one_by_one, whole, "{}", golden.format.name());
    }
}

#[test]
fn a_trace_that_ends_anywhere_has_the_rows_before_its_end() {
    for golden in goldens() {
        let whole = read(&golden.format, &golden.bytes).0;
        for end in 0..golden.bytes.len() {
            let (rows, account) = read(&golden.format, &golden.bytes[..end]);
            // The last line may mean something else when it is cut.
            let sure = rows.len().saturating_sub(2);
            assert_eq!(rows[..sure], whole[..sure], "{} to {end}", golden.format.name());
            assert_eq!(account.rows, count_of(&rows));
        }
    }
}

/// Pseudo-random bytes, many of which are those of a trace.
fn spoilt(bytes: &[u8], seed: u64) -> Vec<u8> {
    let draws = Stream::from_seed(seed);
    let mut spoilt = bytes.to_vec();
    for change in 0..1 + draws.draw(0) % 8 {
        let (place, what) = (draws.draw(3 * change + 1) as usize % spoilt.len(), draws.draw(3 * change + 2));
        match what % 4 {
            0 => spoilt[place] = (what >> 8) as u8,
            1 => spoilt.insert(place, b",\n\" =%.\\"[(what >> 8) as usize % 8]),
            2 => drop(spoilt.drain(place..(place + (what >> 8) as usize % 9).min(spoilt.len()))),
            _ => spoilt.extend_from_within(place..),
        }
        if spoilt.is_empty() {
            return vec![0];
        }
    }
    spoilt
}

#[test]
fn wrong_bytes_never_panic_and_rows_are_always_ones_that_can_be_asked() {
    for golden in goldens() {
        for seed in 0..400 {
            let bytes = spoilt(&golden.bytes, seed);
            for format in [Some(golden.format.clone()), detect(&bytes)].into_iter().flatten() {
                let mut reader = Reader::new(&format, Some(5));
                let mut check = |row: &Row<'_>| {
                    assert!((1..=250).contains(&row.key.len()) && row.key_bytes >= row.key.len() as u16);
                    assert!(row.key_bytes <= 250 && row.count > 0 && u64::from(row.resolution_ns) <= SECOND);
                    assert!(row.key.iter().all(|byte| *byte > b' ' && *byte != 127));
                };
                let cut = scramble(seed) as usize % bytes.len();
                reader.read(&bytes[..cut], &mut check);
                reader.read(&bytes[cut..], &mut check);
                let account = reader.end(&mut check);
                assert!(account.bad + account.skipped <= account.lines);
            }
        }
    }
}

#[test]
fn a_line_without_an_end_takes_bounded_memory_and_is_one_bad_line() {
    let mut reader = Reader::new(&Format::Twitter, None);
    let long = vec![b'x'; LINE_MAX_BYTES];
    for _ in 0..20 {
        reader.read(&long, &mut |_| panic!("no row is here"));
    }
    let mut rows = 0;
    reader.read(b"\n0,k,1,1,1,get,0\n", &mut |_| rows += 1);
    assert_eq!((rows, reader.account().bad, reader.account().lines), (1, 1, 2));
}

fn replay(pace: TracePace) -> TraceReplay {
    TraceReplay::of(vec!["trace".to_owned()], pace, 1_000_000)
}

/// A request as text, and ends of parts as `|`.
fn shaped(
    replay: &TraceReplay,
    clients: u64,
    parts: Vec<Part>,
    rows: &[Row<'_>],
    passes: u32,
) -> (Vec<String>, Shaper) {
    let mut shaper = Shaper::new(replay, clients, parts, &Verb::ALL, (1, 1));
    let mut said = Vec::new();
    let mut note = |shaped: Shaped<'_>| {
        match shaped {
            Shaped::PartEnds => said.push("|".to_owned()),
            Shaped::Request(request) => {
                let key = String::from_utf8_lossy(request.key);
                let (due, verb) = (request.due_ns, request.verb.name());
                said.push(format!("{due} {verb} {key} {} {}", request.value_bytes, request.ttl_s));
            }
        }
        true
    };
    for pass in 1..=passes {
        rows.iter().for_each(|row| shaper.take(row, &mut note));
        shaper.end_pass(pass < passes, &mut note);
    }
    (said, shaper)
}

fn at(at_ns: Nanos, key: &[u8]) -> Row<'_> {
    Row { at_ns, ..Row::read(key) }
}

fn whole() -> Vec<Part> {
    vec![Part::default()]
}

#[test]
fn requests_are_due_at_the_times_of_their_rows_divided_by_the_speed() {
    let rows = [at(7 * SECOND, b"a"), at(7 * SECOND + 3, b"b"), at(9 * SECOND, b"c"), at(8 * SECOND, b"d")];
    let timed = replay(TracePace::Trace { speed: 1.0 });
    let (said, shaper) = shaped(&timed, 4, whole(), &rows, 1);
    assert_eq!(said, ["0 get a 0 0", "3 get b 0 0", "2000000000 get c 0 0", "2000000000 get d 0 0", "|"]);
    let counts = shaper.counts();
    assert_eq!((counts.rows, counts.requests, counts.out_of_order), (4, 4, 1));
    let tenfold = replay(TracePace::Trace { speed: 10.0 });
    assert_eq!(shaped(&tenfold, 4, whole(), &rows[..3], 1).0[2], "200000000 get c 0 0");
    let fast = shaped(&replay(TracePace::Fast), 4, whole(), &rows, 1).0;
    assert!(fast[..4].iter().all(|request| request.starts_with("0 ")), "{fast:?}");
    let owner = StreamOwner { seed: 1, group: 0, phase: 0, client: 0 };
    let schedule = Some(Pace::new(&Arrivals::Constant, 1_000.0, 1).schedule(owner));
    let rated = shaped(&replay(TracePace::Rate), 4, vec![Part { schedule, ..Part::default() }], &rows, 1).0;
    assert_eq!(rated[3], "3000000 get d 0 0", "the order is kept, and the times are those of the rate");
}

#[test]
fn parts_follow_each_other_without_a_row_between_them() {
    let rows: Vec<Row<'_>> = (0..10).map(|second| at(second * SECOND, b"k")).collect();
    let timed = replay(TracePace::Trace { speed: 1.0 });
    let part = |time_ns, requests| Part { time_ns, requests, schedule: None };
    let (said, _) = shaped(
        &timed,
        1,
        vec![part(Some(3 * SECOND), None), part(None, Some(2)), part(None, None)],
        &rows,
        1,
    );
    let dues: Vec<&str> = said.iter().map(|said| said.split(' ').next().unwrap()).collect();
    let s = |seconds: u64| (seconds * SECOND).to_string();
    let (one, two, three, four) = (s(1), s(2), s(3), s(4));
    assert_eq!(dues, ["0", &one, &two, "|", "0", &one, "|", "0", &one, &two, &three, &four, "|"]);
    let (said, shaper) = shaped(&timed, 1, vec![part(Some(3 * SECOND), None)], &rows, 1);
    assert_eq!((said.len(), shaper.is_over()), (4, true), "rows behind the last part are none");
}

#[test]
fn a_window_a_sample_and_passes_choose_rows() {
    let rows: Vec<Row<'_>> = (0..10).map(|second| at((5 + second) * SECOND, b"k")).collect();
    let timed = replay(TracePace::Trace { speed: 1.0 });
    let window = TraceReplay { from_ns: 2 * SECOND, to_ns: Some(5 * SECOND), ..timed.clone() };
    assert_eq!(
        shaped(&window, 1, whole(), &rows, 1).0,
        ["0 get k 0 0", "1000000000 get k 0 0", "2000000000 get k 0 0", "|"]
    );
    let twice = TraceReplay { fresh_passes: true, ..timed.clone() };
    let (said, _) = shaped(&twice, 1, whole(), &rows[..2], 2);
    assert_eq!(
        said,
        ["0 get k 0 0", "1000000000 get k 0 0", "2000000000 get k^1 0 0", "3000000000 get k^1 0 0", "|"]
    );
    let keys: Vec<String> = (0..10_000).map(|key| format!("key-{key}")).collect();
    let rows: Vec<Row<'_>> = keys.iter().chain(&keys).map(|key| at(0, key.as_bytes())).collect();
    let (said, shaper) = shaped(&TraceReplay { sample: 0.1, ..timed }, 1, whole(), &rows, 1);
    assert!((1_700..2_300).contains(&shaper.counts().kept), "{}", shaper.counts().kept);
    let half = said.len() / 2;
    assert_eq!(said[..half], said[half..2 * half], "a key is kept with all its rows");
}

#[test]
fn operations_of_the_trace_are_sent_as_others() {
    let row = |verb, key| Row { verb, value_bytes: Some(9), ..at(0, key) };
    let rows = [row(Verb::Get, b"a"), row(Verb::Gets, b"b"), row(Verb::Set, b"c"), row(Verb::Delete, b"d")];
    let pair = |from, to| MappedVerb { from, to };
    let map = vec![pair(Verb::Get, Verb::Set), pair(Verb::Gets, Verb::Get), pair(Verb::Set, Verb::Touch)];
    let mapped = TraceReplay { map, ..replay(TracePace::Fast) };
    let (said, _) = shaped(&mapped, 1, whole(), &rows, 1);
    let verbs: Vec<&str> = said.iter().filter_map(|said| said.split(' ').nth(1)).collect();
    assert_eq!(verbs, ["set", "get", "touch", "delete"], "an operation that is sent is not mapped again");
    assert!(said[0].starts_with("0 set a 9 "), "the length is that of the row: {said:?}");
}

#[test]
fn amplified_rows_are_other_keys_between_the_row_and_its_next_one() {
    let rows = [at(0, b"a"), at(SECOND, b"b")];
    let doubled = TraceReplay { amplify: 2, ..replay(TracePace::Trace { speed: 1.0 }) };
    let (said, shaper) = shaped(&doubled, 8, whole(), &rows, 1);
    assert_eq!(
        said,
        ["0 get a 0 0", "500000000 get a~1 0 0", "1000000000 get b 0 0", "1000000000 get b~1 0 0", "|"]
    );
    assert_eq!((shaper.counts().kept, shaper.counts().requests), (2, 4));
}

#[test]
fn times_to_live_are_scaled_kept_or_left_out_and_values_are_cut() {
    let store = Row { verb: Verb::Set, ttl_s: 60, value_bytes: Some(2_000_000), ..Row::read(b"k") };
    let short = Row { ttl_s: 10, ..store };
    let said = |ttl, rows: &[Row<'_>]| {
        let replay = TraceReplay { ttl, ..replay(TracePace::Trace { speed: 10.0 }) };
        let (said, shaper) = shaped(&replay, 1, whole(), rows, 1);
        (said[0].clone(), shaper.counts().ttls, shaper.counts().cut_values)
    };
    assert_eq!(said(TraceTtl::Scale, &[store]), ("0 set k 1000000 6".to_owned(), (1, 0), 1));
    assert_eq!(said(TraceTtl::Scale, &[short]), ("0 set k 1000000 1".to_owned(), (1, 1), 1));
    assert_eq!(said(TraceTtl::Keep, &[store]), ("0 set k 1000000 60".to_owned(), (1, 0), 1));
    assert_eq!(said(TraceTtl::None, &[store]), ("0 set k 1000000 0".to_owned(), (0, 0), 1));
}

#[test]
fn stores_that_fill_recorded_misses_are_left_out_where_misses_of_the_replay_fill() {
    let miss = Row { missed: true, client: Some(1), ..Row::read(b"k") };
    let fill =
        Row { at_ns: SECOND, verb: Verb::Set, value_bytes: Some(7), client: Some(1), ..Row::read(b"k") };
    let later = Row { at_ns: 9 * SECOND, ..fill };
    let read = Row { at_ns: 10 * SECOND, ..miss };
    let own = TraceReplay { fills: Fills::Own, ..replay(TracePace::Fast) };
    let (said, shaper) = shaped(&own, 1, whole(), &[miss, fill, later, read], 1);
    let expected = ["0 get k 7 0", "0 set k 7 0", "0 get k 7 0"];
    assert_eq!(
        said[..3],
        expected,
        "each read knows the length that its fill needs, that of the next store or of the last"
    );
    assert_eq!(shaper.counts().fills_left_out, 1);
    let (said, _) = shaped(&replay(TracePace::Fast), 1, whole(), &[miss, fill, later, read], 1);
    assert_eq!(said.len(), 5);
}

#[test]
fn stores_of_misses_live_as_long_as_those_of_the_trace() {
    let miss = Row { missed: true, client: Some(1), ..Row::read(b"k") };
    let hit = Row { value_bytes: Some(9), client: Some(2), ..Row::read(b"seen") };
    let add = |key| Row {
        at_ns: SECOND,
        verb: Verb::Add,
        value_bytes: Some(7),
        client: Some(1),
        ttl_s: 1_209_600,
        ..Row::read(key)
    };
    let append = Row { verb: Verb::Append, ttl_s: 5, ..add(b"k") };
    let never = Row { missed: true, ..Row::read(b"never") };
    let rows = [miss, hit, add(b"k"), add(b"seen"), append, miss, never];
    let said = |replay: TraceReplay, rows: &[Row<'_>]| shaped(&replay, 1, whole(), rows, 1);
    let own = TraceReplay { fills: Fills::Own, ..replay(TracePace::Fast) };
    let (requests, _) = said(own.clone(), &rows);
    let expected = [
        "0 get k 7 1209600",
        "0 get seen 9 1209600",
        "0 add seen 7 1209600",
        "0 append k 7 5",
        "0 get k 7 1209600",
        "0 get never 7 1209600",
    ];
    assert_eq!(requests[..6], expected, "also that of a key that the trace does not store");
    // They are scaled and left out as those of stores are, and short ones are counted by the stores in whose place they are.
    let timed = TraceReplay { fills: Fills::Own, ..replay(TracePace::Trace { speed: 1_209_600.0 }) };
    let (requests, shaper) = said(timed, &[miss, add(b"k")]);
    assert_eq!((requests[0].as_str(), shaper.counts().ttls), ("0 get k 7 1", (1, 1)));
    let none = TraceReplay { ttl: TraceTtl::None, ..own };
    assert_eq!(said(none, &[miss, add(b"k")]).0[0], "0 get k 7 0");
    // Reads of a replay that sends the recorded stores need none, and traces without times to live have none.
    assert_eq!(said(replay(TracePace::Fast), &rows).0[0], "0 get k 0 0");
    let own = TraceReplay { fills: Fills::Own, ..replay(TracePace::Fast) };
    assert_eq!(said(own, &[miss, Row { ttl_s: 0, ..add(b"k") }]).0[0], "0 get k 7 0");
}

#[test]
fn an_item_is_stored_once_whatever_its_count_and_rows_of_a_trace_are_not_requests() {
    let item = Row { value_bytes: Some(3), count: 5, ..Row::read(b"k") };
    let fill = TraceReplay { stores_only: true, ..replay(TracePace::Fast) };
    assert_eq!(shaped(&fill, 1, whole(), &[item], 1).0, ["0 set k 3 0", "|"]);
    let rest = Row { count: 2, missed: true, continues: true, ..item };
    let (requests, shaper) = shaped(&replay(TracePace::Fast), 1, whole(), &[item, rest], 1);
    let counts = shaper.counts();
    assert_eq!((requests.len(), counts.rows, counts.kept, counts.requests), (8, 1, 1, 7));
}

#[test]
fn rows_are_dealt_by_client_key_or_number_and_all_agents_deal_alike() {
    let keys: Vec<String> = (0..1_000).map(|key| format!("key-{key}")).collect();
    let rows: Vec<Row<'_>> = keys
        .iter()
        .enumerate()
        .map(|(number, key)| Row { client: Some(number as u64 % 7), ..Row::read(key.as_bytes()) })
        .collect();
    let clients_of = |by| {
        let replay = TraceReplay { by: Some(by), ..replay(TracePace::Fast) };
        let mut shaper = Shaper::new(&replay, 16, whole(), &Verb::ALL, (9, 9));
        let mut clients = Vec::new();
        for row in rows.iter().chain(&rows) {
            shaper.take(row, &mut |shaped| {
                if let Shaped::Request(request) = shaped {
                    clients.push(request.client);
                }
                true
            });
        }
        clients
    };
    let by_row = clients_of(DealBy::Row);
    assert!(by_row.iter().enumerate().all(|(row, client)| *client == row as u64 % 16));
    let by_key = clients_of(DealBy::Key);
    assert_eq!(by_key[..1_000], by_key[1_000..]);
    assert_eq!(by_key.iter().collect::<std::collections::BTreeSet<_>>().len(), 16);
    let by_client = clients_of(DealBy::Client);
    assert!((7..1_000).all(|row| by_client[row] == by_client[row - 7]));
    assert_eq!(by_client, clients_of(DealBy::Client));
}

#[test]
fn operations_that_the_protocol_does_not_have_are_counted_and_left_out() {
    let mut shaper = Shaper::new(&replay(TracePace::Fast), 1, whole(), &[Verb::Get], (1, 1));
    let mut requests = 0;
    for verb in [Verb::Get, Verb::Set, Verb::Get] {
        shaper.take(&Row { verb, ..Row::read(b"k") }, &mut |_| {
            requests += 1;
            true
        });
    }
    assert_eq!((requests, shaper.counts().unsayable), (2, 1));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_column() {
    let text = b"\xef\xbb\xbftime,key,op\r\n5,a,get\r\n7,b,set\r\n";
    let format = detect(text).expect("columns that a header names");
    let mut reader = Reader::new(&format, None);
    let mut rows = Vec::new();
    for piece in text.chunks(2) {
        reader.read(piece, &mut |row| rows.push((row.at_ns, row.key.to_vec())));
    }
    assert_eq!(rows, [(5 * SECOND, b"a".to_vec()), (7 * SECOND, b"b".to_vec())]);
    assert_eq!(detect(b"\xef\xbb\xbf0,k,1,1,1,get,0\n"), Some(Format::Twitter));
}

#[test]
fn lines_without_a_request_are_no_gap_in_the_numbers_of_a_log() {
    let text = "ts=1.1 gid=1 type=item_get key=a status=found\n\
                ts=1.2 gid=2 type=conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=2\n\
                ts=1.3 gid=4 type=item_get key=%zz status=found\nts=1.4 gid=3 type=eviction key=b\n\
                ts=1.5 gid=5 type=item_get key=a status=found\n\
                ts=1.6 gid=8 type=item_get key=a status=found\n";
    let (rows, account) = read(&Format::Watch, text.as_bytes());
    assert_eq!((rows.len(), account.skipped, account.bad), (3, 2, 1));
    assert_eq!(account.lost, 2, "the lines 6 and 7 are missing");
}

#[test]
fn a_window_that_is_replayed_again_begins_when_it_is_over() {
    let dues = |rows: &[Row<'_>], (from_ns, to_ns): (Nanos, Option<Nanos>), passes: u32| {
        let window = TraceReplay { from_ns, to_ns, ..replay(TracePace::Trace { speed: 1.0 }) };
        let said = shaped(&window, 1, whole(), rows, passes).0;
        let due = |said: &String| said.split(' ').next().and_then(|due| due.parse::<Nanos>().ok());
        said.iter().filter_map(due).collect::<Vec<Nanos>>()
    };
    let s = |halves: &[u64]| halves.iter().map(|half| half * (SECOND / 2)).collect::<Vec<Nanos>>();
    let rows: Vec<Row<'_>> = (0..10).map(|second| at((5 + second) * SECOND, b"k")).collect();
    assert_eq!(dues(&rows, (2 * SECOND, Some(5 * SECOND)), 2), s(&[0, 2, 4, 6, 8, 10]));
    // A trace that ends before its window does.
    assert_eq!(dues(&rows[..4], (2 * SECOND, Some(60 * SECOND)), 2), s(&[0, 2, 4, 6]));
    // A row of a whole second takes the second, also where the window ends in its midst.
    let seconds: Vec<Row<'_>> = rows.iter().map(|row| row.within_second()).collect();
    let half = 5 * SECOND - SECOND / 2;
    assert_eq!(dues(&seconds, (2 * SECOND, Some(half)), 2), s(&[0, 2, 4, 6, 8, 10]));
    // The gap behind the last row is the mean one of a pass, however many there were.
    let close = [at(0, b"a"), at(SECOND / 2, b"b")];
    assert_eq!(dues(&close, (0, None), 3), s(&[0, 1, 2, 3, 4, 5]));
}

#[test]
fn counts_of_lost_requests_do_not_overflow() {
    let line = |gid: &str| format!("ts=1.5 gid={gid} type=item_get key=a status=found\n");
    let text: String =
        ["1", "999999999999999999", "9999999999999999999", "18446744073709551615"].map(line).concat();
    let mut account = Account::default();
    for _ in 0..3 {
        let mut reader = Reader::new(&Format::Watch, None);
        reader.read(text.as_bytes(), &mut |_| {});
        account.add(reader.end(&mut |_| {}));
    }
    assert_eq!(account.lost, u64::MAX);
}

#[test]
fn no_row_makes_a_request_once_no_more_are_wanted() {
    // A row that stands for billions of requests, with and without a time within its second.
    let many = Row { count: u32::MAX, ..at(SECOND / 2, b"k") };
    for (row, amplify) in [(many, 1), (many, 1_000), (many.within_second(), 1_000)] {
        let asked = TraceReplay { amplify, ..replay(TracePace::Trace { speed: 1.0 }) };
        let mut shaper = Shaper::new(&asked, 1, whole(), &Verb::ALL, (1, 1));
        let mut requests = 0;
        let mut most_three = |shaped: Shaped<'_>| {
            requests += u64::from(matches!(shaped, Shaped::Request(_)));
            requests < 3
        };
        shaper.take(&row, &mut most_three);
        shaper.take(&at(9 * SECOND, b"later"), &mut most_three);
        shaper.end_pass(false, &mut most_three);
        assert_eq!((requests, shaper.is_over()), (3, true));
        let counts = shaper.counts();
        assert_eq!((counts.requests, counts.uncounted), (3, u64::from(u32::MAX) - (1 << 18)));
    }
}
