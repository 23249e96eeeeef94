//! The thread that answers scrapes: it shows the last snapshot, and no client can delay a run.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pummel_engine::{clock, sys};
use pummel_report::snapshot::SharedSnapshot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::metrics::families::{ProcessFigures, families};
use crate::metrics::http::{self, Asked, Encoding, HEAD_MAX_BYTES, Heard};
use crate::metrics::{protobuf, text};

/// Most clients at one time; others wait in the queue of the listening socket, until one of these goes or is sent away.
const CLIENTS_MAX: usize = 4;

/// How long a client without a request keeps its place if others wait for it.
const SILENCE_MAX: Duration = Duration::from_millis(50);

/// Most bytes that are read and discarded after an answer. A socket that is closed with unread bytes is reset, and its
/// last written bytes may be lost.
const LEFTOVER_MAX_BYTES: usize = 64 << 20;

/// How long a client may take from its connection to its end.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a wait for the last scrape looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The thread's niceness: it yields to others that want the CPU.
const NICENESS: i32 = 10;

/// The thread that answers scrapes.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    /// One end of a socket pair; closing it ends the thread.
    wake: Option<UnixStream>,
    /// The snapshot will not change any more.
    is_final: Arc<AtomicBool>,
    /// Metrics that were sent as a whole and are final.
    last_scrapes: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens and begins to answer. With `aside` the thread stays on that CPU.
    ///
    /// # Errors
    /// Returns the system's error when nothing can listen at the address, or when there is no thread.
    pub fn start(
        listen: SocketAddr,
        snapshot: SharedSnapshot,
        aside: Option<usize>,
    ) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(listen).map_err(|error| {
            io::Error::new(error.kind(), format!("--metrics: cannot listen on {listen}: {error}"))
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (wake, woken) = UnixStream::pair()?;
        let (scraped, last_scrapes) = channel();
        let is_final = Arc::new(AtomicBool::new(false));
        let service = Service { listener, woken, snapshot, is_final: Arc::clone(&is_final), scraped };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            step_back(aside);
            service.run();
        })?;
        Ok(MetricsServer { address, wake: Some(wake), is_final, last_scrapes, thread: Some(thread) })
    }

    /// Address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the thread, after one more scrape, after this time, or when `stop` says so. The snapshot does not change
    /// any more.
    pub fn finish(self, linger: Duration, stop: &dyn Fn() -> bool) {
        self.is_final.store(true, Ordering::Release);
        let end = Instant::now() + linger;
        while !stop() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.last_scrapes.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Lowers the priority of the calling thread, and keeps it on a CPU if one is named. If the kernel refuses, the thread
/// stays as it is.
pub fn step_back(aside: Option<usize>) {
    let _ = rustix::process::setpriority_process(None, NICENESS);
    if let Some(cpu) = aside {
        let _ = sys::pin_to_cpu(cpu);
    }
}

/// The state of the thread.
struct Service {
    listener: TcpListener,
    woken: UnixStream,
    snapshot: SharedSnapshot,
    is_final: Arc<AtomicBool>,
    scraped: Sender<()>,
}

/// A client, from its connection to the end of its answer.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    written: usize,
    /// The answer has the final metrics.
    is_last: bool,
    /// Bytes of the request that were read and thrown away after the answer; `None` before its end.
    leftover_bytes: Option<usize>,
    came: Instant,
}

impl Client {
    fn new(stream: TcpStream, now: Instant) -> Client {
        let (request, answer) = (Vec::new(), Vec::new());
        Client { stream, request, answer, written: 0, is_last: false, leftover_bytes: None, came: now }
    }

    /// Whether an answer is on its way to the client.
    fn is_being_answered(&self) -> bool {
        !self.answer.is_empty() && self.leftover_bytes.is_none()
    }

    /// Time at which the client is disconnected; earlier if others wait for its place and it is not being answered.
    fn deadline(&self, others_wait: bool) -> Instant {
        let limit = if others_wait && !self.is_being_answered() { SILENCE_MAX } else { CLIENT_TIME_MAX };
        self.came + limit
    }
}

/// Whether a client is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Here,
    Gone,
}

impl Service {
    fn run(self) {
        let mut clients: Vec<Client> = Vec::with_capacity(CLIENTS_MAX);
        let mut others_wait = false;
        loop {
            let ready = match self.wait(&clients, others_wait) {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            };
            if ready.is_woken {
                return;
            }
            let mut place = 0;
            clients.retain_mut(|client| {
                let is_ready = ready.clients.get(place).copied().unwrap_or(false);
                place += 1;
                let life = if is_ready { self.serve(client) } else { Life::Here };
                life == Life::Here
            });
            others_wait = ready.has_newcomer && clients.len() == CLIENTS_MAX;
            let now = Instant::now();
            clients.retain(|client| now < client.deadline(others_wait));
            if ready.has_newcomer && clients.len() < CLIENTS_MAX {
                others_wait = false;
                clients.extend(self.accept(now));
            }
        }
    }

    /// Waits for a client, a new connection or the end. If others are known to wait, it waits for a free place.
    fn wait(&self, clients: &[Client], others_wait: bool) -> Result<Ready, rustix::io::Errno> {
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for client in clients {
            let wish = if client.is_being_answered() { PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::new(&client.stream, wish));
        }
        if !others_wait {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let next = clients.iter().map(|client| client.deadline(others_wait)).min();
        let left = next
            .map(|deadline| deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        poll(&mut fds, left.as_ref())?;
        let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        Ok(Ready {
            is_woken: is_ready[0],
            clients: is_ready[1..=clients.len()].to_vec(),
            has_newcomer: others_wait || is_ready[clients.len() + 1],
        })
    }

    fn accept(&self, now: Instant) -> Option<Client> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            // The newcomer did not wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => {
                // No descriptor is left: without a pause the thread would ask again and again.
                thread::sleep(LOOK);
                return None;
            }
        };
        stream.set_nonblocking(true).ok()?;
        Some(Client::new(stream, now))
    }

    /// Reads a client's request, writes as much of the answer as the socket takes, and then reads the client's
    /// remaining bytes.
    fn serve(&self, client: &mut Client) -> Life {
        if client.leftover_bytes.is_some() {
            return hear_out(client);
        }
        if client.answer.is_empty() && self.read(client) == Life::Gone {
            return Life::Gone;
        }
        while client.written < client.answer.len() {
            match client.stream.write(&client.answer[client.written..]) {
                Ok(0) => return Life::Gone,
                Ok(count) => client.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Life::Here,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Life::Gone,
            }
        }
        if client.answer.is_empty() {
            return Life::Here;
        }
        if client.is_last {
            // There is a receiver only while the run waits for its last scrape.
            let _ = self.scraped.send(());
        }
        client.leftover_bytes = Some(0);
        match client.stream.shutdown(Shutdown::Write) {
            Ok(()) => hear_out(client),
            Err(_) => Life::Gone,
        }
    }

    fn read(&self, client: &mut Client) -> Life {
        let mut bytes = [0; 2048];
        loop {
            match client.stream.read(&mut bytes) {
                Ok(0) => return Life::Gone,
                Ok(count) => client.request.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Life::Here,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Life::Gone,
            }
            let heard = &client.request[..client.request.len().min(HEAD_MAX_BYTES)];
            if let Heard::Request(asked) = http::read(heard) {
                client.is_last = matches!(asked, Asked::Metrics(_)) && self.is_final.load(Ordering::Acquire);
                client.answer = self.answer(asked);
                return Life::Here;
            }
        }
    }

    fn answer(&self, asked: Asked) -> Vec<u8> {
        match asked {
            Asked::Metrics(encoding) => {
                let process = process_figures();
                let snapshot = self.snapshot.lock();
                let families = families(&snapshot, &process);
                let body = match encoding {
                    Encoding::Text(dialect) => text::render(&families, dialect).into_bytes(),
                    Encoding::Protobuf => protobuf::render(&families),
                };
                http::answer(200, "OK", encoding.content_type(), &body)
            }
            Asked::Health => http::answer(200, "OK", "text/plain; charset=utf-8", b"ok\n"),
            Asked::Refused(status, words) => {
                http::answer(status, words, "text/plain; charset=utf-8", format!("{words}\n").as_bytes())
            }
        }
    }
}

/// Reads the bytes that a client sends after its answer, up to their end; the client is disconnected then, or when it
/// has sent too much.
fn hear_out(client: &mut Client) -> Life {
    let mut bytes = [0; 16 << 10];
    let mut heard = client.leftover_bytes.unwrap_or(0);
    let life = loop {
        match client.stream.read(&mut bytes) {
            Ok(0) => break Life::Gone,
            Ok(count) => heard += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Life::Here,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break Life::Gone,
        }
        if heard > LEFTOVER_MAX_BYTES {
            break Life::Gone;
        }
    };
    client.leftover_bytes = Some(heard);
    life
}

/// The descriptors that are ready.
struct Ready {
    is_woken: bool,
    clients: Vec<bool>,
    has_newcomer: bool,
}

/// The kernel's figures of this process.
pub fn process_figures() -> ProcessFigures {
    let cpu = sys::process_cpu_time();
    let resident = fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    ProcessFigures {
        now: clock::now(),
        cpu_ns: cpu.user_ns + cpu.system_ns,
        resident_bytes: resident.map(|kibibytes| kibibytes * 1024),
        // The directory itself is open while it is read.
        open_fds: fs::read_dir("/proc/self/fd")
            .ok()
            .map(|entries| (entries.count() as u64).saturating_sub(1)),
        max_fds: sys::descriptor_limit(),
    }
}
