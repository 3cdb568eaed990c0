//! Panics as log lines, with place and, if `RUST_BACKTRACE` asks for it, the way there.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic::{self, PanicHookInfo},
    thread,
};

use crate::kit::tasks::panic_text;

/// Replaces the hook of the process, which would write to standard error in a format of its own.
pub(super) fn install() {
    panic::set_hook(Box::new(log));
}

fn log(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let captured = backtrace.status() == BacktraceStatus::Captured;
    tracing::error!(
        panic = panic_text(info.payload()),
        location = location.as_deref(),
        thread = thread::current().name(),
        backtrace = captured.then(|| tracing::field::display(backtrace)),
        "Panic"
    );
}
