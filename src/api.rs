//! The 19 kinds, the names that cross a process boundary, and the rules that decide: no I/O, no clock, no runtime.

pub mod condition;
pub mod contract;
pub mod kind;
pub mod sanitise;
