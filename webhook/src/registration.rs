//! Looks at our own registration, at start and from time to time: does it still say what it should, and could it lock the
//! cluster? What it finds it says loudly; it changes nothing.
//!
//! Webhook configurations are not themselves admitted by webhooks, so this is the only way to notice a change of ours.
//! What is wrong is decided by [`agents::api::registration::lint`], what is worth a word by `said`.

mod metrics;
mod said;

use std::fmt::Debug;
use std::time::Duration;

use agents::api::registration::rung::Rung;
use agents::api::registration::{Configuration, Finding, lint};
use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};
use agents::kit::shutdown::Shutdown;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

pub use metrics::Metrics;
use said::{News, Said, Seen, Trouble};

/// Time between two looks, about.
const INTERVAL: Duration = Duration::from_secs(60);

/// Time for one look.
const DEADLINE: Duration = Duration::from_secs(10);

/// Looks at the registration of one webhook.
pub struct Warden {
    client: Client,
    /// Name of both configurations.
    name: String,
    rung: Rung,
    emitter: Emitter,
    metrics: Metrics,
    said: Said,
    /// What Events are about: the configuration that mutates, and the one that validates.
    about: [Regarding; 2],
}

impl Warden {
    /// One that expects the configurations of this name to be those of this rung.
    pub fn new(
        client: Client,
        expected: (String, Rung),
        emitter: Emitter,
        metrics: Metrics,
    ) -> Self {
        let (name, rung) = expected;
        Self {
            client,
            about: [
                named::<MutatingWebhookConfiguration>(&name),
                regarding(&name),
            ],
            name,
            rung,
            emitter,
            metrics,
            said: Said::default(),
        }
    }

    /// Looks again and again, until the program ends. Nothing that it finds ends the program.
    pub async fn run(mut self, shutdown: Shutdown) {
        loop {
            let seen = self.look().await;
            self.metrics.show(&seen);
            let news = self.said.hear(seen);
            for one in &news {
                self.log(one);
            }
            self.tell(&news);
            // Replicas that started together need not look together.
            let pause = INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0);
            tokio::select! {
                _ = shutdown.started() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// What is wrong with what is registered, or why that cannot be said.
    async fn look(&mut self) -> Seen {
        let (client, name) = (&self.client, self.name.as_str());
        let looking = async {
            let mutating = stored::<MutatingWebhookConfiguration>(client, name).await?;
            let validating = stored::<ValidatingWebhookConfiguration>(client, name).await?;
            Ok((mutating, validating))
        };
        let found = timeout(DEADLINE, looking).await;
        let late = |_| Err(Trouble::Unanswered("no answer in time".to_owned()));
        let (mutating, validating) = match found.unwrap_or_else(late) {
            Ok(found) => found,
            Err(trouble) => return Seen::Trouble(trouble),
        };
        self.about = [Regarding::of(&mutating), Regarding::of(&validating)];
        let configurations = [Configuration::from(mutating), validating.into()];
        let judged = configurations.iter().flat_map(|configuration| {
            let findings = lint(configuration, self.rung).into_iter();
            findings.map(|finding| (configuration.mutates, finding))
        });
        Seen::Findings(judged.collect())
    }

    fn log(&self, news: &News) {
        let (configuration, rung) = (self.name.as_str(), self.rung.as_str());
        match news {
            News::Found(_, Finding { check, hook, text }) => {
                let check = check.as_str();
                tracing::warn!(
                    configuration,
                    rung,
                    check,
                    hook,
                    text,
                    "Registration is at fault"
                );
            }
            News::Clean => {
                tracing::info!(configuration, rung, "Registration is as it should be");
            }
            News::Trouble(trouble) => {
                let reason = trouble.to_string();
                tracing::warn!(configuration, rung, reason, "Registration cannot be judged");
            }
        }
    }

    /// One Event about each configuration with all that is new in it: repeats would keep the words of the first.
    fn tell(&self, news: &[News]) {
        let [mutating, validating] = &self.about;
        for (about, wanted) in [(mutating, true), (validating, false)] {
            let found = news.iter().filter_map(|news| match news {
                News::Found(mutates, finding) => (*mutates == wanted).then(|| finding.to_string()),
                News::Clean | News::Trouble(_) => None,
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                let (reason, note) = (Reason::RegistrationAtFault, Note::new(found.join("; ")));
                let occurrence = Occurrence::new(about.clone(), reason, note);
                self.emitter.emit(Effect::Real, occurrence);
            }
        }
    }
}

/// The object that Events about the webhook as a whole are about.
pub fn regarding(name: &str) -> Regarding {
    named::<ValidatingWebhookConfiguration>(name)
}

fn named<K>(name: &str) -> Regarding
where
    K: Resource<DynamicType = ()> + Default,
{
    let mut object = K::default();
    *object.meta_mut() = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    Regarding::of(&object)
}

async fn stored<K>(client: &Client, name: &str) -> Result<K, Trouble>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let kind = K::kind(&());
    match Api::<K>::all(client.clone()).get_opt(name).await {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(Trouble::Missing(kind.into_owned())),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Err(Trouble::Forbidden(kind.into_owned()))
        }
        Err(error) => Err(Trouble::Unanswered(error.to_string())),
    }
}
