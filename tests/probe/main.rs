//! The probe: a small program that is run in pods to prove that the lab runs pods.
//!
//! Not part of the product; it stands for a job, a server or an admission webhook.

mod agent;
mod review;
mod serve;

use agent::Behaviour;
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Say a word and end well
    Job { word: String },
    /// Answer every request with a word, over plain HTTP
    Serve { address: SocketAddr, word: String },
    /// Answer admission reviews over TLS: mark every object, deny those with the label `deny`
    Webhook {
        address: SocketAddr,
        /// Folder with tls.crt and tls.key
        tls: PathBuf,
    },
    /// Ask a server for a page and print it
    Get { host_and_port: String },
    /// Stand in for an agent that behaves in one of several ways
    Agent { behaviour: Behaviour },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    match Arguments::parse().mode {
        Mode::Job { word } => println!("{word}"),
        Mode::Serve { address, word } => serve::plain(address, word).await?,
        Mode::Webhook { address, tls } => serve::webhook(address, &tls).await?,
        Mode::Get { host_and_port } => {
            print!("{}", support::http::get(&host_and_port, "/").await?);
        }
        Mode::Agent { behaviour } => return agent::behave(behaviour).await,
    }
    Ok(ExitCode::SUCCESS)
}
