//! What is asked: which operation, which key, which value.

pub mod key;
pub mod mix;
pub mod popularity;
pub mod request;
pub mod sequence;
pub mod shuffle;
mod task;
pub mod trace;
pub mod value;
pub mod verify;
pub mod window;
mod window_requests;
