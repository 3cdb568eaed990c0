//! The two questions to the cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::api::kind::Kind;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Caller {
    /// As the cluster calls them.
    pub(in crate::serve) name: String,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
    /// All of that, to tell one from another.
    pub(super) identity: Vec<u8>,
}

/// What is done with which resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Right {
    pub(in crate::serve) verb: &'static str,
    pub(in crate::serve) group: &'static str,
    /// With its subresource behind a slash, if one is meant.
    pub(in crate::serve) resource: &'static str,
}

impl Right {
    /// With objects of a kind of ours.
    pub(in crate::serve) fn of(verb: &'static str, kind: Kind) -> Self {
        Self {
            verb,
            group: kind.group(),
            resource: kind.plural(),
        }
    }

    /// The resource as rules of roles and people write it.
    pub(in crate::serve) fn what(&self) -> String {
        match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

/// What someone wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Ask {
    pub(in crate::serve) right: Right,
    /// None for all namespaces.
    pub(in crate::serve) namespace: Option<String>,
    /// None for no object in particular.
    pub(in crate::serve) name: Option<String>,
}

impl Ask {
    /// All of it, to tell one from another.
    pub(super) fn parts(&self) -> [&[u8]; 5] {
        let Right {
            verb,
            group,
            resource,
        } = self.right;
        [
            verb.as_bytes(),
            group.as_bytes(),
            resource.as_bytes(),
            self.namespace.as_deref().unwrap_or_default().as_bytes(),
            self.name.as_deref().unwrap_or_default().as_bytes(),
        ]
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.right.verb, self.right.what())?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in all namespaces"),
        }
    }
}

/// Whose token it is; none if nobody's.
pub(super) async fn token(
    client: &Client,
    token: &str,
    audiences: &[String],
) -> kube::Result<Option<Caller>> {
    let question = TokenReview {
        spec: TokenReviewSpec {
            token: Some(token.to_owned()),
            audiences: (!audiences.is_empty()).then(|| audiences.to_vec()),
        },
        ..TokenReview::default()
    };
    let answer = Api::<TokenReview>::all(client.clone())
        .create(&PostParams::default(), &question)
        .await?;
    let status = answer.status.unwrap_or_default();
    // Authenticators that know no audiences leave them out, and then the token was not made for us.
    let is_for_us = audiences.is_empty()
        || status
            .audiences
            .iter()
            .flatten()
            .any(|audience| audiences.contains(audience));
    let is_known = status.authenticated == Some(true) && is_for_us;
    let user = status.user.unwrap_or_default();
    let name = user.username.clone().filter(|name| !name.is_empty());
    Ok(name.filter(|_| is_known).map(|name| Caller {
        identity: serde_json::to_vec(&user).unwrap_or_default(),
        name,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
    }))
}

/// Whether the caller may do it.
pub(super) async fn access(client: &Client, caller: &Caller, ask: &Ask) -> kube::Result<bool> {
    let Right {
        verb,
        group,
        resource,
    } = ask.right;
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, part)) => (resource, Some(part.to_owned())),
        None => (resource, None),
    };
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(caller.name.clone()),
            uid: caller.uid.clone(),
            groups: caller.groups.clone(),
            extra: caller.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: ask.namespace.clone(),
                name: ask.name.clone(),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(client.clone())
        .create(&PostParams::default(), &question)
        .await?;
    Ok(answer
        .status
        .is_some_and(|status| status.allowed && status.denied != Some(true)))
}
