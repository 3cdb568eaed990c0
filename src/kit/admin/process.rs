//! What the process uses, read from `/proc` when someone asks. Shows nothing where there is no `/proc`.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// Unit of times in `/proc`; it is the same on every Linux that this program is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Metrics of the process, under the names that all Prometheus clients use.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match Usage::now() {
            Some(usage) => usage.encode(encoder),
            None => Ok(()),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    start_time: f64,
    threads: u64,
    resident_bytes: u64,
    open_fds: u64,
    max_fds: Option<u64>,
}

impl Usage {
    fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        let open_fds = fs::read_dir("/proc/self/fd").ok()?.count();
        Self::parse(
            &read("/proc/self/stat")?,
            &read("/proc/stat")?,
            &read("/proc/self/status")?,
            &read("/proc/self/limits")?,
        )
        .map(|usage| Self {
            open_fds: open_fds as u64,
            ..usage
        })
    }

    /// From the texts of the files; open descriptors are no text and stay 0.
    fn parse(stat: &str, system: &str, status: &str, limits: &str) -> Option<Self> {
        // The name of the program comes second, in brackets, and may hold anything.
        let (_, stat) = stat.rsplit_once(')')?;
        let numbers: Vec<&str> = stat.split_whitespace().collect();
        // Counted from the third field of proc(5) on.
        let number = |field: usize| numbers.get(field - 3)?.parse::<u64>().ok();
        let boot: u64 = after(system, "btime ")?.parse().ok()?;
        let resident = after(status, "VmRSS:")?.strip_suffix("kB")?.trim();
        let resident: u64 = resident.parse().ok()?;
        let max_fds = after(limits, "Max open files")?;
        Some(Self {
            cpu_seconds: (number(14)? + number(15)?) as f64 / TICKS_PER_SECOND,
            threads: number(20)?,
            start_time: boot as f64 + number(22)? as f64 / TICKS_PER_SECOND,
            resident_bytes: resident * 1024,
            open_fds: 0,
            max_fds: max_fds.split_whitespace().next()?.parse().ok(),
        })
    }

    fn encode(self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self {
            cpu_seconds,
            start_time,
            threads,
            resident_bytes,
            open_fds,
            max_fds,
        } = self; // a figure left out here does not compile
        let cpu = encoder.encode_descriptor(
            "process_cpu",
            "Processor time used",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        ConstCounter::new(cpu_seconds).encode(cpu)?;
        let mut gauge = |name, help, unit: Option<&Unit>, value: f64| {
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)
        };
        let (seconds, bytes) = (Some(&Unit::Seconds), Some(&Unit::Bytes));
        gauge(
            "process_start_time",
            "When the process started, as Unix time",
            seconds,
            start_time,
        )?;
        gauge(
            "process_resident_memory",
            "Memory in use",
            bytes,
            resident_bytes as f64,
        )?;
        gauge("process_threads", "Threads", None, threads as f64)?;
        gauge("process_open_fds", "Open files", None, open_fds as f64)?;
        match max_fds {
            Some(max) => gauge(
                "process_max_fds",
                "Files that may be open",
                None,
                max as f64,
            ),
            None => Ok(()),
        }
    }
}

/// The rest of the first line that starts with a word.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(start));
    rest.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4242 (a) b (c)) S 1 4242 4242 0 -1 4194304 2913 0 0 0 150 25 0 0 20 0 7 0 \
        30000 1150000000 3000 18446744073709551615 1 1 0 0 0 0 0 4096 17442 0 0 0 17 1 0 0 0 0 0";
    const SYSTEM: &str = "cpu  1 2 3\nbtime 1700000000\nprocesses 7\n";
    const STATUS: &str = "Name:\tagents\nVmPeak:\t   99 kB\nVmRSS:\t   12288 kB\nThreads:\t7\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
        Max open files            1024                 524288               files\n";

    #[test]
    fn the_texts_of_proc_are_understood() {
        let expected = Usage {
            cpu_seconds: 1.75,
            start_time: 1_700_000_300.0,
            threads: 7,
            resident_bytes: 12 * 1024 * 1024,
            open_fds: 0,
            max_fds: Some(1024),
        };
        assert_eq!(Usage::parse(STAT, SYSTEM, STATUS, LIMITS), Some(expected));
    }

    #[test]
    fn a_text_that_is_not_understood_gives_nothing() {
        assert_eq!(Usage::parse("4242", SYSTEM, STATUS, LIMITS), None);
        assert_eq!(Usage::parse(STAT, "", STATUS, LIMITS), None);
        assert_eq!(Usage::parse(STAT, SYSTEM, "", LIMITS), None);
    }

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::now().expect("Linux has /proc");
        assert!(usage.resident_bytes > 0 && usage.open_fds > 2 && usage.threads > 0);
    }
}
