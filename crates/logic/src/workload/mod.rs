//! What is asked: which operation, which key, which value.

pub mod popularity;
