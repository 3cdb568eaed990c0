//! The admission webhook as users meet it: the real program, called by the real API server, seen through `kubectl`.

mod lookup;
