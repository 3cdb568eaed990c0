//! The page that Prometheus scrapes: what the scraper asks for, the names it can have, and the bytes.

mod accept;

pub use accept::{Encoding, Format, Style};
