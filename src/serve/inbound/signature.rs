//! What a tracker signs a call with: the hex of an HMAC with SHA-256 over the body. Pure.

use http::HeaderMap;

use crate::api::kinds::agents::implementation_source::TrackerProvider;
use crate::serve::operation::Id;

/// A signature that there is none of.
pub(super) const NOTHING: Tag = [0; 32];

type Tag = [u8; 32];

/// What a call brings; a signature that is missing or no hex is one that no secret gives, and costs as much to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// For which trackers it counts.
    github: Option<Tag>,
    linear: Option<Tag>,
}

impl Signature {
    pub(super) fn of(operation: Id, headers: &HeaderMap) -> Self {
        let header = |name: &str| {
            let text = headers.get(name).and_then(|text| text.to_str().ok());
            text.unwrap_or_default().trim().to_owned()
        };
        let github = header("x-hub-signature-256");
        let github = tag(github.strip_prefix("sha256=").unwrap_or_default());
        let linear = tag(&header("linear-signature"));
        Self {
            github: (operation != Id::LinearDelivery).then_some(github),
            linear: (operation != Id::GithubDelivery).then_some(linear),
        }
    }

    /// What a source of a tracker checks; none if the call cannot be from there.
    pub(super) fn for_tracker(&self, provider: TrackerProvider) -> Option<Tag> {
        match provider {
            TrackerProvider::Github => self.github,
            TrackerProvider::Linear => self.linear,
        }
    }
}

fn tag(hex: &str) -> Tag {
    let mut tag = NOTHING;
    if hex.len() != tag.len() * 2 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return NOTHING;
    }
    for (place, byte) in tag.iter_mut().enumerate() {
        let digits = hex.get(place * 2..place * 2 + 2);
        let digits = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        *byte = digits.unwrap_or_default();
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrackerProvider::{Github, Linear};

    #[test]
    fn each_tracker_has_its_header_and_its_path() {
        let hex = "0a".repeat(32);
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-hub-signature-256",
            format!("sha256={hex}").parse().unwrap(),
        );
        headers.insert("linear-signature", "0B".repeat(32).parse().unwrap());
        let github = Signature::of(Id::GithubDelivery, &headers);
        assert_eq!(github.for_tracker(Github), Some([10; 32]));
        assert_eq!(github.for_tracker(Linear), None);
        let linear = Signature::of(Id::LinearDelivery, &headers);
        assert_eq!(linear.for_tracker(Github), None);
        assert_eq!(linear.for_tracker(Linear), Some([11; 32]));
        let named = Signature::of(Id::SourceDelivery, &headers);
        assert_eq!(named.for_tracker(Github), Some([10; 32]));
        assert_eq!(named.for_tracker(Linear), Some([11; 32]));
    }

    #[test]
    fn what_is_no_signature_is_checked_all_the_same() {
        let hex = "0a".repeat(32);
        let long = format!("sha256={hex}0a");
        let sign = format!("sha256=+a{}", "0a".repeat(31));
        for wrong in ["", "sha256=", "sha256=zz", &hex, &long, &sign, "sha1=0a0a"] {
            let mut headers = HeaderMap::new();
            headers.insert("x-hub-signature-256", wrong.parse().unwrap());
            let signature = Signature::of(Id::GithubDelivery, &headers);
            assert_eq!(signature.for_tracker(Github), Some(NOTHING), "{wrong}");
        }
    }
}
