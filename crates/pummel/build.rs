//! Tells the program which build it is: commit, hash of the sources, profile, target and features.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of all crates of the program; nothing else stands there.
const CRATES: &str = "..";

/// Files that decide in a crate what the program does, where the crate has it.
const PARTS: [&str; 3] = ["Cargo.toml", "proto", "src"];

/// Files that decide for all crates what the program does.
const WORKSPACE: [&str; 2] = ["../../Cargo.lock", "../../Cargo.toml"];

/// The folder of git, in a checkout; in a work tree, the file that says where it is.
const GIT: &str = "../../.git";

/// Length of a commit's name as it is told.
const COMMIT_LEN: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    tell("PUMMEL_SOURCES", &format!("{:016x}", sources()?));
    // A build for development leaves the commit out, so that a commit alone does not make it build again.
    let profile = profile(Path::new(&env::var("OUT_DIR")?)).unwrap_or(env::var("PROFILE")?);
    let commit = if matches!(profile.as_str(), "dev" | "debug") { None } else { commit() };
    tell("PUMMEL_COMMIT", commit.as_deref().unwrap_or("unknown"));
    tell("PUMMEL_PROFILE", &profile);
    tell("PUMMEL_TARGET", &env::var("TARGET")?);
    let is_built_in = |name: &&str| env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some();
    let features: Vec<&str> = ["agents", "live", "parquet"].into_iter().filter(is_built_in).collect();
    tell("PUMMEL_FEATURES", &if features.is_empty() { "none".to_owned() } else { features.join(", ") });
    Ok(())
}

fn tell(name: &str, value: &str) {
    println!("cargo::rustc-env={name}={value}");
}

/// The name of the profile. `PROFILE` says only which of cargo's two a profile inherits from; the folder that the build
/// writes to, `.../PROFILE/build/PACKAGE/out`, says the name itself, but `debug` for `dev`.
fn profile(out: &Path) -> Option<String> {
    let name = out.ancestors().nth(3)?.file_name()?.to_str()?;
    let is_build_folder = out.ancestors().nth(2)?.file_name()? == "build";
    is_build_folder.then(|| if name == "debug" { "dev".to_owned() } else { name.to_owned() })
}

/// The hash of everything that decides what the program does; cargo runs this script again when any of it changes.
fn sources() -> io::Result<u64> {
    let mut hash = Hash::new();
    let mut crates: Vec<PathBuf> =
        fs::read_dir(CRATES)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    crates.sort();
    let parts = crates.iter().flat_map(|folder| PARTS.map(|part| folder.join(part)));
    for source in parts.filter(|part| part.exists()).chain(WORKSPACE.map(PathBuf::from)) {
        println!("cargo::rerun-if-changed={}", source.display());
        add(&source, &mut hash)?;
    }
    Ok(hash.0)
}

/// FNV-1a with 64 bits: sources that differ by accident have different hashes.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        for byte in length.to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Adds a file, or all files of a folder in the order of their names.
fn add(path: &Path, hash: &mut Hash) -> io::Result<()> {
    hash.add(path.to_string_lossy().as_bytes());
    if !path.is_dir() {
        hash.add(&fs::read(path)?);
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| add(entry, hash))
}

/// The commit of the checkout that is built, read without git; `None` where there is none, as in an archive.
fn commit() -> Option<String> {
    let git = git_folder(Path::new(GIT))?;
    // Each commit and each checkout adds a line here, also where the branch has no file of its own yet.
    read(&git.join("logs/HEAD"));
    let head = read(&git.join("HEAD"))?;
    let name = match head.strip_prefix("ref: ") {
        None => head,
        Some(branch) => commit_of(&git, branch)?,
    };
    let is_name = name.len() >= COMMIT_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| name[..COMMIT_LEN].to_owned())
}

fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let folder = read(git)?.strip_prefix("gitdir: ")?.to_owned();
    Some(git.parent()?.join(folder))
}

fn commit_of(git: &Path, branch: &str) -> Option<String> {
    // A work tree has its own HEAD, and its branches with those of the repository.
    let common = read(&git.join("commondir")).map_or_else(|| git.to_owned(), |common| git.join(common));
    read(&common.join(branch)).or_else(|| {
        let packed = read(&common.join("packed-refs"))?;
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(_, name)| *name == branch).map(|(commit, _)| commit.to_owned())
    })
}

/// The text of a file without its last line break; cargo runs this script again when the file changes.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim_end().to_owned())
}
