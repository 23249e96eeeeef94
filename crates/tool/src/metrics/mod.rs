//! Metrics for Prometheus: their table, their formats, the thread that serves them, and the push of a result.

#[cfg(test)]
mod example;
pub mod families;
pub mod http;
pub mod options;
pub mod protobuf;
pub mod push;
pub mod server;
pub mod table;
pub mod text;
