//! Processor time and memory, as the kernel counts them.

use anyhow::{Context, Result};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    },
    unistd::Pid,
};
use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

/// Rounds of one measurement; the middle one counts, so that a disturbed round does not.
const ROUNDS: usize = 7;

/// Which side of a measurement something is on. Each has a core of its own, so that neither is charged for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who asks.
    Asking,
    /// Who is measured.
    Serving,
}

/// Carries something out on the core of one side: the calling thread, and all threads and processes that it starts
/// meanwhile. Where there is one core only, nothing is told apart.
pub fn beside<T>(side: Side, work: impl FnOnce() -> Result<T>) -> Result<T> {
    const THIS_THREAD: Pid = Pid::from_raw(0);
    let before = sched_getaffinity(THIS_THREAD)?;
    let mut cores = (0..CpuSet::count()).filter(|&core| before.is_set(core).unwrap_or(false));
    let (first, second) = (cores.next(), cores.next());
    let core = match side {
        Side::Asking => first,
        Side::Serving => second.or(first),
    };
    let mut own = CpuSet::new();
    own.set(core.context("no core at all")?)?;
    sched_setaffinity(THIS_THREAD, &own)?;
    let done = work();
    sched_setaffinity(THIS_THREAD, &before)?;
    done
}

/// Processor time of the calling thread, in user and kernel.
pub fn of_this_thread() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.try_into()?))
}

/// Processor time of the threads of a process that have this name; of all threads without one.
pub fn of_threads(process: u32, named: Option<&str>) -> Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        // A thread may end while it is being looked at.
        let Ok(name) = fs::read_to_string(task.join("comm")) else {
            continue;
        };
        if named.is_none_or(|wanted| wanted == name.trim()) {
            nanos += time_on_processor(&task).unwrap_or_default();
        }
    }
    Ok(Duration::from_nanos(nanos))
}

fn time_on_processor(task: &Path) -> Option<u64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Processor time of one unit of work: the middle of several rounds that together take about `budget`.
pub fn per_unit<T>(budget: Duration, mut work: impl FnMut() -> T) -> Result<Duration> {
    let round = budget / u32::try_from(ROUNDS)?;
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), of_this_thread()?);
        let mut units = 0;
        while start.elapsed() < round {
            // The clock is asked once in a while only: a unit may be shorter than the question.
            for _ in 0..16 {
                black_box(work());
            }
            units += 16;
        }
        costs.push((of_this_thread()? - before) / units);
    }
    Ok(median(costs))
}

/// The middle one.
pub fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_none_is_nothing_and_of_three_the_second() {
        assert_eq!(median(Vec::<u8>::new()), 0);
        assert_eq!(median(vec![9, 1, 5]), 5);
    }

    #[test]
    fn a_side_has_one_core_and_gives_it_back() {
        let cores = || std::thread::available_parallelism().unwrap().get();
        let before = cores();
        for side in [Side::Asking, Side::Serving] {
            assert_eq!(beside(side, || Ok(cores())).unwrap(), 1);
        }
        assert_eq!(cores(), before);
    }

    #[test]
    fn work_costs_something_and_memory_is_used() {
        let cost = per_unit(Duration::from_millis(70), || {
            (0..1000).map(black_box).sum::<u64>()
        });
        assert!(cost.unwrap() > Duration::ZERO);
        assert!(support::memory::resident(std::process::id()).unwrap() > 0);
    }
}
