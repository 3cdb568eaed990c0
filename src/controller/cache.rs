//! Copies of the objects that reconcilers read: pruned, kept up to date by watches, never behind what we wrote
//! ourselves.
//!
//! Only copies; what is irreversible is confirmed by a live read first.

mod feed;
mod health;
mod shelf;
pub(super) mod shelves;
mod slim;

pub(super) use feed::{Feed, Told};
pub(super) use health::Health;
pub(super) use shelf::{Change, Kept, Key, Shelf};
pub(super) use slim::Slim;
