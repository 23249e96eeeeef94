//! The rows of a plan's dataset, packed in memory, or in a temporary file where they are too many.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use pummel_logic::plan::memory::PACKED_MAX_BYTES;
use pummel_logic::plan::{Dataset, Plan};
use pummel_logic::workload::dataset::{PackedBytes, PackedRows};
use pummel_traffic::dataset::RowReader;

use crate::run::trace_files::unpacked;
use crate::sys::mapping::Mapping;

/// Rows between two checks that the rows are still wanted.
const ROWS_PER_CHECK: u64 = 4_096;

/// Packs the rows of a dataset that is open as `file`, as long as `check`, which is asked repeatedly, accepts it.
///
/// # Errors
/// Returns the error of `check`, and an error that names the file where it cannot be read or unpacked, a row is none, it has not the
/// columns that commands name, or there is no room for the rows.
pub fn dataset_rows(
    plan: &Plan,
    dataset: &Dataset,
    file: File,
    check: &dyn Fn() -> io::Result<()>,
) -> io::Result<PackedRows> {
    pack(plan, dataset, file, check, PACKED_MAX_BYTES).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read '{}': {error}", dataset.path.escape_debug()))
    })
}

fn pack(
    plan: &Plan,
    dataset: &Dataset,
    file: File,
    check: &dyn Fn() -> io::Result<()>,
    memory_max_bytes: usize,
) -> io::Result<PackedRows> {
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let wrong = |words: String| io::Error::new(io::ErrorKind::InvalidData, words);
    let unknown_form = || wrong(format!("its name does not end in {}", Dataset::ENDINGS));
    let form = dataset.form().ok_or_else(unknown_form)?;
    let names = plan.dataset_fields();
    let (mut ends, mut fields) = (Spill::new(memory_max_bytes), Spill::new(memory_max_bytes));
    let mut rows: u64 = 0;
    RowReader::new(form, &names).read(unpacked(file)?, &mut |row| {
        if rows.is_multiple_of(ROWS_PER_CHECK) {
            check()?;
        }
        rows += 1;
        for field in row {
            fields.push(field)?;
            ends.push(&fields.len_bytes.to_le_bytes())?;
        }
        Ok(())
    })?;
    let rows = PackedRows::new(names.len(), ends.finish()?, fields.finish()?);
    rows.ok_or_else(|| wrong("it holds no row".to_owned()))
}

/// Bytes that are held in memory up to a limit, and beyond it in a temporary file that has no name.
struct Spill {
    memory: Vec<u8>,
    memory_max_bytes: usize,
    file: Option<BufWriter<File>>,
    len_bytes: u64,
}

impl Spill {
    fn new(memory_max_bytes: usize) -> Spill {
        Spill { memory: Vec::new(), memory_max_bytes, file: None, len_bytes: 0 }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len_bytes += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(bytes).map_err(no_room);
        }
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > self.memory_max_bytes {
            let mut file = BufWriter::new(tempfile::tempfile().map_err(no_room)?);
            file.write_all(&std::mem::take(&mut self.memory)).map_err(no_room)?;
            self.file = Some(file);
        }
        Ok(())
    }

    fn finish(self) -> io::Result<PackedBytes> {
        let Some(file) = self.file else {
            let mut memory = self.memory;
            memory.shrink_to_fit();
            return Ok(Arc::new(memory));
        };
        let file = file.into_inner().map_err(|error| no_room(error.into_error()))?;
        Ok(Arc::new(Mapping::of_unnamed(file)?))
    }
}

/// The error of a temporary file, with where it is.
fn no_room(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let words = format!("its rows are packed into a file in '{}' (TMPDIR): {error}", folder.display());
    io::Error::new(error.kind(), words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Command, DatasetOrder};

    fn packed(name: &str, content: &[u8], memory_max_bytes: usize) -> io::Result<PackedRows> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(name);
        std::fs::write(&path, content)?;
        let dataset =
            Dataset { path: path.to_str().unwrap_or_default().to_owned(), order: DatasetOrder::File };
        let commands = vec![Command::unnamed("SET __field:key__ __field:text__")];
        let plan = Plan { commands, dataset: Some(dataset.clone()), ..Plan::default() };
        pack(&plan, &dataset, File::open(&path)?, &|| Ok(()), memory_max_bytes)
    }

    #[test]
    fn rows_are_the_same_in_memory_and_in_a_temporary_file() {
        let mut content = "text,more,key\n".to_owned();
        for row in 0..5_000 {
            content += &format!("text {row},,k{row}\n");
        }
        for memory_max_bytes in [usize::MAX, 10_000, 0] {
            let rows = packed("a.csv", content.as_bytes(), memory_max_bytes).expect("rows");
            assert_eq!(rows.rows(), 5_000);
            for row in [0, 1, 777, 4_999] {
                assert_eq!(rows.field(row, 0), format!("k{row}").as_bytes());
                assert_eq!(rows.field(row, 1), format!("text {row}").as_bytes());
            }
        }
    }

    #[test]
    fn packed_files_are_unpacked() {
        let rows = ruzstd::encoding::compress_to_vec(
            &b"{\"key\":\"a\",\"text\":1}\n"[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        let rows = packed("a.jsonl.zst", &rows, 100).expect("rows");
        assert_eq!((rows.field(0, 0), rows.field(0, 1)), (&b"a"[..], &b"1"[..]));
    }

    #[test]
    fn a_file_without_the_columns_is_an_error() {
        let error = packed("a.tsv", b"key\ttxt\n1\t2\n", 100).expect_err("it has no such column").to_string();
        assert!(error.contains("'text'") && error.contains("nearest is 'txt'"), "{error}");
        assert!(packed("a.csv", b"", 100).is_err());
        assert!(packed("a.txt", b"key,text\n1,2\n", 100).is_err());
    }
}
