//! How far a build is: a line that is rewritten on a terminal, a line now and then elsewhere.

use super::Report;
use crate::lab::report::spoken;
use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

/// How often a log that nobody watches gets a line.
const QUIET_PERIOD: Duration = Duration::from_secs(20);

/// The state of one build.
pub(super) struct Progress {
    report: Report,
    names: String,
    packages: usize,
    compiled: usize,
    downloads: usize,
    started: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    pub(super) fn new(report: Report, names: &str, packages: usize) -> Self {
        Self {
            report,
            names: names.to_owned(),
            packages,
            compiled: 0,
            downloads: 0,
            started: Instant::now(),
            shown: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Takes a line of `go build -v`: a package that is being compiled, or a module that is being fetched.
    pub(super) fn saw(&mut self, line: &str) {
        if line.starts_with("go: downloading ") {
            self.downloads += 1;
        } else if !line.starts_with('#') && !line.contains(' ') {
            self.compiled += 1;
        }
    }

    /// How far it is after so long.
    fn text(&self, elapsed: Duration) -> String {
        format!(
            "{}: {} of at most {} packages compiled, {} modules fetched, {}",
            self.names,
            self.compiled,
            self.packages,
            self.downloads,
            spoken(elapsed)
        )
    }

    pub(super) fn show(&mut self) {
        let text = self.text(self.started.elapsed());
        if self.terminal {
            let mut stderr = std::io::stderr().lock();
            // Progress that cannot be shown is not worth failing a build for.
            let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
        } else if self.shown.elapsed() >= QUIET_PERIOD {
            self.shown = Instant::now();
            self.report.line(text);
        }
    }

    /// Frees the line for what comes next.
    pub(super) fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_modules_are_counted_and_other_words_are_not() {
        let mut progress = Progress::new(Report::start(), "etcd", 200);
        for line in [
            "go: downloading go.uber.org/zap v1.27.0",
            "go.uber.org/zap",
            "k8s.io/api/core/v1",
            "# go.etcd.io/etcd",
            "main.go:3:1: something is wrong",
        ] {
            progress.saw(line);
        }
        assert_eq!(
            progress.text(Duration::from_secs(95)),
            "etcd: 2 of at most 200 packages compiled, 1 modules fetched, 95 s"
        );
    }
}
