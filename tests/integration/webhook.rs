//! The admission webhook as users meet it: the real program, called by the real API server, seen through `kubectl`.

mod alone;
mod canary;
mod cases;
mod corpus;
mod guard;
mod histories;
pub(crate) mod hook;
pub(crate) mod hostile;
mod lookup;
mod panics;
mod quiet;
mod restore;
mod rollout;
mod trace;
