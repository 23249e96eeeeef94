//! What is asked: which operation, which key, which value.

pub mod check;
pub mod key;
pub mod mix;
pub mod popularity;
pub mod stale;
pub mod value;
