//! Where deliveries wait for the controllers: in the cluster, each in a ConfigMap of its own. So they are still there
//! after any restart, and every replica sees them.

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};

use super::Inbound;
use super::keyring::scoped;
use crate::api::contract::{FIELD_MANAGER, label};
use crate::api::kinds::ImplementationSource;
use crate::api::tracker::Delivery;
use crate::serve::fault::{Fault, Reason};

/// Seconds after which there may be room.
const AGAIN: u32 = 30;

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// It waits.
    Added,
    /// It waits already, or was taken over.
    Known,
}

impl Inbound {
    /// Has a delivery wait, if there is room. Replicas count each for itself, so there can be one too many for each.
    pub(super) async fn put(
        &self,
        source: &ImplementationSource,
        delivery: &Delivery,
    ) -> Result<Queued, Fault> {
        let last = source
            .status
            .as_ref()
            .and_then(|status| status.last_webhook.as_ref());
        let is_last = last.is_some_and(|last| {
            last.idempotency_key.as_ref() == Some(&delivery.key)
                && last.status.as_deref() == Some("synced")
        });
        if is_last {
            return Ok(Queued::Known);
        }
        let _turn = self.turn.lock().await;
        let waiting = self.waiting().await?;
        self.metrics.waiting(waiting);
        if waiting >= self.most {
            return Err(full(self.most));
        }
        let namespace = source.namespace().unwrap_or_default();
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        match api.create(&params, &delivery.object(source)).await {
            Ok(_) => {
                self.metrics.waiting(waiting + 1);
                Ok(Queued::Added)
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(Queued::Known),
            Err(error) => Err(error.into()),
        }
    }

    /// How many wait, counted up to one more than may.
    pub(super) async fn waiting(&self) -> kube::Result<usize> {
        let mut waiting = 0;
        for scope in self.namespaces.scopes() {
            let api: Api<ConfigMap> = scoped(&self.client, &scope);
            let most = u32::try_from(self.most)
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            let params = ListParams::default().labels(label::DELIVERY).limit(most);
            waiting += api.list_metadata(&params).await?.items.len();
        }
        Ok(waiting)
    }
}

fn full(most: usize) -> Fault {
    let message = format!("{most} deliveries wait to be taken over, and no more may");
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, Reason::QueueFull, message)
        .next("see that the controllers run, and have the tracker send it again")
        .again_after(AGAIN)
}
