//! What follows from how a connection went: whether an answer is a stream, and when to try again. Pure: no clock, no chance.

#[cfg(test)]
mod tests;

use std::time::Duration;

use agents::closed_labels;
use http::{HeaderMap, StatusCode, header};

/// Time before the first new try, unless the server says otherwise.
const FIRST: Duration = Duration::from_secs(1);

/// A server may not ask for less, or it would be asked again and again without a pause.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longest time between two tries.
const LONGEST: Duration = Duration::from_secs(30);

/// A connection that lasted so long was a good one; one that breaks sooner counts as another failure.
const GOOD: Duration = Duration::from_secs(60);

/// Refusals after which there is little hope.
const REFUSALS: u32 = 5;

/// Time between two tries where there is little hope; also the most that a server may ask for.
const RARELY: Duration = Duration::from_secs(600);

closed_labels! {
    /// Why a stream is not followed any more, or could not be.
    pub(super) enum Cause {
        /// Nobody is there.
        Unreachable = "unreachable",
        /// The token that is shown cannot be read.
        Token = "token",
        /// There was no answer in time.
        Late = "late",
        /// There is no trust, or no TLS.
        Tls = "tls",
        /// The server asks to be left alone for a while, or is at fault.
        Busy = "busy",
        /// The server does not want us.
        Refused = "refused",
        /// The server says that there will be nothing to follow.
        Stopped = "stopped",
        /// The answer is no event stream.
        NotAStream = "not_a_stream",
        /// The answer leads elsewhere, or round in circles.
        Redirected = "redirected",
        /// Nothing came for too long, not even a sign of life.
        Silent = "silent",
        /// The server ended the stream.
        Ended = "ended",
        /// The connection broke.
        Broken = "broken",
    }
}

/// How a connection, or the try to have one, came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Why.
    pub(super) cause: Cause,
    /// How long the server asks to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl From<Cause> for End {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            retry_after: None,
        }
    }
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is a stream.
    Stream,
    /// It is elsewhere.
    Elsewhere(String),
    /// It is nothing.
    Nothing(End),
}

/// What the head of an answer means.
pub(super) fn judge(status: StatusCode, headers: &HeaderMap) -> Answer {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let seconds = || text(header::RETRY_AFTER)?.trim().parse().ok();
    match status.as_u16() {
        200 if is_event_stream(headers) => Answer::Stream,
        200 => Answer::Nothing(Cause::NotAStream.into()),
        204 => Answer::Nothing(Cause::Stopped.into()),
        301 | 302 | 303 | 307 | 308 => match text(header::LOCATION) {
            Some(location) => Answer::Elsewhere(location.to_owned()),
            None => Answer::Nothing(Cause::Redirected.into()),
        },
        408 | 425 | 429 | 500..=599 => Answer::Nothing(End {
            cause: Cause::Busy,
            retry_after: seconds().map(Duration::from_secs),
        }),
        _ => Answer::Nothing(Cause::Refused.into()),
    }
}

/// Whether it is what was asked for, and can be read as it comes.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str());
    let essence = |value: &str| {
        let essence = value.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    };
    let typed = matches!(text(header::CONTENT_TYPE), Some(Ok(value)) if essence(value));
    let plain = match text(header::CONTENT_ENCODING) {
        None => true,
        Some(encoding) => encoding.is_ok_and(|encoding| encoding.eq_ignore_ascii_case("identity")),
    };
    typed && plain
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try again after this time.
    After(Duration),
    /// Nothing, for good.
    Never,
}

/// When one stream is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    first: Duration,
    failures: u32,
    refusals: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: FIRST,
            failures: 0,
            refusals: 0,
        }
    }
}

impl Backoff {
    /// The server says how long to wait.
    pub(super) fn hint(&mut self, delay: Duration) {
        self.first = delay.clamp(SHORTEST, LONGEST);
    }

    /// What to do after an end. `lasted` says how long there was a stream, if there was one; `chance` lies between 0 and 1
    /// and sees to it that many who lost the same server do not come back all at once.
    pub(super) fn next(&mut self, end: End, lasted: Option<Duration>, chance: f64) -> Next {
        if lasted.is_some_and(|lasted| lasted >= GOOD) {
            self.failures = 0;
        }
        match end.cause {
            Cause::Stopped => return Next::Never,
            Cause::Refused => self.refusals = self.refusals.saturating_add(1),
            Cause::Unreachable
            | Cause::Token
            | Cause::Late
            | Cause::Tls
            | Cause::Busy
            | Cause::NotAStream
            | Cause::Redirected
            | Cause::Silent
            | Cause::Ended
            | Cause::Broken => self.refusals = 0,
        }
        let delay = match self.refusals >= REFUSALS {
            true => RARELY,
            false => {
                let doubled = 2_u32.saturating_pow(self.failures);
                self.first.saturating_mul(doubled).min(LONGEST)
            }
        };
        self.failures = self.failures.saturating_add(1);
        let delay = delay.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        let asked = end.retry_after.unwrap_or_default().min(RARELY);
        Next::After(delay.max(asked))
    }
}
