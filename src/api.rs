//! The 19 kinds, the names that cross a process boundary, and the rules that decide: no I/O, no clock, no runtime.

pub mod condition;
pub mod contract;
pub mod crd;
pub mod custody;
pub mod kind;
pub mod kinds;
pub mod object;
pub mod phase;
pub mod policy;
pub mod registration;
pub mod status;
pub mod text;
pub mod tracker;
pub mod validate;
