//! Metrics for Prometheus: their table, their formats, the thread that serves them, and the push of a result.

#[cfg(test)]
mod example;
pub mod families;
pub mod http;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod protobuf;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod push;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod server;
pub mod table;
pub mod text;
