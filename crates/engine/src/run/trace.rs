//! The reader of a trace: a thread that makes requests of its bytes and hands each to the worker of its client.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pummel_logic::arrival::Pace;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Fills, Plan, TracePace, TraceReplay, Work};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::SECOND;
use pummel_logic::workload::rows::{BATCH_ROWS, BatchRow, ROWS_MAX, RowBatch};
use pummel_measure::replayed::Replayed;
use pummel_traffic::trace::reader::Account;
use pummel_traffic::trace::shaper::{Part, Request, Shaped};
use pummel_traffic::trace::{Format, Reader, Shaper, detect};

use crate::clock;
use crate::worker::feed::FeedState;

/// Bytes that are read at once, and that a format is found from.
const BLOCK_BYTES: usize = 1 << 18;

/// Batches on their way to one worker at most.
const QUEUE_BATCHES: usize = ROWS_MAX / BATCH_ROWS;

/// Longest wait of the end of a run for the reader to end.
const END_WAIT: Duration = Duration::from_secs(2);

/// Pause of the reader before it looks again whether a worker has room.
const FULL_WAIT: Duration = Duration::from_micros(200);

/// The files of a trace, unpacked.
pub trait TraceFiles: Send + Sync {
    /// Number of the files.
    fn count(&self) -> usize;

    /// The name of a file.
    fn name(&self, number: usize) -> String;

    /// Opens a file to read its contents from the beginning.
    ///
    /// # Errors
    /// Returns the error of the file when it cannot be opened.
    fn open(&self, number: usize) -> io::Result<Box<dyn Read + Send>>;
}

/// The replay of a trace in this process.
pub(super) struct TraceRun {
    /// The part that each phase of the Plan replays.
    pub(super) parts: Vec<Option<u32>>,
    /// The place of each client of this process among those of its worker, by its number in its group.
    pub(super) places: Arc<[u32]>,
    pub(super) states: Arc<[FeedState]>,
    /// The ends of the queues at the workers, until they take them.
    feeds: Vec<Mutex<Option<Receiver<RowBatch>>>>,
    dealer: Mutex<Option<Dealer>>,
    /// The reader's account so far.
    replayed: Arc<Mutex<Replayed>>,
    is_stopped: Arc<AtomicBool>,
    /// Closed when the reader has ended.
    ended: Mutex<Receiver<()>>,
}

impl TraceRun {
    /// The replay of a plan's trace; `None` where the plan has none.
    pub(super) fn of(
        plan: &Plan,
        share: &ProcessShare,
        files: Option<&Arc<dyn TraceFiles>>,
    ) -> Option<TraceRun> {
        let (replay, files) = (plan.trace()?, files?);
        let threads = share.threads as usize;
        let clients = plan.groups[0].clients as usize;
        let (mut workers, mut places) = (vec![u32::MAX; clients], vec![u32::MAX; clients]);
        for worker in 0..threads {
            for (place, client) in share.clients_of_worker(plan, worker).iter().enumerate() {
                workers[client.number as usize] = worker as u32;
                places[client.number as usize] = place as u32;
            }
        }
        let states: Arc<[FeedState]> = (0..threads).map(|_| FeedState::default()).collect();
        let (senders, feeds) =
            (0..threads).map(|_| sync_channel(QUEUE_BATCHES)).unzip::<_, _, Vec<_>, Vec<_>>();
        let (parts, phases) = parts_of(plan, replay);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let replayed = Arc::new(Mutex::new(Replayed::default()));
        let (alive, ended) = sync_channel(1);
        let dealer = Dealer {
            _alive: alive,
            replay: replay.clone(),
            files: Arc::clone(files),
            shaper: Shaper::new(
                replay,
                clients as u64,
                parts,
                plan.protocol.row().verbs,
                (plan.seed, plan.data.seed),
            ),
            queues: Queues {
                states: Arc::clone(&states),
                senders: senders.into_iter().map(Some).collect(),
                batches: vec![RowBatch::of_part(0); threads],
                workers,
                client_places: places.clone(),
                part: 0,
                is_stopped: Arc::clone(&is_stopped),
            },
            clients: clients as u64,
            is_anonymous: plan.anonymous,
            account: Account::default(),
            replayed: Arc::clone(&replayed),
            has_reported_end: false,
        };
        Some(TraceRun {
            parts: phases,
            places: places.into(),
            states,
            feeds: feeds.into_iter().map(|feed| Mutex::new(Some(feed))).collect(),
            dealer: Mutex::new(Some(dealer)),
            replayed,
            is_stopped,
            ended: Mutex::new(ended),
        })
    }

    /// The queue of a worker, which takes it once.
    pub(super) fn take_feed(&self, worker: usize) -> Option<Receiver<RowBatch>> {
        self.feeds[worker].lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts the reader on a thread of its own. The thread may outlive the run where it waits for standard input.
    ///
    /// # Errors
    /// Returns the error of the kernel when the thread cannot be started.
    pub(super) fn start(&self) -> io::Result<()> {
        let Some(dealer) = self.dealer.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        thread::Builder::new().name("trace".to_owned()).spawn(move || dealer.run()).map(drop)
    }

    /// Ends the reader, and returns its account; a reader that is blocked on standard input is not waited for.
    pub(super) fn finish(&self) -> Replayed {
        self.is_stopped.store(true, Ordering::Relaxed);
        // The channel closes when the reader has ended.
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(END_WAIT);
        self.replayed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The parts of a replay, and which of them each phase of the plan replays.
fn parts_of(plan: &Plan, replay: &TraceReplay) -> (Vec<Part>, Vec<Option<u32>>) {
    let (mut parts, mut phases) = (Vec::new(), Vec::new());
    for (number, phase) in plan.phases.iter().enumerate() {
        if !matches!(phase.work, Work::Trace(_)) {
            phases.push(None);
            continue;
        }
        let group = &plan.groups[0];
        let owner = StreamOwner { seed: plan.seed, group: 0, phase: number as u64, client: 0 };
        let schedule = group
            .rate
            .filter(|_| replay.pace == TracePace::Rate)
            .map(|rate| Pace::new(&group.arrivals, rate, 1).schedule(owner));
        phases.push(Some(parts.len() as u32));
        parts.push(Part { time_ns: phase.stop.time_ns, requests: phase.stop.requests, schedule });
    }
    (parts, phases)
}

/// Reads the files of a trace and deals its requests.
struct Dealer {
    /// Shows that the reader is running, until it is dropped.
    _alive: SyncSender<()>,
    replay: TraceReplay,
    files: Arc<dyn TraceFiles>,
    shaper: Shaper,
    queues: Queues,
    clients: u64,
    /// Results leave out the names of files.
    is_anonymous: bool,
    account: Account,
    replayed: Arc<Mutex<Replayed>>,
    has_reported_end: bool,
}

impl Drop for Dealer {
    /// Reports that the reader did not come to an end, unless it reported its end.
    fn drop(&mut self) {
        if !self.has_reported_end {
            let mut replayed = self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
            replayed.is_whole = false;
            replayed.error = Some("the reader of the trace ended before its account was complete".to_owned());
        }
    }
}

impl Dealer {
    fn run(mut self) {
        let result = self.read_all();
        self.has_reported_end = true;
        let error = result.err().map(|error| error.to_string());
        self.shaper.end_pass(false, &mut |shaped| self.queues.take(shaped));
        self.queues.flush();
        self.publish(|replayed| {
            replayed.is_whole = error.is_none() && replayed.is_whole;
            replayed.error = error;
        });
    }

    /// Reads every file as often as the trace is replayed.
    fn read_all(&mut self) -> io::Result<()> {
        let mut pass = 0u32;
        loop {
            for number in 0..self.files.count() {
                if !self.read_file(number, pass == 0)? {
                    return Ok(());
                }
            }
            pass = pass.saturating_add(1);
            if self.account.rows == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the trace holds no request"));
            }
            if self.shaper.counts().kept == 0 {
                let why = "no request of the trace is kept: --trace-from, --trace-to and --trace-sample leave nothing, or the protocol \
                           has none of its operations";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            if self.replay.passes != 0 && pass >= self.replay.passes {
                self.publish(|replayed| replayed.is_whole = true);
                return Ok(());
            }
            self.shaper.end_pass(true, &mut |shaped| self.queues.take(shaped));
        }
    }

    /// Reads a file to its end. Returns whether more is wanted. Rows that are left out are reported once.
    fn read_file(&mut self, number: usize, is_first_pass: bool) -> io::Result<bool> {
        let name = if self.is_anonymous { "(a file)".to_owned() } else { self.files.name(number) };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read '{}': {error}", name.escape_debug()))
        };
        let mut file = self.files.open(number).map_err(named)?;
        let mut block = vec![0; BLOCK_BYTES];
        let first = fill_block(&mut file, &mut block).map_err(named)?;
        let format = format_of(&self.replay, &block[..first], &name)?;
        let only_reads = !format.has_operations() && !self.replay.stores_only;
        if only_reads && self.replay.fills == Fills::Recorded && is_first_pass {
            let says = format!(
                "the rows of '{}' do not say what was asked: each is a read, and nothing is stored (--fills own stores what is \
                 missed)",
                name.escape_debug()
            );
            self.publish(|replayed| replayed.notices.push(says));
        }
        let now_s = clock::wall() / SECOND;
        let mut reader = Reader::new(&format, Some(now_s));
        let read = self.read_blocks(&mut *file, &mut block, first, &mut reader);
        let account = match read {
            Ok(true) => {
                let Dealer { shaper, queues, .. } = self;
                reader.end(&mut |row| shaper.take(row, &mut |shaped| queues.take(shaped)))
            }
            Ok(false) | Err(_) => reader.account().clone(),
        };
        let notices = if is_first_pass { account.notices(&name, &format) } else { Vec::new() };
        self.account.add(account);
        self.publish(|replayed| replayed.notices.extend(notices));
        read.map_err(named)
    }

    /// Reads a file block by block, the first of which is read already. Returns whether its end was reached and more is wanted.
    fn read_blocks(
        &mut self,
        file: &mut dyn Read,
        block: &mut [u8],
        first: usize,
        reader: &mut Reader,
    ) -> io::Result<bool> {
        let mut count = first;
        while count > 0 {
            let Dealer { shaper, queues, .. } = self;
            reader.read(&block[..count], &mut |row| shaper.take(row, &mut |shaped| queues.take(shaped)));
            self.queues.flush();
            self.publish_with(reader.account(), |_| {});
            if self.shaper.is_over() || self.queues.is_over() {
                return Ok(false);
            }
            count = loop {
                match file.read(block) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
        }
        Ok(true)
    }

    /// Publishes the account of the files so far.
    fn publish(&self, change: impl FnOnce(&mut Replayed)) {
        self.publish_with(&Account::default(), change);
    }

    /// Publishes the account so far, with that of the file under way.
    fn publish_with(&self, under_way: &Account, change: impl FnOnce(&mut Replayed)) {
        let counts = self.shaper.counts();
        let mut replayed = self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        let Replayed { is_whole, error, notices, .. } = std::mem::take(&mut *replayed);
        *replayed = Replayed {
            rows: counts.rows,
            kept: counts.kept,
            is_whole,
            bad_lines: self.account.bad + under_way.bad,
            skipped_lines: self.account.skipped + under_way.skipped,
            lost: self.account.lost.saturating_add(under_way.lost),
            uncounted: counts.uncounted,
            unsayable: counts.unsayable,
            fills_left_out: counts.fills_left_out,
            cut_values: counts.cut_values,
            out_of_order: counts.out_of_order,
            unfit_keys: counts.unfit_keys,
            ttls: counts.ttls.0,
            short_ttls: counts.ttls.1,
            clients: self.clients,
            error,
            notices,
            ..Replayed::default()
        };
        change(&mut replayed);
    }
}

/// The format of a file that begins with these bytes.
///
/// # Errors
/// Returns [`io::ErrorKind::InvalidData`] where the plan does not name the format and the bytes have none.
fn format_of(replay: &TraceReplay, first: &[u8], name: &str) -> io::Result<Format> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    match &replay.format {
        Some(format) => {
            Format::named(format).map_err(|expected| wrong(format!("format: {expected} is expected")))
        }
        None => detect(first).ok_or_else(|| wrong(unknown_format(replay, first, name))),
    }
}

/// The words for a file that begins with these bytes, which are of no known format.
fn unknown_format(replay: &TraceReplay, first: &[u8], name: &str) -> String {
    let name = name.escape_debug();
    if first.is_empty() {
        return format!("'{name}' is empty");
    }
    if replay.stores_only {
        return format!(
            "'{name}' holds no items: expected the output of lru_crawler metadump, or CSV with the header key,size,ttl"
        );
    }
    format!("the format of '{name}' is not known from its content: --trace-format names it")
}

/// Fills a block from a file that may hand out its bytes in pieces. Returns the number of bytes, fewer than asked for at its end.
///
/// # Errors
/// Returns the error of the first read that fails and was not interrupted.
pub fn fill_block(file: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match file.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The queues to the workers.
struct Queues {
    states: Arc<[FeedState]>,
    /// `None` for a worker that has ended.
    senders: Vec<Option<SyncSender<RowBatch>>>,
    batches: Vec<RowBatch>,
    /// The worker of each client of this process, by the client's number.
    workers: Vec<u32>,
    client_places: Vec<u32>,
    part: u32,
    is_stopped: Arc<AtomicBool>,
}

impl Queues {
    /// Whether no worker takes requests any more.
    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.senders.iter().all(Option::is_none)
    }

    /// Takes a request for its worker. Returns whether any worker takes more.
    fn take(&mut self, shaped: Shaped<'_>) -> bool {
        match shaped {
            Shaped::Request(request) => self.request(&request),
            Shaped::PartEnds => {
                for worker in 0..self.batches.len() {
                    self.batches[worker].ends_part = true;
                    self.send(worker);
                }
                self.part += 1;
                self.batches.iter_mut().for_each(|batch| *batch = RowBatch::of_part(self.part));
            }
        }
        !self.is_over()
    }

    fn request(&mut self, request: &Request<'_>) {
        // Other processes ask the requests of their clients.
        let worker = match self.workers[request.client as usize] {
            u32::MAX => return,
            worker => worker as usize,
        };
        let client = self.client_places[request.client as usize];
        let Request { due_ns, at_ns, verb, value_bytes, ttl_s, .. } = *request;
        let mut row = BatchRow::new(due_ns, client, verb, value_bytes, ttl_s);
        row.at_ns = at_ns;
        self.batches[worker].push(row, request.key);
        if self.batches[worker].is_full() {
            self.send(worker);
        }
    }

    /// Hands over everything that waits for a full batch.
    fn flush(&mut self) {
        for worker in 0..self.batches.len() {
            if !self.batches[worker].is_empty() {
                self.send(worker);
            }
        }
    }

    /// Hands a batch to its worker, and waits until there is room for it or it is not wanted any more.
    fn send(&mut self, worker: usize) {
        let mut batch = std::mem::replace(&mut self.batches[worker], RowBatch::of_part(self.part));
        let state = &self.states[worker];
        loop {
            let Some(sender) = &self.senders[worker] else { return };
            match sender.try_send(batch) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => {
                    self.senders[worker] = None;
                    break;
                }
                Err(TrySendError::Full(back)) => {
                    let is_over = back.part < state.over_before.load(Ordering::Acquire);
                    if is_over || self.is_stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    state.is_full.store(true, Ordering::Relaxed);
                    batch = back;
                    thread::sleep(FULL_WAIT);
                }
            }
        }
        state.is_full.store(false, Ordering::Relaxed);
    }
}
