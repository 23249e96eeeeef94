//! `cargo xtask bench`: what a request costs each client, beside the floor, on this machine.
//!
//! One server, pinned to one CPU; the clients, pinned to another, take turns in rounds, and ratios are taken within a
//! round, so that a machine that changes its pace changes it for all. Nothing is asserted here: it is no test.

pub mod child;
mod contender;
pub mod rows;
pub mod server;
mod startup;
mod store;
mod table;
mod tap;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use contender::{Bench, Figures, Task};
use rows::{Backend, Contender, Program, ROWS, Row};
use server::{Kind, SPARE_CONNECTIONS, Server};
use store::Store;
use table::Measured;

use crate::programs::{build, release};

/// Measures CPU, throughput and memory beside the floor, on this machine.
///
/// The floor is the smallest program that does the same exchange. Where they are installed, memcaslap and redis-benchmark are
/// measured too, against memcached and redis-server on loopback. Needs two CPUs that are otherwise idle, memcached,
/// redis-server, setpriv and taskset. docs/PERFORMANCE.md says how to read the table.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Rounds for each row [default: 9].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Seconds for each client in each round [default: 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seconds: Option<u32>,
    /// 2 rounds of 1 second, all rows within five minutes: whether it works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Only rows whose name contains TEXT.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = known_row)]
    rows: String,
    /// Measures this other build of pummel too, in the same rounds.
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    /// Only this kernel interface of pummel.
    #[arg(long)]
    backend: Option<Backend>,
    /// Also writes every figure of every round to FILE, after each round.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    json: Option<PathBuf>,
    /// Writes every figure to FILE too, and goes on with the rounds that FILE has already.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

impl Options {
    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 9 })
    }

    fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    fn chosen(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| row.name.contains(&self.rows))
    }

    fn wants_start_up(&self) -> bool {
        startup::NAME.contains(&self.rows)
    }
}

/// The text of `--rows`, which the name of some row has to contain.
fn known_row(text: &str) -> Result<String, String> {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).chain([startup::NAME]).collect();
    let is_known = names.iter().any(|name| name.contains(text));
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("no row has that in its name; there are {}", names.join("; ")))
}

/// Builds, measures and prints; false when a row could not be measured.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let version = Kind::Memcached.version()?;
    let site = Site::prepare(root)?.beside(options.beside.as_deref())?;
    let backends = site.backends(options.backend)?;
    let mut store = store_for(options, &site)?;
    println!("{version} -t 1 on CPU {}, clients on CPU {};", site.server_cpu, site.bench.cpu);
    println!("{} rounds of {} s, medians with the range of the ratios.", options.rounds(), options.seconds());
    let mut failed = Vec::new();
    for row in options.chosen() {
        let Row { name, connections, key_bytes, value_bytes, records, .. } = row;
        println!(
            "\n{name}: {connections} connections, {key_bytes}-byte keys, {value_bytes}-byte values, {records} records\n"
        );
        match measure(&site, row, &backends, options, &mut store) {
            Ok(measured) => print!("{}", measured.markdown()),
            Err(error) => {
                println!("Not measured: {error}");
                failed.push(name);
            }
        }
    }
    if options.wants_start_up() {
        println!("\n{}:\n", startup::NAME);
        print!("{}", measure_start_up(&site, site.pummel(), &backends, options, &mut store)?.markdown());
        if let Some(other) = &site.bench.beside {
            // No file keeps the rounds of another build.
            let mut store = Store::new(None, Value::Null);
            let other = measure_start_up(&site, other, &backends, options, &mut store)?;
            println!("\n{}, other build:\n\n{}", startup::NAME, other.markdown());
        }
    }
    if !failed.is_empty() {
        eprintln!("bench: {} rows were not measured; the table says why", failed.len());
    }
    Ok(failed.is_empty())
}

/// Record of what a table is measured with; what was measured with something else does not go into the same file.
fn store_for(options: &Options, site: &Site) -> io::Result<Store> {
    let head = json!({
        "server": Kind::Memcached.version()?, "kernel": kernel()?, "seconds": options.seconds(),
        "pummel": fingerprint(&site.bench.pummel)?, "floor": fingerprint(&site.bench.floor)?,
        "beside": site.bench.beside.as_deref().map(fingerprint).transpose()?,
    });
    match &options.resume {
        Some(file) => Store::resume(file, head),
        None => Ok(Store::new(options.json.as_deref(), head)),
    }
}

/// Programs that are built, CPUs, and a directory for what is written.
pub struct Site {
    bench: Bench,
    server_cpu: usize,
    scratch: Scratch,
}

impl Site {
    /// Builds what is measured.
    pub fn prepare(root: &Path) -> io::Result<Site> {
        build(root, ["pummel", "--bin", "pummel"])?;
        build(root, ["pummel-engine", "--example", "floor"])?;
        let target = release(root);
        Site::with(target.join("examples/floor"), target.join("pummel"))
    }

    /// A site with this program, which needs no floor; without one everything is built.
    pub fn of(root: &Path, pummel: Option<&Path>) -> io::Result<Site> {
        match pummel {
            Some(pummel) => Site::with(PathBuf::new(), std::path::absolute(pummel)?),
            None => Site::prepare(root),
        }
    }

    fn with(floor: PathBuf, pummel: PathBuf) -> io::Result<Site> {
        let scratch = Scratch::new()?;
        let cpus = child::allowed_cpus()?;
        let (server_cpu, cpu) = (cpus[0], *cpus.get(1).unwrap_or(&cpus[0]));
        if server_cpu == cpu {
            eprintln!(
                "xtask: there is only one CPU, which server and clients share; the figures say little."
            );
        }
        let bench = Bench { floor, pummel, beside: None, cpu, scratch: scratch.0.clone() };
        Ok(Site { bench, server_cpu, scratch })
    }

    /// The site with another build of pummel; its path may be relative.
    fn beside(mut self, other: Option<&Path>) -> io::Result<Site> {
        self.bench.beside = other.map(std::path::absolute).transpose()?;
        Ok(self)
    }

    /// The CPU of the server.
    pub fn server_cpu(&self) -> usize {
        self.server_cpu
    }

    /// The CPU of the clients.
    pub fn client_cpu(&self) -> usize {
        self.bench.cpu
    }

    /// A directory that is removed at the end.
    pub fn scratch(&self) -> &Path {
        &self.scratch.0
    }

    /// The program pummel.
    pub fn pummel(&self) -> &Path {
        &self.bench.pummel
    }

    /// The kernel interfaces that pummel has here, of those asked for; one that it has not is left out with a note.
    pub fn backends(&self, only: Option<Backend>) -> io::Result<Vec<Backend>> {
        let server = Server::start(Kind::Memcached, self.server_cpu, 64, self.scratch())?;
        let mut found = Vec::new();
        for backend in [Backend::Epoll, Backend::Uring] {
            if only.is_some_and(|only| only != backend) {
                continue;
            }
            match self.bench.refusal(backend, server.port)? {
                None => found.push(backend),
                Some(why) => println!("Left out: pummel on {} ({why})", backend.name()),
            }
        }
        Ok(found)
    }
}

fn measure<'a>(
    site: &Site,
    row: &'a Row,
    backends: &[Backend],
    options: &Options,
    store: &mut Store,
) -> io::Result<Measured<'a>> {
    let all = if options.beside.is_some() { row.with_other_build() } else { row.contenders.to_vec() };
    let lines: Vec<Contender> = all.into_iter().filter(|contender| takes_part(contender, backends)).collect();
    let names: Vec<&str> = lines.iter().map(|contender| contender.name).collect();
    let kept = store.rounds(row.name, &names).unwrap_or_else(|| vec![Vec::new(); lines.len()]);
    let mut measured = Measured { row, lines: lines.into_iter().zip(kept).collect() };
    let done = measured.lines[0].1.len();
    if done >= options.rounds() as usize {
        return Ok(measured);
    }
    may_open(row.connections)?;
    let kind = Kind::of(row.dialect);
    kind.version()?;
    let scratch = site.scratch();
    let server = Server::start(kind, site.server_cpu, row.connections, scratch)?;
    site.bench.load(row, server.port)?;
    let request = site.bench.request(row)?;
    for round in done..options.rounds() as usize {
        eprintln!("bench: {}, round {} of {}", row.name, round + 1, options.rounds());
        let mut floor_rate = measured.lines[0].1.last().map_or(0.0, |figures| figures.requests_per_s);
        let mut figures: Vec<(usize, Figures)> = Vec::new();
        for place in order(measured.lines.len(), round) {
            let contender = &measured.lines[place].0;
            let own = contender.program.needs_own_server();
            let own =
                own.then(|| Server::start(kind, site.server_cpu, row.connections, scratch)).transpose()?;
            let server = own.as_ref().unwrap_or(&server);
            let task =
                Task { row, port: server.port, seconds: options.seconds(), request: &request, floor_rate };
            server.wait_until_left()?;
            let before_s = server.cpu_s()?;
            let seen = site.bench.run(contender, &task)?;
            let server_us = (server.cpu_s()? - before_s) * 1e6 / seen.requests;
            figures.push((place, Figures { server_us, ..seen }));
            if place == 0 {
                floor_rate = seen.requests_per_s;
            }
        }
        // Only whole rounds are kept.
        for (place, figures) in figures {
            measured.lines[place].1.push(figures);
        }
        store.put(measured.json())?;
    }
    Ok(measured)
}

/// The order in which a round runs the programs of a table: who begins takes turns, and so does the direction, so
/// that no place in it favours anybody. The first round begins with the floor, whose rate others need.
fn order(programs: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..programs).collect();
    order.rotate_left(round / 2 % programs);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Measures the start-up of a build of pummel.
fn measure_start_up(
    site: &Site,
    program: &Path,
    backends: &[Backend],
    options: &Options,
    store: &mut Store,
) -> io::Result<startup::Measured> {
    let lines = startup::LINES.iter().filter(|line| backends.contains(&line.backend)).copied();
    let lines: Vec<startup::Line> = lines.collect();
    let names: Vec<&str> = lines.iter().map(|line| line.name).collect();
    let kept = store.rounds(startup::NAME, &names);
    let kept = kept.unwrap_or_else(|| vec![Vec::new(); lines.len()]);
    let mut measured = startup::Measured { lines: lines.into_iter().zip(kept).collect() };
    while measured.lines.first().is_some_and(|(_, rounds)| rounds.len() < options.rounds() as usize) {
        for (line, rounds) in &mut measured.lines {
            rounds.push(startup::measure(&site.bench, program, line)?);
        }
        store.put(measured.json())?;
    }
    Ok(measured)
}

fn takes_part(contender: &Contender, backends: &[Backend]) -> bool {
    match contender.program {
        Program::Floor => true,
        Program::Pummel | Program::OtherPummel => {
            contender.backend.is_none_or(|backend| backends.contains(&backend))
        }
        Program::Memcaslap => is_installed("memcaslap"),
        Program::RedisBenchmark => is_installed("redis-benchmark"),
    }
}

/// Checks that this process and its children may open so many connections; the programs raise their own soft limits.
fn may_open(connections: u32) -> io::Result<()> {
    let needed = u64::from(connections + SPARE_CONNECTIONS);
    match child::open_files_max()? {
        allowed if allowed >= needed => Ok(()),
        allowed => Err(io::Error::other(format!(
            "{needed} open files are needed and {allowed} allowed: raise the hard limit (`ulimit -Hn {needed}` as root)"
        ))),
    }
}

/// Whether a program is installed that is not pummel under its name.
fn is_installed(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.exists());
    found.and_then(|file| file.canonicalize().ok()).is_some_and(|file| !file.ends_with("pummel"))
}

fn kernel() -> io::Result<Value> {
    Ok(Value::from(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()))
}

/// Hash that tells one build of a program from another.
fn fingerprint(program: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::read(program)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Beginning of the names of such directories; the process follows.
const SCRATCH: &str = "pummel-bench-";

/// A directory of this process, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Scratch> {
        let temporary = std::env::temp_dir();
        // An interruption leaves its directory behind, for the next one to remove.
        for entry in fs::read_dir(&temporary)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let process = name.strip_prefix(SCRATCH).filter(|number| number.parse::<u32>().is_ok());
            if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = temporary.join(format!("{SCRATCH}{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{options, refusal};

    #[test]
    fn nobody_is_favoured_by_the_order() {
        assert_eq!(order(3, 0), [0, 1, 2], "the floor's rate is known first");
        for programs in 1..=5 {
            let orders: Vec<Vec<usize>> = (0..2 * programs).map(|round| order(programs, round)).collect();
            for program in 0..programs {
                let place = |order: &Vec<usize>| order.iter().position(|&one| one == program).unwrap();
                for at in 0..programs {
                    assert_eq!(orders.iter().filter(|order| place(order) == at).count(), 2);
                }
                for other in (0..programs).filter(|&other| other != program) {
                    let is_before = |order: &&Vec<usize>| {
                        order.iter().find(|&&one| one == program || one == other) == Some(&program)
                    };
                    assert_eq!(orders.iter().filter(is_before).count(), programs);
                }
            }
        }
    }

    #[test]
    fn options_have_defaults_and_bounds() {
        let own: Options = options("");
        assert_eq!((own.rounds(), own.seconds(), own.chosen().count()), (9, 3, ROWS.len()));
        assert!(own.wants_start_up() && own.backend.is_none());
        let own: Options = options("--quick --rounds 4 --rows depth --json x");
        assert_eq!((own.rounds(), own.seconds(), own.wants_start_up()), (4, 1, false));
        let own: Options = options("--resume x --backend uring --rows start-up");
        assert_eq!((own.backend, own.chosen().count()), (Some(Backend::Uring), 0));
        for (line, words) in [
            ("--rounds 0", "1..=10000"),
            ("--rows nonsense", "get, depth 16; "),
            ("--backend kqueue", "epoll, uring"),
            ("--json x --resume y", "cannot be used with"),
        ] {
            assert!(refusal::<Options>(line).contains(words), "{line}");
        }
    }

    #[test]
    fn clients_on_a_missing_interface_take_no_part() {
        let names = |backends: &[Backend]| -> Vec<&str> {
            let row = ROWS.iter().find(|row| row.name == "get, depth 4").unwrap();
            let lines = row.contenders.iter().filter(|contender| takes_part(contender, backends));
            lines.map(|contender| contender.name).collect()
        };
        assert_eq!(names(&[Backend::Epoll]), ["floor", "pummel epoll"]);
        assert_eq!(names(&[Backend::Epoll, Backend::Uring]), ["floor", "pummel epoll", "pummel uring"]);
    }
}
