//! One review from bytes to what is decided about it: the engine of the webhook, which `agents check` and `agents replay`
//! ask as well, so that their verdicts are the same.
//!
//! The way of one review, file by file: [`review`] decodes it, [`subject`] says what it is about, [`decide`] applies the
//! rules (`spec`, `policy`, `status`, `job`, `trace`), and a [`decision`] comes out, with its [`patch`]. [`in_force`] and
//! [`known`] are what decisions go by; [`question`] is a review that nobody but we asks. No I/O, no clock.

pub mod decide;
pub mod decision;
pub mod in_force;
pub mod known;
pub mod patch;
pub mod question;
pub mod review;
pub mod subject;
