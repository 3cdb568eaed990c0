//! The admission webhook: decides about every object before it is stored.
//!
//! The way of one review, file by file: [`service`] reads it, then it goes through `admission` of the library, which
//! decides and knows nothing of a server: [`review`] decodes it, [`subject`] says what it is about, [`decide`] applies the
//! rules, and a [`decision`] comes out with its [`patch`]. It becomes a [`reply`], and [`notices`] tells the cluster about
//! a refusal. What cannot be decided is a [`refusal`].
//!
//! [`policy`] and [`lookup`] are what decisions go by, [`actor`] keeps who deleted a Job, [`metrics`] is what is counted,
//! [`registration`] looks at what the cluster was told about us, [`certificate`] tells of trouble with ours and makes it
//! where nobody else does, [`own`] is the program's own pod, [`args`] is what operators can set, and [`front`] puts it all
//! together.

pub mod actor;
pub mod args;
pub mod certificate;
#[cfg(test)]
mod fixtures;
pub mod front;
pub mod lookup;
pub mod metrics;
pub mod notices;
pub mod own;
pub mod policy;
pub mod refusal;
pub mod registration;
pub mod reply;
pub mod service;
#[cfg(test)]
mod tests;

pub use agents::admission::{decide, decision, patch, review, subject};
pub use args::{Args, Config};
pub use front::run;
pub use service::{Admission, Answer};
