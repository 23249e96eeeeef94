//! The files of a trace, unpacked while they are read: plain, packed by gzip or by zstd, or standard input.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

use flate2::bufread::MultiGzDecoder;
use pummel_traffic::unpacked::Unpacked;

use crate::run::TraceFiles;

/// The first bytes of a file that gzip packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of a file that zstd packed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes that are read from a file at once.
const BUFFER_BYTES: usize = 1 << 18;

/// The name of standard input.
pub const STDIN: &str = "-";

/// Files by their paths, which are opened when they are read.
#[derive(Clone, Debug)]
pub struct FilesByPath(pub Vec<String>);

impl TraceFiles for FilesByPath {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, number: usize) -> String {
        self.0[number].clone()
    }

    fn open(&self, number: usize) -> io::Result<Box<dyn Read + Send>> {
        match self.0[number].as_str() {
            STDIN => unpacked(io::stdin()),
            path => unpacked(File::open(path)?),
        }
    }
}

/// Files that are open already, by their names.
#[derive(Debug)]
pub struct OpenFiles(pub Vec<(String, File)>);

impl TraceFiles for OpenFiles {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, number: usize) -> String {
        self.0[number].0.clone()
    }

    fn open(&self, number: usize) -> io::Result<Box<dyn Read + Send>> {
        let mut file = self.0[number].1.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        unpacked(file)
    }
}

/// The contents of a file, unpacked where its first bytes say that gzip or zstd packed it.
///
/// # Errors
/// Returns the error of the file when its first bytes cannot be read.
pub fn unpacked(mut file: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    file.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first)?;
    let (is_gzip, is_zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(file));
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(BufReader::with_capacity(BUFFER_BYTES, Unpacked::new(whole))),
        _ => Box::new(whole),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn contents(bytes: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        unpacked(Cursor::new(bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn packed_files_are_unpacked_by_their_first_bytes() {
        let text = "0,k,1,1,1,get,0\n".repeat(10_000);
        let gzip = || {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(text.as_bytes()).expect("memory");
            packer.finish().expect("memory")
        };
        let zstd = compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
        assert_eq!(contents(text.clone().into_bytes()).expect("plain"), text);
        assert_eq!(contents([gzip(), gzip()].concat()).expect("two members"), text.repeat(2));
        assert_eq!(contents([zstd.clone(), zstd].concat()).expect("two frames"), text.repeat(2));
        assert_eq!(contents(Vec::new()).expect("nothing"), "");
        let cut = gzip();
        assert!(contents(cut[..cut.len() / 2].to_vec()).is_err(), "a file that was cut is no whole one");
    }

    #[test]
    fn open_files_are_read_from_their_beginning_again() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"text").expect("written");
        let files = OpenFiles(vec![("t".to_owned(), file)]);
        for _ in 0..2 {
            let mut text = String::new();
            files.open(0).expect("open").read_to_string(&mut text).expect("text");
            assert_eq!(text, "text");
        }
    }
}
