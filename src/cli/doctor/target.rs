//! Where the API server calls a webhook. Pure.

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Behind a Service: its namespace and name.
    Service(String, String),
    /// At a host and port.
    Address(String, u16),
}

impl Target {
    /// As a configuration says it; none if it says nothing that can be called.
    pub(crate) fn of(client: &WebhookClientConfig) -> Option<Self> {
        if let Some(service) = &client.service {
            let (namespace, name) = (service.namespace.clone(), service.name.clone());
            return Some(Self::Service(namespace, name));
        }
        let url = client.url.as_deref()?.strip_prefix("https://")?;
        let authority = url.split(['/', '?', '#']).next()?;
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are within brackets.
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, 443),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some(Self::Address(host.to_owned(), port))
    }

    /// The name that its certificate must be for.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Service(namespace, name) => format!("{name}.{namespace}.svc"),
            Self::Address(host, _) => host.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_api_server_reads_them() {
        let read = |url: &str| {
            Target::of(&WebhookClientConfig {
                url: Some(url.to_owned()),
                ..WebhookClientConfig::default()
            })
        };
        let at = |host: &str, port| Some(Target::Address(host.to_owned(), port));
        assert_eq!(read("https://10.0.0.1:8443/mutate"), at("10.0.0.1", 8443));
        assert_eq!(read("https://hook.test/validate"), at("hook.test", 443));
        assert_eq!(read("https://[::1]:8443/x"), at("::1", 8443));
        assert_eq!(read("https://[::1]/x"), at("::1", 443));
        assert_eq!(read("http://plain"), None);
        let service = Target::Service("agents".to_owned(), "hook".to_owned());
        assert_eq!(service.name(), "hook.agents.svc");
    }
}
