//! The floor that speed is measured against: the smallest program that has the same exchange with a server.
//!
//! A bare epoll loop on one thread: receive, count bytes, send requests that were encoded before, for random keys out
//! of a table; one reading of the clock for each reply. Keys are those of `pummel load`: the index of the record in
//! decimal, padded with zeros. Without `--rate` every connection keeps `--depth` requests outstanding; with it, requests
//! are due at equal distances, over the connections in turn, of which each has at most `--depth` outstanding, and the loop
//! sleeps between them or spins (`--wait`).
//!
//! It knows no protocol. `--request FILE` holds the bytes of one request with `__key__` where the key goes; without it
//! the request is memcached's text get. How long a reply is it learns from the first exchange, or is told by
//! `--reply-bytes`: all replies must have the same length.
//!
//! `floor --port P [--host 127.0.0.1] [--request FILE] [--reply-bytes N] [--connections 50] [--depth 1] [--seconds 10]
//! [--rate R] [--wait block|spin] [--records 10000] [--popularity uniform] [--key-size 30] [--key-prefix S] [--cpu N]`
//! prints one line of JSON. `connections` there is the number of those that were answered; CPU times are those of the
//! measured phase, for each reply.

use std::error::Error;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use pummel_engine::clock;
use pummel_engine::sys::{self, Poller, Ready, WaitLimit};
use pummel_logic::plan::Popularity;
use pummel_logic::rng::{Stream, below, scramble};
use pummel_logic::time::{Nanos, SECOND, from_seconds, seconds};
use pummel_logic::workload::popularity::Chooser;

/// Number of requests in the table.
const TABLE: usize = 8192;

/// The placeholder of the key in the file of `--request`.
const KEY: &[u8] = b"__key__";

/// Up to this length a request is in the table as a whole; of longer ones, what follows the key is there once.
const WHOLE_BYTES_MAX: usize = 1024;

/// Silence after which a first reply is over.
const QUIET: Duration = Duration::from_millis(200);

/// Longest time until the first reply begins.
const FIRST_REPLY_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Block,
    Spin,
}

struct Arguments {
    host: String,
    port: u16,
    request: Option<PathBuf>,
    reply_bytes: Option<usize>,
    connections: usize,
    depth: usize,
    seconds: f64,
    rate: Option<f64>,
    wait: Wait,
    records: u64,
    popularity: Popularity,
    key_size: usize,
    key_prefix: String,
    cpu: Option<usize>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
        let mut arguments = Arguments {
            host: "127.0.0.1".to_string(),
            port: 0,
            request: None,
            reply_bytes: None,
            connections: 50,
            depth: 1,
            seconds: 10.0,
            rate: None,
            wait: Wait::Block,
            records: 10_000,
            popularity: Popularity::Uniform,
            key_size: 30,
            key_prefix: String::new(),
            cpu: None,
        };
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--host" => arguments.host = value,
                "--port" => arguments.port = value.parse()?,
                "--request" => arguments.request = Some(value.into()),
                "--reply-bytes" => arguments.reply_bytes = Some(value.parse()?),
                "--connections" => arguments.connections = value.parse()?,
                "--depth" => arguments.depth = value.parse()?,
                "--seconds" => arguments.seconds = value.parse()?,
                "--rate" => arguments.rate = Some(value.parse()?),
                "--wait" if value == "block" => arguments.wait = Wait::Block,
                "--wait" if value == "spin" => arguments.wait = Wait::Spin,
                "--records" => arguments.records = value.parse()?,
                "--popularity" => arguments.popularity = value.parse()?,
                "--key-size" => arguments.key_size = value.parse()?,
                "--key-prefix" => arguments.key_prefix = value,
                "--cpu" => arguments.cpu = Some(value.parse()?),
                _ => return Err(format!("{flag} {value} is not known").into()),
            }
        }
        if arguments.port == 0 || !(1..=TABLE).contains(&arguments.depth) || arguments.connections == 0 {
            return Err("--port is needed, --connections from 1, --depth from 1 to 8192".into());
        }
        Ok(arguments)
    }

    fn key(&self, record: u64) -> String {
        let digits = self.key_size.saturating_sub(self.key_prefix.len());
        format!("{}{record:0digits$}", self.key_prefix)
    }

    fn connect(&self) -> Result<TcpStream, Box<dyn Error>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .map_err(|error| format!("{}:{}: {error}", self.host, self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Asks once, to learn how long a reply is.
    fn learn_reply_len(&self, table: &Table) -> Result<usize, Box<dyn Error>> {
        let mut stream = self.connect()?;
        for part in table.parts(0) {
            stream.write_all(part)?;
        }
        stream.set_read_timeout(Some(FIRST_REPLY_MAX))?;
        let mut len = 0;
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => len += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock && len > 0 => return Ok(len),
                Err(error) => return Err(format!("no reply to the first request: {error}").into()),
            }
            stream.set_read_timeout(Some(QUIET))?;
        }
    }
}

/// All requests, each of the same length; those that follow each other are for unrelated keys.
struct Table {
    /// Whole requests end to end, or where they are long, their beginnings up to the end of the key.
    heads: Vec<u8>,
    head_len: usize,
    /// The rest of each request, behind its beginning.
    tail: Vec<u8>,
    chance: u64,
}

impl Table {
    fn new(arguments: &Arguments) -> Result<Table, Box<dyn Error>> {
        let template = match &arguments.request {
            Some(file) => std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?,
            None => [b"get ", KEY, b"\r\n"].concat(),
        };
        let place = template.windows(KEY.len()).position(|window| window == KEY);
        let place = place.ok_or("the request has no __key__ in it")?;
        let (before, after) = (&template[..place], &template[place + KEY.len()..]);
        let (common, tail) = match template.len() <= WHOLE_BYTES_MAX {
            true => (after, Vec::new()),
            false => (&[][..], after.to_vec()),
        };
        let stream = Stream::from_seed(1);
        let chooser = Chooser::new(&arguments.popularity, arguments.records, 0, 1);
        let mut heads = Vec::new();
        for i in 0..TABLE as u64 {
            let key = arguments.key(chooser.choose(&stream, i));
            heads.extend([before, key.as_bytes(), common].concat());
        }
        Ok(Table { head_len: heads.len() / TABLE, heads, tail, chance: 1 })
    }

    /// The index of a random request that has at least `count - 1` others behind it.
    fn choose(&mut self, count: usize) -> usize {
        self.chance = scramble(self.chance.wrapping_add(1));
        below(self.chance, (TABLE - count + 1) as u64) as usize
    }

    /// Some whole requests in a row, from a random place on.
    fn requests(&mut self, count: usize) -> &[u8] {
        let start = self.choose(count) * self.head_len;
        &self.heads[start..start + count * self.head_len]
    }

    fn parts(&self, index: usize) -> [&[u8]; 2] {
        [&self.heads[index * self.head_len..][..self.head_len], &self.tail]
    }

    fn request_len(&self) -> usize {
        self.head_len + self.tail.len()
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the reply that is not whole yet.
    begun: usize,
    /// Long requests that are to be sent; `begun_request` is the first of them.
    owed: usize,
    /// The long request that was begun, and how many bytes of it are sent.
    begun_request: Option<(usize, usize)>,
    /// In open loop: how many more requests may be outstanding, and how many were due while none might.
    free: usize,
    waiting: usize,
    answered: bool,
}

struct Floor {
    poller: Poller,
    connections: Vec<Connection>,
    table: Table,
    reply_len: usize,
    buffer: Vec<u8>,
    replies: u64,
    /// When the newest reply was seen.
    seen_at: Nanos,
}

impl Floor {
    fn new(arguments: &Arguments) -> Result<Floor, Box<dyn Error>> {
        let table = Table::new(arguments)?;
        let reply_len = match arguments.reply_bytes {
            Some(reply_bytes) => reply_bytes.max(1),
            None => arguments.learn_reply_len(&table)?,
        };
        // Short requests always fit.
        let interest = if table.tail.is_empty() { sys::READABLE } else { sys::READABLE | sys::WRITABLE };
        let poller = Poller::new()?;
        let mut connections = Vec::new();
        for index in 0..arguments.connections {
            let stream = arguments.connect()?;
            poller.add(stream.as_fd(), interest | sys::EDGES, index as u64)?;
            connections.push(Connection {
                stream,
                begun: 0,
                owed: 0,
                begun_request: None,
                free: arguments.depth,
                waiting: 0,
                answered: false,
            });
        }
        let buffer = vec![0; 64 * 1024];
        Ok(Floor { poller, connections, table, reply_len, buffer, replies: 0, seen_at: 0 })
    }

    fn send(&mut self, index: usize, count: usize) -> Result<(), Box<dyn Error>> {
        if !self.table.tail.is_empty() {
            self.connections[index].owed += count;
            return self.send_owed(index);
        }
        let requests = self.table.requests(count);
        let sent = sys::send(self.connections[index].stream.as_fd(), &[IoSlice::new(requests)])?;
        if sent < requests.len() { Err("the server does not read".into()) } else { Ok(()) }
    }

    /// Sends what the socket takes of the long requests.
    fn send_owed(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let connection = &mut self.connections[index];
        while connection.owed > 0 {
            let (request, sent) = connection.begun_request.unwrap_or_else(|| (self.table.choose(1), 0));
            let [head, tail] = self.table.parts(request);
            let rest = [&head[sent.min(head.len())..], &tail[sent.saturating_sub(head.len())..]];
            match sys::send(connection.stream.as_fd(), &rest.map(IoSlice::new)) {
                Ok(count) if sent + count == self.table.request_len() => {
                    connection.begun_request = None;
                    connection.owed -= 1;
                }
                // The socket is full: an event follows when it takes more.
                Ok(count) => {
                    connection.begun_request = Some((request, sent + count));
                    break;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    connection.begun_request = Some((request, sent));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Does what a connection is ready for, and returns how many replies became whole.
    fn handle(&mut self, event: &Ready) -> Result<usize, Box<dyn Error>> {
        let connection = event.token() as usize;
        if self.connections[connection].owed > 0 && event.bits() & sys::WRITABLE != 0 {
            self.send_owed(connection)?;
        }
        // An error is read like bytes.
        if event.bits() & !sys::WRITABLE == 0 { Ok(0) } else { self.receive(connection) }
    }

    /// Reads what is there, and returns how many replies became whole.
    fn receive(&mut self, index: usize) -> Result<usize, Box<dyn Error>> {
        let connection = &mut self.connections[index];
        let mut replies = 0;
        loop {
            match sys::receive(connection.stream.as_fd(), &mut self.buffer) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(count) => {
                    connection.begun += count;
                    while connection.begun >= self.reply_len {
                        connection.begun -= self.reply_len;
                        self.seen_at = clock::now();
                        replies += 1;
                    }
                    if count < self.buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        connection.answered |= replies > 0;
        self.replies += replies as u64;
        Ok(replies)
    }

    /// Closed loop: each reply makes room for the next request.
    fn run_closed(&mut self, depth: usize, until: Nanos) -> Result<(), Box<dyn Error>> {
        let mut ready = [Ready::NONE; 256];
        for connection in 0..self.connections.len() {
            self.send(connection, depth)?;
        }
        while self.seen_at < until {
            let found = self.poller.wait_coarse(&mut ready, true)?;
            for event in &ready[..found] {
                let connection = event.token() as usize;
                let replies = self.handle(event)?;
                if replies > 0 {
                    self.send(connection, replies)?;
                }
            }
        }
        Ok(())
    }

    /// Sends what was due on a connection, as far as it has room.
    fn send_waiting(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let connection = &mut self.connections[index];
        let count = connection.waiting.min(connection.free);
        connection.waiting -= count;
        connection.free -= count;
        if count > 0 { self.send(index, count) } else { Ok(()) }
    }

    /// Open loop: request i is due `i` gaps after the start, whatever became of the others; it leaves as soon as its
    /// connection has room.
    fn run_open(&mut self, rate: f64, wait: Wait, start: Nanos, until: Nanos) -> Result<(), Box<dyn Error>> {
        sys::sharpen_timers()?;
        let mut ready = [Ready::NONE; 256];
        let mut asked = 0;
        let mut due = start;
        loop {
            while due <= clock::now() && due < until {
                let index = asked as usize % self.connections.len();
                self.connections[index].waiting += 1;
                self.send_waiting(index)?;
                asked += 1;
                due = start + from_seconds(asked as f64 / rate);
            }
            if due >= until && self.replies == asked {
                return Ok(());
            }
            let found = match wait {
                Wait::Spin => self.poller.wait_coarse(&mut ready, false)?,
                Wait::Block if due < until => {
                    let wait_limit = WaitLimit::For(due.saturating_sub(clock::now()));
                    self.poller.wait_fine(&mut ready, wait_limit)?
                }
                Wait::Block => self.poller.wait_fine(&mut ready, WaitLimit::Endless)?,
            };
            for event in &ready[..found] {
                let index = event.token() as usize;
                self.connections[index].free += self.handle(event)?;
                self.send_waiting(index)?;
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    sys::raise_descriptor_limit(arguments.connections as u64 + 32)
        .map_err(|allowed| format!("only {allowed} descriptors are allowed (ulimit -n)"))?;
    if let Some(cpu) = arguments.cpu {
        sys::pin_to_cpu(cpu)?;
    }
    let mut floor = Floor::new(&arguments)?;
    let (start, before) = (clock::now(), sys::process_cpu_time());
    let until = start + from_seconds(arguments.seconds);
    match arguments.rate {
        None => floor.run_closed(arguments.depth, until)?,
        Some(rate) => floor.run_open(rate, arguments.wait, start, until)?,
    }
    let (end, after) = (clock::now(), sys::process_cpu_time());
    let each_us = |ns: Nanos| ns as f64 / 1e3 / floor.replies.max(1) as f64;
    println!(
        "{{\"requests\": {}, \"seconds\": {:.6}, \"rate\": {:.1}, \"cpu_user_us\": {:.4}, \"cpu_system_us\": {:.4}, \
         \"peak_rss_bytes\": {}, \"connections\": {}, \"request_bytes\": {}, \"reply_bytes\": {}}}",
        floor.replies,
        seconds(end - start),
        floor.replies as f64 * SECOND as f64 / (end - start) as f64,
        each_us(after.user_ns - before.user_ns),
        each_us(after.system_ns - before.system_ns),
        sys::peak_rss_bytes().unwrap_or(0),
        floor.connections.iter().filter(|connection| connection.answered).count(),
        floor.table.request_len(),
        floor.reply_len,
    );
    Ok(())
}
