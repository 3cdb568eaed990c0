//! What is kept, and what became of it.

use std::fmt;
use std::sync::Arc;

use kube::{Resource, ResourceExt};

/// An object by namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(crate) fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What can be kept.
pub(crate) trait Kept: Resource<DynamicType = ()> + Send + Sync + 'static {}

impl<K: Resource<DynamicType = ()> + Send + Sync + 'static> Kept for K {}

/// What became of an object.
#[derive(Debug)]
pub(crate) enum Change<K> {
    /// It is new or was changed.
    Applied {
        object: Arc<K>,
        /// As it was before, if it was known.
        before: Option<Arc<K>>,
    },
    /// It is gone.
    Deleted {
        /// As it was last seen.
        object: Arc<K>,
        /// Whether that is how it went. Who finds it missing cannot tell what became of it since it was seen.
        is_last: bool,
    },
}

impl<K> Change<K> {
    /// The object, if it came or went; none if it was there before and still is.
    pub(crate) fn came_or_went(&self) -> Option<&Arc<K>> {
        match self {
            Self::Applied {
                before: Some(_), ..
            } => None,
            Self::Applied {
                object,
                before: None,
            }
            | Self::Deleted { object, .. } => Some(object),
        }
    }
}
