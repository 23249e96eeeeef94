//! Child processes that never outlive their use, with what they cost.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time between two looks at a process: rare enough to cost the measured ones nothing.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time between two looks at a process that starts.
const START_LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ticks per second in /proc, on every Linux that this project runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running process; dropping it ends it.
pub struct Child {
    process: std::process::Child,
    name: String,
}

/// A process that ended by itself.
pub struct Ended {
    /// CPU time in user mode over its life, in seconds.
    pub cpu_user_s: f64,
    /// CPU time in the kernel over its life, in seconds.
    pub cpu_system_s: f64,
    /// Peak of its resident memory in bytes.
    pub peak_rss_bytes: u64,
    /// Whether it ended with status 0.
    pub success: bool,
}

impl Child {
    /// Starts `program` on one CPU; standard output and error go to files named after `log`.
    ///
    /// The kernel ends it when this process dies, whatever the cause. `identity` are further arguments of setpriv.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        cpu: usize,
        identity: &[&str],
        log: &Path,
    ) -> io::Result<Child> {
        // A shell starts what runs in the background with interrupts ignored, and whatever that starts inherits it.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg("setpriv").args(identity).arg("--pdeathsig=KILL");
        command.arg("taskset").arg("--cpu-list").arg(cpu.to_string());
        command.arg(program).args(arguments);
        command.stdin(Stdio::null());
        command
            .stdout(File::create(log.with_extension("out"))?)
            .stderr(File::create(log.with_extension("err"))?);
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot start {name} by setpriv and taskset (util-linux): {error}"),
            )
        })?;
        Ok(Child { process, name })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// Looks again and again until something is found; `None` when the process ended or `limit` has passed before.
    pub fn until<T>(
        &mut self,
        limit: Duration,
        mut look: impl FnMut() -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        let begin = Instant::now();
        while begin.elapsed() < limit && self.is_running()? {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            std::thread::sleep(START_LOOK_EVERY);
        }
        Ok(None)
    }

    /// CPU time that it has taken so far, in seconds; as exact as a tick of /proc.
    pub fn cpu_s(&self) -> io::Result<f64> {
        Figures::of(self.process.id()).map(|figures| figures.cpu_user_s + figures.cpu_system_s)
    }

    /// The number of open descriptors of the process.
    pub fn descriptors(&self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// Asks it to end in order, as Ctrl-C does.
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal("INT")
    }

    /// Sends it the signal of this name, such as `STOP`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let line = format!("kill -{name} {}", self.process.id());
        let status = Command::new("sh").arg("-c").arg(line).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{} is gone", self.name))) }
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it ends by itself, at most until `limit` has passed.
    pub fn wait(mut self, limit: Duration) -> io::Result<Ended> {
        let begin = Instant::now();
        let mut peak_rss_bytes = 0;
        while begin.elapsed() < limit {
            // A process that ended keeps its figures until it is waited for, but not its memory.
            let figures = Figures::of(self.process.id())?;
            peak_rss_bytes = peak_rss_bytes.max(figures.peak_rss_bytes);
            if figures.has_ended {
                let success = self.process.wait()?.success();
                let Figures { cpu_user_s, cpu_system_s, .. } = figures;
                return Ok(Ended { cpu_user_s, cpu_system_s, peak_rss_bytes, success });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(io::Error::other(format!("{} did not end within {} s", self.name, limit.as_secs())))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only where the process is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Figures {
    has_ended: bool,
    cpu_user_s: f64,
    cpu_system_s: f64,
    peak_rss_bytes: u64,
}

impl Figures {
    fn of(pid: u32) -> io::Result<Figures> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Figures::parse(&stat, &status)
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not understood: {stat}")))
    }

    /// Fields as proc(5) numbers them: 3 state, 14 user time, 15 system time; the name, field 2, may hold anything.
    fn parse(stat: &str, status: &str) -> Option<Figures> {
        let (_, behind_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = behind_name.split_whitespace().collect();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let peak_kib =
            field(status, "VmHWM:").and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
        Some(Figures {
            has_ended: matches!(*fields.first()?, "Z" | "X"),
            cpu_user_s: ticks(14)? / TICKS_PER_SECOND,
            cpu_system_s: ticks(15)? / TICKS_PER_SECOND,
            peak_rss_bytes: peak_kib.unwrap_or(0) * 1024,
        })
    }
}

/// The CPUs that this process may run on.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = field(&status, "Cpus_allowed_list:").unwrap_or_default();
    parse_cpus(list).ok_or_else(|| io::Error::other(format!("/proc/self/status has no list of CPUs: {list}")))
}

/// A list as the kernel writes it: `0-2,5`.
fn parse_cpus(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Most files that a process that is started here may have open.
pub fn open_files_max() -> io::Result<u64> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    parse_open_files_max(&limits)
        .ok_or_else(|| io::Error::other(format!("/proc/self/limits is not understood:\n{limits}")))
}

/// The hard limit, which every program may raise its own to.
fn parse_open_files_max(limits: &str) -> Option<u64> {
    match field(limits, "Max open files")?.split_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_any_name_is_understood() {
        let stat = "7 (a) R (b) Z 1 7 7 0 -1 4 1 0 0 0 250 125 0 0 20 0 1 0 9";
        let figures = Figures::parse(stat, "Name:\tx\nVmHWM:\t    12 kB\n").unwrap();
        assert!(figures.has_ended);
        assert_eq!((figures.cpu_user_s, figures.cpu_system_s, figures.peak_rss_bytes), (2.5, 1.25, 12_288));
    }

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpus("0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(parse_cpus("3").unwrap(), [3]);
        assert_eq!(parse_cpus(""), None);
    }

    #[test]
    fn the_limit_of_open_files_is_the_hard_one() {
        let limits =
            |hard| format!("Limit  Soft Limit  Hard Limit  Units\nMax open files   1024   {hard}   files\n");
        assert_eq!(parse_open_files_max(&limits("20000")), Some(20_000));
        assert_eq!(parse_open_files_max(&limits("unlimited")), Some(u64::MAX));
        assert_eq!(parse_open_files_max("Limit\n"), None);
    }

    #[test]
    fn a_child_that_is_interrupted_ends_by_itself() {
        let scratch = tempfile::tempdir().unwrap();
        let cpu = allowed_cpus().unwrap()[0];
        let log = scratch.path().join("sleep");
        let child = Child::start(Path::new("sleep"), ["600"], cpu, &[], &log).unwrap();
        // Where this process was started to ignore interrupts, the child does until it is the program.
        let comm = format!("/proc/{}/comm", child.process.id());
        let end = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(&comm).unwrap() != "sleep\n" {
            assert!(Instant::now() < end, "it never came to be the program");
            std::thread::sleep(LOOK_EVERY);
        }
        child.interrupt().unwrap();
        assert!(!child.wait(Duration::from_secs(60)).unwrap().success);
    }

    #[test]
    fn a_child_that_does_not_end_is_ended() {
        let scratch = tempfile::tempdir().unwrap();
        let cpu = allowed_cpus().unwrap()[0];
        let log = scratch.path().join("sleep");
        let child = Child::start(Path::new("sleep"), ["600"], cpu, &[], &log).unwrap();
        let pid = child.process.id();
        assert!(child.wait(Duration::from_millis(1)).is_err());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn the_status_of_a_child_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let cpu = allowed_cpus().unwrap()[0];
        for (program, success) in [("true", true), ("false", false)] {
            let child =
                Child::start(Path::new(program), [""; 0], cpu, &[], &scratch.path().join(program)).unwrap();
            assert_eq!(child.wait(Duration::from_secs(60)).unwrap().success, success);
        }
    }
}
