//! A port in front of replicas that treats them as a Service does: new connections go to those that are ready, old ones
//! stay where they are.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// Between two looks at a replica; the kubelet takes longer, and a replica lingers accordingly.
const PERIOD: Duration = Duration::from_millis(25);

#[derive(Clone, Copy, Debug)]
struct Replica {
    address: SocketAddr,
    admin: SocketAddr,
    ready: bool,
}

/// The replicas behind the port.
#[derive(Clone, Default)]
pub(super) struct Endpoints {
    replicas: Arc<Mutex<Vec<Replica>>>,
}

impl Endpoints {
    fn with<T>(&self, work: impl FnOnce(&mut Vec<Replica>) -> T) -> T {
        work(&mut self.replicas.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a replica; it gets connections once it is seen to be ready.
    pub(super) fn add(&self, address: SocketAddr, admin: SocketAddr) {
        let replica = Replica {
            address,
            admin,
            ready: false,
        };
        self.with(|replicas| replicas.push(replica));
    }

    /// Forgets a replica that has ended.
    pub(super) fn remove(&self, address: SocketAddr) {
        self.with(|replicas| replicas.retain(|replica| replica.address != address));
    }

    /// How many replicas get connections now.
    pub(super) fn ready(&self) -> usize {
        self.with(|replicas| replicas.iter().filter(|replica| replica.ready).count())
    }

    /// Asks every replica, again and again, whether it is ready.
    async fn follow(&self) {
        let mut tick = interval(PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            for replica in self.with(|replicas| replicas.clone()) {
                let page = support::http::get(&replica.admin.to_string(), "/readyz").await;
                self.with(|replicas| {
                    let mut known = replicas.iter_mut();
                    if let Some(known) = known.find(|known| known.address == replica.address) {
                        known.ready = page.is_ok();
                    }
                });
            }
        }
    }

    /// The ready replicas in turn.
    fn next(&self, turn: usize) -> Option<SocketAddr> {
        self.with(|replicas| {
            let ready: Vec<&Replica> = replicas.iter().filter(|replica| replica.ready).collect();
            let chosen = ready.get(turn.checked_rem(ready.len())?)?;
            Some(chosen.address)
        })
    }
}

/// Opens the port.
pub(super) async fn listen() -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Passes connections on for ever. One that finds no ready replica is refused, as by a Service without endpoints.
pub(super) async fn serve(listener: TcpListener, endpoints: Endpoints) -> Result<()> {
    let mut work = JoinSet::new();
    let follower = endpoints.clone();
    work.spawn(async move { follower.follow().await });
    for turn in 0.. {
        let (near, _) = listener.accept().await?;
        if let Some(address) = endpoints.next(turn) {
            work.spawn(pass(near, address));
        }
        while work.try_join_next().is_some() {}
    }
    Ok(())
}

/// Whatever breaks a connection, both ends see it close, as without a balancer.
async fn pass(mut near: TcpStream, address: SocketAddr) {
    if let Ok(mut far) = TcpStream::connect(address).await {
        let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}
