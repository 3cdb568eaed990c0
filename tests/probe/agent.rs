//! A small agent: ends well, ends badly, takes more memory than it may, works for a while, or works until it is stopped.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// What the agent does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Behaviour {
    /// Says its task and ends well.
    Succeed,
    /// Ends with exit code 3.
    Fail,
    /// Takes memory until it is killed.
    Eat,
    /// Works until it is told to stop.
    Wait,
    /// Works for a while and ends well, whatever it is told.
    Work,
}

/// Long enough for someone to interfere.
const WORK: Duration = Duration::from_secs(8);
/// As a shell reports a program that ended on SIGTERM.
const TERMINATED: u8 = 143;
/// Memory that is taken at a time; more than this machine has is never asked for at once.
const BITE: usize = 8 << 20;
/// Far above the limit of any pod of a test.
const MOST_BITES: usize = 256;

pub(crate) async fn behave(behaviour: Behaviour) -> Result<ExitCode> {
    match behaviour {
        Behaviour::Succeed => {
            println!("{}", std::env::var("TASK").unwrap_or_default());
            Ok(ExitCode::SUCCESS)
        }
        Behaviour::Fail => {
            eprintln!("this does not work");
            Ok(ExitCode::from(3))
        }
        Behaviour::Eat => {
            let meal: Vec<Vec<u8>> = (0..MOST_BITES).map(|_| vec![1; BITE]).collect();
            println!("{} bites and still here", meal.len());
            Ok(ExitCode::SUCCESS)
        }
        Behaviour::Wait => {
            let mut stop = signal(SignalKind::terminate())?;
            println!("at work");
            stop.recv().await;
            println!("stopped");
            Ok(ExitCode::from(TERMINATED))
        }
        Behaviour::Work => {
            println!("at work");
            sleep(WORK).await;
            println!("done");
            Ok(ExitCode::SUCCESS)
        }
    }
}
