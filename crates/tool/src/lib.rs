//! Floor 3: what people and other machines see of pummel: command lines, reports, the built-in server.

pub mod serve;
