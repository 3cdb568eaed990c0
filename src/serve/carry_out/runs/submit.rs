//! Makes a run, or anything else that is made once for one key. The cluster itself keeps what was made: the key gives
//! the name and the object keeps a hash of the request, so it holds for every replica and after every restart.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, StatusCode};
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::policy;
use crate::api::contract::{FIELD_MANAGER, annotation, label};
use crate::api::kind::Kind;
use crate::api::object::examine::examine;
use crate::api::text::hash::{json_hash, text_hash};
use crate::api::text::names::{Form, LabelValue};
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// Where the key stands.
const KEY: &str = "idempotency-key";

/// Longest key.
const LONGEST_KEY: usize = 256;

/// Set where nothing new was made.
const REPLAYED: &str = "idempotency-replayed";

/// A run that is to be made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::serve) struct Submission {
    /// Name of the run; chosen by the server if left out. Not together with an idempotency key.
    #[serde(default)]
    name: Option<String>,
    /// Labels of the run.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Annotations of the run.
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// The spec of an AgentRun.
    spec: Value,
    /// What the run is held to.
    #[serde(default)]
    pub(super) policy: policy::Policy,
}

/// That something was made, and under which name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::serve) struct Receipt {
    /// Its kind.
    kind: String,
    /// Its namespace.
    namespace: String,
    /// Its name.
    name: String,
    /// Its uid.
    uid: String,
    /// When it was made.
    created_at: String,
}

/// Makes a run.
pub(in crate::serve) async fn submit(state: &State, call: &Call) -> Result<Answer, Fault> {
    let key = key(&call.headers)?;
    let given: Submission = body(&call.body)?;
    let once = key.map(|key| Once::of(key, &given));
    if once.is_some() && given.name.is_some() {
        return Err(Fault::bad_request("the key gives the run its name")
            .next("leave out either the header Idempotency-Key or `name`"));
    }
    let object = run(call.namespace(), &given, once.as_ref());
    let causes = examine(Kind::AgentRun, &object, None);
    if !causes.is_empty() {
        return Err(Fault::invalid(causes));
    }
    let runs = state.api(Kind::AgentRun, Some(call.namespace()));
    if let Some(made) = made_before(&runs, once.as_ref()).await? {
        return Ok(replayed(&made));
    }
    policy::check(state, call.namespace(), &given.policy, &object).await?;
    create_once(&runs, Kind::AgentRun, object, once.as_ref()).await
}

/// The run as it is to be stored.
fn run(namespace: &str, given: &Submission, once: Option<&Once>) -> Value {
    let agent = given.spec.pointer("/agentRef/name").and_then(Value::as_str);
    let agent = agent.filter(|agent| Form::DnsLabel.fits(agent));
    let (mut labels, mut annotations) = (given.labels.clone(), given.annotations.clone());
    if let Some(budget) = given.policy.budget() {
        annotations.insert(annotation::BUDGET.to_owned(), budget.to_owned());
    }
    let mut metadata = json!({"namespace": namespace});
    match (once, &given.name) {
        (Some(once), _) => {
            metadata["name"] = once.name("run").into();
            once.mark(&mut labels, &mut annotations);
        }
        (None, Some(name)) => metadata["name"] = name.as_str().into(),
        (None, None) => {
            // Half of what a label may have, so that the names of Jobs need no digest.
            let agent: String = agent.unwrap_or("run").chars().take(30).collect();
            metadata["generateName"] = format!("{agent}-").into();
        }
    }
    metadata["labels"] = json!(labels);
    metadata["annotations"] = json!(annotations);
    json!({
        "apiVersion": Kind::AgentRun.api_version(), "kind": Kind::AgentRun.as_str(),
        "metadata": metadata, "spec": given.spec,
    })
}

/// Something that is made only once.
pub(in crate::serve) struct Once {
    key: String,
    /// Of the request, in hex.
    hash: String,
}

impl Once {
    pub(in crate::serve) fn of(key: &str, request: &impl Serialize) -> Self {
        let request = serde_json::to_value(request).unwrap_or_default();
        Self {
            key: key.to_owned(),
            hash: json_hash(&request),
        }
    }

    /// The name that the key gives, after a word that says what it is.
    pub(in crate::serve) fn name(&self, start: &str) -> String {
        let digest = text_hash(&self.key);
        // More would look like a secret, and be masked in the log.
        format!("{start}-{}", &digest[..16])
    }

    /// Writes on the object what it was made for.
    pub(in crate::serve) fn mark(
        &self,
        labels: &mut BTreeMap<String, String>,
        annotations: &mut BTreeMap<String, String>,
    ) {
        let key = LabelValue::normalise(&self.key);
        labels.insert(label::DELIVERY_ID.to_owned(), key.as_str().to_owned());
        let hash = annotation::SUBMISSION_HASH.to_owned();
        annotations.insert(hash, self.hash.clone());
    }

    /// Refuses an object that was made for another request.
    fn check(&self, made: &DynamicObject) -> Result<(), Fault> {
        if made.annotations().get(annotation::SUBMISSION_HASH) == Some(&self.hash) {
            return Ok(());
        }
        let message = format!(
            "this idempotency key was used with another request, which made {}",
            made.name_any()
        );
        Err(
            Fault::new(StatusCode::CONFLICT, Reason::IdempotencyConflict, message)
                .next("use a new key for a new request"),
        )
    }
}

/// What was made for this key, if it was for the same request.
async fn made_before(
    objects: &Api<DynamicObject>,
    once: Option<&Once>,
) -> Result<Option<DynamicObject>, Fault> {
    let Some(once) = once else {
        return Ok(None);
    };
    let made = objects.get_opt(&once.name("run")).await?;
    made.as_ref().map(|made| once.check(made)).transpose()?;
    Ok(made)
}

/// Makes an object, or finds the one that was made for the same key.
pub(in crate::serve) async fn create_once(
    objects: &Api<DynamicObject>,
    kind: Kind,
    object: Value,
    once: Option<&Once>,
) -> Result<Answer, Fault> {
    let how = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let mut object: DynamicObject = serde_json::from_value(object).map_err(|_| {
        Fault::bad_request("name, labels and annotations must be such as Kubernetes takes")
    })?;
    object.types = Some(kube::api::TypeMeta {
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
    });
    let name = object.meta().name.clone().unwrap_or_default();
    match (objects.create(&how, &object).await, once) {
        (Ok(made), _) => Ok(receipt(&made)),
        (Err(kube::Error::Api(status)), Some(once)) if status.reason == "AlreadyExists" => {
            // Another replica, or the same request a moment ago.
            let made = objects.get(&name).await?;
            once.check(&made)?;
            Ok(replayed(&made))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The answer to a request that made something.
pub(in crate::serve) fn receipt(made: &DynamicObject) -> Answer {
    let kind = made.types.as_ref().map(|types| types.kind.clone());
    let created_at = made.creation_timestamp();
    let receipt = Receipt {
        kind: kind.unwrap_or_default(),
        namespace: made.namespace().unwrap_or_default(),
        name: made.name_any(),
        uid: made.uid().unwrap_or_default(),
        created_at: created_at.map_or(String::new(), |time| time.0.to_string()),
    };
    answer::json(StatusCode::CREATED, &receipt)
}

/// The same answer again.
fn replayed(made: &DynamicObject) -> Answer {
    let mut answer = receipt(made);
    let yes = HeaderValue::from_static("true");
    answer.headers_mut().insert(REPLAYED, yes);
    answer
}

/// The idempotency key of a request.
fn key(headers: &HeaderMap) -> Result<Option<&str>, Fault> {
    let Some(given) = headers.get(KEY) else {
        return Ok(None);
    };
    let key = given.to_str().map(str::trim).unwrap_or_default();
    match (1..=LONGEST_KEY).contains(&key.len()) {
        true => Ok(Some(key)),
        false => Err(Fault::bad_request(format!(
            "the idempotency key must have 1 to {LONGEST_KEY} printable characters"
        ))),
    }
}

/// The body of a request as it should be.
pub(in crate::serve) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read: Result<T, _> = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner().to_string());
        Fault::bad_request(format!("the body cannot be read at {path}: {why}"))
            .next("GET /openapi.json shows what it should look like")
    })?;
    match reader.end() {
        Ok(()) => Ok(read),
        Err(_) => Err(Fault::bad_request(
            "there is more behind the end of the body",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::text::sanitise::for_log;

    fn submission(more: Value) -> Submission {
        let mut given = json!({"spec": {"agentRef": {"name": "coder"}}});
        given
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body(given.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_name_comes_from_the_key_from_the_request_or_from_the_server() {
        let plain = run("n", &submission(json!({})), None);
        assert_eq!(plain["metadata"]["generateName"], "coder-");
        let named = run("n", &submission(json!({"name": "mine"})), None);
        assert_eq!(named["metadata"]["name"], "mine");
        let given = submission(json!({"policy": {"budgetRef": {"name": "small"}}}));
        let once = Once::of("Key 1", &given);
        let keyed = run("n", &given, Some(&once));
        let name = keyed["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("run-") && name.len() == 20, "{name}");
        assert_eq!(for_log(name), name);
        assert_eq!(keyed["metadata"]["labels"][label::DELIVERY_ID], "key-1");
        assert_eq!(
            keyed["metadata"]["annotations"][annotation::SUBMISSION_HASH],
            once.hash
        );
        assert_eq!(
            keyed["metadata"]["annotations"][annotation::BUDGET],
            "small"
        );
    }

    #[test]
    fn the_same_request_has_the_same_hash_whatever_the_order_of_its_fields() {
        let of = |text: &str| Once::of("k", &body::<Submission>(text.as_bytes()).unwrap()).hash;
        let one = of(r#"{"name": "a", "spec": {"x": 1, "y": [1, 2]}}"#);
        assert_eq!(one, of(r#"{ "spec":{"y":[1,2],"x":1}, "name":"a"}"#));
        assert_ne!(one, of(r#"{"name": "a", "spec": {"x": 1, "y": [2, 1]}}"#));
        assert_ne!(one, of(r#"{"name": "b", "spec": {"x": 1, "y": [1, 2]}}"#));
    }

    #[test]
    fn a_body_that_is_wrong_is_told_where() {
        for (text, expected) in [
            ("", "EOF"),
            ("{}", "missing field `spec`"),
            (r#"{"spec": {}, "labels": {"a": 1}}"#, "labels.a"),
            (r#"{"spec": {}, "sepc": {}}"#, "unknown field `sepc`"),
            (r#"{"spec": {}} {}"#, "more behind the end"),
        ] {
            let fault = body::<Submission>(text.as_bytes()).unwrap_err();
            let told = format!("{fault:?}");
            assert!(told.contains(expected), "{text}: {told}");
        }
    }

    #[test]
    fn a_key_is_printable_and_not_too_long() {
        let read = |text: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(KEY, HeaderValue::from_bytes(text).unwrap());
            key(&headers).map(|key| key.map(str::to_owned)).ok()
        };
        assert_eq!(read(b" a b "), Some(Some("a b".to_owned())));
        assert_eq!(read(b""), None);
        assert_eq!(read(&[b'x'; LONGEST_KEY + 1]), None);
        assert_eq!(read("ä".as_bytes()), None);
        assert_eq!(key(&HeaderMap::new()).unwrap(), None);
    }
}
