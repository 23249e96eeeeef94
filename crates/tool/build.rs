//! Turns the protocol of agents into Rust, without a protoc, and tells the program which build it is.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "agents")]
    {
        agents::compile_protocol()?;
        agents::tell_build()?;
    }
    Ok(())
}

#[cfg(feature = "agents")]
mod agents {
    use std::error::Error;
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    use prost::Message;

    const PROTO: &str = "proto/agent.proto";

    /// Everything that decides what the program does.
    const SOURCES: [&str; 8] = [
        "Cargo.toml",
        "proto",
        "src",
        "../engine/Cargo.toml",
        "../engine/src",
        "../logic/Cargo.toml",
        "../logic/src",
        "../../Cargo.lock",
    ];

    /// The folder of git, in a checkout; in a work tree, the file that says where it is.
    const GIT: &str = "../../.git";

    /// Length of a commit's name as it is told.
    const COMMIT_LEN: usize = 12;

    pub fn compile_protocol() -> Result<(), Box<dyn Error>> {
        let described = protox::compile([PROTO], ["proto"])?;
        let out = PathBuf::from(std::env::var("OUT_DIR")?);
        fs::write(out.join("agent.bin"), described.encode_to_vec())?;
        tonic_prost_build::configure().bytes(".").compile_fds(described)?;
        Ok(())
    }

    /// Hands the commit and a hash of the sources to the program.
    pub fn tell_build() -> Result<(), Box<dyn Error>> {
        let mut hash = Hash::new();
        for source in SOURCES {
            println!("cargo::rerun-if-changed={source}");
            add(Path::new(source), &mut hash)?;
        }
        println!("cargo::rustc-env=PUMMEL_SOURCES={:016x}", hash.0);
        // A build for development leaves the commit out, so that a commit alone does not make it build again.
        let is_release = std::env::var("PROFILE")? == "release";
        let commit = if is_release { commit() } else { None };
        println!("cargo::rustc-env=PUMMEL_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
        Ok(())
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
}
