//! This program as a file to be copied to another machine, and how it is known there.

use std::fs;
use std::io;
use std::sync::Arc;

use md5::{Digest, Md5};

/// This program as a file.
#[derive(Clone, Debug)]
pub struct Program {
    /// The bytes of the file.
    pub bytes: Arc<[u8]>,
    /// The MD5 sum of the file, in hexadecimal: it tells builds apart, and is no protection.
    pub sum: String,
    /// The number of the version.
    pub version: &'static str,
    /// The machines that it runs on, as `uname -sm` names them.
    pub platform: String,
}

impl Program {
    /// The program of this process, even where its file has been replaced meanwhile.
    ///
    /// # Errors
    /// Returns the error of the system when the file cannot be read.
    pub fn own() -> io::Result<Program> {
        let bytes: Arc<[u8]> = fs::read("/proc/self/exe")?.into();
        let sum = Md5::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let platform = format!("Linux {}", std::env::consts::ARCH);
        Ok(Program { bytes, sum, version: env!("CARGO_PKG_VERSION"), platform })
    }
}
