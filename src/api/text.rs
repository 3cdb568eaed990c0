//! Texts that others read: names, hashes, durations, and messages without secrets.

pub mod duration;
pub mod hash;
pub mod names;
pub mod sanitise;
