//! The webhook: how it is registered, whether the API server can trust and reach it, and who else stands at the door.

use jiff::SignedDuration;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;

use super::others::{is_ours, others, who};
use crate::api::contract::{annotation, env};
use crate::api::registration::rung::Rung;
use crate::api::registration::{self, Configuration, Finding, lint};
use crate::cli::doctor::check::Verdict::{self, Bad, Beside, Good, Unseen, Warning};
use crate::cli::doctor::check::{Check, When, none_of, seen};
use crate::cli::doctor::facts::{self, Component, Facts, Probe, Registered};
use crate::cli::doctor::target::Target;

/// A certificate that ends within this time is worth a word, and within the next needs someone now; as the alerts say.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
const NOW: SignedDuration = SignedDuration::from_hours(24);

/// About the webhook.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "webhook-registered",
        title: "the API server is told of the webhook",
        hint: "apply the chart again; `agents webhook-configuration` prints what should be there",
        link: "docs/runbooks/webhook.md",
        when: When::After,
        judge: registered,
    },
    Check {
        id: "webhook-failure-policy",
        title: "the failure policy is that of the rung",
        hint: "apply the chart again with the rung that is meant (webhook.rung); someone changed the configuration or the Deployment alone",
        link: "docs/runbooks/AgentsWebhookRegistrationAtFault.md",
        when: When::After,
        judge: failure_policy,
    },
    Check {
        id: "webhook-registration",
        title: "the registration covers what it should and cannot lock the cluster",
        hint: "compare with `agents webhook-configuration` and apply the chart again",
        link: "docs/runbooks/AgentsWebhookRegistrationAtFault.md",
        when: When::After,
        judge: as_it_should_be,
    },
    Check {
        id: "webhook-ca-bundle",
        title: "the API server trusts who issued the certificate",
        hint: "let cert-manager inject the CA again, or set webhook.tls.caBundle to the issuer of the certificate in the Secret",
        link: "docs/runbooks/AgentsWebhookRegistrationAtFault.md",
        when: When::After,
        judge: ca_bundle,
    },
    Check {
        id: "webhook-certificate",
        title: "the certificate holds, and is for the name that the API server calls",
        hint: "see the Certificate or the Secret of the webhook; it must be for NAME.NAMESPACE.svc",
        link: "docs/runbooks/AgentsWebhookCertificateExpiring.md",
        when: When::After,
        judge: certificate,
    },
    Check {
        id: "webhook-certificate-term",
        title: "the certificate does not end soon",
        hint: "see why it is not renewed: `kubectl describe certificate`, or whoever rotates the Secret",
        link: "docs/runbooks/AgentsWebhookCertificateExpiring.md",
        when: When::After,
        judge: term,
    },
    Check {
        id: "webhook-endpoints",
        title: "there are pods behind the Service of the webhook",
        hint: "look at the pods of the webhook; the Service selects those that are ready",
        link: "docs/runbooks/AgentsWebhookDown.md",
        when: When::After,
        judge: endpoints,
    },
    Check {
        id: "webhook-answers",
        title: "the API server reaches the webhook",
        hint: "let the API server reach port 8443 of the webhook's pods (firewalls, NetworkPolicies), and see its certificate",
        link: "docs/runbooks/AgentsWebhookPassedBy.md",
        when: When::After,
        judge: answers,
    },
    Check {
        id: "other-webhooks",
        title: "no other webhook is in the way",
        hint: "leave our namespace and kinds out of its rules, or bring it back up; `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations` lists them",
        link: "docs/doctor.md#webhooks-of-others",
        when: When::Always,
        judge: others,
    },
];

/// Judges the registration, where there is a webhook.
fn of_ours(facts: &Facts, judge: impl FnOnce(&Registered) -> Verdict) -> Verdict {
    if facts.values.given && !facts.values.webhook {
        return Beside("the values switch the webhook off".to_owned());
    }
    seen(&facts.registered, |registered| {
        let Registered {
            mutating,
            validating,
        } = registered;
        let is_installed = facts.program(Component::Webhook).is_some();
        match mutating.is_none() && validating.is_none() && !is_installed && !facts.values.given {
            true => Beside("there is no webhook".to_owned()),
            false => judge(registered),
        }
    })
}

fn registered(facts: &Facts) -> Verdict {
    of_ours(facts, |registered| {
        let mut missing = Vec::new();
        if registered.mutating.is_none() {
            missing.push("MutatingWebhookConfiguration is missing".to_owned());
        }
        if registered.validating.is_none() {
            missing.push("ValidatingWebhookConfiguration is missing".to_owned());
        }
        none_of(&missing, "both configurations are there")
    })
}

/// The rung that is meant: by the values, by what the webhook runs on, or by what the configuration was made for.
fn rung(facts: &Facts, registered: &Registered) -> Option<Rung> {
    let webhook = facts.program(Component::Webhook);
    let told = webhook.and_then(|webhook| webhook.variables.get(env::WEBHOOK_RUNG)?.parse().ok());
    facts.values.rung.or(told).or_else(|| made_for(registered))
}

/// The rung that a configuration says it was made for.
fn made_for(registered: &Registered) -> Option<Rung> {
    let metadata = [
        registered.mutating.as_ref().map(|one| &one.metadata),
        registered.validating.as_ref().map(|one| &one.metadata),
    ];
    let mut named = metadata.into_iter().flatten().filter_map(|metadata| {
        let annotations = metadata.annotations.as_ref()?;
        annotations.get(annotation::RUNG)?.parse().ok()
    });
    named.next()
}

fn findings(registered: &Registered, rung: Rung) -> Vec<Finding> {
    let Registered {
        mutating,
        validating,
    } = registered.clone();
    let both = [
        mutating.map(Configuration::from),
        validating.map(Configuration::from),
    ];
    let both = both.iter().flatten();
    both.flat_map(|configuration| lint(configuration, rung))
        .collect()
}

fn failure_policy(facts: &Facts) -> Verdict {
    of_ours(facts, |registered| {
        let Some(rung) = rung(facts, registered) else {
            return Unseen("nothing says which rung is meant".to_owned());
        };
        let found = findings(registered, rung).into_iter();
        let found = found.filter(|finding| finding.check == registration::Check::Rung);
        let mut found: Vec<String> = found
            .map(|Finding { hook, text, .. }| format!("{hook}: {text}"))
            .collect();
        // The whole before its parts, which may be more than are shown.
        if let Some(other) = made_for(registered).filter(|other| *other != rung) {
            let meant = format!("the rung that is meant is {rung}");
            found.insert(
                0,
                format!("the configuration was made for {other}, {meant}"),
            );
        }
        none_of(&found, rung.as_str())
    })
}

fn as_it_should_be(facts: &Facts) -> Verdict {
    use registration::Check::{Authority, Rung as OfRung};
    of_ours(facts, |registered| {
        let rung = rung(facts, registered).unwrap_or_default();
        let found = findings(registered, rung).into_iter();
        // These two have a check of their own.
        let found = found.filter(|finding| ![Authority, OfRung].contains(&finding.check));
        let found: Vec<String> = found.map(|finding| finding.to_string()).collect();
        none_of(&found, "nothing to change")
    })
}

/// How each hook of ours is called.
fn clients(registered: &Registered) -> Vec<&WebhookClientConfig> {
    let mutating = registered.mutating.iter();
    let mutating = mutating.flat_map(|one| one.webhooks.iter().flatten());
    let validating = registered.validating.iter();
    let validating = validating.flat_map(|one| one.webhooks.iter().flatten());
    let mutating = mutating.map(|hook| &hook.client_config);
    mutating
        .chain(validating.map(|hook| &hook.client_config))
        .collect()
}

fn ca_bundle(facts: &Facts) -> Verdict {
    of_ours(facts, |registered| {
        let mut bundles: Vec<Option<&[u8]>> = clients(registered)
            .into_iter()
            .map(|client| client.ca_bundle.as_ref().map(|ca| ca.0.as_slice()))
            .collect();
        bundles.sort_unstable();
        bundles.dedup();
        if bundles.iter().any(|ca| ca.is_none_or(<[u8]>::is_empty)) {
            return Bad("caBundle is empty in at least one entry".to_owned());
        }
        seen(&facts.certificate, |shown| {
            let wrong = bundles.iter().flatten();
            let wrong = wrong.filter_map(|ca| shown.leads_to(ca, facts.now).err());
            let wrong: Vec<String> = wrong.map(|refused| refused.to_string()).collect();
            none_of(&wrong, "it leads to the caBundle of every entry")
        })
    })
}

/// The name that the API server calls the webhook by.
fn called(registered: &Registered) -> Option<String> {
    let clients = clients(registered);
    let target = clients.first().and_then(|client| Target::of(client))?;
    Some(target.name())
}

fn certificate(facts: &Facts) -> Verdict {
    of_ours(facts, |registered| {
        let Some(name) = called(registered) else {
            return Beside("there is no webhook to call".to_owned());
        };
        seen(&facts.certificate, |shown| {
            let held = shown.term(facts.now).and_then(|_| shown.is_for(&name));
            match held {
                Ok(()) => Good(format!("for {name}")),
                Err(refused) => Bad(refused.to_string()),
            }
        })
    })
}

fn term(facts: &Facts) -> Verdict {
    of_ours(facts, |_| {
        seen(&facts.certificate, |shown| {
            let (end, overdue) = match shown.term(facts.now) {
                Ok(term) => term,
                Err(refused) => return Bad(refused.to_string()),
            };
            let left = end.duration_since(facts.now);
            let text = format!("it ends at {end}");
            if left < NOW {
                Bad(text)
            } else if left < SOON || facts.now >= overdue {
                Warning(text)
            } else {
                Good(text)
            }
        })
    })
}

fn endpoints(facts: &Facts) -> Verdict {
    of_ours(facts, |registered| {
        let clients = clients(registered);
        if clients.iter().all(|client| client.service.is_none()) {
            return Beside("it is called by address".to_owned());
        }
        match &facts.endpoints {
            Ok(0) | Err(facts::Unseen::Absent(_)) => Bad("none is ready".to_owned()),
            other => seen(other, |count| Good(format!("{count} are ready"))),
        }
    })
}

fn answers(facts: &Facts) -> Verdict {
    of_ours(facts, |_| {
        seen(&facts.probe, |probe| match probe {
            Probe::Marked => Good("an object came back with its mark".to_owned()),
            Probe::Unmarked => Bad("an object was let through without being looked at".to_owned()),
            Probe::Refused(words) => match (who(words), words.contains("failed calling")) {
                (Some(hook), true) if is_ours(hook) => Bad(words.clone()),
                (Some(hook), false) if is_ours(hook) => Good("it refused an object".to_owned()),
                _ => Unseen(format!("an object did not come so far: {words}")),
            },
        })
    })
}
