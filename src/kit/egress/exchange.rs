//! One request and its answer, over a connection of its own; and where an answer sends the caller.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::address::Refusal;
use super::connect::connect;
use super::{Answer, Call, Failure, Inner};
use crate::kit::http::{BodyError, read_body};

/// Most steps from one address to another on the same server.
const REDIRECTS: usize = 3;
/// Most bytes of the head of an answer, and most headers in it.
const HEAD: usize = 16 * 1024;
const HEADERS: usize = 64;
/// Who calls.
const USER_AGENT: &str = concat!("agents/", env!("CARGO_PKG_VERSION"));

/// Calls, and goes where the answer sends a reader, as long as that is the same server.
pub(super) async fn follow(inner: &Inner, mut call: Call) -> Result<Answer, Failure> {
    for _ in 0..=REDIRECTS {
        let answer = once(inner, &call).await?;
        let is_read = [Method::GET, Method::HEAD].contains(&call.method);
        let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        if !is_redirect {
            return Ok(answer);
        }
        let location = answer.headers.get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let location = location.filter(|_| is_read);
        let next = location.ok_or(Refusal::Redirect);
        let next = next.and_then(|location| call.target.follow(location));
        call.target = next.map_err(Failure::Refused)?;
    }
    Err(Failure::Refused(Refusal::Redirect))
}

async fn once(inner: &Inner, call: &Call) -> Result<Answer, Failure> {
    let request = request(inner, call)?;
    let stream = TokioIo::new(connect(inner, &call.target).await?);
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD).max_headers(HEADERS);
    let (mut sender, connection) = builder.handshake(stream).await.map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let body = match read_body(body, call.limit).await {
            Ok(body) => body,
            // What went wrong is in the status; nobody needs the whole page.
            Err(BodyError::TooLarge { .. }) if !head.status.is_success() => Bytes::new(),
            Err(BodyError::TooLarge { limit }) => return Err(Failure::TooLarge(limit)),
            Err(BodyError::Broken(_)) => {
                return Err(Failure::Unreachable("its answer broke off".to_owned()));
            }
        };
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    };
    tokio::pin!(exchange);
    // The connection is driven here, so that nothing of it is left when the call is over.
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = connection => exchange.await,
    }
}

fn request(inner: &Inner, call: &Call) -> Result<Request<Full<Bytes>>, Failure> {
    let Call {
        method,
        target,
        headers,
        credential,
        body,
        limit: _,
    } = call;
    let wrong = |_| Failure::Refused(Refusal::Url);
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = method.clone();
    *request.uri_mut() = target.path.parse().map_err(wrong)?;
    let host = HeaderValue::try_from(target.authority());
    let host = host.map_err(|_| Failure::Refused(Refusal::Url))?;
    let own = request.headers_mut();
    for (name, value) in headers {
        own.insert(name, value.clone());
    }
    own.insert(header::HOST, host);
    own.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    if let Some(credential) = credential {
        // In tests there is no TLS on our own machine.
        let is_safe = target.is_tls || inner.rules.loopback;
        if credential.host != target.host || !is_safe {
            return Err(Failure::Refused(Refusal::Credential));
        }
        own.insert(header::AUTHORIZATION, credential.value.clone());
    }
    Ok(request)
}

fn broken(error: hyper::Error) -> Failure {
    let why = if error.is_parse_too_large() {
        "the head of its answer is too large"
    } else if error.is_parse() {
        "its answer is not HTTP"
    } else {
        "the connection broke off"
    };
    Failure::Unreachable(why.to_owned())
}
