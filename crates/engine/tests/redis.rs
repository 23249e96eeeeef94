//! The RESP codecs and handshakes against a real redis-server.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pummel_logic::bodies::Bodies;
use pummel_logic::connection::outbox::Outbox;
use pummel_logic::protocol::handshake::{Credentials, Handshake, HandshakeProgress, HandshakeRefused};
use pummel_logic::protocol::resp::Resp;
use pummel_logic::protocol::resp::sequence::Sending;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::text::Text;
use pummel_logic::protocol::{
    Codec, Fault, Keys, Malformed, Op, Outcome, PairList, PairValue, Pairs, Step, Value, Verb,
};

/// A redis-server of the test's own, on a port of 127.0.0.1.
struct Redis {
    child: Child,
    port: u16,
    directory: PathBuf,
}

impl Redis {
    fn start(arguments: &[&str]) -> Redis {
        for _ in 0..10 {
            // Another process may take the port before the server does; then another port is tried.
            let port = TcpListener::bind("127.0.0.1:0")
                .and_then(|listener| listener.local_addr())
                .expect("a free port of 127.0.0.1")
                .port();
            if let Some(redis) = Redis::start_on(port, arguments) {
                return redis;
            }
        }
        panic!("redis-server starts on none of ten ports");
    }

    fn start_on(port: u16, arguments: &[&str]) -> Option<Redis> {
        let directory = env::temp_dir().join(format!("pummel-redis-{}-{port}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for redis-server");
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir"]);
        command.arg(&directory).arg("--port").arg(port.to_string()).args(arguments);
        let child = match command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => panic!(
                "this test speaks with a real redis-server; on Debian and Ubuntu `apt-get install redis-server` brings it"
            ),
            Err(error) => panic!("redis-server does not start: {error}"),
        };
        let mut redis = Redis { child, port, directory };
        let said = BufReader::new(redis.child.stdout.take().expect("its output is piped"));
        let mut lines = said.lines().map_while(Result::ok);
        lines.find(|line| line.contains("Ready to accept connections"))?;
        // Whatever else it says must not fill the pipe; the thread ends with the server.
        thread::spawn(move || lines.for_each(drop));
        Some(redis)
    }

    fn connect<C: Codec>(&self, codec: C, handshake: &Handshake) -> Result<Connection<C>, HandshakeRefused> {
        Connection::open(self.port, codec, handshake)
    }

    /// A connection with the handshake that its version begins with.
    fn plain<const VERSION: u8>(&self) -> Connection<Resp<VERSION>> {
        self.connect(Resp::new(), &handshake::<VERSION>(None, 0)).expect("no password is needed")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The handshake of a version of the protocol.
fn handshake<const VERSION: u8>(login: Option<Credentials<'_>>, database: u32) -> Handshake {
    if VERSION == 3 { Handshake::resp3(login, database) } else { Handshake::resp2(login, database) }
}

/// A connection whose handshake is over.
struct Connection<C> {
    stream: TcpStream,
    codec: C,
    unread: Vec<u8>,
}

/// Answer to a request.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// Keys and values of its items.
    items: Vec<(String, Vec<u8>)>,
    outcome: Outcome,
    words: String,
}

impl<C: Codec> Connection<C> {
    fn open(port: u16, codec: C, handshake: &Handshake) -> Result<Connection<C>, HandshakeRefused> {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("redis-server takes connections");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout above 0");
        let mut connection = Connection { stream, codec, unread: Vec::new() };
        connection.stream.write_all(handshake.bytes()).expect("the handshake is sent");
        let mut reader = handshake.reader();
        loop {
            let mut input = &connection.unread[..];
            let heard = reader.handle_received(&mut input)?;
            connection.unread = input.to_vec();
            match heard {
                HandshakeProgress::Done => return Ok(connection),
                HandshakeProgress::NeedMore => connection.read(),
            }
        }
    }

    fn read(&mut self) {
        let mut block = [0; 4096];
        let count = self.stream.read(&mut block).expect("redis-server answers");
        assert!(count > 0, "redis-server closed the connection");
        self.unread.extend_from_slice(&block[..count]);
    }

    fn send(&mut self, out: &Outbox) {
        self.stream.write_all(out.plain().expect("only own bytes")).expect("the request is sent");
    }

    fn receive(&mut self) -> Result<Answer, Malformed> {
        let mut items: Vec<(String, Vec<u8>)> = Vec::new();
        loop {
            let mut input = &self.unread[..];
            let ended = loop {
                match self.codec.decode(&mut input)? {
                    Step::Need => break None,
                    Step::Item { key, size, .. } => {
                        items.push((text(key), Vec::with_capacity(size as usize)));
                    }
                    Step::Body(bytes) => items.last_mut().expect("an item came before").1.extend(bytes),
                    Step::Reply { outcome, message, .. } => break Some((outcome, text(message))),
                    Step::Push { .. } => {}
                    Step::Absent | Step::QuietError { .. } => {
                        unreachable!("every request of RESP gets a reply, which names its items")
                    }
                }
            };
            self.unread = input.to_vec();
            match ended {
                Some((outcome, words)) => return Ok(Answer { items, outcome, words }),
                None => self.read(),
            }
        }
    }

    fn ask(&mut self, op: &Op<'_>) -> Answer {
        let mut out = Outbox::default();
        self.codec.encode(op, 0, &mut out).expect("the protocol can say this");
        self.send(&out);
        self.receive().expect("redis-server speaks RESP")
    }

    /// Sends a request without items, and expects this outcome.
    fn expect(&mut self, op: &Op<'_>, outcome: Outcome) {
        let answer = self.ask(op);
        assert_eq!((answer.outcome, answer.items.len()), (outcome, 0), "{op:?}: {answer:?}");
    }

    /// Reads a value, and expects this outcome.
    fn expect_value(&mut self, op: &Op<'_>, value: &[u8]) {
        let answer = self.ask(op);
        assert_eq!(answer.outcome, Outcome::Hit, "{op:?}: {answer:?}");
        assert_eq!(answer.items, [(String::new(), value.to_vec())], "{op:?}");
    }
}

impl<const VERSION: u8> Connection<Resp<VERSION>> {
    /// Sends any command.
    fn command(&mut self, line: &str) -> Answer {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut out = Outbox::default();
        self.codec.encode_command(&words, &mut out);
        self.send(&out);
        self.receive().expect("redis-server speaks RESP")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn get(key: &str) -> Op<'_> {
    Op::new(Verb::Get, key.as_bytes())
}

fn set<'a>(key: &'a str, value: &'a str) -> Op<'a> {
    Op { value: Value::plain(value.as_bytes()), ..Op::new(Verb::Set, key.as_bytes()) }
}

fn on<'a>(verb: Verb, op: Op<'a>) -> Op<'a> {
    Op { verb, ..op }
}

fn stores_and_reads<const VERSION: u8>(redis: &Redis) {
    let mut to = redis.plain::<VERSION>();
    to.expect(&get("k"), Outcome::Miss);
    to.expect(&on(Verb::Replace, set("k", "v")), Outcome::NotStored);
    to.expect(&on(Verb::Add, set("k", "one")), Outcome::Stored);
    to.expect(&on(Verb::Add, set("k", "two")), Outcome::NotStored);
    to.expect_value(&get("k"), b"one");
    to.expect(&on(Verb::Replace, set("k", "two")), Outcome::Stored);
    to.expect(&on(Verb::Append, set("k", " and more")), Outcome::Stored);
    to.expect_value(&get("k"), b"two and more");
    to.expect(&set("k", ""), Outcome::Stored);
    to.expect_value(&get("k"), b"");
    let long: Vec<u8> = (0..200_000u32).map(|n| (n * 7 / 5) as u8).collect();
    let op = Op { value: Value::plain(&long), ..Op::new(Verb::Set, b"any \r\n\0bytes") };
    to.expect(&op, Outcome::Stored);
    to.expect_value(&on(Verb::Get, op), &long);
    to.expect(&Op::new(Verb::Delete, b"k"), Outcome::Deleted);
    to.expect(&Op::new(Verb::Delete, b"k"), Outcome::NotFound);

    to.expect(&on(Verb::Mset, set("a", "1")), Outcome::Stored);
    let list = PairList {
        bytes: b"bc".to_vec(),
        ends: vec![1, 2],
        values: vec![PairValue::of(&Value::plain(b"2")), PairValue::of(&Value::plain(b""))],
    };
    let bodies = Bodies::new(0, 1.0);
    let keys = Keys::Pairs(Pairs { list: &list, bodies: &bodies });
    to.expect(&Op { keys, ..Op::new(Verb::Mset, b"") }, Outcome::Stored);
    let keys = Keys::Many { bytes: b"anobc", ends: &[1, 3, 4, 5] };
    let answer = to.ask(&Op { keys, ..get("") });
    let items = [("a", "1"), ("b", "2"), ("c", "")].map(|(key, value)| (key.into(), value.into()));
    assert_eq!((answer.outcome, &answer.items[..]), (Outcome::Hit, &items[..]));
    let keys = Keys::Many { bytes: b"xy", ends: &[1, 2] };
    to.expect(&Op { keys, ..get("") }, Outcome::Miss);

    to.expect(&Op::new(Verb::Hget, b"h"), Outcome::Miss);
    to.expect(&on(Verb::Hset, set("h", "first")), Outcome::Stored);
    to.expect(&on(Verb::Hset, set("h", "second")), Outcome::Stored);
    to.expect_value(&Op::new(Verb::Hget, b"h"), b"second");

    let pong = to.ask(&Op::new(Verb::Version, b""));
    assert_eq!((pong.outcome, &pong.words[..]), (Outcome::Ok, "PONG"));
    to.command("FLUSHDB");
}

fn counts<const VERSION: u8>(redis: &Redis) {
    let mut to = redis.plain::<VERSION>();
    let count = |verb, delta| Op { delta, ..Op::new(verb, b"n") };
    to.expect(&set("n", "1000000000"), Outcome::Stored);
    to.expect(&count(Verb::Incr, 7), Outcome::Number(1_000_000_007));
    to.expect(&count(Verb::Decr, 1_000_000_007), Outcome::Number(0));
    let below = to.ask(&count(Verb::Decr, 5));
    assert_eq!((below.outcome, &below.words[..]), (Outcome::Ok, "-5"));
    to.expect(&count(Verb::Incr, i64::MAX as u64), Outcome::Number(i64::MAX as u64 - 5));
    let over = to.ask(&count(Verb::Incr, 6));
    assert_eq!(over.outcome, Outcome::Error(Fault::Client));
    assert!(over.words.contains("overflow"), "{}", over.words);
    to.command("FLUSHDB");
}

fn expires<const VERSION: u8>(redis: &Redis) {
    let mut to = redis.plain::<VERSION>();
    let left = |to: &mut Connection<Resp<VERSION>>| to.command("TTL k");
    to.expect(&Op { expiry_s: 100, ..set("k", "v") }, Outcome::Stored);
    assert!(matches!(left(&mut to).outcome, Outcome::Number(90..=100)));
    let touch = |expiry_s| Op { expiry_s, ..Op::new(Verb::Touch, b"k") };
    to.expect(&touch(200), Outcome::Touched);
    assert!(matches!(left(&mut to).outcome, Outcome::Number(190..=200)));
    to.expect(&touch(0), Outcome::Touched);
    to.expect(&touch(0), Outcome::Touched);
    assert!(matches!(left(&mut to).outcome, Outcome::Number(3_000_000_000..)));
    let gat = |expiry_s| Op { expiry_s, ..Op::new(Verb::Gat, b"k") };
    to.expect_value(&gat(300), b"v");
    assert!(matches!(left(&mut to).outcome, Outcome::Number(290..=300)));
    to.expect_value(&gat(0), b"v");
    assert_eq!(left(&mut to).words, "-1", "no expiry");
    to.expect_value(&gat(4_000_000_000), b"v");
    assert!(matches!(left(&mut to).outcome, Outcome::Number(1_000_000_000..)));
    to.expect_value(&gat(-1), b"v");
    to.expect(&get("k"), Outcome::Miss);
    to.expect(&gat(1), Outcome::Miss);
    to.expect(&touch(1), Outcome::NotFound);
    to.expect(&Op { expiry_s: -1, ..set("k", "v") }, Outcome::Stored);
    to.expect(&get("k"), Outcome::Miss);
    to.expect(&set("k", "v"), Outcome::Stored);
    to.expect(&touch(-1), Outcome::Touched);
    to.expect(&get("k"), Outcome::Miss);
}

#[test]
fn every_verb_does_what_its_memcached_namesake_does() {
    let redis = Redis::start(&[]);
    stores_and_reads::<2>(&redis);
    stores_and_reads::<3>(&redis);
    counts::<2>(&redis);
    counts::<3>(&redis);
    expires::<2>(&redis);
    expires::<3>(&redis);
}

fn answers_in_order<const VERSION: u8>(redis: &Redis) {
    let mut to = redis.plain::<VERSION>();
    let keys = Keys::Many { bytes: b"kx", ends: &[1, 2] };
    let ops = [
        (set("k", "5"), Outcome::Stored, 0),
        (get("k"), Outcome::Hit, 1),
        (Op { delta: 1, ..Op::new(Verb::Incr, b"k") }, Outcome::Number(6), 0),
        (Op { keys, ..get("") }, Outcome::Hit, 1),
        (Op::new(Verb::Hget, b"k"), Outcome::Error(Fault::Client), 0),
        (Op::new(Verb::Version, b""), Outcome::Ok, 0),
        (Op::new(Verb::Delete, b"k"), Outcome::Deleted, 0),
        (get("k"), Outcome::Miss, 0),
    ];
    let mut out = Outbox::default();
    for (op, ..) in ops.iter().cycle().take(100 * ops.len()) {
        to.codec.encode(op, 0, &mut out).expect("RESP can say this");
    }
    to.send(&out);
    for (op, outcome, items) in ops.iter().cycle().take(100 * ops.len()) {
        let answer = to.receive().expect("redis-server speaks RESP");
        assert_eq!((answer.outcome, answer.items.len()), (*outcome, *items), "{op:?}");
    }
}

#[test]
fn many_requests_in_one_write_are_answered_in_their_order() {
    let redis = Redis::start(&[]);
    answers_in_order::<2>(&redis);
    answers_in_order::<3>(&redis);
}

/// Keys that the server has found or missed since its start.
fn lookups_of(redis: &Redis) -> u64 {
    let mut to = TcpStream::connect(("127.0.0.1", redis.port)).expect("it listens");
    to.write_all(b"INFO stats\r\nQUIT\r\n").expect("it reads");
    let mut said = String::new();
    to.read_to_string(&mut said).expect("it answers and closes");
    let count = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|count| count.parse::<u64>().ok()).unwrap_or_else(|| panic!("no {name} in {said}"))
    };
    count("keyspace_hits") + count("keyspace_misses")
}

#[test]
fn the_server_counts_the_lookups_that_templates_know() {
    let redis = Redis::start(&[]);
    let mut to = redis.connect(Resp::<2>::new(), &handshake::<2>(None, 0)).expect("no password is needed");
    let store = [
        "SET s text",
        "SET n 5",
        "RPUSH l a b c",
        "SADD set a b",
        "ZADD z 1 a 2 b",
        "HSET h f v",
        "XADD x 1-1 k v",
        "PFADD p a",
        "GEOADD g 13 38 q",
        "XGROUP CREATE x group 0",
    ];
    for line in store {
        assert!(!matches!(to.command(line).outcome, Outcome::Error(_)), "{line}");
    }
    #[rustfmt::skip]
    let commands = [
        "GET s", "GET no", "MGET s no n", "GETRANGE s 0 1", "STRLEN s", "STRLEN no", "GETBIT s 1", "BITCOUNT s", "BITPOS s 1",
        "BITFIELD_RO s GET u8 0", "LCS s no", "EXISTS s no", "TTL s", "PTTL no", "EXPIRETIME s", "TYPE s", "OBJECT ENCODING s",
        "MEMORY USAGE s", "DUMP s", "TOUCH s no", "RANDOMKEY", "SCAN 0", "KEYS *",
        "SET s text", "SET s text GET", "SET s text XX", "SETNX s x", "SETEX e 9 x", "MSET a 1 b 2", "MSETNX a 1 c 2", "INCR n", "APPEND s x",
        "SETRANGE s 0 t", "SETBIT bits 1 1", "GETEX s", "GETSET s text", "GETDEL e", "BITOP AND d s n", "COPY s copy", "DEL copy no",
        "UNLINK d", "EXPIRE n 100", "PERSIST n", "RENAME a aa",
        "LLEN l", "LRANGE l 0 9", "LINDEX l 0", "LPOS l a", "LPUSH l a", "LPUSHX l a", "LPOP l", "LREM l 0 z", "LSET l 0 a",
        "LINSERT l BEFORE a y", "LTRIM l 0 9", "LMOVE l m LEFT LEFT", "LMPOP 1 l LEFT", "RPOPLPUSH l m",
        "HGET h f", "HMGET h f none", "HGETALL h", "HKEYS h", "HVALS h", "HLEN h", "HEXISTS h f", "HSTRLEN h f", "HRANDFIELD h", "HSCAN h 0",
        "HSET h f v", "HINCRBY h count 1", "HDEL h count",
        "SCARD set", "SISMEMBER set a", "SMISMEMBER set a c", "SMEMBERS set", "SRANDMEMBER set", "SSCAN set 0", "SINTER set no", "SINTERCARD 2 set no",
        "SUNION set no", "SDIFF set no", "SUNIONSTORE d set no", "SINTERSTORE d set set", "SADD set c", "SREM set c", "SMOVE set other a", "SPOP set",
        "ZSCORE z a", "ZMSCORE z a c", "ZRANK z a", "ZCARD z", "ZCOUNT z 0 9", "ZRANGE z 0 -1", "ZRANGEBYSCORE z 0 9", "ZSCAN z 0", "ZUNION 2 z no",
        "ZINTERCARD 2 z no", "ZUNIONSTORE d 2 z no", "ZRANGESTORE d z 0 -1", "ZADD z 3 c", "ZINCRBY z 1 a", "ZREM z c", "ZPOPMIN z",
        "XLEN x", "XRANGE x - +", "XREAD STREAMS x 0", "XREAD STREAMS x no 0 0", "XREADGROUP GROUP group me STREAMS x >", "XPENDING x group",
        "XINFO STREAM x", "XACK x group 1-1", "XADD x 2-1 k v", "XDEL x 2-1", "XTRIM x MAXLEN 9",
        "PFCOUNT p", "PFCOUNT p no", "PFADD p b", "PFMERGE pp p", "GEOPOS g q", "GEODIST g q q", "GEOSEARCH g FROMLONLAT 13 38 BYRADIUS 9 km",
        "GEOSEARCHSTORE d g FROMLONLAT 13 38 BYRADIUS 9 km", "PUBLISH channel x", "WAIT 0 1",
    ];
    for line in commands {
        let expected = Template::parse(line).expect("a command").key_lookups();
        let expected = expected.unwrap_or_else(|| panic!("{line}: its lookups are known")).per_request;
        let before = lookups_of(&redis);
        let outcome = to.command(line).outcome;
        assert!(!matches!(outcome, Outcome::Error(_)), "{line}: {outcome:?}");
        assert_eq!(lookups_of(&redis) - before, u64::from(expected), "{line}");
    }
}

fn any_command<const VERSION: u8>(redis: &Redis) {
    let template = Template::parse("ZADD __key__ __number__ 'm:__value__'").expect("a template");
    let codec = Resp::<VERSION>::with_commands(Arc::new(vec![template]));
    let mut to = redis.connect(codec, &handshake::<VERSION>(None, 0)).expect("no password is needed");
    let add = |key, delta| Op { value: Value::plain(b"one"), delta, ..Op::new(Verb::Command, key) };
    to.expect(&add(b"z", 7), Outcome::Number(1));
    to.expect(&add(b"z", 8), Outcome::Number(0));
    assert_eq!(to.command("ZCOUNT z 8 8").outcome, Outcome::Number(1), "the number is the score");
    assert_eq!(to.command("ZRANK z m:one").outcome, Outcome::Number(0), "the value is in the member");
    for (line, outcome) in [
        ("ZRANGE z 0 -1 WITHSCORES", Outcome::Ok),
        ("ZSCORE z m:one", Outcome::Ok),
        ("ZSCORE z other", Outcome::NotFound),
        ("SMEMBERS none", Outcome::Ok),
        ("CONFIG GET *", Outcome::Ok),
        ("COMMAND", Outcome::Ok),
        ("INFO", Outcome::Ok),
        ("NONSENSE", Outcome::Error(Fault::Protocol)),
        ("GET", Outcome::Error(Fault::Client)),
        ("MULTI", Outcome::Ok),
        ("SET a b", Outcome::Ok),
        ("EXEC", Outcome::Ok),
    ] {
        let answer = to.command(line);
        assert_eq!((answer.outcome, answer.items.len()), (outcome, 0), "{line}: {answer:?}");
    }
    let wrong = to.ask(&get("z"));
    assert_eq!(wrong.outcome, Outcome::Error(Fault::Client));
    assert!(wrong.words.starts_with("WRONGTYPE "), "{}", wrong.words);
    to.expect_value(&get("a"), b"b");
    to.command("FLUSHDB");
}

#[test]
fn any_command_by_template_is_answered_once() {
    let redis = Redis::start(&[]);
    any_command::<2>(&redis);
    any_command::<3>(&redis);
}

/// Asks sequences of commands and transactions, two of them in parts between which another client writes or does not.
fn sequences<const VERSION: u8>(redis: &Redis) {
    let texts = [
        "SET n 1 ; MULTI ; INCR n ; LPUSH n x ; INCR n ; EXEC ; LLEN n",
        "MULTI ; INCR n ; NONSENSE ; EXEC",
        "WATCH n ; GET n ;; MULTI ; INCR n ; EXEC",
        "MULTI ; INCR n ; DISCARD",
        "KEYS * ; LRANGE n 0 1 ; CONFIG GET *",
        "MULTI ; HGETALL none ; KEYS * ; BLPOP none 0 ; EXEC",
    ];
    let templates = texts.iter().map(|text| Template::parse(text).expect("a template")).collect();
    let codec = Resp::<VERSION>::with_commands(Arc::new(templates));
    let mut to = redis.connect(codec, &handshake::<VERSION>(None, 0)).expect("no password is needed");
    let op = |place| Op::new(Verb::of_command(place).expect("there are so many"), b"k");
    let transaction = Sending { commands: 0b1_1100, ..Sending::default() };
    let rest = Op { cas: transaction.to_bits(), ..op(2) };
    let failed = |fault| Outcome::Failed { fault, commands: 0 };
    let inside = to.ask(&op(0));
    assert_eq!(inside.outcome, failed(Fault::Client));
    assert!(inside.words.starts_with("WRONGTYPE "), "{}", inside.words);
    to.expect_value(&get("n"), b"3");
    let queueing = to.ask(&op(1));
    assert_eq!(queueing.outcome, failed(Fault::Protocol));
    assert!(queueing.words.starts_with("ERR unknown command"), "{}", queueing.words);
    to.expect(&op(2), Outcome::Ok);
    to.expect(&rest, Outcome::Ok);
    to.expect(&op(2), Outcome::Ok);
    redis.plain::<2>().command("SET n 7");
    to.expect(&rest, Outcome::Conflict);
    to.expect(&op(3), Outcome::Ok);
    to.expect_value(&get("n"), b"7");
    assert_eq!(to.ask(&op(4)).outcome, failed(Fault::Client));
    to.expect(&op(5), Outcome::Ok);
    to.command("FLUSHDB");
}

#[test]
fn sequences_of_commands_are_answered_once() {
    let redis = Redis::start(&[]);
    sequences::<2>(&redis);
    sequences::<3>(&redis);
}

/// Commands whose replies tell whether something was there, on a key space that has `l`, `h`, `s`, `z`, `k` and on one that has nothing.
const TELLING: &[&str] = &[
    "MGET k none",
    "EXISTS k none",
    "TTL k",
    "TYPE k",
    "GETRANGE k 0 1",
    "LLEN l",
    "LRANGE l 0 -1",
    "LINDEX l 0",
    "HGET h f",
    "HMGET h f none",
    "HGETALL h",
    "SCARD s",
];

/// More of them.
const TELLING_MORE: &[&str] = &[
    "SMEMBERS s",
    "SMISMEMBER s a none",
    "ZSCORE z a",
    "ZMSCORE z a none",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZCARD z",
    "GEOPOS z a none",
    "SET k v NX",
    "SETNX k v",
    "XRANGE x - +",
    "LPOP l 2",
    "DEL k none",
];

/// Scans of one key.
const TELLING_SCANS: &[&str] = &["HSCAN h 0", "SSCAN s 0", "ZSCAN z 0"];

/// The number of what was there by the reply of each of these commands, asked one after the other; `None` where it does not tell.
fn told<const VERSION: u8>(redis: &Redis, texts: &[&str]) -> Vec<Option<u16>> {
    let templates = texts.iter().map(|text| Template::parse(text).expect("a template")).collect();
    let codec = Resp::<VERSION>::with_commands(Arc::new(templates));
    let mut to = redis.connect(codec, &handshake::<VERSION>(None, 0)).expect("no password is needed");
    let ask = |place| {
        let verb = Verb::of_command(place).expect("there are so many");
        match to.ask(&Op::new(verb, b"k")).outcome {
            Outcome::Found { hits, .. } => Some(hits),
            Outcome::Ok => None,
            other => panic!("{}: {other:?}", texts[place]),
        }
    };
    (0..texts.len()).map(ask).collect()
}

#[test]
fn replies_of_commands_tell_what_was_there() {
    let redis = Redis::start(&[]);
    for version in [2, 3] {
        let ask = |texts| if version == 2 { told::<2>(&redis, texts) } else { told::<3>(&redis, texts) };
        let mut to = redis.plain::<2>();
        to.command("FLUSHDB");
        let of = |hits: u16| TELLING.iter().map(move |text| (!text.starts_with("GETRANGE")).then_some(hits));
        assert_eq!(ask(TELLING), of(0).collect::<Vec<_>>());
        let mut absent = vec![Some(0); TELLING_MORE.len()];
        // SET NX stores it, so that SETNX and DEL find it there.
        (absent[8], absent[11]) = (Some(1), Some(1));
        assert_eq!(ask(TELLING_MORE), absent);
        assert_eq!(ask(TELLING_SCANS), [Some(0); 3]);
        for line in ["SET k v", "RPUSH l a b", "HSET h f v", "SADD s a", "GEOADD z 13 38 a", "XADD x * f v"] {
            assert!(!matches!(to.command(line).outcome, Outcome::Error(_)), "{line}");
        }
        assert_eq!(ask(TELLING), of(1).collect::<Vec<_>>());
        assert_eq!(ask(TELLING_SCANS), [Some(1); 3]);
        assert_eq!(ask(TELLING_MORE), vec![Some(1); TELLING_MORE.len()]);
    }
}

fn every_type<const VERSION: u8>(redis: &Redis) {
    let mut to = redis.plain::<VERSION>();
    for kind in ["string", "double", "bignum", "array", "set", "map", "attrib", "push", "verbatim"] {
        let answer = to.command(&format!("DEBUG PROTOCOL {kind}"));
        // Pushes are the one type that RESP2 does not have in another form.
        if VERSION == 2 && kind == "push" {
            assert_eq!(answer.outcome, Outcome::Error(Fault::Client), "{kind}: {answer:?}");
        } else {
            assert_eq!(answer.outcome, Outcome::Ok, "{kind}: {answer:?}");
        }
    }
    assert_eq!(to.command("DEBUG PROTOCOL null").outcome, Outcome::NotFound);
    assert_eq!(to.command("DEBUG PROTOCOL integer").outcome, Outcome::Number(12345));
    for (kind, number) in [("true", 1), ("false", 0)] {
        let answer = to.command(&format!("DEBUG PROTOCOL {kind}"));
        assert_eq!(answer.outcome, if VERSION == 2 { Outcome::Number(number) } else { Outcome::Ok });
    }
    let pong = to.ask(&Op::new(Verb::Version, b""));
    assert_eq!(pong.words, "PONG", "every reply was read to its end");
}

#[test]
fn every_type_that_the_server_can_send_is_read_to_its_end() {
    let redis = Redis::start(&["--enable-debug-command", "yes"]);
    every_type::<2>(&redis);
    every_type::<3>(&redis);
}

#[test]
fn what_the_server_pushes_is_passed_over() {
    let redis = Redis::start(&[]);
    let (mut reader, mut writer) = (redis.plain::<3>(), redis.plain::<2>());
    assert_eq!(reader.command("CLIENT TRACKING ON").outcome, Outcome::Ok);
    for round in ["1", "2", "3"] {
        writer.expect(&set("k", round), Outcome::Stored);
        reader.expect_value(&get("k"), round.as_bytes());
    }
    writer.expect(&set("k", "4"), Outcome::Stored);
    assert_eq!(reader.command("CLIENT TRACKING OFF").outcome, Outcome::Ok);
    assert_eq!(reader.ask(&Op::new(Verb::Version, b"")).words, "PONG");
}

fn logs_in<const VERSION: u8>(redis: &Redis) {
    let login = |user: &'static str, password: &'static str| {
        Some(Credentials { user: user.as_bytes(), password: password.as_bytes() })
    };
    let open = |login| redis.connect(Resp::<VERSION>::new(), &handshake::<VERSION>(login, 0));
    let refused = |login| match open(login) {
        Err(HandshakeRefused::Refused(words, _)) => words,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the server took a wrong password"),
    };
    assert!(refused(login("", "wrong")).starts_with("WRONGPASS "));
    assert!(refused(login("alice", "wrong")).starts_with("WRONGPASS "));
    assert!(refused(login("nobody", "secret")).starts_with("WRONGPASS "));

    let mut admin = open(login("", "secret")).expect("the password of requirepass");
    let made = admin.command("ACL SETUSER alice on >wonder ~a:* +get +select");
    assert_eq!(made.outcome, Outcome::Ok, "{made:?}");
    admin.expect(&set("a:1", "v"), Outcome::Stored);
    let mut alice = open(login("alice", "wonder")).expect("the password of alice");
    alice.expect_value(&get("a:1"), b"v");
    for op in [set("a:1", "w"), get("b:1")] {
        let answer = alice.ask(&op);
        assert_eq!(answer.outcome, Outcome::Error(Fault::Client));
        assert!(answer.words.starts_with("NOPERM "), "{}", answer.words);
    }
    admin.expect_value(&get("a:1"), b"v");
}

#[test]
fn passwords_and_users_are_told_in_the_greeting() {
    let redis = Redis::start(&["--requirepass", "secret"]);
    logs_in::<2>(&redis);
    logs_in::<3>(&redis);
    // Without a handshake, the server says so to every request; HELLO is a request.
    let mut stranger = redis.connect(Resp::<2>::new(), &Handshake::none()).expect("there is no handshake");
    let answer = stranger.ask(&get("k"));
    assert_eq!(answer.outcome, Outcome::Error(Fault::Client));
    assert!(answer.words.starts_with("NOAUTH "), "{}", answer.words);
    let refused = redis.connect(Resp::<3>::new(), &Handshake::resp3(None, 0)).err();
    assert!(matches!(refused, Some(HandshakeRefused::Refused(words, _)) if words.starts_with("NOAUTH ")));
}

fn selects<const VERSION: u8>(redis: &Redis) {
    let open = |database| redis.connect(Resp::<VERSION>::new(), &handshake::<VERSION>(None, database));
    let (mut first, mut third) = (open(0).expect("a database"), open(3).expect("a database"));
    third.expect(&set("k", "v"), Outcome::Stored);
    first.expect(&get("k"), Outcome::Miss);
    open(3).expect("a database").expect_value(&get("k"), b"v");
    let refused = open(99).err();
    assert!(matches!(refused, Some(HandshakeRefused::Refused(words, _)) if words.contains("out of range")));
    third.command("FLUSHDB");
}

#[test]
fn a_database_is_selected_in_the_greeting() {
    let redis = Redis::start(&[]);
    selects::<2>(&redis);
    selects::<3>(&redis);
}

#[test]
fn a_server_that_cannot_store_is_a_fault_of_the_server() {
    let redis = Redis::start(&[]);
    let mut to = redis.plain::<3>();
    assert_eq!(to.command("CONFIG SET maxmemory 1").outcome, Outcome::Ok);
    let full = to.ask(&set("k", "v"));
    assert_eq!(full.outcome, Outcome::Error(Fault::Server));
    assert!(full.words.starts_with("OOM "), "{}", full.words);
}

#[test]
fn a_redis_that_is_asked_in_memcacheds_text_is_recognised() {
    let redis = Redis::start(&[]);
    let mut to = redis.connect(Text::new(), &Handshake::none()).expect("there is no handshake");
    let mut out = Outbox::default();
    to.codec.encode(&Op::new(Verb::Version, b""), 0, &mut out).expect("text can say this");
    to.send(&out);
    let Err(Malformed(why)) = to.receive() else { panic!("redis-server speaks memcached's text protocol") };
    assert!(why.contains("RESP"), "{why}");
    let login = Credentials { user: b"user", password: b"secret" };
    let handshake = Handshake::text(login).expect("this can be said");
    let refused = redis.connect(Text::new(), &handshake).err();
    assert!(matches!(refused, Some(HandshakeRefused::Malformed(Malformed(why))) if why.contains("RESP")));
}
