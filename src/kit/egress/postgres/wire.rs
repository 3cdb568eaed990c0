//! The messages of PostgreSQL, one at a time, each of a size that is bounded.

use std::io;
use std::pin::Pin;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Trouble;
use crate::kit::egress::Failure;
use crate::kit::egress::connect::{Stream, unreachable};

/// Most bytes of a message, and most messages of a visit.
const SIZE: usize = 16 * 1024;
const MESSAGES: usize = 256;

/// A connection on which messages go.
pub(super) struct Wire {
    stream: Pin<Box<dyn Stream>>,
    left: usize,
}

impl Wire {
    pub(super) fn new(stream: Pin<Box<dyn Stream>>) -> Self {
        Self {
            stream,
            left: MESSAGES,
        }
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        let sent = async {
            self.stream.write_all(message).await?;
            self.stream.flush().await
        };
        sent.await.map_err(broken)
    }

    /// The next message that is about us: its letter and what it says. One that tells of an error is an error.
    pub(super) async fn next(&mut self) -> Result<(u8, Vec<u8>), Trouble> {
        while self.left > 0 {
            self.left -= 1;
            let (letter, body) = self.read().await?;
            match letter {
                b'E' => return Err(error(&body)),
                // Notices, settings of the server and news for others.
                b'N' | b'S' | b'A' => {}
                _ => return Ok((letter, body)),
            }
        }
        Err(garbled().into())
    }

    async fn read(&mut self) -> Result<(u8, Vec<u8>), Failure> {
        let letter = self.stream.read_u8().await.map_err(broken)?;
        let length = self.stream.read_u32().await.map_err(broken)?;
        // The length counts itself.
        let length = usize::try_from(length).ok();
        let length = length.and_then(|length| length.checked_sub(4));
        let length = length.ok_or_else(garbled)?;
        if length > SIZE {
            return Err(Failure::TooLarge(SIZE));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.map_err(broken)?;
        Ok((letter, body))
    }
}

/// A message to send.
pub(super) fn message(
    write: impl FnOnce(&mut BytesMut) -> io::Result<()>,
) -> Result<BytesMut, Failure> {
    let mut out = BytesMut::new();
    write(&mut out).map_err(|_| garbled())?;
    Ok(out)
}

pub(super) fn garbled() -> Failure {
    Failure::Unreachable("its answer is not that of a PostgreSQL".to_owned())
}

fn broken(error: io::Error) -> Failure {
    unreachable("the connection broke off", &error)
}

/// What an error means, by its code.
fn error(body: &[u8]) -> Trouble {
    let mut fields = body.split(|byte| *byte == 0);
    let code = fields.find_map(|field| field.strip_prefix(b"C"));
    let code = code.and_then(|code| str::from_utf8(code).ok());
    let is_code = |code: &&str| code.len() == 5 && code.bytes().all(|c| c.is_ascii_alphanumeric());
    let code = code.filter(is_code).unwrap_or("none");
    match code {
        "3D000" => Trouble::Lacks(format!("it has no such database (code {code})")),
        "42501" => Trouble::SignIn(format!("the user may not do what is asked (code {code})")),
        _ if code.starts_with("28") => {
            Trouble::SignIn(format!("it refuses the user or the password (code {code})"))
        }
        _ => Failure::Unreachable(format!("it answers with an error (code {code})")).into(),
    }
}
