//! Ports of this machine.

use anyhow::Result;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Different addresses of the loopback that nobody uses now; whoever takes one first has it.
pub fn free_addresses<const COUNT: usize>() -> Result<[SocketAddr; COUNT]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    // Held until all are there, so that none comes twice.
    let mut held = Vec::new();
    for address in &mut addresses {
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        held.push(listener);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_address_comes_twice() {
        let addresses: BTreeSet<_> = free_addresses::<20>().unwrap().into();
        assert_eq!(addresses.len(), 20);
        assert!(addresses.iter().all(|address| address.port() > 0));
    }
}
