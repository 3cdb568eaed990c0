//! The page that Prometheus scrapes: what the scraper asks for, the names it can have, and the bytes.
//!
//! Reads what is kept through [`Families`] and [`Source`], and never more than a piece of it at once.

mod accept;
mod compress;
mod metrics;
pub mod names_page;
mod own;
mod page;
mod plan;
mod render;
mod write;

pub use accept::{Encoding, Format, Style};
pub use metrics::Metrics;
pub use page::{Answer, Exposer, PageBody, Settings};
pub use render::{Families, Source};
