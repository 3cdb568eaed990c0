//! Dashboards, alerts, recording rules and runbooks: every name in them is one that there is, each alert fires in its fault
//! and is silent without it, and every query has data.

mod dashboards;
mod faults;
mod lint;
mod live;
pub(crate) mod names;
mod pictures;
mod promtool;
mod replica;
pub(crate) mod rules;
pub(crate) mod runbooks;
