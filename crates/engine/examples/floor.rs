//! The floor that speed is measured against: the smallest program that has the same exchange with a memcached.
//!
//! A bare epoll loop on one thread: receive, count bytes, send requests that were encoded before, for random keys out
//! of a table; one reading of the clock for each reply. Keys are those of `pummel load`: the index of the record in
//! decimal, padded with zeros. Without `--rate` every connection keeps `--depth` requests outstanding; with it, requests
//! leave at equal distances, over the connections in turn, and the loop sleeps between them.
//!
//! `floor --port P [--host 127.0.0.1] [--connections 50] [--depth 1] [--seconds 10] [--rate R] [--records 10000]
//! [--key-size 30] [--key-prefix S] [--value-size 200] [--cpu N]` prints one line of JSON.

use std::error::Error;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use pummel_engine::clock;
use pummel_engine::io::sys::{self, Patience, Poller, Ready};
use pummel_logic::rng::{Stream, below, scramble};
use pummel_logic::time::{Nanos, SECOND, from_seconds, seconds};

/// Number of requests in the table.
const TABLE: usize = 8192;

struct Arguments {
    host: String,
    port: u16,
    connections: usize,
    depth: usize,
    seconds: f64,
    rate: Option<f64>,
    records: u64,
    key_size: usize,
    key_prefix: String,
    value_size: usize,
    cpu: Option<usize>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
        let mut arguments = Arguments {
            host: "127.0.0.1".to_string(),
            port: 0,
            connections: 50,
            depth: 1,
            seconds: 10.0,
            rate: None,
            records: 10_000,
            key_size: 30,
            key_prefix: String::new(),
            value_size: 200,
            cpu: None,
        };
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--host" => arguments.host = value,
                "--port" => arguments.port = value.parse()?,
                "--connections" => arguments.connections = value.parse()?,
                "--depth" => arguments.depth = value.parse()?,
                "--seconds" => arguments.seconds = value.parse()?,
                "--rate" => arguments.rate = Some(value.parse()?),
                "--records" => arguments.records = value.parse()?,
                "--key-size" => arguments.key_size = value.parse()?,
                "--key-prefix" => arguments.key_prefix = value,
                "--value-size" => arguments.value_size = value.parse()?,
                "--cpu" => arguments.cpu = Some(value.parse()?),
                _ => return Err(format!("{flag} is not known").into()),
            }
        }
        if arguments.port == 0 || !(1..=TABLE).contains(&arguments.depth) || arguments.connections == 0 {
            return Err("--port is needed, --connections from 1, --depth from 1 to 8192".into());
        }
        Ok(arguments)
    }

    fn request(&self, record: u64) -> Vec<u8> {
        let digits = self.key_size.saturating_sub(self.key_prefix.len());
        format!("get {}{record:0digits$}\r\n", self.key_prefix).into_bytes()
    }

    fn connect(&self) -> Result<TcpStream, Box<dyn Error>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .map_err(|error| format!("{}:{}: {error}", self.host, self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Asks once, to learn how long a reply is.
    fn reply_len(&self) -> Result<usize, Box<dyn Error>> {
        let mut stream = self.connect()?;
        stream.write_all(&self.request(0))?;
        let mut reply = Vec::new();
        while !reply.ends_with(b"END\r\n") {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            reply.extend_from_slice(&buffer[..count]);
        }
        if reply.len() < self.value_size + self.key_size {
            return Err("the records are not there: populate the server with `pummel load` first".into());
        }
        Ok(reply.len())
    }
}

/// All requests, end to end, each of the same length; those that follow each other are for unrelated keys.
struct Table {
    bytes: Vec<u8>,
    request_len: usize,
    chance: u64,
}

impl Table {
    fn new(arguments: &Arguments) -> Table {
        let stream = Stream::from_seed(1);
        let keys = (0..TABLE as u64).map(|i| below(stream.draw(i), arguments.records));
        let bytes: Vec<u8> = keys.flat_map(|key| arguments.request(key)).collect();
        Table { request_len: bytes.len() / TABLE, bytes, chance: 1 }
    }

    /// Some requests in a row, from a random place on.
    fn requests(&mut self, count: usize) -> &[u8] {
        self.chance = scramble(self.chance.wrapping_add(1));
        let start = below(self.chance, (TABLE - count + 1) as u64) as usize * self.request_len;
        &self.bytes[start..start + count * self.request_len]
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the reply that is not whole yet.
    begun: usize,
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
        let poller = Poller::new()?;
        let mut connections = Vec::new();
        for index in 0..arguments.connections {
            let stream = arguments.connect()?;
            poller.add(stream.as_fd(), sys::READABLE | sys::EDGES, index as u64)?;
            connections.push(Connection { stream, begun: 0 });
        }
        Ok(Floor {
            poller,
            connections,
            table: Table::new(arguments),
            reply_len: arguments.reply_len()?,
            buffer: vec![0; 64 * 1024],
            replies: 0,
            seen_at: 0,
        })
    }

    fn send(&mut self, connection: usize, count: usize) -> Result<(), Box<dyn Error>> {
        let requests = self.table.requests(count);
        let sent = sys::send(self.connections[connection].stream.as_fd(), &[IoSlice::new(requests)])?;
        if sent < requests.len() { Err("the server does not read".into()) } else { Ok(()) }
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
                let replies = self.receive(connection)?;
                if replies > 0 {
                    self.send(connection, replies)?;
                }
            }
        }
        Ok(())
    }

    /// Open loop: request i is due `i` gaps after the start, whatever became of the others.
    fn run_open(&mut self, rate: f64, start: Nanos, until: Nanos) -> Result<(), Box<dyn Error>> {
        sys::sharpen_timers()?;
        let mut ready = [Ready::NONE; 256];
        let mut asked = 0;
        let mut due = start;
        loop {
            while due <= clock::now() && due < until {
                self.send(asked as usize % self.connections.len(), 1)?;
                asked += 1;
                due = start + from_seconds(asked as f64 / rate);
            }
            if due >= until && self.replies == asked {
                return Ok(());
            }
            let patience = match due < until {
                true => Patience::For(due.saturating_sub(clock::now())),
                false => Patience::Endless,
            };
            let found = self.poller.wait_fine(&mut ready, patience)?;
            for event in &ready[..found] {
                self.receive(event.token() as usize)?;
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    sys::raise_descriptor_limit(arguments.connections as u64 + 32)
        .map_err(|allowed| format!("only {allowed} descriptors are allowed"))?;
    if let Some(cpu) = arguments.cpu {
        sys::pin_to_cpu(cpu)?;
    }
    let mut floor = Floor::new(&arguments)?;
    let (start, before) = (clock::now(), sys::process_cpu_time());
    let until = start + from_seconds(arguments.seconds);
    match arguments.rate {
        None => floor.run_closed(arguments.depth, until)?,
        Some(rate) => floor.run_open(rate, start, until)?,
    }
    let (end, after) = (clock::now(), sys::process_cpu_time());
    let each_us = |ns: Nanos| ns as f64 / 1e3 / floor.replies.max(1) as f64;
    println!(
        "{{\"requests\": {}, \"seconds\": {:.6}, \"rate\": {:.1}, \"cpu_user_us\": {:.4}, \"cpu_system_us\": {:.4}, \
         \"peak_rss_bytes\": {}}}",
        floor.replies,
        seconds(end - start),
        floor.replies as f64 * SECOND as f64 / (end - start) as f64,
        each_us(after.user_ns - before.user_ns),
        each_us(after.system_ns - before.system_ns),
        sys::peak_rss_bytes().unwrap_or(0),
    );
    Ok(())
}
