//! An object as people send it: what it leaves out, whom it names, and everything that is wrong with it.
//!
//! [`examine`] asks all that follows; [`cause`] is what it finds, [`conform`] the schema, [`tree`] how an object is read.

pub mod cause;
pub mod conform;
pub mod defaults;
pub mod examine;
pub mod references;
pub mod tree;
