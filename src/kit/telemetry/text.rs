//! Logs for people: what the formatter writes, without what must not be in a log.

use std::io::{self, Write};

use super::{Clean, cut};

/// Takes lines, each whole in one write as the formatter hands them over, and passes them on cleaned.
pub(super) struct CleanLines<W> {
    to: W,
    clean: Clean,
}

impl<W> CleanLines<W> {
    pub(super) fn new(to: W, clean: Clean) -> Self {
        Self { to, clean }
    }
}

impl<W: Write> Write for CleanLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut clean = cut((self.clean)(text.trim_end()));
        clean.push('\n');
        self.to.write_all(clean.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{fmt, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let memory = self.0.lock();
            memory
                .map_err(|_| io::Error::other("a panic"))?
                .write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_line_without_the_secret() {
        let memory = Memory::default();
        let writer = memory.clone();
        let clean = |text: &str| text.replace("hunter2", "***");
        let lines = fmt::layer()
            .without_time()
            .with_ansi(false)
            .with_writer(move || CleanLines::new(writer.clone(), clean));
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(password = "hunter2", "First");
            tracing::warn!("Second");
        });
        let bytes = memory.0.lock().expect("a lock").clone();
        let target = "agents::kit::telemetry::text::tests";
        assert_eq!(
            String::from_utf8(bytes).expect("UTF-8"),
            format!(" INFO {target}: First password=\"***\"\n WARN {target}: Second\n")
        );
    }
}
