//! The resolution of a Plan's servers and source addresses, and the descriptors that connections take.

mod descriptors;
mod error;
mod server;

pub use self::descriptors::{allow_descriptors, connections, descriptors_needed, ensure_descriptors};
pub use self::error::ConnectError;
pub use self::server::{Server, Sources};
