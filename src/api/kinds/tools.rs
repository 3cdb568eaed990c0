//! Programs that steps can call, and one call of such a program.

pub mod tool;
pub mod tool_run;
