//! Bodies: reading one up to a limit, and short texts as answers.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;

use super::BoxError;

/// A body that is there as a whole.
pub type TextBody = Full<Bytes>;

/// A short text for people.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<TextBody> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Why a body could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than allowed.
    #[error("the body is larger than the {limit} bytes allowed")]
    TooLarge {
        /// How many are allowed.
        limit: usize,
    },
    /// It broke off.
    #[error("the body could not be read")]
    Broken(#[source] BoxError),
}

impl BodyError {
    /// The answer for the client.
    pub fn response(&self) -> Response<TextBody> {
        let status = match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        };
        text(status, format!("{self}\n"))
    }
}

/// Room that is made for a body before it has come, whatever it says of its length.
const AHEAD: usize = 1024 * 1024;

/// The whole body, if it has at most `limit` bytes. One that says beforehand that it has more is not read at all.
///
/// # Errors
///
/// When it has more, or breaks off.
pub async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if declares_more(&body, limit) {
        return Err(BodyError::TooLarge { limit });
    }
    let (mut body, mut come) = (pin!(body), Come::default());
    come.read(&mut body, limit, limit).await?;
    Ok(come.into_bytes())
}

/// Whether a body says beforehand that it has more bytes than these.
pub fn declares_more(body: &impl Body, limit: usize) -> bool {
    usize::try_from(body.size_hint().lower()).map_or(true, |declared| declared > limit)
}

/// What has come of a body. It is kept when the rest does not come, so that the answer can still say what was asked.
///
/// A body that comes at once is not copied. Others are, piece by piece as they come: so the next piece is read to where this
/// one was, which the processor still has at hand.
#[derive(Debug, Default)]
pub struct Come {
    first: Bytes,
    whole: BytesMut,
}

impl Come {
    /// Reads on until there are more than `enough` bytes, and says whether the body ended before that. Whoever stops
    /// waiting for it loses nothing and can go on later.
    ///
    /// # Errors
    ///
    /// When the body has more than `limit` bytes, or breaks off. What came before is kept.
    pub async fn read<B>(
        &mut self,
        body: &mut B,
        enough: usize,
        limit: usize,
    ) -> Result<bool, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let ahead = announced.min(AHEAD).min(enough);
        if !self.whole.is_empty() {
            self.whole.reserve(ahead);
        }
        while self.len() <= enough {
            let Some(frame) = body.frame().await else {
                return Ok(true);
            };
            let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
            let Ok(piece) = frame.into_data() else {
                continue; // trailers, of which no service of ours knows any
            };
            if piece.len() > limit - self.len() {
                return Err(BodyError::TooLarge { limit });
            }
            self.add(piece, ahead);
        }
        Ok(false)
    }

    fn add(&mut self, piece: Bytes, ahead: usize) {
        if self.first.is_empty() && self.whole.is_empty() {
            self.first = piece;
            return;
        }
        if self.whole.is_empty() {
            self.whole.reserve(ahead.max(self.len() + piece.len()));
            self.whole.extend_from_slice(&self.first);
            self.first = Bytes::new();
        }
        self.whole.extend_from_slice(&piece);
    }

    fn len(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    /// All of it.
    pub fn into_bytes(self) -> Bytes {
        match self.whole.is_empty() {
            true => self.first,
            false => self.whole.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// A body that comes in pieces and does not say how many.
    fn pieces(sizes: &[usize]) -> impl Body<Data = Bytes, Error = BoxError> {
        let frames: Vec<Result<_, BoxError>> = sizes
            .iter()
            .map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; *size]))))
            .collect();
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_read() {
        let body = read_body(pieces(&[4, 6]), 10).await.expect("a body");
        assert_eq!(body, Bytes::from_static(b"xxxxxxxxxx"));
        let whole = read_body(Full::new(Bytes::from_static(b"xx")), 2).await;
        assert_eq!(whole.expect("a body"), Bytes::from_static(b"xx"));
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_413_whether_declared_or_not() {
        let undeclared = read_body(pieces(&[4, 7]), 10).await;
        let declared = read_body(Full::new(Bytes::from_static(b"xxx")), 2).await;
        for error in [undeclared, declared] {
            let response = error.expect_err("too large").response();
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        }
    }

    #[tokio::test]
    async fn what_has_come_is_kept_whatever_becomes_of_the_rest() {
        let (mut body, mut come) = (pieces(&[4, 6, 3]), Come::default());
        assert!(!come.read(&mut body, 3, 100).await.expect("a first part"));
        assert_eq!(come.len(), 4);
        assert!(!come.read(&mut body, 9, 100).await.expect("a second part"));
        assert_eq!(come.len(), 10);
        let too_large = come.read(&mut body, 12, 12).await;
        assert!(matches!(too_large, Err(BodyError::TooLarge { limit: 12 })));
        assert_eq!(come.into_bytes(), Bytes::from_static(b"xxxxxxxxxx"));

        let (mut body, mut come) = (pieces(&[4, 6]), Come::default());
        assert!(come.read(&mut body, 10, 100).await.expect("all of it"));
        assert_eq!(come.into_bytes().len(), 10);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_the_clients_fault() {
        let frames: Vec<Result<Frame<Bytes>, BoxError>> = vec![Err("reset".into())];
        let broken = read_body(StreamBody::new(stream::iter(frames)), 10).await;
        let response = broken.expect_err("broken").response();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
}
