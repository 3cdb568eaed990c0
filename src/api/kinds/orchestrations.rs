//! Graphs of steps, and one run of such a graph.

pub mod orchestration;
pub mod orchestration_run;
