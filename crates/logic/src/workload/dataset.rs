//! The rows of a dataset, packed: the columns that commands name, row after row.

use std::fmt;
use std::sync::Arc;

use crate::plan::DatasetOrder;
use crate::rng::below;

/// Bytes that are read at any place: in memory, or in a file that is mapped.
pub type PackedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes of the end of a field in [`PackedRows`].
pub const END_BYTES: usize = 8;

/// The rows of a dataset: of each row the columns that commands name, in the order of [`Plan::dataset_fields`].
///
/// [`Plan::dataset_fields`]: crate::plan::Plan::dataset_fields
#[derive(Clone)]
pub struct PackedRows {
    /// Number of columns.
    columns: u64,
    /// Number of rows, above 0.
    rows: u64,
    /// The end of each field in `fields`, as 8 bytes from the lowest.
    ends: PackedBytes,
    /// The fields end to end.
    fields: PackedBytes,
}

impl fmt::Debug for PackedRows {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("PackedRows")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl PackedRows {
    /// The rows of `columns` fields each, whose ends and bytes these are; `None` where there is no row, or no column.
    pub fn new(columns: usize, ends: PackedBytes, fields: PackedBytes) -> Option<PackedRows> {
        let columns = columns as u64;
        let rows = ((*ends).as_ref().len() as u64 / END_BYTES as u64).checked_div(columns)?;
        (rows > 0).then_some(PackedRows { columns, rows, ends, fields })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A field of the row of this number, which is counted on from the first row behind the last.
    pub fn field(&self, row: u64, column: usize) -> &[u8] {
        let place = row % self.rows * self.columns + column as u64;
        let begin = place.checked_sub(1).map_or(0, |before| self.end(before));
        (*self.fields).as_ref().get(begin..self.end(place)).unwrap_or_default()
    }

    fn end(&self, place: u64) -> usize {
        let at = place as usize * END_BYTES;
        let bytes = (*self.ends).as_ref().get(at..at + END_BYTES).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u64::from_le_bytes(bytes) as usize)
    }
}

/// The rows of a dataset and the order in which requests take them.
#[derive(Clone, Debug)]
pub struct DatasetRows {
    /// The packed rows.
    pub packed: PackedRows,
    /// The order in which the requests of a client take them.
    pub order: DatasetOrder,
}

impl DatasetRows {
    /// The row of the request of client `number` of `clients` that takes row `taken` of the client's, counted from 0. `bits` decide on a
    /// row that is drawn.
    pub(crate) fn row(&self, (number, clients): (u64, u64), taken: u64, bits: u64) -> u64 {
        let rows = self.packed.rows();
        match self.order {
            DatasetOrder::Random => below(bits, rows),
            DatasetOrder::File => {
                let first = u128::from(number) * u128::from(rows) / u128::from(clients.max(1));
                (first as u64 % rows).saturating_add(taken % rows) % rows
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of these fields.
    pub(crate) fn packed(rows: &[&[&str]]) -> Option<PackedRows> {
        let (mut ends, mut fields) = (Vec::new(), Vec::new());
        for field in rows.iter().copied().flatten() {
            fields.extend_from_slice(field.as_bytes());
            ends.extend((fields.len() as u64).to_le_bytes());
        }
        PackedRows::new(rows.first().map_or(0, |row| row.len()), Arc::new(ends), Arc::new(fields))
    }

    #[test]
    fn fields_are_found_by_their_row_and_column_and_rows_wrap_round() {
        let rows = packed(&[&["a", ""], &["", "bc"], &["d", "e"]]).expect("rows");
        assert_eq!(rows.rows(), 3);
        let row = |number: u64| [rows.field(number, 0), rows.field(number, 1)];
        assert_eq!(row(0), [&b"a"[..], b""]);
        assert_eq!(row(1), [&b""[..], b"bc"]);
        assert_eq!(row(2), [&b"d"[..], b"e"]);
        assert_eq!(row(3), row(0));
        assert_eq!(row(u64::MAX), row(u64::MAX % 3));
        assert!(packed(&[]).is_none());
        assert!(PackedRows::new(0, Arc::new(Vec::new()), Arc::new(Vec::new())).is_none());
    }

    #[test]
    fn clients_begin_at_rows_that_are_spread_over_the_file_and_go_on_row_by_row() {
        let packed = packed(&[&["0"], &["1"], &["2"], &["3"], &["4"]]).expect("rows");
        let mut dataset = DatasetRows { packed, order: DatasetOrder::File };
        let rows_of = |dataset: &DatasetRows, client| {
            (0..6).map(|taken| dataset.row(client, taken, 9)).collect::<Vec<_>>()
        };
        assert_eq!(rows_of(&dataset, (0, 1)), [0, 1, 2, 3, 4, 0]);
        assert_eq!(rows_of(&dataset, (1, 2)), [2, 3, 4, 0, 1, 2]);
        assert_eq!(rows_of(&dataset, (8, 10)), [4, 0, 1, 2, 3, 4]);
        assert_eq!(dataset.row((u64::MAX, 1), u64::MAX, 0), dataset.row((u64::MAX, 1), u64::MAX % 5, 0));
        dataset.order = DatasetOrder::Random;
        assert_eq!(dataset.row((3, 4), 7, 0), 0);
        assert_eq!(dataset.row((3, 4), 7, u64::MAX), 4);
    }
}
