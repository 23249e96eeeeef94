//! Traces: the recorded requests of a production cache, read from the bytes of many formats, and made into requests or
//! summaries.
//!
//! A [`Reader`] takes the bytes of a trace block by block and hands over [`Row`]s. A [`Shaper`] makes the requests of a replay
//! from rows: which of them are kept, when each is due, and which client asks it. Nothing here grows with the length of a trace.

pub mod ahead;
pub mod columns;
pub mod detect;
pub mod format;
pub mod number;
pub mod ptr;
pub mod reader;
pub mod row;
pub mod seconds;
pub mod shaper;
pub mod sizes;

pub use self::detect::detect;
pub use self::format::Format;
pub use self::reader::{Account, Reader};
pub use self::row::Row;
pub use self::shaper::Shaper;
