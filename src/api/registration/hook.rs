//! One door of a configuration, whether it mutates or validates: the API has two types for what differs in one field.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// One webhook of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// Its name, unique within the configuration.
    pub name: String,
    /// Where it is called.
    pub client: WebhookClientConfig,
    /// For which requests.
    pub rules: Vec<RuleWithOperations>,
    /// What happens while it does not answer; the API server takes `Fail` if nothing is said.
    pub failure_policy: Option<String>,
    /// Whether requests in another version of the same resource count.
    pub match_policy: Option<String>,
    /// In which namespaces.
    pub namespaces: Option<LabelSelector>,
    /// For which objects.
    pub objects: Option<LabelSelector>,
    /// What must hold besides, in CEL.
    pub conditions: Vec<MatchCondition>,
    /// Whether a call leaves traces.
    pub side_effects: String,
    /// How long an answer is waited for.
    pub timeout_seconds: Option<i32>,
    /// Whether it is called again if a later one changed the object; only for those that mutate.
    pub reinvocation_policy: Option<String>,
    /// The versions of AdmissionReview that it understands.
    pub review_versions: Vec<String>,
}

impl Hook {
    pub(super) fn into_mutating(self) -> MutatingWebhook {
        MutatingWebhook {
            name: self.name,
            client_config: self.client,
            rules: Some(self.rules),
            failure_policy: self.failure_policy,
            match_policy: self.match_policy,
            namespace_selector: self.namespaces,
            object_selector: self.objects,
            match_conditions: Some(self.conditions),
            side_effects: self.side_effects,
            timeout_seconds: self.timeout_seconds,
            reinvocation_policy: self.reinvocation_policy,
            admission_review_versions: self.review_versions,
        }
    }

    pub(super) fn into_validating(self) -> ValidatingWebhook {
        ValidatingWebhook {
            name: self.name,
            client_config: self.client,
            rules: Some(self.rules),
            failure_policy: self.failure_policy,
            match_policy: self.match_policy,
            namespace_selector: self.namespaces,
            object_selector: self.objects,
            match_conditions: Some(self.conditions),
            side_effects: self.side_effects,
            timeout_seconds: self.timeout_seconds,
            admission_review_versions: self.review_versions,
        }
    }

    /// The path at which it is called.
    pub fn path(&self) -> &str {
        let WebhookClientConfig {
            service,
            url,
            ca_bundle: _,
        } = &self.client;
        if let Some(service) = service {
            return service.path.as_deref().unwrap_or("/");
        }
        let url = url.as_deref().unwrap_or_default();
        let host = url.find("://").map_or(0, |at| at + 3);
        let path = url[host..].find('/').map_or("/", |at| &url[host + at..]);
        path.split(['?', '#']).next().unwrap_or(path)
    }
}

impl From<MutatingWebhook> for Hook {
    fn from(webhook: MutatingWebhook) -> Self {
        Self {
            name: webhook.name,
            client: webhook.client_config,
            rules: webhook.rules.unwrap_or_default(),
            failure_policy: webhook.failure_policy,
            match_policy: webhook.match_policy,
            namespaces: webhook.namespace_selector,
            objects: webhook.object_selector,
            conditions: webhook.match_conditions.unwrap_or_default(),
            side_effects: webhook.side_effects,
            timeout_seconds: webhook.timeout_seconds,
            reinvocation_policy: webhook.reinvocation_policy,
            review_versions: webhook.admission_review_versions,
        }
    }
}

impl From<ValidatingWebhook> for Hook {
    fn from(webhook: ValidatingWebhook) -> Self {
        Self {
            name: webhook.name,
            client: webhook.client_config,
            rules: webhook.rules.unwrap_or_default(),
            failure_policy: webhook.failure_policy,
            match_policy: webhook.match_policy,
            namespaces: webhook.namespace_selector,
            objects: webhook.object_selector,
            conditions: webhook.match_conditions.unwrap_or_default(),
            side_effects: webhook.side_effects,
            timeout_seconds: webhook.timeout_seconds,
            reinvocation_policy: None,
            review_versions: webhook.admission_review_versions,
        }
    }
}

/// A configuration as it is stored, of either kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Whether its hooks may change objects.
    pub mutates: bool,
    /// Its hooks.
    pub hooks: Vec<Hook>,
}

impl From<MutatingWebhookConfiguration> for Configuration {
    fn from(stored: MutatingWebhookConfiguration) -> Self {
        let hooks = stored.webhooks.unwrap_or_default();
        Self {
            mutates: true,
            hooks: hooks.into_iter().map(Hook::from).collect(),
        }
    }
}

impl From<ValidatingWebhookConfiguration> for Configuration {
    fn from(stored: ValidatingWebhookConfiguration) -> Self {
        let hooks = stored.webhooks.unwrap_or_default();
        Self {
            mutates: false,
            hooks: hooks.into_iter().map(Hook::from).collect(),
        }
    }
}
