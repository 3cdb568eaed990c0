//! The operator's policy as every program reads it: flags and variables, and a file that is followed while the program
//! runs. Says what is set; what follows from it is in `api::policy`.

mod file;
mod settings;

pub use file::{Followed, INTERVAL, Refused, Seen, read_file, understand};
pub use settings::{Modes, Overrides, Settings};
