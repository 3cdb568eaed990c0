//! The 19 kinds, the names that cross a process boundary, and the rules that decide: no I/O, no clock, no runtime.

pub mod cause;
pub mod condition;
pub mod conform;
pub mod contract;
pub mod crd;
pub mod custody;
pub mod defaults;
pub mod duration;
pub mod examine;
pub mod hash;
pub mod kind;
pub mod kinds;
pub mod names;
pub mod phase;
pub mod policy;
pub mod references;
pub mod registration;
pub mod rung;
pub mod sanitise;
pub mod schema;
pub mod status;
#[cfg(test)]
mod tests;
pub mod tracker;
pub mod tree;
pub mod validate;
