//! What the operator gives to runs that leave it out, as flags and variables. The controller gives it, the webhook judges
//! it as if the run had written it, so both must read the same.

use serde::Deserialize;

use crate::api::contract::env;
use crate::api::policy::Defaults;
use crate::kit::config::{Invalid, Reader, Setting, Settings, Value};

impl Settings for Defaults {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut text = |variable, help| reader.optional(Setting::<String>::new(variable, help));
        let runner_image = text(env::RUNNER_IMAGE, "Image of runs that name none");
        let agent_image = text(
            env::AGENT_IMAGE,
            "Image of runs that name none, where the setting above is not set",
        );
        let service_account = text(
            env::RUNNER_SERVICE_ACCOUNT,
            "Service account of runs that name none",
        );
        let auth_secret = text(
            env::AUTH_SECRET_NAME,
            "Name of the Secret with the credentials that every run gets",
        );
        let image_pull_secrets = reader.optional(Setting::<Names>::new(
            env::RUNNER_IMAGE_PULL_SECRETS,
            "Secrets that pull the images of pods, as JSON: names, or objects with a name",
        ));
        Ok(Self {
            image: runner_image?.or(agent_image?),
            service_account: service_account?,
            auth_secret: auth_secret?,
            image_pull_secrets: image_pull_secrets?.map(|Names(names)| names),
        })
    }
}

/// Names, each written alone or as an object that has it.
struct Names(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Alone(String),
    Within { name: String },
}

impl Value for Names {
    const EXPECTED: &'static str = "a JSON list of names such as [\"a\", {\"name\": \"b\"}]";

    fn parse(text: &str) -> Option<Self> {
        let names: Vec<Name> = serde_json::from_str(text).ok()?;
        let names = names.into_iter().map(|name| match name {
            Name::Alone(name) | Name::Within { name } => name,
        });
        Some(Self(names.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_secrets_are_names_or_objects_with_a_name() {
        let names = |text: &str| Names::parse(text).map(|Names(names)| names);
        let both = names(r#"["a", {"name": "b"}]"#);
        assert_eq!(both, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names("[]"), Some(vec![]));
        for wrong in ["", "a", "[1]", r#"[{"names": "b"}]"#, r#"{"name": "b"}"#] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }
}
