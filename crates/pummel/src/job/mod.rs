//! A job of a command line: its runs, the files and the screens of their results, and who runs them.

pub mod background_writer;
pub mod calibration_store;
pub mod detection;
pub mod driver;
mod large_load;
pub mod observers;
pub mod outlets;
pub mod output_file;
mod probe;
pub mod provenance;
pub mod rate_search;
pub mod result_files;
pub mod runner;
pub mod samples;
pub mod series;
pub mod series_result;
pub mod server_program;
mod socket_files;
#[cfg(feature = "parquet")]
pub mod table_files;
