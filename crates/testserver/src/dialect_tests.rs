//! Tests of every client codec against the server core: what each writes is understood, carried out, and answered so
//! that the codec reads it.

use super::tests::receive;
use super::{
    CountedFault, DatagramQueue, Dialect, Framing, Server, ServerConfig, ServerConnection, ServerFault,
    ServerLogin, Truth,
};
use pummel_logic::connection::outbox::Outbox;
use pummel_logic::protocol::binary::{Binary, PlainBinary};
use pummel_logic::protocol::contract::sent;
use pummel_logic::protocol::handshake::{Credentials, Handshake};
use pummel_logic::protocol::meta::Meta;
use pummel_logic::protocol::resp::{Resp2, Resp3};
use pummel_logic::protocol::text::Text;
use pummel_logic::protocol::udp::Frame;
use pummel_logic::protocol::{
    self, Codec, Keys, MetaAsk, Op, Outcome, PairList, PairValue, Pairs, Step, Value, Verb,
};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};

/// Result of a request: how it ended, and the values that it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    outcome: Outcome,
    values: Vec<Vec<u8>>,
    cas: u64,
}

/// A server and one client that speaks `C`; bytes pass between them in pieces of `step`.
struct Table<C> {
    server: Server,
    connection: ServerConnection,
    codec: C,
    step: usize,
    now: Nanos,
}

impl<C: Codec> Table<C> {
    fn new(step: usize) -> Table<C> {
        Table::with(step, ServerConfig::default())
    }

    fn with(step: usize, config: ServerConfig) -> Table<C> {
        let mut server = Server::new(ServerConfig { truth: Truth::Kept, ..config }, 0);
        let connection = server.accept();
        Table { server, connection, codec: C::new(), step, now: 0 }
    }

    /// Sends bytes to the server, and returns its reply.
    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut received = Vec::new();
        for piece in bytes.chunks(self.step) {
            self.server.handle_received(&mut self.connection, piece, self.now);
            received.extend(receive(&mut self.server, &mut self.connection, self.now, self.step));
        }
        received
    }

    /// The answer to `op`; `None` where it has none.
    fn ask(&mut self, op: &Op<'_>) -> Option<Answer> {
        let mut out = Outbox::default();
        let expect = self.codec.encode(op, 7, &mut out).expect("the codec can write it");
        let received = self.say(&sent(&out));
        let mut answers = self.read(&received);
        if expect == protocol::Expect::Nothing {
            assert_eq!(answers, [], "{op:?}");
        }
        assert!(answers.len() <= 1, "{op:?}: {answers:?}");
        answers.pop()
    }

    fn read(&mut self, received: &[u8]) -> Vec<Answer> {
        let mut answers = Vec::new();
        let (mut values, mut cas) = (Vec::new(), 0);
        for piece in received.chunks(self.step) {
            let mut input = piece;
            loop {
                match self
                    .codec
                    .decode(&mut input)
                    .unwrap_or_else(|error| panic!("{error:?} in {received:?}"))
                {
                    Step::Need => break,
                    Step::Item { cas: sent, .. } => {
                        values.push(Vec::new());
                        cas = sent;
                    }
                    Step::Absent => {}
                    Step::Body(bytes) => {
                        let value: &mut Vec<u8> = values.last_mut().expect("an item began");
                        value.extend_from_slice(bytes);
                    }
                    Step::Reply { outcome, .. } => {
                        answers.push(Answer { outcome, values: std::mem::take(&mut values), cas });
                    }
                    Step::Push { name } => panic!("{} comes unasked", name.escape_ascii()),
                    Step::QuietError { message } => panic!("{} fails quietly", message.escape_ascii()),
                }
            }
        }
        answers
    }

    fn outcome(&mut self, op: &Op<'_>) -> Outcome {
        self.ask(op).expect("it is answered").outcome
    }

    fn value(&mut self, op: &Op<'_>) -> Vec<u8> {
        let answer = self.ask(op).expect("it is answered");
        assert_eq!((answer.outcome, answer.values.len()), (Outcome::Hit, 1), "{op:?}");
        answer.values[0].clone()
    }
}

fn op(verb: Verb, key: &[u8]) -> Op<'_> {
    Op::new(verb, key)
}

fn store<'a>(verb: Verb, key: &'a [u8], value: &'a [u8]) -> Op<'a> {
    Op { value: Value::plain(value), ..Op::new(verb, key) }
}

fn many<'a>(bytes: &'a [u8], ends: &'a [u32]) -> Op<'a> {
    Op { keys: Keys::Many { bytes, ends }, ..Op::new(Verb::Get, b"") }
}

/// Sizes of the pieces in which bytes pass.
const STEPS: [usize; 5] = [1, 2, 7, 23, usize::MAX];

/// Tests the operations that all dialects share; `reads` is the number of reads that the server counts at the end.
fn common<C: Codec>(reads: u64) {
    for step in STEPS {
        let mut pair = Table::<C>::new(step);
        assert_eq!(pair.outcome(&op(Verb::Get, b"a")), Outcome::Miss);
        assert_eq!(pair.outcome(&store(Verb::Replace, b"a", b"no")), Outcome::NotStored);
        assert_eq!(pair.outcome(&store(Verb::Set, b"a", b"one")), Outcome::Stored);
        assert_eq!(pair.outcome(&store(Verb::Add, b"a", b"no")), Outcome::NotStored);
        assert_eq!(pair.outcome(&store(Verb::Append, b"a", b"\r\n")), Outcome::Stored);
        assert_eq!(pair.value(&op(Verb::Get, b"a")), b"one\r\n");
        assert_eq!(pair.outcome(&store(Verb::Replace, b"a", b"")), Outcome::Stored);
        assert_eq!(pair.value(&op(Verb::Get, b"a")), b"");
        let large = vec![b'x'; 5000];
        assert_eq!(pair.outcome(&store(Verb::Add, b"large", &large)), Outcome::Stored);
        assert_eq!(pair.value(&op(Verb::Get, b"large")), large);
        assert_eq!(pair.outcome(&store(Verb::Set, b"n", b"40")), Outcome::Stored);
        assert_eq!(pair.outcome(&Op { delta: 2, ..op(Verb::Incr, b"n") }), Outcome::Number(42));
        assert_eq!(pair.outcome(&Op { delta: 40, ..op(Verb::Decr, b"n") }), Outcome::Number(2));
        assert_eq!(
            pair.outcome(&Op { delta: 1, ..op(Verb::Incr, b"large") }),
            Outcome::Error(protocol::Fault::Client)
        );
        assert_eq!(pair.outcome(&Op { expiry_s: 100, ..op(Verb::Touch, b"n") }), Outcome::Touched);
        assert_eq!(pair.outcome(&Op { expiry_s: 100, ..op(Verb::Touch, b"none") }), Outcome::NotFound);
        assert_eq!(pair.outcome(&Op { expiry_s: 10, ..op(Verb::Gat, b"none") }), Outcome::Miss);
        pair.value(&Op { expiry_s: 10, ..op(Verb::Gat, b"n") });
        let read = pair.ask(&many(b"alargenonen", &[1, 6, 10, 11])).expect("it is answered");
        assert_eq!((read.outcome, read.values.len()), (Outcome::Hit, 3));
        assert_eq!(pair.outcome(&many(b"xy", &[1, 2])), Outcome::Miss);
        assert_eq!(pair.outcome(&op(Verb::Delete, b"a")), Outcome::Deleted);
        assert_eq!(pair.outcome(&op(Verb::Delete, b"a")), Outcome::NotFound);
        assert_eq!(pair.outcome(&op(Verb::Version, b"")), Outcome::Ok);
        assert_eq!(pair.outcome(&Op { expiry_s: 5, ..store(Verb::Set, b"mortal", b"x") }), Outcome::Stored);
        pair.now = 5 * SECOND - 1;
        pair.value(&op(Verb::Get, b"mortal"));
        pair.now = 5 * SECOND;
        assert_eq!(pair.outcome(&op(Verb::Get, b"mortal")), Outcome::Miss);
        pair.now = 10 * SECOND;
        assert_eq!(pair.outcome(&op(Verb::Get, b"n")), Outcome::Miss, "gat has set its expiry");
        let counts = pair.server.counts();
        assert_eq!((counts.get_hits + counts.get_misses, counts.cmd_get), (reads, reads));
        assert_eq!((counts.touch_hits, counts.delete_hits, counts.delete_misses), (2, 1, 1));
        assert_eq!((counts.incr_hits, counts.decr_hits), (1, 1));
    }
}

#[test]
fn every_dialect_does_what_its_clients_ask() {
    common::<Text>(13);
    // A meta read that finds nothing counts as a read, also where it would have set an expiry.
    common::<Meta>(15);
    common::<Binary>(13);
    common::<PlainBinary>(13);
    common::<Resp2>(13);
    common::<Resp3>(13);
}

fn memcached_only<C: Codec>() {
    let mut pair = Table::<C>::new(3);
    pair.outcome(&Op { flags: 7, ..store(Verb::Set, b"a", b"b") });
    assert_eq!(pair.outcome(&store(Verb::Prepend, b"a", b"a")), Outcome::Stored);
    assert_eq!(pair.outcome(&store(Verb::Prepend, b"none", b"a")), Outcome::NotStored);
    let read = pair.ask(&op(Verb::Gets, b"a")).expect("it is answered");
    assert_eq!(read.values, [b"ab".to_vec()]);
    let cas = |unique| Op { cas: unique, ..store(Verb::Cas, b"a", b"new") };
    assert_eq!(pair.outcome(&cas(read.cas + 100)), Outcome::Exists);
    assert_eq!(pair.outcome(&cas(read.cas)), Outcome::Stored);
    assert_eq!(pair.outcome(&Op { cas: 1, ..store(Verb::Cas, b"none", b"x") }), Outcome::NotFound);
    let gats = pair.ask(&Op { expiry_s: 9, ..op(Verb::Gats, b"a") }).expect("it is answered");
    assert!(gats.cas > read.cas, "{gats:?}");
    assert_eq!(pair.outcome(&Op { delta: 1, ..op(Verb::Incr, b"none") }), Outcome::NotFound);
    for quiet in [store(Verb::Set, b"q", b"1"), Op { delta: 4, ..op(Verb::Incr, b"q") }] {
        assert_eq!(pair.ask(&Op { noreply: true, ..quiet }), None);
    }
    assert_eq!(pair.value(&op(Verb::Get, b"q")), b"5");
    assert_eq!(pair.ask(&Op { noreply: true, ..op(Verb::Delete, b"q") }), None);
    assert_eq!(pair.outcome(&op(Verb::Get, b"q")), Outcome::Miss);
}

#[test]
fn uniques_and_silence_are_the_same_in_all_dialects_of_memcached() {
    memcached_only::<Text>();
    memcached_only::<Meta>();
    memcached_only::<Binary>();
    memcached_only::<PlainBinary>();
}

#[test]
fn stale_items_are_renewed_by_one_reader() {
    let mut pair = Table::<Meta>::new(5);
    let vivify = Op { meta: MetaAsk { vivify_s: Some(30), ..MetaAsk::default() }, ..op(Verb::Get, b"v") };
    assert_eq!(pair.outcome(&vivify), Outcome::Win);
    assert_eq!(pair.outcome(&vivify), Outcome::Recaching);
    assert_eq!(pair.outcome(&Op { expiry_s: 20, ..store(Verb::Set, b"v", b"made") }), Outcome::Stored);
    assert_eq!(pair.value(&vivify), b"made");
    let recache = Op { meta: MetaAsk { recache_s: Some(30), ..MetaAsk::default() }, ..op(Verb::Get, b"v") };
    assert_eq!(pair.outcome(&recache), Outcome::Win);
    assert_eq!(pair.outcome(&recache), Outcome::Recaching);
    let stale = Op { meta: MetaAsk { stale_s: Some(60), ..MetaAsk::default() }, ..op(Verb::Delete, b"v") };
    assert_eq!(pair.outcome(&stale), Outcome::Deleted);
    assert_eq!(pair.outcome(&op(Verb::Get, b"v")), Outcome::Win);
    assert_eq!(pair.outcome(&op(Verb::Get, b"v")), Outcome::Stale);
    assert_eq!(pair.outcome(&store(Verb::Set, b"v", b"new")), Outcome::Stored);
    let details = Op { meta: MetaAsk { details: true, ..MetaAsk::default() }, ..op(Verb::Get, b"v") };
    assert_eq!(pair.value(&details), b"new");
}

#[test]
fn keys_of_any_bytes_go_by_base64_and_by_binary() {
    let key = b"with blank\r\n\0";
    let mut pair = Table::<Meta>::new(4);
    assert_eq!(pair.outcome(&store(Verb::Set, key, b"x")), Outcome::Stored);
    assert_eq!(pair.value(&op(Verb::Get, key)), b"x");
    let mut second = pair.server.accept();
    let mut out = Outbox::default();
    Binary::new().encode(&op(Verb::Get, key), 1, &mut out).expect("binary keys have no form");
    pair.server.handle_received(&mut second, &sent(&out), 0);
    assert!(receive(&mut pair.server, &mut second, 0, usize::MAX).ends_with(b"x"));
}

#[test]
fn hashes_and_many_pairs_are_kept_for_resp() {
    let mut pair = Table::<Resp3>::new(6);
    assert_eq!(pair.outcome(&op(Verb::Hget, b"h")), Outcome::Miss);
    assert_eq!(pair.outcome(&store(Verb::Hset, b"h", b"v")), Outcome::Stored);
    assert_eq!(pair.value(&op(Verb::Hget, b"h")), b"v");
    assert_eq!(pair.outcome(&op(Verb::Get, b"h")), Outcome::Error(protocol::Fault::Client), "the wrong type");
    let values = vec![PairValue::of(&Value::plain(b"both")); 2];
    let list = PairList { bytes: b"pq".to_vec(), ends: vec![1, 2], values };
    let bodies = pummel_logic::bodies::Bodies::new(0, 1.0);
    let pairs = Pairs { list: &list, bodies: &bodies };
    assert_eq!(pair.outcome(&Op { keys: Keys::Pairs(pairs), ..op(Verb::Mset, b"") }), Outcome::Stored);
    assert_eq!(pair.ask(&many(b"pq", &[1, 2])).expect("it is answered").values, [b"both", b"both"]);
}

/// Sends lines to a server that speaks RESP alone, and returns its reply.
fn resp_lines(lines: &str, step: usize) -> String {
    let mut table =
        Table::<Resp2>::with(step, ServerConfig { dialect: Dialect::Resp, ..ServerConfig::default() });
    let request: String = lines.split(';').map(|line| format!("{line}\r\n")).collect();
    String::from_utf8_lossy(&table.say(request.as_bytes())).replace("\r\n", ";")
}

#[test]
fn redis_is_answered_as_redis_answers() {
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value;";
    for (lines, replies) in [
        ("*1;$4;PING", "+PONG;"),
        ("*2;$4;ping;$2;hi", "$2;hi;"),
        ("ping", "+PONG;"),
        ("GET", "-ERR wrong number of arguments for 'get' command;"),
        ("BOGUS", "-ERR unknown command 'BOGUS', with args beginning with: ;"),
        ("*0;*-1", ""),
        ("INCR n;INCRBY n 9;DECR n;DECRBY n 30", ":1;:10;:9;:-21;"),
        ("SET n 9223372036854775807;INCR n", "+OK;-ERR increment or decrement would overflow;"),
        (
            "SET n x;INCR n;INCRBY n x",
            "+OK;-ERR value is not an integer or out of range;-ERR value is not an integer or out of range;",
        ),
        ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command;"),
        ("SET a 1 NX XX", "-ERR syntax error;"),
        (
            "SET a 1 PX 1500;TTL a;PTTL a;SET a 2 KEEPTTL GET;PERSIST a;TTL a;TTL none",
            "+OK;:2;:1500;$1;1;:1;:-1;:-2;",
        ),
        ("SET a 3;SET a 3 NX;SETNX a 4;SETEX a 10 5;GETDEL a;GET a", "+OK;$-1;:0;+OK;$1;5;$-1;"),
        ("EXPIRE a 5;SET a 1;EXPIRE a -1;EXISTS a", ":0;+OK;:1;:0;"),
        (
            "HSET h a 1 b 2;HDEL h a c;HGETALL h;TYPE h;GET h",
            &format!(":2;:1;*2;$1;b;$1;2;+hash;{wrong_type}"),
        ),
        ("SET a 1;HGET a f;TYPE a;STRLEN a;APPEND a bc", &format!("+OK;{wrong_type}+string;:1;:3;")),
        ("MSET a 1 b 2;EXISTS a b a none;DEL a none;DBSIZE", "+OK;:3;:1;:1;"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command;"),
        ("SELECT 3;SELECT 16", "+OK;-ERR DB index is out of range;"),
        ("CONFIG GET save;COMMAND DOCS", "*2;$4;save;$0;;*0;"),
        ("AUTH x y", "-WRONGPASS invalid username-password pair or user is disabled.;"),
        ("HELLO 4", "-NOPROTO unsupported protocol version;"),
        ("MULTI;INCR a;GET a;EXEC;GET a", "+OK;+QUEUED;+QUEUED;*2;:1;$1;1;$1;1;"),
        ("MULTI;INCR a;DISCARD;GET a", "+OK;+QUEUED;+OK;$-1;"),
        ("EXEC;DISCARD", "-ERR EXEC without MULTI;-ERR DISCARD without MULTI;"),
        (
            "MULTI;MULTI;WATCH a;EXEC",
            "+OK;-ERR MULTI calls can not be nested;-ERR WATCH inside MULTI is not allowed;*0;",
        ),
        (
            "MULTI;INCR;INCR a;EXEC;GET a",
            "+OK;-ERR wrong number of arguments for 'incr' command;+QUEUED;\
             -EXECABORT Transaction discarded because of previous errors.;$-1;",
        ),
        (
            "SET a x;MULTI;INCR a;GET a;EXEC",
            "+OK;+OK;+QUEUED;+QUEUED;*2;-ERR value is not an integer or out of range;$1;x;",
        ),
        ("WATCH a b;SET b 1;MULTI;SET a 2;EXEC;GET a", "+OK;+OK;+OK;+QUEUED;*-1;$-1;"),
        (
            "EVALSHA 63143b6f8007b98c53ca2149822777b3566f9241 1 a;SCRIPT LOAD return;SCRIPT EXISTS 63143b6f8007b98c53ca2149822777b3566f9241 x",
            "-NOSCRIPT No matching script. Please use EVAL.;$40;63143b6f8007b98c53ca2149822777b3566f9241;*2;:1;:0;",
        ),
        (
            "EVAL return 2 a b;EVALSHA 63143b6f8007b98c53ca2149822777b3566f9241 0;SCRIPT FLUSH;EVALSHA 63143b6f8007b98c53ca2149822777b3566f9241 0",
            ":2;:0;+OK;-NOSCRIPT No matching script. Please use EVAL.;",
        ),
        (
            "EVAL return 2 a;EVAL return x;SCRIPT KILL",
            "-ERR value is not an integer or out of range;-ERR value is not an integer or out of range;-ERR unknown subcommand or wrong number of arguments. Try SCRIPT LOAD.;",
        ),
        ("WATCH a;SET a 1;UNWATCH;MULTI;SET a 2;EXEC", "+OK;+OK;+OK;+OK;+QUEUED;*1;+OK;"),
    ] {
        for step in [1, usize::MAX] {
            assert_eq!(resp_lines(lines, step), replies, "to {lines:?}");
        }
    }
    assert!(resp_lines("INCR n;GET n;GET x;INFO commandstats", 5).contains(";cmdstat_get:calls=2,"));
    let hello = resp_lines("HELLO 3;GET none;HGETALL none", 5);
    assert!(hello.starts_with("%7;$6;server;") && hello.ends_with("*0;_;%0;"), "{hello}");
}

#[test]
fn an_item_that_outlives_its_expiry_has_no_time_left() {
    let faults = vec![ServerFault::IgnoreExpiry];
    let config = ServerConfig { dialect: Dialect::Resp, faults, ..ServerConfig::default() };
    let mut table = Table::<Resp2>::with(usize::MAX, config);
    assert_eq!(table.say(b"SET a 1 PX 1500\r\nTTL a\r\n"), b"+OK\r\n:2\r\n");
    table.now = 5 * SECOND;
    assert_eq!(table.say(b"GET a\r\nTTL a\r\nPTTL a\r\n"), b"$1\r\n1\r\n:0\r\n:0\r\n");
    let longest = "SET a 1;EXPIRE a 9223372036854775807;TTL a";
    assert_eq!(resp_lines(longest, usize::MAX), "+OK;:1;:18446744073;");
}

#[test]
fn what_is_no_resp_is_said_and_closes() {
    for (bytes, words) in [
        (&b"*1\r\n!"[..], ""),
        (b"*1\r\n!x\r\n", "-ERR Protocol error: expected '$' before the length of a word\r\n"),
        (b"*99999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n$999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
    ] {
        let mut pair = Table::<Resp2>::new(1);
        assert_eq!(String::from_utf8_lossy(&pair.say(bytes)), words);
        assert_eq!(pair.connection.poll_close().is_some(), !words.is_empty(), "{bytes:?}");
    }
}

#[test]
fn each_dialect_asks_for_the_login_in_its_own_way() {
    let login = ServerLogin { user: b"me".to_vec(), password: b"secret".to_vec() };
    let config = ServerConfig { login: Some(login), ..ServerConfig::default() };
    let plain = |password: &[u8]| {
        let login = Credentials { user: b"me", password };
        Handshake::binary(login).expect("it can be written").bytes().to_vec()
    };
    let mut get = Outbox::default();
    Binary::new().encode(&op(Verb::Get, b"a"), 1, &mut get).expect("it can be written");
    let auth = |password: &str| {
        format!("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n${}\r\n{password}\r\n", password.len()).into_bytes()
    };
    let hello = b"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n".to_vec();
    for (bytes, words) in [
        (b"get a\r\n".to_vec(), "CLIENT_ERROR unauthenticated\r\n"),
        (b"mn\r\n".to_vec(), "CLIENT_ERROR unauthenticated\r\n"),
        (b"set auth 0 0 8\r\nme wrong\r\n".to_vec(), "CLIENT_ERROR authentication failure\r\n"),
        (b"set auth 0 0 9\r\nme secret\r\nget auth\r\n".to_vec(), "STORED\r\nEND\r\n"),
        (plain(b"secret"), "Authenticated"),
        (plain(b"wrong"), "Auth failure."),
        (sent(&get), "Auth failure."),
        (b"*1\r\n$4\r\nPING\r\n".to_vec(), "-NOAUTH Authentication required.\r\n"),
        (auth("wrong"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
        (auth("secret"), "+OK\r\n"),
        (hello, "*0\r\n"),
    ] {
        let mut pair = Table::<Text>::with(3, config.clone());
        let received = String::from_utf8_lossy(&pair.say(&bytes)).into_owned();
        assert!(received.ends_with(words), "{received:?}, not {words:?}");
    }
    assert!(!format!("{config:?}").contains("115, 101"), "the password is shown nowhere");
}

fn faulty<C: Codec>(fault: ServerFault) -> Table<C> {
    Table::with(11, ServerConfig { faults: vec![fault], ..ServerConfig::default() })
}

fn fails_in<C: Codec>() {
    let mut pair = faulty::<C>(CountedFault::ErrorEvery.at(2));
    assert_eq!(pair.outcome(&store(Verb::Set, b"a", b"x")), Outcome::Stored);
    assert_eq!(pair.outcome(&op(Verb::Delete, b"a")), Outcome::Error(protocol::Fault::Server));
    assert_eq!(pair.value(&op(Verb::Get, b"a")), b"x");
    let mut pair = faulty::<C>(CountedFault::Flip.at(1));
    pair.outcome(&store(Verb::Set, b"a", &[0; 2000]));
    let ones: u32 = pair.value(&op(Verb::Get, b"a")).iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(ones, 1);
}

#[test]
fn faults_are_the_same_in_every_dialect() {
    fails_in::<Text>();
    fails_in::<Meta>();
    fails_in::<Binary>();
    fails_in::<PlainBinary>();
    fails_in::<Resp2>();
    fails_in::<Resp3>();
}

fn mixed_up<C: Codec>() {
    let mut reasons = Vec::new();
    for period in [1, 2] {
        let mut pair = faulty::<C>(CountedFault::Mix.at(period));
        let mut out = Outbox::default();
        for tag in 0..2 {
            pair.codec.encode(&op(Verb::Get, b"a"), tag, &mut out).expect("it can be written");
        }
        let received = pair.say(&sent(&out));
        let mut input = &received[..];
        let error = loop {
            match pair.codec.decode(&mut input) {
                Ok(Step::Need) => panic!("{received:?} was taken for replies"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        reasons.push(error.0);
    }
    for why in reasons {
        assert!(why.contains("looks like"), "{why}");
    }
}

#[test]
fn a_mixed_up_reply_is_recognised_by_every_codec_that_can() {
    mixed_up::<Text>();
    mixed_up::<Meta>();
    mixed_up::<Binary>();
    mixed_up::<PlainBinary>();
    mixed_up::<Resp2>();
    mixed_up::<Resp3>();
}

fn datagrams(server: &mut Server, framing: Framing, question: &[u8], now: Nanos) -> Vec<(Frame, Vec<u8>)> {
    let mut post: DatagramQueue<u8> = DatagramQueue::new(framing);
    let datagram = [&Frame::single(7).encode()[..], question].concat();
    server.handle_datagram(&mut post, &1, &datagram, now);
    let mut received = Vec::new();
    while let Some(letter) = server.poll_datagram(&mut post, now + 10 * MILLISECOND) {
        let (frame, payload) = Frame::decode(&letter.bytes).expect("it has a frame");
        received.push((frame, payload.to_vec()));
    }
    received
}

fn numbers(received: &[(Frame, Vec<u8>)]) -> Vec<(u16, u16, usize)> {
    received.iter().map(|(frame, payload)| (frame.sequence, frame.total, payload.len() + 8)).collect()
}

fn udp_server(faults: &[ServerFault]) -> Server {
    let config = ServerConfig { faults: faults.to_vec(), truth: Truth::Kept, ..ServerConfig::default() };
    let mut server = Server::new(config, 0);
    let mut connection = server.accept();
    let large = [&b"set s2 0 0 1500\r\n"[..], &[b'x'; 1500], b"\r\n"].concat();
    for set in [&b"set s1 0 0 3\r\nabc\r\n"[..], &large, b"set s3 0 0 3\r\nxyz\r\n"] {
        server.handle_received(&mut connection, set, 0);
    }
    server
}

#[test]
fn each_key_is_a_message_of_its_own_as_in_memcached_1_6() {
    let mut server = udp_server(&[]);
    for (question, expected) in [
        ("get s1\r\n", &[(0, 1, 32)][..]),
        ("get none\r\n", &[(0, 1, 13)]),
        ("get s1 s2 s3\r\n", &[(0, 1, 27), (0, 2, 1400), (1, 2, 135), (0, 1, 32)]),
        ("get none s1\r\n", &[(0, 0, 8), (0, 1, 32)]),
        ("get s1 none\r\n", &[(0, 1, 27), (0, 1, 13)]),
        ("get s1 none none s3\r\n", &[(0, 1, 27), (0, 1, 32)]),
        ("get none none\r\n", &[(0, 0, 8), (0, 1, 13)]),
        ("set u 0 0 1\r\nx\r\n", &[(0, 1, 16)]),
        ("get u\r\nget s1\r\n", &[(0, 1, 29), (0, 1, 32)]),
        ("set u 0 0 1 noreply\r\nx\r\n", &[]),
        ("set u 0 0 10\r\nx\r\n", &[]),
        ("mg s1 v q\r\nmg s3 v q\r\nmn\r\n", &[(0, 1, 19), (0, 1, 19), (0, 1, 12)]),
    ] {
        assert_eq!(
            numbers(&datagrams(&mut server, Framing::PerKey, question.as_bytes(), 0)),
            expected,
            "{question:?}"
        );
    }
    assert_eq!(datagrams(&mut server, Framing::PerKey, b"get s1\r\n", 0)[0].0.request, 7);
}

#[test]
fn a_stream_is_cut_whatever_the_keys_are() {
    let mut server = udp_server(&[]);
    let received = datagrams(&mut server, Framing::Stream, b"get s1 none s2 s3\r\n", 0);
    assert_eq!(numbers(&received), [(0, 2, 1400), (1, 2, 19 + 127 + 24 + 8)]);
    let text: Vec<u8> = received.into_iter().flat_map(|(_, payload)| payload).collect();
    assert!(
        text.starts_with(b"VALUE s1 0 3\r\nabc\r\nVALUE s2 0 1500\r\n") && text.ends_with(b"xyz\r\nEND\r\n")
    );
    assert_eq!(numbers(&datagrams(&mut server, Framing::Stream, b"get u\r\nversion\r\n", 0)), [(0, 1, 36)]);
}

#[test]
fn datagrams_are_lost_late_and_doubled_as_asked() {
    let requests = |fault| {
        let mut server = udp_server(&[fault]);
        let received = datagrams(&mut server, Framing::PerKey, b"get s1 s3 s1 s3\r\n", 0);
        let notes = server.take_notes().filter(|note| note.to_string().starts_with("fault udp-")).count();
        (numbers(&received).iter().map(|(_, _, len)| *len).collect::<Vec<_>>(), notes)
    };
    assert_eq!(requests(CountedFault::UdpDrop.at(2)), (vec![27, 27], 2));
    assert_eq!(requests(CountedFault::UdpDuplicate.at(3)), (vec![27, 27, 27, 27, 32], 1));
    let mut server = udp_server(&[CountedFault::UdpReorder.at(2)]);
    let received = datagrams(&mut server, Framing::Stream, b"get s2\r\n", 0);
    assert_eq!(numbers(&received), [(0, 2, 1400), (1, 2, 140)], "the last is late, and nothing follows it");
    let received = datagrams(&mut server, Framing::Stream, b"get s2 s2 s2\r\n", 0);
    assert_eq!(received.iter().map(|(frame, _)| frame.sequence).collect::<Vec<_>>(), [0, 2, 1, 3]);
}

#[test]
fn datagrams_without_a_frame_or_in_pieces_are_dropped() {
    let mut server = udp_server(&[]);
    let mut post: DatagramQueue<u8> = DatagramQueue::new(Framing::PerKey);
    for total in [0, 2] {
        let frame = Frame { request: 1, sequence: 0, total };
        server.handle_datagram(&mut post, &1, &[&frame.encode()[..], b"get s1\r\n"].concat(), 0);
    }
    server.handle_datagram(&mut post, &1, b"abc", 0);
    assert!(server.poll_datagram(&mut post, SECOND).is_none());
}

/// A server whose replies are held for a second.
fn slow_server() -> Server {
    let service_time = Some("1".parse().expect("a distribution"));
    Server::new(ServerConfig { service_time, truth: Truth::Kept, ..ServerConfig::default() }, 0)
}

/// Asks over UDP, and leaves the answer in the queue.
fn ask_slowly(server: &mut Server, post: &mut DatagramQueue<u8>, question: &str) {
    let datagram = [&Frame::single(7).encode()[..], question.as_bytes()].concat();
    server.handle_datagram(post, &1, &datagram, 0);
}

#[test]
fn what_waits_to_be_sent_over_udp_when_the_server_ends_is_told() {
    for framing in [Framing::PerKey, Framing::Stream] {
        let (mut server, mut post) = (slow_server(), DatagramQueue::new(framing));
        ask_slowly(&mut server, &mut post, "get a\r\nversion\r\n");
        assert!(server.poll_datagram(&mut post, SECOND - 1).is_none());
        server.handle_queue_closed(post);
        let truth: Vec<String> = server.take_notes().map(|note| note.to_string()).collect();
        assert_eq!(truth, ["request 0 1 get 0 - - 1000000000", "request 0 2 version 0 - - 1000000000"]);
    }
}

#[test]
fn replies_over_udp_that_would_fill_the_memory_are_not_sent() {
    for framing in [Framing::PerKey, Framing::Stream] {
        let (mut server, mut post) = (slow_server(), DatagramQueue::new(framing));
        let mut connection = server.accept();
        let set = [b"set k 0 0 1000000\r\n", &vec![b'x'; 1_000_000][..], b"\r\n"].concat();
        server.handle_received(&mut connection, &set, 0);
        ask_slowly(&mut server, &mut post, &format!("get {}\r\n", "k ".repeat(20_000)));
        assert_eq!(post.next_due(), NEVER, "a reply of 20 GB");
        for _ in 0..80 {
            ask_slowly(&mut server, &mut post, "get k\r\n");
        }
        let mut sent_bytes = 0;
        while let Some(letter) = server.poll_datagram(&mut post, SECOND) {
            sent_bytes += letter.bytes.len();
        }
        assert!((50 << 20..=64 << 20).contains(&sent_bytes), "{sent_bytes} bytes");
        let unsent = server.take_notes().filter(|note| note.to_string().contains(" - - ")).count();
        assert_eq!(unsent, 1 + 80 - sent_bytes / 1_000_000, "of 81 replies");
        ask_slowly(&mut server, &mut post, "get k\r\n");
        assert_eq!(post.next_due(), SECOND, "there is room again");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_no_cut_changes_what_it_says(
        first in proptest::sample::select(vec![0x80u8, b'*', b'm', b'g']),
        data: Vec<u8>,
        step in 1usize..40,
    ) {
        super::fuzz_connection(&[&[first][..], &data].concat(), step);
    }
}

#[test]
fn known_requests_in_any_cut_are_answered_the_same() {
    let mut get = Outbox::default();
    let mut codec = Binary::new();
    codec.encode(&store(Verb::Set, b"a", b"value"), 3, &mut get).expect("it can be written");
    codec.encode(&many(b"abc", &[1, 2, 3]), 4, &mut get).expect("it can be written");
    let binary = sent(&get);
    let text =
        b"ms a 2 T9 c\r\nhi\r\nmg a v t s k O1\r\nmn\r\nset b 0 0 1\r\nx\r\nget a b\r\nma b N0\r\nstats\r\n";
    let resp =
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nhi\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nINFO\r\n";
    for stream in [&binary[..], text, resp] {
        for step in 1..stream.len() {
            super::fuzz_connection(stream, step);
        }
    }
}
