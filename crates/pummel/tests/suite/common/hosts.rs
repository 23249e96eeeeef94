//! Machines to place agents on, all of them this one: hosts behind a real sshd, nodes of a real Slurm.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Process, Reserved, Running, until};

/// The path of a program, also of those that are for administrators.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]);
    folders.map(|folder| Path::new(folder).join(name)).find(|file| file.is_file())
}

fn start(program: &Path, words: &[&str], log: &Path) -> Process {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).args(words).stdin(Stdio::null());
    let log = || fs::File::options().create(true).append(true).open(log).expect("it is writable");
    let child = command.stdout(log()).stderr(log()).spawn().expect("setpriv is installed");
    Process(child)
}

/// Runs a program that has to end well.
#[track_caller]
fn call(program: &Path, words: &[&str]) {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().expect("it can be run");
    assert!(output.status.success(), "{program:?} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("it is writable");
}

fn write_program(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).expect("it is writable");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Waits until no process has a command line like this.
#[track_caller]
fn wait_for_the_end_of(is_like: impl Fn(&str) -> bool) {
    until("the end of all that was started", || {
        let numbers = fs::read_dir("/proc").ok()?.flatten();
        let mut lines = numbers.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        let is_left = lines.any(|line| is_like(&line.replace('\0', " ")));
        (!is_left).then_some(())
    });
}

/// Hosts with an sshd and a home each, a configuration of ssh that knows them, and nothing of the user's own.
pub struct Hosts {
    folder: TempDir,
    /// A `PATH` whose first `ssh` reads that configuration.
    path: String,
    /// Of each sshd, by the name of its host.
    ports: BTreeMap<String, Reserved>,
    daemons: Vec<Process>,
}

impl Hosts {
    /// Hosts with these names; nothing, and a word of why, where this machine cannot play them.
    pub fn start(names: &[&str]) -> Option<Hosts> {
        let needs = ["sshd", "ssh", "ssh-keygen"].map(|name| program(name).ok_or(name));
        if let Some(missing) = needs.iter().find_map(|found| found.as_ref().err()) {
            eprintln!("placing agents by ssh is not tested: {missing} is not installed");
            return None;
        }
        let [sshd, ssh, keygen] = needs.map(|found| found.expect("looked at"));
        // Where sshd locks itself in before it knows who is there. Debian makes it when the service starts.
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").expect("root may");
        }
        let folder = TempDir::new().expect("a temporary folder");
        for key in ["host", "user"] {
            let file = folder.path().join(key);
            call(&keygen, &["-q", "-t", "ed25519", "-N", "", "-f", file.to_str().expect("UTF-8")]);
        }
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("it is ours");
        let config = folder.path().join("config");
        write_program(
            &bin.join("ssh"),
            format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", ssh.display(), config.display()),
        );
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut hosts = Hosts { folder, path, ports: BTreeMap::new(), daemons: Vec::new() };
        hosts.configure(&[]);
        for name in names {
            hosts.add(&sshd, name);
        }
        hosts.configure(&[]);
        hosts.try_out(names[0])
    }

    /// Adds hosts to the configuration: name, port, and the host to go through.
    pub fn configure(&mut self, others: &[(&str, u16, Option<&str>)]) {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mut text = format!(
            "Host *\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n GlobalKnownHostsFile /dev/null\n \
             StrictHostKeyChecking yes\n HostKeyAlias all\n HostName 127.0.0.1\n",
            file("user"),
            file("known")
        );
        for (name, reserved) in &self.ports {
            text += &format!("Host {name}\n Port {}\n", reserved.port());
        }
        for (name, port, via) in others {
            text += &format!("Host {name}\n Port {port}\n");
            text += &via.map(|via| format!(" ProxyJump {via}\n")).unwrap_or_default();
        }
        write(&self.folder.path().join("config"), &text);
        let key = fs::read_to_string(self.folder.path().join("host.pub")).expect("ssh-keygen wrote it");
        write(&self.folder.path().join("known"), &format!("all {key}"));
    }

    fn add(&mut self, sshd: &Path, name: &str) {
        let home = self.home(name);
        fs::create_dir_all(home.join("bin")).expect("it is ours");
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let (config, log) = (self.folder.path().join(format!("sshd-{name}")), self.folder.path().join("log"));
        let reserved = Reserved::new();
        let port = reserved.port();
        let text = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             SetEnv HOME={home} PATH={home}/bin:/usr/bin:/bin\n",
            file("host"),
            file("user.pub"),
            home = home.display(),
        );
        write(&config, &text);
        let daemon = start(sshd, &["-D", "-e", "-f", config.to_str().expect("UTF-8")], &log);
        self.ports.insert(name.to_owned(), reserved);
        self.daemons.push(daemon);
        until("an sshd that greets", || {
            let mut greeting = String::new();
            BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?).read_line(&mut greeting).ok()?;
            greeting.starts_with("SSH-").then_some(())
        });
    }

    /// Tries whether this user can log in here at all: some machines know no name for the user, or have the account locked.
    fn try_out(self, name: &str) -> Option<Hosts> {
        let mut command = Command::new(self.folder.path().join("bin/ssh"));
        let output = command.args(["-o", "BatchMode=yes", name, "true"]).stdin(Stdio::null()).output();
        let output = output.expect("ssh can be run");
        if output.status.success() {
            return Some(self);
        }
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        eprintln!(
            "placing agents by ssh is not tested: this user cannot log in to an sshd of its own: {why}"
        );
        None
    }

    pub fn port(&self, name: &str) -> u16 {
        self.ports[name].port()
    }

    pub fn home(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("home-{name}"))
    }

    /// The copies of pummel that this host keeps.
    pub fn copies(&self, name: &str) -> Vec<PathBuf> {
        let folder = self.home(name).join(".cache/pummel");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Installs a program in the `PATH` of this host.
    pub fn install(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write_program(&self.home(name).join("bin/pummel"), bytes);
    }

    /// Starts pummel with `PATH` set so that it meets these hosts.
    pub fn pummel(&self, words: &str) -> Running {
        self.pummel_words(&words.split_whitespace().collect::<Vec<&str>>())
    }

    /// Starts pummel as [`Hosts::pummel`] does, with words that may have blanks in them.
    pub fn pummel_words(&self, words: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        command.env("PATH", &self.path);
        Running::start_as(command, words, None)
    }

    /// Waits until no agent runs on any host, nor any ssh to one.
    #[track_caller]
    pub fn wait_for_silence(&self) {
        let of_ssh = format!(" -F {}/config ", self.folder.path().display());
        let homes = format!("{}/home-", self.folder.path().display());
        wait_for_the_end_of(|line| line.contains(&of_ssh) || line.starts_with(&homes));
    }
}

/// An allocation of two nodes, `n1` and `n2`, in a Slurm of its own.
pub struct Nodes {
    folder: TempDir,
    job: String,
    _daemons: Vec<Process>,
}

impl Nodes {
    /// The allocation; nothing, and a word of why, where this machine has no Slurm.
    pub fn start() -> Option<Nodes> {
        let names = ["munged", "slurmctld", "slurmd", "sinfo", "salloc", "scancel", "srun", "scontrol"];
        if let Some(missing) = names.iter().find(|name| program(name).is_none()) {
            eprintln!("placing agents by Slurm is not tested: {missing} is not installed");
            return None;
        }
        let folder = TempDir::new().expect("a temporary folder");
        configure_slurm(folder.path());
        let log = folder.path().join("log");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (key, socket, pid, seed) = (file("key"), file("munge"), file("munge.pid"), file("seed"));
        let munge_log = file("munge.log");
        let munged = [
            "--foreground",
            "--force",
            "--key-file",
            &key,
            "--socket",
            &socket,
            "--pid-file",
            &pid,
            "--seed-file",
            &seed,
            "--log-file",
            &munge_log,
        ];
        let start = |name: &str, words: &[&str]| start(&program(name).expect("looked for"), words, &log);
        let mut daemons = vec![start("munged", &munged)];
        until("the socket of munged", || folder.path().join("munge").exists().then_some(()));
        let config = file("slurm.conf");
        daemons.push(start("slurmctld", &["-D", "-f", &config]));
        daemons.push(start("slurmd", &["-D", "-f", &config, "-N", "n1"]));
        daemons.push(start("slurmd", &["-D", "-f", &config, "-N", "n2"]));
        let mut nodes = Nodes { folder, job: String::new(), _daemons: daemons };
        until("two idle nodes", || {
            nodes.ask("sinfo", &["-h", "-t", "idle", "-o", "%D"]).0.starts_with('2').then_some(())
        });
        let said = nodes.ask("salloc", &["--nodes=2", "--exclusive", "--no-shell"]).1;
        let job =
            said.split("Granted job allocation ").nth(1).and_then(|rest| rest.split_whitespace().next());
        nodes.job = job.unwrap_or_else(|| panic!("no allocation: {said}")).to_owned();
        Some(nodes)
    }

    /// Words of a program of Slurm on standard output and on standard error.
    fn ask(&self, name: &str, words: &[&str]) -> (String, String) {
        let mut command = Command::new(program(name).expect("looked for"));
        let output = command.args(words).env("SLURM_CONF", self.config()).stdin(Stdio::null()).output();
        let output = output.expect("it can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    fn config(&self) -> String {
        self.folder.path().join("slurm.conf").display().to_string()
    }

    /// Starts pummel inside the allocation.
    pub fn pummel(&self, words: &str) -> Running {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        command.env("SLURM_CONF", self.config());
        command.env("SLURM_JOB_ID", &self.job).env("SLURM_JOB_NODELIST", "n[1-2]");
        Running::start_as(command, &words, None)
    }

    /// Waits until nothing runs on the nodes.
    #[track_caller]
    pub fn wait_for_silence(&self) {
        let step = format!("slurmstepd: [{}.", self.job);
        let own = format!("{} agent --listen 127.0.0.", env!("CARGO_BIN_EXE_pummel"));
        wait_for_the_end_of(|line| line.starts_with(&step) || line.starts_with(&own));
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.ask("scancel", &[&self.job]);
        let step = format!("slurmstepd: [{}.", self.job);
        wait_for_the_end_of(|line| line.starts_with(&step));
    }
}

fn configure_slurm(folder: &Path) {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("this machine has a name");
    let (host, at) = (host.trim(), folder.display());
    let user = Command::new("id").arg("-un").output().expect("id is there").stdout;
    let user = String::from_utf8(user).expect("UTF-8");
    // Held together, so that each is another.
    let holders = [Reserved::new(), Reserved::new(), Reserved::new()];
    let [control, one, two] = holders.each_ref().map(Reserved::port);
    let mut key = vec![0; 128];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key)).expect("chance");
    let key_file = folder.join("key");
    fs::write(&key_file, key).expect("it is writable");
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o400)).expect("it is ours");
    let user = user.trim();
    let text = format!(
        "ClusterName=pummel\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\nSlurmUser={user}\n\
         SlurmdUser={user}\nAuthType=auth/munge\nAuthInfo=socket={at}/munge\nStateSaveLocation={at}/state\n\
         SlurmdSpoolDir={at}/%n\nSlurmctldPidFile={at}/control.pid\nSlurmdPidFile={at}/%n.pid\n\
         SlurmctldLogFile={at}/control.log\nSlurmdLogFile={at}/%n.log\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\nMpiDefault=none\nReturnToService=2\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n\
         NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.2 Port={one} CPUs=2 RealMemory=500\n\
         NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.3 Port={two} CPUs=2 RealMemory=500\n\
         PartitionName=main Nodes=n1,n2 Default=YES State=UP\n"
    );
    write(&folder.join("slurm.conf"), &text);
    for name in ["state", "n1", "n2"] {
        fs::create_dir(folder.join(name)).expect("it is ours");
    }
}
