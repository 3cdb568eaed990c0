//! What the operator gives to runs that leave it out, as flags and variables. The controller gives it, the webhook judges
//! it as if the run had written it, so both must read the same.

use crate::api::contract::env;
use crate::api::policy::Defaults;
use crate::kit::config::{Invalid, Reader, Setting, Settings};

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
        Ok(Self {
            image: runner_image?.or(agent_image?),
            service_account: service_account?,
            auth_secret: auth_secret?,
        })
    }
}
