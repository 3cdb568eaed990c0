//! Reaches an address inside a lab's network from this machine's loopback.
//!
//! A socket belongs to the network namespace of the thread that made it. The listener is made here; the thread
//! that dials has moved into the lab's namespace, and passes bytes between the two.

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};
use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};

/// Connections passed at the same time; further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 512;
const DIAL_DEADLINE: Duration = Duration::from_secs(5);

/// A port of this machine's loopback that leads into a lab. Ends when dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Passes connections to `target` inside the network namespace `namespace` (`/proc/<pid>/ns/net`).
    pub fn start(namespace: &Path, target: SocketAddr) -> Result<Self> {
        let namespace = File::open(namespace)
            .with_context(|| format!("could not open {}", namespace.display()))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let (started, start) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("relay to {target}"))
            .spawn(move || {
                let runtime = enter(&namespace);
                let entered = runtime
                    .as_ref()
                    .map(drop)
                    .map_err(|error| format!("{error:#}"));
                // Nobody listens only if the caller is gone.
                let _ = started.send(entered);
                if let Ok(runtime) = runtime {
                    runtime.block_on(serve(listener, target, stopped));
                }
            })?;
        start.recv()?.map_err(anyhow::Error::msg)?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It returns nothing and does not panic.
            let _ = thread.join();
        }
    }
}

/// Moves this thread into the namespace and gives it a runtime that stays on it.
fn enter(namespace: &File) -> Result<tokio::runtime::Runtime> {
    setns(namespace, CloneFlags::CLONE_NEWNET).context("could not enter the lab's network")?;
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

async fn serve(
    listener: std::net::TcpListener,
    target: SocketAddr,
    mut stop: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stop => return, // dropping the set ends what is under way
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                if let Ok((near, _)) = accepted {
                    connections.spawn(pass(near, target));
                }
            }
        }
    }
}

/// Passes one connection. Whatever breaks it, both ends see their connection close, as without a relay.
async fn pass(mut near: TcpStream, target: SocketAddr) {
    if let Ok(Ok(mut far)) = timeout(DIAL_DEADLINE, TcpStream::connect(target)).await {
        let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}
