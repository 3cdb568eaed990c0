//! Tells the cluster what the certificate source has to say: a Warning Event where someone should look. Where nobody else
//! makes the certificate, [`rotator`] does.

pub mod rotator;

use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};
use agents::kit::shutdown::Shutdown;
use agents::kit::tls::Notice;
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Turns notices into Events until the program ends. An Event is about `regarding`.
pub async fn report(
    mut notices: Receiver<Notice>,
    emitter: Emitter,
    regarding: Regarding,
    shutdown: Shutdown,
) {
    loop {
        let notice = tokio::select! {
            _ = shutdown.started() => return,
            notice = notices.recv() => notice,
        };
        match notice {
            Ok(notice) => {
                if let Some((reason, note)) = words(&notice) {
                    let occurrence = Occurrence::new(regarding.clone(), reason, note);
                    emitter.emit(Effect::Real, occurrence);
                }
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "Notices about the certificate were missed");
            }
            Err(RecvError::Closed) => {
                // The source is gone, so nothing more will come; the end of the program is still waited for.
                shutdown.started().await;
                return;
            }
        }
    }
}

/// Reason and words of the Event, if the notice deserves one.
fn words(notice: &Notice) -> Option<(Reason, Note)> {
    match notice {
        Notice::InUse { .. } => None,
        Notice::Refused { reason, kept } => {
            let text = match kept {
                true => "The changed certificate files cannot be used, the old certificate stays",
                false => "The certificate files cannot be used and there is no other",
            };
            let note = Note::new(text).because(&reason.to_string());
            Some((Reason::CertificateRejected, note))
        }
        Notice::Expiring { not_after } => Some((
            Reason::CertificateExpiring,
            Note::new(format!(
                "The certificate ends at {not_after} and no new one has come"
            )),
        )),
        Notice::Expired { not_after } => Some((
            Reason::CertificateExpiring,
            Note::new(format!(
                "The certificate ended at {not_after} and no new one has come"
            )),
        )),
    }
}

#[cfg(test)]
mod tests {
    use agents::kit::tls::Refused;

    use super::*;

    #[test]
    fn bad_news_become_events_and_good_news_do_not() {
        let not_after = "2030-01-01T00:00:00Z".parse().unwrap();
        let reason = Refused::Expired { not_after };
        let refused = |kept| Notice::Refused {
            reason: reason.clone(),
            kept,
        };
        let cases = [
            (Notice::InUse { not_after }, None),
            (refused(true), Some(Reason::CertificateRejected)),
            (refused(false), Some(Reason::CertificateRejected)),
            (
                Notice::Expiring { not_after },
                Some(Reason::CertificateExpiring),
            ),
            (
                Notice::Expired { not_after },
                Some(Reason::CertificateExpiring),
            ),
        ];
        for (notice, expected) in cases {
            let got = words(&notice).map(|(reason, _)| reason);
            assert_eq!(got, expected, "{notice:?}");
        }
    }
}
