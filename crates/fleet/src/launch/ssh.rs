//! Agents by the system's `ssh`: each on the loopback of its host, reached through the connection that started it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pummel_fronts::launch_spec::Destination;
use pummel_logic::secrets::Secret;

use crate::launch::launched::{LaunchError, LaunchedAgent, LaunchedAgents, random_token};
use crate::launch::process::{ChildProcess, SILENCE_MAX};
use crate::launch::program::Program;
use crate::launch::wait::{LaunchOptions, MARK, Stopped, Wait, address_of};

/// Connections that are opened at the same time. A server or a jump host drops some beyond ten (sshd_config(5),
/// MaxStartups).
const AT_ONCE_MAX: usize = 8;

/// A path of a socket may have 107 bytes (unix(7)), of which ssh takes 17 for a name that it uses for a moment.
const FOLDER_BYTES_MAX: usize = 80;

/// Number of attempts in which a port that was free is found taken.
const PORT_TRIALS: u32 = 5;

/// Script that runs on the host: finds this program there, or asks for it, and becomes the agent.
///
/// Its words are the sum, the size, the version and the platform of the program, how long the agent bears silence, and an
/// option `--allow-file` for each file that the plan names. It is one line without quotation marks, exclamation marks and
/// backslashes, so that every shell hands it to `sh` as it is. A program of the same version but of another build is taken
/// only where our own cannot run.
const SCRIPT: &str = r#"d=${XDG_CACHE_HOME:-$HOME/.cache}/pummel; f=$d/pummel-$3-$1; p=$(command -v pummel); fail() { echo "pummel: fail $*"; exit 1; }; same() { [ -x "$1" ] && [ "$(md5sum <"$1" | cut -c1-32)" = "$2" ]; }; if same "$f" "$1"; then touch "$f"; elif same "$p" "$1"; then f=$p; elif [ "$(uname -sm)" = "$4" ]; then { mkdir -p "$d" && t=$(mktemp "$d/new.XXXXXX"); } || fail "cannot write into $d"; echo "pummel: send $f"; head -c "$2" >"$t"; chmod 755 "$t"; same "$t" "$1" || { rm -f "$t"; fail "the copy of this program did not arrive whole in $d"; }; v=$("$t" -V 2>&1); [ "$v" = "pummel $3" ] || { rm -f "$t"; fail "the copy of this program does not run there: $v"; }; mv -f "$t" "$f" || fail "cannot write $f"; find "$d" -type f -mtime +30 -exec rm -f {} +; elif [ "$("$p" -V 2>&1)" = "pummel $3" ]; then f=$p; else fail "it is $(uname -sm), this program is for $4, and there is no pummel $3 in its PATH"; fi; echo "pummel: run $f"; s=$5; shift 5; exec "$f" agent --listen 127.0.0.1:0 --token-file - --exit-with-stdin="$s" "$@""#;

/// Starts one agent on each host.
pub(super) fn launch(
    hosts: &[Destination],
    options: LaunchOptions<'_>,
) -> Result<LaunchedAgents, LaunchError> {
    let program = Program::own()
        .map_err(|error| LaunchError::Here(format!("cannot read this program to copy it: {error}")))?;
    let folder = Folder::make().map_err(|error| {
        LaunchError::Here(format!(
            "cannot make a folder for the sockets of ssh: {error}; TMPDIR names another place"
        ))
    })?;
    let token =
        random_token().map_err(|error| LaunchError::Here(format!("no token can be made: {error}")))?;
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..hosts.len().min(AT_ONCE_MAX) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(host) = hosts.get(index) else { return };
                    let control = folder.socket(index);
                    let launch = HostLaunch { host, program: &program, token: &token, control, options };
                    let result = launch.launch();
                    // Those under way go on, so that all that do not answer are named at once.
                    if result.is_err() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    gather(hosts, results)
}

/// Outcome of a host: an agent, with the connection that it hangs on, or a reason why not.
type Outcome = Result<(LaunchedAgent, ChildProcess), Stopped>;

/// The hosts are named by their index.
fn gather(hosts: &[Destination], results: Vec<(usize, Outcome)>) -> Result<LaunchedAgents, LaunchError> {
    let mut launched = LaunchedAgents { agents: Vec::new(), processes: Vec::new() };
    let mut failures = Vec::new();
    let mut is_unwanted = false;
    for (index, result) in results {
        match result {
            Ok((agent, process)) => {
                launched.agents.push(agent);
                launched.processes.push(process);
            }
            Err(Stopped::Because(why)) => failures.push((hosts[index].to_string(), why)),
            Err(Stopped::Unwanted) => is_unwanted = true,
        }
    }
    if is_unwanted {
        return Err(LaunchError::Interrupted);
    }
    if failures.is_empty() { Ok(launched) } else { Err(LaunchError::There(failures)) }
}

/// The way to one host.
struct HostLaunch<'a> {
    host: &'a Destination,
    program: &'a Program,
    /// The token that the agent asks for: others may have accounts on its host, or here.
    token: &'a str,
    /// The socket by which more is asked of the connection.
    control: PathBuf,
    options: LaunchOptions<'a>,
}

impl HostLaunch<'_> {
    fn launch(&self) -> Outcome {
        let command = remote_command(self.program, self.options.files).map_err(Stopped::Because)?;
        let argv = session_argv(self.host, &self.control, self.options.patience, &command);
        let mut process = start(&argv)?;
        let there = self.start_agent(&mut process)?;
        let address = self.forward(there)?;
        Ok((LaunchedAgent { name: self.host.to_string(), address, token: Secret::new(self.token) }, process))
    }

    /// Waits until the agent listens; returns its address on its own host.
    fn start_agent(&self, process: &mut ChildProcess) -> Result<SocketAddr, Stopped> {
        let mut wait = Wait::new(process, self.options);
        let mut is_running = false;
        while let Some(line) = wait.line()? {
            if let Some(address) = address_of(&line).filter(|_| is_running) {
                wait.process.pulse();
                return Ok(address);
            }
            let Some((verb, rest)) = line.strip_prefix(MARK).and_then(|line| line.split_once(' ')) else {
                continue;
            };
            match verb {
                "send" => {
                    (self.options.tell)(&format!("agent {}: this program is copied to {rest}", self.host));
                    wait.process.give(self.program.bytes.clone());
                }
                "run" => {
                    is_running = true;
                    wait.process.give(format!("{}\n", self.token).into_bytes().into());
                }
                "fail" => return Err(Stopped::Because(rest.to_owned())),
                _ => continue,
            }
            wait.renew();
        }
        Err(wait.unexpected_end("ssh"))
    }

    /// Makes the agent reachable from here, through the connection that is open.
    fn forward(&self, there: SocketAddr) -> Result<SocketAddr, Stopped> {
        let mut trial = 1;
        loop {
            let here =
                free_port().map_err(|error| Stopped::Because(format!("no free port here: {error}")))?;
            let argv = forward_argv(self.host, &self.control, here, there);
            let mut process = start(&argv)?;
            let mut wait = Wait::new(&mut process, self.options);
            while wait.line()?.is_some() {}
            if wait.ended().is_some_and(|status| status.success()) {
                return Ok(here);
            }
            if trial == PORT_TRIALS {
                return Err(wait.unexpected_end("the ssh that should forward a port to it"));
            }
            trial += 1;
        }
    }
}

fn start(argv: &[OsString]) -> Result<ChildProcess, Stopped> {
    ChildProcess::start(argv).map_err(|error| Stopped::Because(format!("cannot run ssh: {error}")))
}

/// A port of loopback that is free at the moment.
fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Command for a shell of any kind on the host, where the agent reads these files.
///
/// # Errors
/// Returns the file whose name shells do not agree about.
fn remote_command(program: &Program, files: &BTreeSet<String>) -> Result<String, String> {
    let (size, silence) = (program.bytes.len(), SILENCE_MAX.as_secs());
    let Program { sum, version, platform, .. } = program;
    let mut command = format!("exec sh -c '{SCRIPT}' pummel {sum} {size} {version} '{platform}' {silence}s");
    for file in files {
        if file.chars().any(|letter| "'!\\".contains(letter) || letter.is_control()) {
            return Err(format!(
                "the plan names the file '{}', and a name with a quotation mark, an exclamation mark, a backslash or a \
                 control character cannot be handed over by ssh",
                file.escape_debug()
            ));
        }
        command += &format!(" '--allow-file={file}'");
    }
    Ok(command)
}

/// The command line of the connection itself. What the user's configuration says of how to reach the host holds; what
/// would ask questions, take our input or open other ports does not.
fn session_argv(host: &Destination, control: &Path, patience: Duration, command: &str) -> Vec<OsString> {
    let timeout = format!("ConnectTimeout={}", patience.as_secs_f64().ceil().max(1.0));
    let options = [
        "BatchMode=yes",
        &timeout,
        "ControlMaster=yes",
        "ControlPersist=no",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
        "RequestTTY=no",
    ];
    let mut argv: Vec<OsString> = vec!["ssh".into(), "-S".into(), control.into()];
    argv.extend(options.iter().flat_map(|option| ["-o".into(), OsString::from(option)]));
    argv.extend(host.port.iter().flat_map(|port| ["-p".into(), port.to_string().into()]));
    argv.extend(["--".into(), (&host.host).into(), command.into()]);
    argv
}

/// The command line that asks an open connection to forward a port. It meets no network, and so needs no configuration.
fn forward_argv(host: &Destination, control: &Path, here: SocketAddr, there: SocketAddr) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec!["ssh".into(), "-F".into(), "none".into(), "-S".into(), control.into()];
    argv.extend(["-O".into(), "forward".into(), "-L".into(), format!("{here}:{there}").into()]);
    argv.extend(["--".into(), (&host.host).into()]);
    argv
}

/// A folder that only this user may enter, for as long as this value lives.
struct Folder(PathBuf);

impl Folder {
    fn make() -> io::Result<Folder> {
        let name = format!("pummel-{}", &random_token()?[..16]);
        let usual = std::env::temp_dir().join(&name);
        let is_short = usual.as_os_str().len() <= FOLDER_BYTES_MAX;
        let path = if is_short { usual } else { Path::new("/tmp").join(name) };
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }

    fn socket(&self, index: usize) -> PathBuf {
        self.0.join(index.to_string())
    }
}

impl Drop for Folder {
    /// The sockets in it are not needed any more once the ports are forwarded.
    fn drop(&mut self) {
        // A folder that is left over does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn words(argv: &[OsString]) -> Vec<&str> {
        argv.iter().map(|word| word.to_str().expect("UTF-8")).collect()
    }

    fn host(name: &str, port: Option<u16>) -> Destination {
        Destination { host: name.to_owned(), port }
    }

    #[test]
    fn every_shell_hands_the_script_on_as_it_is() {
        assert!(!SCRIPT.contains(['\'', '!', '\\', '\n']), "{SCRIPT}");
    }

    #[test]
    fn the_files_of_a_plan_are_handed_over_word_by_word_or_not_at_all() {
        let program = Program {
            bytes: Vec::new().into(),
            sum: "0".to_owned(),
            version: "1",
            platform: "Linux x".to_owned(),
        };
        let command =
            |files: &[&str]| remote_command(&program, &files.iter().map(|file| (*file).to_owned()).collect());
        let plain = command(&[]).expect("no file");
        assert!(plain.ends_with("'Linux x' 20s"), "{plain}");
        assert_eq!(
            command(&["b", "/a b/$c"]),
            Ok(format!("{plain} '--allow-file=/a b/$c' '--allow-file=b'"))
        );
        for bad in ["it's", "a!", "a\\", "a\n"] {
            let why = command(&[bad]).expect_err("shells do not agree about it");
            assert!(why.contains("cannot be handed over"), "{why}");
        }
    }

    #[test]
    fn a_connection_is_opened_by_the_users_configuration_and_asks_nothing() {
        let patience = Duration::from_millis(2500);
        let argv = session_argv(&host("me@a", Some(2222)), Path::new("/tmp/x/0"), patience, "exec true");
        let argv = words(&argv);
        assert_eq!(argv[..3], ["ssh", "-S", "/tmp/x/0"]);
        assert_eq!(argv[argv.len() - 5..], ["-p", "2222", "--", "me@a", "exec true"]);
        for option in ["BatchMode=yes", "ConnectTimeout=3", "ControlMaster=yes", "ControlPersist=no"] {
            assert!(argv.windows(2).any(|pair| pair == ["-o", option]), "{option}");
        }
        assert!(!argv.contains(&"-F") && !argv.iter().any(|word| word.contains("StrictHostKeyChecking")));
        let argv = session_argv(&host("a", None), Path::new("/tmp/x/0"), patience, "exec true");
        assert!(!words(&argv).contains(&"-p"));
    }

    #[test]
    fn a_port_is_forwarded_over_the_open_connection() {
        let (here, there) =
            ("127.0.0.1:4001".parse().expect("good"), "127.0.0.1:5001".parse().expect("good"));
        let argv = forward_argv(&host("me@a", Some(2222)), Path::new("/tmp/x/0"), here, there);
        let forward = "127.0.0.1:4001:127.0.0.1:5001";
        let wanted = ["ssh", "-F", "none", "-S", "/tmp/x/0", "-O", "forward", "-L", forward, "--", "me@a"];
        assert_eq!(words(&argv), wanted);
    }

    #[test]
    fn the_folder_of_the_sockets_is_private_short_and_goes_away() {
        let folder = Folder::make().expect("made");
        let path = folder.0.clone();
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(path.as_os_str().len() <= FOLDER_BYTES_MAX);
        drop(folder);
        assert!(!path.exists());
    }
}
