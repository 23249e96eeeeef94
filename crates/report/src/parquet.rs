//! Tables as Parquet: snappy, words by dictionary, whole numbers by their differences.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::tables::{Column, Table, Values};

/// Rows of a row group.
pub const GROUP_ROWS: usize = 1_000_000;

/// A table that is written row group by row group.
pub struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableFile<W> {
    /// Begins a table with the columns of `shape` and these facts beside it.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn begin(out: W, shape: &Table, facts: &[(String, String)]) -> Result<TableFile<W>, ParquetError> {
        let writer = SerializedFileWriter::new(out, schema_of(shape)?, properties_of(shape, facts))?;
        Ok(TableFile { writer })
    }

    /// Adds a row group.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn add(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        let mut columns = table.columns.iter();
        while let Some(mut out) = group.next_column()? {
            let column = columns.next().expect("the table has the columns of the first one");
            write(&mut out, &column.values)?;
            out.close()?;
        }
        group.close().map(drop)
    }

    /// Ends the table, and returns the writer.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn end(self) -> Result<W, ParquetError> {
        self.writer.into_inner()
    }
}

/// A whole table as the bytes of a file.
///
/// # Panics
/// Never: writing to memory does not fail.
pub fn render(table: &Table, facts: &[(String, String)]) -> Vec<u8> {
    let bytes = || -> Result<Vec<u8>, ParquetError> {
        let mut file = TableFile::begin(Vec::new(), table, facts)?;
        file.add(table)?;
        file.end()
    };
    bytes().expect("a table of columns of one length fits its own schema")
}

fn schema_of(table: &Table) -> Result<TypePtr, ParquetError> {
    let fields = table.columns.iter().map(|column| field_of(column).map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("pummel").with_fields(fields).build()?))
}

fn field_of(column: &Column) -> Result<Type, ParquetError> {
    let (physical, converted, repetition) = match column.values {
        Values::Words(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Repetition::REQUIRED),
        Values::Counts(_) => (Physical::INT64, ConvertedType::NONE, Repetition::REQUIRED),
        Values::Smalls(_) => (Physical::INT32, ConvertedType::NONE, Repetition::REQUIRED),
        Values::Moments(_) => (Physical::INT64, ConvertedType::NONE, Repetition::OPTIONAL),
        Values::Keys(_) => (Physical::INT64, ConvertedType::UINT_64, Repetition::OPTIONAL),
        Values::Numbers(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::OPTIONAL),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_converted_type(converted)
        .with_repetition(repetition)
        .build()
}

fn properties_of(table: &Table, facts: &[(String, String)]) -> WriterPropertiesPtr {
    let facts = facts.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone())).collect();
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(format!("pummel {}", crate::VERSION))
        .set_key_value_metadata(Some(facts));
    for column in &table.columns {
        if !matches!(column.values, Values::Words(_) | Values::Numbers(_)) {
            let path = ColumnPath::new(vec![column.name.clone()]);
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Arc::new(builder.build())
}

fn write(out: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    let written = match values {
        Values::Words(words) => {
            let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(word.as_str())).collect();
            out.typed::<ByteArrayType>().write_batch(&words, None, None)
        }
        Values::Counts(counts) => {
            let counts: Vec<i64> = counts.iter().map(|count| *count as i64).collect();
            out.typed::<Int64Type>().write_batch(&counts, None, None)
        }
        Values::Smalls(smalls) => {
            let smalls: Vec<i32> = smalls.iter().map(|small| *small as i32).collect();
            out.typed::<Int32Type>().write_batch(&smalls, None, None)
        }
        Values::Moments(values) | Values::Keys(values) => {
            let known: Vec<i64> = values.iter().flatten().map(|value| *value as i64).collect();
            out.typed::<Int64Type>().write_batch(&known, Some(&present(values)), None)
        }
        Values::Numbers(numbers) => {
            let known: Vec<f64> = numbers.iter().flatten().copied().collect();
            out.typed::<DoubleType>().write_batch(&known, Some(&present(numbers)), None)
        }
    };
    written.map(drop)
}

/// Which values are there, as Parquet's definition levels.
fn present<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use crate::tables::{facts, histograms, intervals};
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use pummel_measure::measurement::Keep;

    /// The rows of a file as text, cell by cell.
    fn rows(bytes: Vec<u8>) -> Vec<Vec<String>> {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).expect("a file of Parquet");
        let rows = reader.get_row_iter(None).expect("rows");
        rows.map(|row| {
            let row = row.expect("a row");
            let cells = row.get_column_iter().map(|(_, field)| match field {
                Field::Null => String::new(),
                Field::Str(word) => word.clone(),
                other => other.to_string(),
            });
            cells.collect()
        })
        .collect()
    }

    fn cell(column: &Column, row: usize) -> String {
        match &column.values {
            Values::Words(values) => values[row].clone(),
            Values::Counts(values) => values[row].to_string(),
            Values::Smalls(values) => values[row].to_string(),
            Values::Moments(values) | Values::Keys(values) => {
                values[row].map_or(String::new(), |it| it.to_string())
            }
            Values::Numbers(values) => values[row].map_or(String::new(), |it| Field::Double(it).to_string()),
        }
    }

    #[test]
    fn what_is_written_is_read_again_with_its_facts() {
        let document = Run::new(Keep::Figures).document(Clone::clone);
        for table in [intervals(&document), histograms(&document)] {
            let bytes = render(&table, &facts(&document));
            let read = rows(bytes.clone());
            assert_eq!(read.len(), table.rows());
            for (row, cells) in read.iter().enumerate() {
                let written: Vec<String> = table.columns.iter().map(|column| cell(column, row)).collect();
                assert_eq!(*cells, written);
            }
            let reader = SerializedFileReader::new(Bytes::from(bytes)).expect("a file of Parquet");
            let beside = reader.metadata().file_metadata().key_value_metadata().expect("facts").clone();
            assert!(beside.iter().any(|fact| fact.key == "pummel.plan" && fact.value.is_some()));
        }
    }

    #[test]
    fn every_kind_of_value_comes_back_also_the_greatest() {
        let table = Table::new(vec![
            ("word".to_owned(), Values::Words(vec!["a".to_owned(), "ä\"".to_owned()])),
            ("key".to_owned(), Values::Keys(vec![Some(u64::MAX), None])),
            ("small".to_owned(), Values::Smalls(vec![7, i32::MAX as u32])),
            ("moment".to_owned(), Values::Moments(vec![None, Some(i64::MAX as u64)])),
            ("number".to_owned(), Values::Numbers(vec![Some(0.5), None])),
        ]);
        let mut file = TableFile::begin(Vec::new(), &table, &[]).expect("it begins");
        file.add(&table).expect("a row group");
        file.add(&table).expect("another one");
        let read = rows(file.end().expect("it ends"));
        assert_eq!(read.len(), 4);
        assert_eq!(read[0], ["a", "18446744073709551615", "7", "", "0.5"]);
        assert_eq!(read[3], ["ä\"", "", "2147483647", "9223372036854775807", ""]);
    }
}
