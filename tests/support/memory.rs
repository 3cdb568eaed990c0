//! What the kernel says about the memory of a process, in bytes.

use std::fs;

use anyhow::{Context, Result};

/// What it has in memory now.
pub fn resident(process: u32) -> Result<u64> {
    status(process, "VmRSS")
}

/// The most that it has ever had.
pub fn peak(process: u32) -> Result<u64> {
    status(process, "VmHWM")
}

/// How much of what it has now is of files, such as its program, which the kernel takes back when it needs room.
pub fn of_files(process: u32) -> Result<u64> {
    status(process, "RssFile")
}

fn status(process: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find_map(|(known, value)| (known == name).then_some(value));
    let kilobytes = value.and_then(|value| value.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes
        .with_context(|| format!("the kernel tells no {name}"))?
        .trim()
        .parse()?;
    Ok(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_no_more_than_it_ever_had() {
        let own = std::process::id();
        let now = resident(own).unwrap();
        assert!(now > 0 && now <= peak(own).unwrap());
    }
}
