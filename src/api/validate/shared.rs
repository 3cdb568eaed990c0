//! Checks that several kinds have in common.

pub(super) mod frozen;
mod names;
mod quantity;
#[cfg(test)]
pub(super) mod testing;
mod values;
mod workload;

pub(super) use names::*;
pub use quantity::{Quantity, QuantityError};
pub(super) use values::*;
pub(super) use workload::{check_image, check_workload};
