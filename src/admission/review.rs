//! An AdmissionReview as it comes in, borrowed from the bytes that hold it.
//!
//! One pass over the bytes finds everything that decisions look at; specs and statuses stay text until someone needs
//! them, and what nobody needs (managed fields, most annotations) is never built. Decides nothing.

mod few;
mod json;
mod metadata;
mod uid;

pub use json::{Unreadable, read};
pub use metadata::{Annotations, Labels, Metadata, Owner};
pub use uid::uid_of;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use few::few;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The one version of reviews that is understood and answered.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of a review.
pub const KIND: &str = "AdmissionReview";

/// A text that is borrowed unless it had to be unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// What the API server asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Names the question; the answer must repeat it.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// The kind of the object as it is sent.
    #[serde(borrow)]
    pub kind: GroupKind<'a>,
    /// The resource of the object as it is sent.
    #[serde(borrow)]
    pub resource: GroupResource<'a>,
    /// The part of the resource that is written, e.g. `status`.
    #[serde(borrow, default)]
    pub sub_resource: Text<'a>,
    /// Name of the object; empty if the API server is to make one up.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// Its namespace.
    #[serde(borrow, default)]
    pub namespace: Text<'a>,
    /// What is done to it.
    #[serde(borrow)]
    pub operation: Text<'a>,
    /// Who does it.
    #[serde(borrow, default)]
    pub user_info: User<'a>,
    /// The object as it would be stored.
    #[serde(borrow, default)]
    pub object: Option<Object<'a>>,
    /// The object as it is stored.
    #[serde(borrow, default)]
    pub old_object: Option<Object<'a>>,
    /// Nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// A kind with its group and version.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "the three parts of what the type names")]
pub struct GroupKind<'a> {
    #[serde(borrow, default)]
    pub group: Text<'a>,
    #[serde(borrow)]
    pub version: Text<'a>,
    #[serde(borrow)]
    pub kind: Text<'a>,
}

/// A resource with its group and version.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "the three parts of what the type names")]
pub struct GroupResource<'a> {
    #[serde(borrow, default)]
    pub group: Text<'a>,
    #[serde(borrow)]
    pub version: Text<'a>,
    #[serde(borrow)]
    pub resource: Text<'a>,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
pub struct User<'a> {
    /// Name of the user.
    #[serde(borrow, default)]
    pub username: Text<'a>,
    /// Groups that the user is in.
    #[serde(borrow, default, deserialize_with = "few")]
    pub groups: Option<Vec<Text<'a>>>,
}

impl User<'_> {
    /// Whether the user has this name or is in this group.
    pub fn is(&self, name: &str) -> bool {
        let mut groups = self.groups.iter().flatten();
        &*self.username == name || groups.any(|group| &**group == name)
    }
}

/// An object, cut into the parts that decisions look at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<'a> {
    /// Group and version.
    #[serde(borrow, default)]
    pub api_version: Text<'a>,
    /// Kind.
    #[serde(borrow, default)]
    pub kind: Text<'a>,
    /// Who it is.
    #[serde(borrow, default)]
    pub metadata: Metadata<'a>,
    /// What is wanted, as text.
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    /// What was observed, as text.
    #[serde(borrow, default)]
    pub status: Option<&'a RawValue>,
}

/// Why bytes are not a review.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// They are no JSON, or JSON of another shape.
    #[error("the body is not an AdmissionReview: {0}")]
    Shape(#[from] serde_json::Error),
    /// They are something else, or another version of it.
    #[error("the body is {kind} of {api_version}; only {KIND} of {API_VERSION} is answered here")]
    Version {
        /// What it says that it is.
        kind: String,
        /// In which version.
        api_version: String,
    },
    /// The question has no name, so that no answer could be matched to it.
    #[error("the request has no uid")]
    NoUid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    request: Request<'a>,
}

/// The question in a body.
///
/// # Errors
///
/// When the body holds none. A key that stands twice where we look is an error; the API server never sends one.
pub fn decode(body: &[u8]) -> Result<Request<'_>, Malformed> {
    let Review {
        api_version,
        kind,
        request,
    } = match std::str::from_utf8(body) {
        // Every text is known to be one, so that none is looked at again.
        Ok(text) => serde_json::from_str(text)?,
        Err(_) => serde_json::from_slice(body)?, // names the place
    };
    if &*api_version != API_VERSION || &*kind != KIND {
        return Err(Malformed::Version {
            kind: shown(&kind),
            api_version: shown(&api_version),
        });
    }
    if request.uid.is_empty() {
        return Err(Malformed::NoUid);
    }
    Ok(request)
}

/// Given text in an answer: short and harmless.
fn shown(given: &str) -> String {
    crate::api::object::cause::quoted(given)
}
