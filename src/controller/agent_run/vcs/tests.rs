//! The thirteen questions, a row for each answer; then branches, and what the runner is told.

use serde_json::{Value, json};

use super::*;
use crate::api::crd::schema::FreeObject;
use crate::api::policy::Policy;
use crate::kit::config::Value as _;

fn object<K: serde::de::DeserializeOwned>(name: &str, spec: Value) -> K {
    serde_json::from_value(
        json!({"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": spec}),
    )
    .unwrap()
}

/// A run, what it finds, and what the operator set.
struct Scene {
    run: AgentRun,
    found: Found,
    metadata: BTreeMap<String, String>,
    settings: Settings,
}

fn merged(mut to: Value, more: Value) -> Value {
    json_patch::merge(&mut to, &more);
    to
}

fn github(more: Value) -> Value {
    let token = json!({"token": {"secretRef": {"name": "t"}}});
    merged(json!({"provider": "github", "auth": token}), more)
}

/// A run with this policy at a host like this; all that it needs is there.
fn scene(policy: Value, host: Value) -> Scene {
    let run = json!({"agentRef": {"name": "coder"}, "runtime": {"type": "job"},
        "vcsRef": {"name": "host"}, "vcsPolicy": policy});
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Scene {
        run: object("r", run),
        found: Found {
            agent: Some(Arc::new(object(
                "coder",
                json!({"providerRef": {"name": "shell"}}),
            ))),
            hosts: BTreeMap::from([("host".to_owned(), Arc::new(object("host", host)))]),
            secrets: BTreeMap::from([
                ("t".to_owned(), keys(&["token"])),
                ("k".to_owned(), keys(&["privateKey"])),
            ]),
            config_maps: BTreeMap::from([("h".to_owned(), keys(&["known_hosts"]))]),
            is_late: true,
            ..Found::default()
        },
        metadata: BTreeMap::from([("repository".to_owned(), "o/r".to_owned())]),
        settings: Settings::default(),
    }
}

impl Scene {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn resolve(&self) -> Result<Resolved, Lack> {
        let implementation = ImplementationFields::default();
        let nothing = BTreeMap::new();
        resolve(&Ask {
            run: &self.run,
            agent: self.found.agent.as_ref().unwrap(),
            implementation: &implementation,
            parameters: &nothing,
            metadata: &self.metadata,
            found: &self.found,
            settings: &self.settings,
        })
    }

    fn vcs(&self) -> Vcs {
        match self.resolve() {
            Ok(Resolved::Use(vcs)) => *vcs,
            other => panic!("{other:?}"),
        }
    }

    fn said(&self) -> String {
        match self.resolve() {
            Ok(Resolved::Unasked) => "unasked".to_owned(),
            Ok(Resolved::Skipped { reason, .. }) => format!("skip {}", reason.as_str()),
            Ok(Resolved::Use(vcs)) => json!(vcs.mode).as_str().unwrap_or_default().to_owned(),
            Err(Lack::Waits { reason, .. }) => format!("wait {}", reason.as_str()),
            Err(Lack::Wrong { reason, .. }) => format!("fail {}", reason.as_str()),
        }
    }
}

/// What comes of it for a run that does not need version control, one that does, and one that wants none.
#[track_caller]
fn check(row: &str, host: Value, change: impl Fn(&mut Scene), expected: [&str; 3]) {
    let policies = [
        json!({}),
        json!({"required": true}),
        json!({"required": true, "mode": "none"}),
    ];
    let said = policies.map(|policy| scene(policy, host.clone()).with(&change).said());
    assert_eq!(said.each_ref().map(String::as_str), expected, "{row}");
}

#[test]
fn each_question_has_its_answer() {
    let nothing = |_: &mut Scene| {};
    let read_only = github(json!({"capabilities": {"write": false}}));
    let no_use = github(json!({"capabilities": {"write": false, "read": false}}));
    let keyless = github(json!({"auth": {"token": null}}));
    let skip_all = ["skip VcsProvidersDisabled"; 3];
    check(
        "0 all is well",
        github(json!({})),
        nothing,
        ["read-write", "read-write", "skip VcsDisabled"],
    );
    check(
        "1 switched off",
        github(json!({})),
        |scene| scene.settings.enabled = false,
        skip_all,
    );
    check(
        "2 no name",
        github(json!({})),
        |scene| scene.run.spec.vcs_ref = None,
        ["unasked", "fail MissingVcsProvider", "unasked"],
    );
    check(
        "3 no provider",
        github(json!({})),
        |scene| scene.found.hosts.clear(),
        [
            "skip MissingVcsProvider",
            "fail MissingVcsProvider",
            "skip MissingVcsProvider",
        ],
    );
    check(
        "4 no repository",
        github(json!({})),
        |scene| scene.metadata.clear(),
        [
            "skip MissingRepository",
            "fail MissingRepository",
            "skip MissingRepository",
        ],
    );
    let denied = [
        "fail VcsPolicyDenied",
        "fail VcsPolicyDenied",
        "skip VcsPolicyDenied",
    ];
    check(
        "5 denied",
        github(json!({"repositoryPolicy": {"deny": ["o/*"]}})),
        nothing,
        denied,
    );
    check(
        "5 not allowed",
        github(json!({"repositoryPolicy": {"allow": ["O/r", "x/*"]}})),
        nothing,
        denied,
    );
    check(
        "5 the operator's list",
        github(json!({})),
        |scene| scene.settings.repositories = ["x/*"].into_iter().collect(),
        denied,
    );
    check(
        "5 allowed",
        github(json!({"repositoryPolicy": {"allow": ["o/*"], "deny": []}})),
        nothing,
        ["read-write", "read-write", "skip VcsDisabled"],
    );
    check(
        "7 no writing",
        read_only,
        nothing,
        ["read-only", "fail VcsCapabilityDenied", "skip VcsDisabled"],
    );
    check(
        "7 and 13 no reading either",
        no_use,
        nothing,
        [
            "skip VcsDisabled",
            "fail VcsCapabilityDenied",
            "skip VcsDisabled",
        ],
    );
    let unsupported = [
        "skip UnsupportedVcsAuth",
        "fail UnsupportedVcsAuth",
        "skip VcsDisabled",
    ];
    check(
        "8 sort of token",
        github(json!({"auth": {"token": {"type": "api_token"}}})),
        nothing,
        unsupported,
    );
    check(
        "8 way to sign in",
        github(json!({"provider": "gitlab", "auth": {"method": "app"}})),
        nothing,
        unsupported,
    );
    let missing = [
        "skip MissingVcsAuth",
        "fail MissingVcsAuth",
        "skip VcsDisabled",
    ];
    check(
        "9 token",
        github(json!({"auth": {"method": "token", "token": null}})),
        nothing,
        missing,
    );
    check(
        "9 app",
        github(json!({"auth": {"method": "app", "app": {"privateKeySecretRef": {"name": "k"}}}})),
        nothing,
        missing,
    );
    check(
        "9 ssh",
        github(json!({"auth": {"method": "ssh"}})),
        nothing,
        missing,
    );
    check(
        "10 blocked",
        github(json!({})),
        |scene| scene.found.policy = Arc::new(Policy::parse("blockedSecrets: [t]").unwrap()),
        [
            "skip SecretBlocked",
            "fail SecretBlocked",
            "skip VcsDisabled",
        ],
    );
    let strict = json!({"providerRef": {"name": "shell"}, "security": {"allowedSecrets": ["x"]}});
    check(
        "10 not allowed",
        github(json!({})),
        |scene| scene.found.agent = Some(Arc::new(object("coder", strict.clone()))),
        [
            "skip SecretNotAllowed",
            "fail SecretNotAllowed",
            "skip VcsDisabled",
        ],
    );
    let unavailable = [
        "skip VcsAuthUnavailable",
        "fail VcsAuthUnavailable",
        "skip VcsDisabled",
    ];
    check(
        "11 no Secret",
        github(json!({})),
        |scene| scene.found.secrets.clear(),
        unavailable,
    );
    check(
        "11 no entry",
        github(json!({"auth": {"token": {"secretRef": {"key": "x"}}}})),
        nothing,
        unavailable,
    );
    let ssh = json!({"auth": {"token": null, "ssh": {"privateKeySecretRef": {"name": "k"}, "knownHostsConfigMapRef": {"name": "h"}}}});
    check(
        "11 no known hosts",
        github(ssh.clone()),
        |scene| scene.found.config_maps.clear(),
        unavailable,
    );
    check(
        "11 known hosts",
        github(ssh),
        nothing,
        ["read-write", "read-write", "skip VcsDisabled"],
    );
    check(
        "12 nothing to write with",
        keyless,
        nothing,
        ["read-only", "fail VcsAuthUnavailable", "skip VcsDisabled"],
    );
}

#[test]
fn what_may_come_late_is_waited_for() {
    let late = |change: fn(&mut Scene)| {
        let scene = scene(json!({}), github(json!({})));
        scene
            .with(|scene| scene.found.is_late = false)
            .with(change)
            .said()
    };
    assert_eq!(late(|_| {}), "read-write");
    assert_eq!(
        late(|scene| scene.found.hosts.clear()),
        "wait MissingVcsProvider"
    );
    assert_eq!(
        late(|scene| scene.found.secrets.clear()),
        "wait SecretNotFound"
    );
    assert_eq!(
        late(|scene| scene.found.secrets.get_mut("t").unwrap().clear()),
        "wait SecretKeyMissing"
    );
    assert_eq!(
        late(|scene| scene.metadata.clear()),
        "skip MissingRepository"
    );
}

#[test]
fn the_run_names_its_provider_before_its_work_and_its_agent() {
    let mut ask = scene(json!({}), github(json!({})));
    let agent = json!({"providerRef": {"name": "shell"}, "vcsRef": {"name": "of-agent"}});
    ask.found.agent = Some(Arc::new(object("coder", agent)));
    let work: ImplementationFields =
        serde_json::from_value(json!({"text": "x", "vcsRef": {"name": "of-work"}})).unwrap();
    let named = |scene: &Scene, work: &ImplementationFields| {
        let nothing = BTreeMap::new();
        let ask = Ask {
            run: &scene.run,
            agent: scene.found.agent.as_ref().unwrap(),
            implementation: work,
            parameters: &nothing,
            metadata: &scene.metadata,
            found: &scene.found,
            settings: &scene.settings,
        };
        name(&ask).map(str::to_owned)
    };
    assert_eq!(named(&ask, &work).as_deref(), Some("host"));
    ask.run.spec.vcs_ref = None;
    assert_eq!(named(&ask, &work).as_deref(), Some("of-work"));
    assert_eq!(
        named(&ask, &ImplementationFields::default()).as_deref(),
        Some("of-agent")
    );
}

#[test]
fn old_tokens_are_told_as_the_host_or_the_operator_says() {
    let pat = || github(json!({"auth": {"token": {"type": "pat"}}}));
    let warned = |text: &str| {
        let scene = scene(json!({}), pat());
        let scene =
            scene.with(|scene| scene.settings.deprecated = Deprecated::parse(text).unwrap());
        scene.vcs().warning.map(|(reason, _)| reason.as_str())
    };
    assert_eq!(warned("{}"), Some("DeprecatedAuth"));
    assert_eq!(warned(r#"{"gitlab": ["pat"]}"#), Some("DeprecatedAuth"));
    assert_eq!(warned(r#"{"github": []}"#), None);
    assert_eq!(warned(r#"{"github": ["fine_grained"]}"#), None);
    for wrong in ["", "[]", r#"{"sourceforge": []}"#, r#"{"github": ["old"]}"#] {
        assert_eq!(Deprecated::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn branches_follow_parameters_then_templates_and_step_aside() {
    let defaults = |more: Value| {
        let defaults = json!({"baseBranch": "main", "branchTemplate": "work/{{ agentRun.name }}-{{ repository }}"});
        github(json!({"defaults": merged(defaults, more)}))
    };
    let suffix = json!({"branchConflictSuffixTemplate": "-{{ agentRun.namespace }}-{{ branch }}"});
    let taken = |scene: &mut Scene| {
        scene.found.heads.insert(("o/r".to_owned(), "x".to_owned()));
    };
    let given = |scene: &mut Scene| {
        scene.metadata.insert("base".to_owned(), "b".to_owned());
        scene.metadata.insert("head".to_owned(), "x".to_owned());
    };
    let said = |head: &'static str| {
        move |scene: &mut Scene| {
            let vcs = json!({"vcs": {"repository": "o/r", "headBranch": head}});
            scene.run.status = Some(serde_json::from_value(vcs).unwrap());
        }
    };
    let of = |scene: Scene| {
        let vcs = scene.vcs();
        (vcs.base.unwrap_or_default(), vcs.head.unwrap_or_default())
    };
    for (row, scene, base, head) in [
        ("nothing", scene(json!({}), github(json!({}))), "", ""),
        (
            "templates",
            scene(json!({}), defaults(json!({}))),
            "main",
            "work/r-o/r",
        ),
        (
            "parameters",
            scene(json!({}), defaults(json!({}))).with(given),
            "b",
            "x",
        ),
        (
            "taken, no suffix",
            scene(json!({}), defaults(json!({})))
                .with(given)
                .with(taken),
            "b",
            "x",
        ),
        (
            "taken",
            scene(json!({}), defaults(suffix.clone()))
                .with(given)
                .with(taken),
            "b",
            "x-a-x",
        ),
        (
            "free",
            scene(json!({}), defaults(suffix.clone())).with(given),
            "b",
            "x",
        ),
        (
            "taken later",
            scene(json!({}), defaults(suffix.clone()))
                .with(given)
                .with(taken)
                .with(said("x")),
            "b",
            "x",
        ),
        (
            "taken before, free now",
            scene(json!({}), defaults(suffix.clone()))
                .with(given)
                .with(said("x-a-x")),
            "b",
            "x-a-x",
        ),
    ] {
        assert_eq!(of(scene), (base.to_owned(), head.to_owned()), "{row}");
    }
}

fn shown(vcs: &Vcs, settings: &Settings) -> Vec<String> {
    let text = |variable: &k8s_openapi::api::core::v1::EnvVar| {
        let secret = variable.value_from.as_ref();
        let secret = secret.and_then(|from| from.secret_key_ref.as_ref());
        let secret = secret.map(|secret| format!("<{} of {}>", secret.key, secret.name));
        let value = variable.value.clone().or(secret).unwrap_or_default();
        format!("{}={value}", variable.name)
    };
    variables(vcs, settings).iter().map(text).collect()
}

#[test]
fn the_runner_is_told_everything_and_tokens_only_by_name() {
    let host = github(json!({
        "apiBaseUrl": "https://api.example.com", "cloneProtocol": "https", "webBaseUrl": " ",
        "defaults": {"baseBranch": "main", "commitAuthorName": "Bot", "commitAuthorEmail": "b@example.com",
            "pullRequest": {"draft": true, "titleTemplate": "T"}},
    }));
    let limits: FreeObject = serde_json::from_str(r#"{"perHour": 3}"#).unwrap();
    let settings = Settings {
        rate_limits: Some(limits),
        ..Settings::default()
    };
    assert_eq!(
        shown(&scene(json!({}), host).vcs(), &settings),
        [
            "VCS_AUTH_METHOD=token",
            "VCS_TOKEN=<token of t>",
            "GITHUB_TOKEN=<token of t>",
            "GH_TOKEN=<token of t>",
            "VCS_PROVIDER=github",
            "VCS_PROVIDER_NAME=host",
            "VCS_API_BASE_URL=https://api.example.com",
            "VCS_REPOSITORY=o/r",
            "VCS_BASE_BRANCH=main",
            "VCS_CLONE_PROTOCOL=https",
            "VCS_USERNAME=x-access-token",
            "GIT_ASKPASS_USERNAME=x-access-token",
            "VCS_COMMIT_AUTHOR_NAME=Bot",
            "VCS_COMMIT_AUTHOR_EMAIL=b@example.com",
            "GIT_AUTHOR_NAME=Bot",
            "GIT_COMMITTER_NAME=Bot",
            "GIT_AUTHOR_EMAIL=b@example.com",
            "GIT_COMMITTER_EMAIL=b@example.com",
            "VCS_PR_TITLE_TEMPLATE=T",
            r#"VCS_PR_RATE_LIMITS={"perHour":3}"#,
            "VCS_PR_DRAFT=true",
            "VCS_WRITE_ENABLED=true",
            "VCS_PULL_REQUESTS_ENABLED=true",
            "VCS_MODE=read-write",
        ]
    );
}

#[test]
fn keys_are_mounted_and_never_written_down() {
    let app = json!({"auth": {"token": null, "app": {"appId": 7, "installationId": "8", "tokenTtlSeconds": 60,
        "privateKeySecretRef": {"name": "k"}}}});
    let vcs = scene(json!({}), github(app)).vcs();
    let start: Vec<_> = shown(&vcs, &Settings::default())
        .into_iter()
        .take(5)
        .collect();
    assert_eq!(
        start,
        [
            "VCS_AUTH_METHOD=app",
            "VCS_APP_ID=7",
            "VCS_APP_INSTALLATION_ID=8",
            "VCS_APP_PRIVATE_KEY_PATH=/var/run/secrets/agents/vcs/app/privateKey",
            "VCS_APP_TOKEN_TTL_SECONDS=60",
        ]
    );
    assert_eq!(files(&vcs).len(), 1);
    let ssh = json!({"provider": "gitea", "auth": {"token": null, "ssh": {
        "privateKeySecretRef": {"name": "k"}, "knownHostsConfigMapRef": {"name": "h"}}}});
    let vcs = scene(json!({"mode": "read-only"}), github(ssh)).vcs();
    let all = shown(&vcs, &Settings::default());
    assert_eq!(
        all[..3],
        [
            "VCS_AUTH_METHOD=ssh",
            "VCS_SSH_KEY_PATH=/var/run/secrets/agents/vcs/ssh/privateKey",
            "VCS_SSH_KNOWN_HOSTS_PATH=/var/run/secrets/agents/vcs/known-hosts/known_hosts",
        ]
    );
    assert!(
        all.contains(&"VCS_WRITE_ENABLED=false".to_owned()),
        "{all:?}"
    );
    assert!(
        !all.iter().any(|line| line.starts_with("VCS_USERNAME")),
        "{all:?}"
    );
    let sources: Vec<_> = files(&vcs).into_iter().map(|file| file.source).collect();
    assert_eq!(sources, [Source::Secret("k"), Source::ConfigMap("h")]);
}

#[test]
fn nats_is_given_only_whole_and_to_whom_it_is_allowed() {
    let settings = Nats {
        secret: "n".to_owned(),
        username: "user".to_owned(),
        password: "pass".to_owned(),
    };
    let names = |entries: &[&str], policy: &str| {
        let mut scene = scene(json!({}), github(json!({})));
        let entries = entries.iter().map(|name| (*name).to_owned()).collect();
        scene.found.secrets.insert("n".to_owned(), entries);
        scene.found.policy = Arc::new(Policy::parse(policy).unwrap());
        nats(&scene.run, &scene.found, Some(&settings)).len()
    };
    assert_eq!(names(&["user", "pass"], "{}"), 2);
    assert_eq!(names(&["user"], "{}"), 0);
    assert_eq!(names(&["user", "pass"], "blockedSecrets: [n]"), 0);
}
