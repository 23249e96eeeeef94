//! What is asked: which operation, which key, which value.

pub mod check;
pub mod key;
pub mod mix;
pub mod popularity;
pub mod shuffle;
pub mod stale;
pub mod trace;
pub mod value;
pub mod window;
