//! The requests that are asked: their operations, keys and values.

mod cache_account;
pub mod cache_counts;
pub(crate) mod cache_requests;
mod changing;
pub mod churn;
pub mod distinct;
pub(crate) mod events;
pub mod hash;
pub mod key;
pub mod mix;
mod mix_task;
mod own_stores;
pub mod popularity;
mod records;
pub mod request;
mod routing;
pub mod rows;
pub mod sequence;
pub mod shuffle;
mod stable_size;
mod task;
pub mod trace;
pub mod unstored;
pub mod value;
pub mod verify;
pub mod window;
pub mod window_requests;
