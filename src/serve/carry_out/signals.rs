//! Signals, which steps wait for, and their deliveries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::runs::{Once, body, create_once};
use crate::api::kind::Kind;
use crate::api::object::examine::examine;
use crate::serve::answer::Answer;
use crate::serve::fault::Fault;
use crate::serve::service::Call;
use crate::serve::state::State;

/// A Signal that is to be made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::serve) struct NewSignal {
    /// Its name.
    name: String,
    /// Channel that it belongs to.
    #[serde(default)]
    channel: Option<String>,
    /// What it means.
    #[serde(default)]
    description: Option<String>,
    /// Values for deliveries that bring none.
    #[serde(default)]
    payload: Option<Map<String, Value>>,
}

/// A delivery that is to be made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::serve) struct Delivery {
    /// Deliveries with the same id count once.
    #[serde(default)]
    delivery_id: Option<String>,
    /// Values that come with it.
    #[serde(default)]
    payload: Option<Map<String, Value>>,
}

/// Makes a Signal.
pub(in crate::serve) async fn create(state: &State, call: &Call) -> Result<Answer, Fault> {
    let given: NewSignal = body(&call.body)?;
    let spec = json!({
        "channel": given.channel, "description": given.description, "payload": given.payload,
    });
    let metadata = json!({"namespace": call.namespace(), "name": given.name});
    let object = object(Kind::Signal, metadata, spec);
    make(state, call, Kind::Signal, object, None).await
}

/// Delivers a Signal.
pub(in crate::serve) async fn deliver(state: &State, call: &Call) -> Result<Answer, Fault> {
    let given: Delivery = body(&call.body)?;
    let signals = state.api(Kind::Signal, Some(call.namespace()));
    if signals.get_opt(call.name()).await?.is_none() {
        return Err(Fault::not_found("Signal", call.namespace(), call.name()));
    }
    let spec = json!({
        "signalRef": {"name": call.name()}, "deliveryId": given.delivery_id, "payload": given.payload,
    });
    let mut metadata = json!({"namespace": call.namespace()});
    let once = given.delivery_id.as_deref().map(|id| {
        // The same id may be used for another signal.
        Once::of(&format!("{}/{id}", call.name()), &given)
    });
    match &once {
        None => metadata["generateName"] = "delivery-".into(),
        Some(once) => {
            let (mut labels, mut annotations) = Default::default();
            once.mark(&mut labels, &mut annotations);
            metadata["name"] = once.name("delivery").into();
            metadata["labels"] = json!(labels);
            metadata["annotations"] = json!(annotations);
        }
    }
    let object = object(Kind::SignalDelivery, metadata, spec);
    make(state, call, Kind::SignalDelivery, object, once.as_ref()).await
}

/// An object of ours; what is not given is left out.
fn object(kind: Kind, metadata: Value, mut spec: Value) -> Value {
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    json!({
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": spec,
    })
}

async fn make(
    state: &State,
    call: &Call,
    kind: Kind,
    object: Value,
    once: Option<&Once>,
) -> Result<Answer, Fault> {
    let causes = examine(kind, &object, None);
    if !causes.is_empty() {
        return Err(Fault::invalid(causes));
    }
    let objects = state.api(kind, Some(call.namespace()));
    create_once(&objects, kind, object, once).await
}
