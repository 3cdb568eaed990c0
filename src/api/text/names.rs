//! Names: how the names of child objects and label values are derived, and what Kubernetes accepts as a name.
//!
//! Derivations equal those of the existing controllers, so that objects keep their names. No object is read here.

mod closed;
mod derive;
mod form;
mod scope;

pub(crate) use closed::closed_words;
pub use derive::{ChildName, LabelValue};
pub use form::Form;
pub use scope::Scope;
