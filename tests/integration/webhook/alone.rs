//! Tests that need the machine for themselves: they run after all others, one at a time.

mod balancer;
mod load;
mod restarts;
mod rotator;
mod swaps;
