//! What is wrong with values is said at once, each with its path and what would be right.

use anyhow::Result;
use serde_json::json;
use support::helm::Helm;

#[tokio::test]
async fn all_that_is_wrong_is_said_in_one_message() -> Result<()> {
    let helm = Helm::new().await?;
    let values = json!({
        "controllers": {"enabled": false, "replicaCount": 2},
        "controller": {
            "namespaces": ["*", "Team"], "jobTtlSeconds": 5, "jobTtlSecondsAfterFinished": 6,
            "leaderElection": {"enabled": false, "renewDeadlineSeconds": 40},
        },
        "webhook": {"rung": "fail", "replicaCount": 1, "podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}},
        "runner": {"image": {"repository": "a"}}, "runtime": {"agentRunnerImage": "b"},
        "database": {"createSecret": {"enabled": true}},
        "runnerServiceAccount": {"rbac": {"create": true}},
        "autoscaling": {"enabled": true, "minReplicas": 5},
        "fullnameOverride": "a-name-that-is-much-too-long-for-what-comes-behind-it",
    });
    let said = helm.refusal(&values, &[]).await?;
    let paths = [
        "controllers.enabled: `false` has no meaning here",
        "controller.namespaces: `*` is all namespaces",
        "controller.namespaces: `*` needs rights in the whole cluster",
        "controller.namespaces: `Team` is no name of a namespace",
        "controller.jobTtlSeconds: it is 5 while controller.jobTtlSecondsAfterFinished is 6",
        "controller.leaderElection.enabled: without it two pods would do the same work",
        "controller.leaderElection: leaseDurationSeconds must be more",
        "webhook.replicaCount: on the rung fail nothing is stored",
        "webhook.podDisruptionBudget: the API takes minAvailable or maxUnavailable",
        "runtime.agentRunnerImage: runner.image.repository is set as well",
        "database.createSecret.enabled: the Secret is made of database.url",
        "runnerServiceAccount.rbac.create: there is no account",
        "autoscaling.minReplicas: it is more than maxReplicas",
        "fullnameOverride: it has more than 43 characters",
    ];
    for path in paths {
        assert!(
            said.contains(&format!("  - {path}")),
            "{path} is not in {said}"
        );
    }
    let count = paths.len();
    assert!(
        said.contains(&format!("{count} of the values cannot be used:")),
        "{said}"
    );
    Ok(())
}

/// Values that are refused alone, and the beginning of the reason.
#[tokio::test]
async fn each_contradiction_has_its_sentence() -> Result<()> {
    let helm = Helm::new().await?;
    let cases = [
        (
            json!({"webhook": {"tls": {"source": "secret"}}}),
            "webhook.tls.caBundle: the API server trusts nobody without it",
        ),
        (
            json!({"webhook": {"tls": {"source": "rotator", "secretName": "mine"}}}),
            "webhook.tls.secretName: the webhook keeps its own certificates in a Secret of its own",
        ),
        (
            json!({"webhook": {"certManager": {"renderMode": "never"}}}),
            "webhook.certManager.renderMode: with `never` nobody makes the certificate",
        ),
        (
            json!({"controller": {"enabled": false}, "orchestrationController": {"enabled": false}, "supportingController": {"enabled": false}}),
            "controller.enabled: nothing is left to do",
        ),
        (
            json!({"metrics": {"service": {"enabled": false}, "serviceMonitor": {"enabled": true}}}),
            "metrics.serviceMonitor.enabled: it needs the Services",
        ),
        (
            json!({"metrics": {"serviceMonitor": {"enabled": true}, "podMonitor": {"renderMode": "always"}}}),
            "metrics.podMonitor.renderMode: with the ServiceMonitor every page would be scraped twice",
        ),
        (
            json!({"database": {"url": "postgres://a", "secretRef": {"name": "b"}}}),
            "database.secretRef.name: database.url is set as well",
        ),
        (
            json!({"controller": {"namespaces": ["a", "a"]}}),
            "controller.namespaces: a namespace is in it twice",
        ),
    ];
    for (values, sentence) in cases {
        let said = helm.refusal(&values, &[]).await?;
        assert!(said.contains(&format!("  - {sentence}")), "{said}");
    }
    Ok(())
}

/// A word that is not known, a wrong type and a contradiction: each is a line of one message.
#[tokio::test]
async fn what_is_wrong_with_one_value_is_said_with_what_does_not_fit_together() -> Result<()> {
    let values = json!({
        "webhook": {"rung": "enforce", "replicaCount": "two"},
        "controller": {"jobTtlSeconds": 5, "jobTtlSecondsAfterFinished": 6},
    });
    let expected = "\n\n3 of the values cannot be used:\n  \
        - webhook.replicaCount: `two` is text; make it a whole number\n  \
        - webhook.rung: `enforce` is not known; make it one of \"audit\", \"warn\", \"deny-ignore\", \"fail-labelled\", \"fail\"\n  \
        - controller.jobTtlSeconds: it is 5 while controller.jobTtlSecondsAfterFinished is 6, and both mean the same; set only one of them\n\n";
    for name in ["helm", "helm3"] {
        let said = Helm::named(name).await?.refusal(&values, &[]).await?;
        assert!(said.contains(expected), "{name}: {said}");
    }
    Ok(())
}

/// Every rule of the schema has its sentence, and no template stumbles before it is said.
#[tokio::test]
async fn each_value_that_cannot_be_has_its_sentence() -> Result<()> {
    let helm = Helm::new().await?;
    let cases = [
        (
            json!({"metrics": 3}),
            "metrics: `3` is a whole number; make it a map",
        ),
        (
            json!({"controllers": {"replicaCount": 1.5}}),
            "controllers.replicaCount: `1.5` is a number; make it a whole number",
        ),
        (
            json!({"controller": {"namespaces": [5]}}),
            "controller.namespaces[0]: `5` is a whole number; make it text",
        ),
        (
            json!({"controller": {"queue": {"cluster": -1}}}),
            "controller.queue.cluster: `-1` is too little; make it 0 or more",
        ),
        (
            json!({"metrics": {"service": {"port": 70000}}}),
            "metrics.service.port: `70000` is too much; make it 65535 or less",
        ),
        (
            json!({"image": {"digest": "abc"}}),
            "image.digest: `abc` does not have the right form; write what fits ^(sha256:[0-9a-f]{64})?$",
        ),
        (
            json!({"networkPolicy": {"policyTypes": []}}),
            "networkPolicy.policyTypes: it is empty; add an entry",
        ),
        (
            json!({"env": {"vars": {"a b": "c"}}}),
            "env.vars: `a b` cannot be a name here; write what fits ^[A-Za-z_][A-Za-z0-9_]*$",
        ),
        (
            json!({"env": {"vars": {"A": ["c"]}}}),
            "env.vars.A: this is a list; make it text or a number or true or false",
        ),
        (
            json!({"envFromSecretRefs": [4]}),
            "envFromSecretRefs[0]: it is neither text nor a map with `name`; write one of the two",
        ),
    ];
    for (values, sentence) in cases {
        let said = helm.refusal(&values, &[]).await?;
        let alone = format!("\n1 of the values cannot be used:\n  - {sentence}\n");
        assert!(said.contains(&alone), "{values}: {said}");
    }
    let unknown = json!({"image": {"tags": "1"}});
    let unchecked = ["--skip-schema-validation"];
    let said = helm.refusal(&unknown, &unchecked).await?;
    let sentence = "image.tags: there is no such value; take it out, or write one of digest, ";
    assert!(said.contains(sentence), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_value_that_is_not_known_is_refused_and_global_is_open() -> Result<()> {
    let helm = Helm::new().await?;
    for (values, place) in [
        (json!({"webhok": {}}), "webhok"),
        (json!({"controller": {"queue": {"perTeam": 1}}}), "perTeam"),
        (json!({"image": {"tags": "1"}}), "tags"),
    ] {
        let said = helm.refusal(&values, &[]).await?;
        assert!(said.contains(place), "{said}");
    }
    let umbrella = json!({"enabled": true, "global": {"anything": {"at": "all"}, "imageRegistry": "mirror.example.com"}});
    let rendered = helm.render(&umbrella, &[]).await?;
    let image = rendered.container("controllers")?["image"].as_str();
    assert_eq!(
        image,
        Some("mirror.example.com/ghcr.io/proompteng/agents:0.1.0")
    );
    Ok(())
}
