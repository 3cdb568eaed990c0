//! A look at a PostgreSQL that an object names: sign in, ask, leave.
//!
//! Messages are read here, so that each has a size; what proves who signs in comes from `postgres-protocol`. A password
//! goes in the clear, or as a mere hash, only inside TLS. What a server says in words is not repeated: it may say them to
//! deceive, and knows what was sent to it. Its code is enough.

mod door;
mod store;
#[cfg(test)]
mod tests;
mod wire;

use std::pin::Pin;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connect::{Stream, encrypt, judged, reach, unreachable};
use super::{Failure, Guard, Inner};
use door::Door;
pub use store::Store;
use store::Tls;
use wire::{Wire, garbled, message};

/// Why a store is of no use as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There is no answer, or its address may not be called.
    #[error("{0}")]
    Failed(#[from] Failure),
    /// It does not let the user in.
    #[error("{0}")]
    SignIn(String),
    /// It lets the user in, and what is looked for is not there.
    #[error("{0}")]
    Lacks(String),
}

impl Guard {
    /// Signs in, asks whether the database answers and has an extension, and leaves; all within the deadline.
    ///
    /// # Errors
    ///
    /// When it is of no use as it is, in words that show nothing of how to sign in.
    pub async fn visit(
        &self,
        store: &Store,
        extension: Option<&'static str>,
    ) -> Result<(), Trouble> {
        let deadline = self.inner.deadline;
        let visited = match timeout(deadline, any_place(&self.inner, store, extension)).await {
            Ok(visited) => visited,
            Err(_) => Err(Failure::TimedOut(deadline).into()),
        };
        if let Err(Trouble::Failed(Failure::Refused(refusal))) = &visited {
            self.count(*refusal);
        }
        visited
    }
}

/// The first place that answers counts, whatever it says.
async fn any_place(
    inner: &Inner,
    store: &Store,
    extension: Option<&'static str>,
) -> Result<(), Trouble> {
    let mut last = Failure::Unreachable("it has no place".to_owned());
    for (host, port) in &store.places {
        last = match connect(inner, store.tls, host, *port).await {
            Ok((stream, is_safe)) => return visit(stream, is_safe, store, extension).await,
            Err(failure) => failure,
        };
    }
    Err(last.into())
}

/// A stream to a place, and whether a password may go over it.
async fn connect(
    inner: &Inner,
    tls: Tls,
    host: &str,
    port: u16,
) -> Result<(Pin<Box<dyn Stream>>, bool), Failure> {
    let addresses = judged(inner, host, port).await?;
    let mut stream = reach(&addresses).await?;
    // In tests there is no TLS on our own machine.
    let is_safe = inner.rules.loopback;
    if tls == Tls::Never {
        return Ok((Box::pin(stream), is_safe));
    }
    let is_must = tls == Tls::Always;
    match is_offered(&mut stream).await? {
        true => match encrypt(&inner.database_tls, host, stream).await {
            Ok(stream) => Ok((Box::pin(stream), true)),
            Err(failure) if is_must => Err(failure),
            Err(_) => Ok((Box::pin(reach(&addresses).await?), is_safe)),
        },
        false if is_must => Err(Failure::Unreachable("it offers no TLS".to_owned())),
        false => Ok((Box::pin(stream), is_safe)),
    }
}

/// Asks whether the server offers TLS. Nothing behind the answer is read, so nobody can smuggle in what comes before TLS.
async fn is_offered(stream: &mut TcpStream) -> Result<bool, Failure> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    let asked = async {
        stream.write_all(&request).await?;
        stream.read_u8().await
    };
    match asked.await {
        Ok(b'S') => Ok(true),
        Ok(b'N') => Ok(false),
        Ok(_) => Err(garbled()),
        Err(error) => Err(unreachable("the connection broke off", &error)),
    }
}

/// Signs in, asks, leaves.
async fn visit(
    stream: Pin<Box<dyn Stream>>,
    is_safe: bool,
    store: &Store,
    extension: Option<&'static str>,
) -> Result<(), Trouble> {
    let mut wire = Wire::new(stream);
    let who = [
        ("user", &*store.user),
        ("database", &*store.database),
        ("application_name", "agents"),
    ];
    let hello = message(|out| frontend::startup_message(who, out))?;
    wire.send(&hello).await?;
    sign_in(&mut wire, Door::new(store, is_safe)).await?;
    if rows(&mut wire, "SELECT 1").await? == 0 {
        return Err(garbled().into());
    }
    if let Some(extension) = extension {
        let asked = format!("SELECT 1 FROM pg_extension WHERE extname = '{extension}'");
        if rows(&mut wire, &asked).await? == 0 {
            let lack = format!("its database lacks the extension {extension}");
            return Err(Trouble::Lacks(lack));
        }
    }
    // Whoever does not hear it notices that we are gone.
    let mut bye = BytesMut::new();
    frontend::terminate(&mut bye);
    drop(wire.send(&bye).await);
    Ok(())
}

/// Answers what the server asks until it is ready.
async fn sign_in(wire: &mut Wire, mut door: Door<'_>) -> Result<(), Trouble> {
    loop {
        match wire.next().await? {
            (b'Z', _) => return Ok(()),
            (b'K', _) => {}
            (b'R', asked) => {
                if let Some(answer) = door.answer(&asked)? {
                    wire.send(&answer).await?;
                }
            }
            _ => return Err(garbled().into()),
        }
    }
}

/// How many rows a question gives.
async fn rows(wire: &mut Wire, question: &str) -> Result<usize, Trouble> {
    let asked = message(|out| frontend::query(question, out))?;
    wire.send(&asked).await?;
    let mut rows = 0;
    loop {
        match wire.next().await?.0 {
            b'D' => rows += 1,
            b'Z' => return Ok(rows),
            b'T' | b'C' | b'I' => {}
            _ => return Err(garbled().into()),
        }
    }
}
