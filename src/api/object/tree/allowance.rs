//! The memory that a tree may take. A short text can become a large tree, `[{},{},...]` one of many times its size, so
//! whoever builds one counts while reading and stops in time.

use std::cell::Cell;

use serde::de::Error;

/// Bytes of memory that one tree may take.
///
/// The chart gives the webhook 128 MiB. It needs 16 MiB itself and holds four large bodies at once, each in a buffer of up to
/// 8 MiB, which leaves 80 MiB for the two of them that it judges at once. At worst one of them is in memory five times: the
/// new object, the stored one, twice as mended to find further faults, and as its type. That is 20 MiB, and the allocator may
/// keep as much again. 4 MiB hold the largest text that an API server takes (3 MiB), or 65,000 entries of lists, or 20,000
/// short fields; real objects have hundreds.
const MOST: usize = 4 << 20;
/// A value in its list, which has up to as much room again for further ones.
const VALUE: usize = 64;
/// A text beside its bytes: the least that an allocation takes.
const TEXT: usize = 32;
/// A field beside its value and its name: its share of a node that may be half empty, and the allocation of the name.
const FIELD: usize = 96;
/// An object that is not empty: its first node, which has room for eleven fields.
const OBJECT: usize = 640;

/// What is left of the memory that a tree may take. Counted as for a `Value`; a [`Tree`](super::Tree) takes less.
#[derive(Debug)]
pub struct Allowance(Cell<usize>);

impl Default for Allowance {
    fn default() -> Self {
        Self(Cell::new(MOST))
    }
}

impl Allowance {
    /// Counts a value, whatever it is.
    ///
    /// # Errors
    ///
    /// When there is no room for it, as all of these.
    pub fn value<E: Error>(&self) -> Result<(), E> {
        self.take(VALUE)
    }

    /// Counts what a text takes as well.
    ///
    /// # Errors
    ///
    /// When there is no room for it.
    pub fn text<E: Error>(&self, text: &str) -> Result<(), E> {
        self.take(TEXT + text.len())
    }

    /// Counts a field with this name, and the object with its first one.
    ///
    /// # Errors
    ///
    /// When there is no room for it.
    pub fn field<E: Error>(&self, name: &str, is_first: bool) -> Result<(), E> {
        let object = if is_first { OBJECT } else { 0 };
        self.take(object + FIELD + name.len())
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes);
        let Some(left) = left else {
            let most = MOST >> 20;
            return Err(E::custom(format_args!(
                "it holds too many values, or too long ones: they would take more than {most} MiB of memory"
            )));
        };
        self.0.set(left);
        Ok(())
    }
}
