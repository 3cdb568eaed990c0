//! The program's own pod, as the object that Events about the program itself are about.

use agents::api::contract::env;
use agents::events::Regarding;
use agents::kit::config::{self, Invalid, Reader, Setting};

/// What the downward API says about the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its uid; without it `kubectl describe` does not show the Events.
    pub uid: Option<String>,
}

impl config::Settings for Own {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Pod");
        let namespace = reader.optional(Setting::new(
            env::POD_NAMESPACE,
            "Namespace of the program's own pod, for Events about the program",
        ));
        let uid = reader.optional(Setting::new(
            env::POD_UID,
            "Uid of the program's own pod, for Events about the program",
        ));
        Ok(Self {
            namespace: namespace?,
            uid: uid?,
        })
    }
}

impl Own {
    /// The namespace of the pod, or else the one that the client is at home in.
    pub fn home(&self, of_client: &str) -> String {
        let namespace = self.namespace.as_deref();
        namespace.unwrap_or(of_client).to_owned()
    }

    /// The pod of this name, in its namespace or else in the one that the client is at home in.
    pub fn regarding(&self, pod: &str, home: &str) -> Regarding {
        Regarding::pod(&self.home(home), pod, self.uid.clone())
    }
}
