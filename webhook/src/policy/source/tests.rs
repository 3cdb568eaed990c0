use std::fs;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tempfile::TempDir;

use super::*;
use crate::policy::Overrides;

/// A folder with both files, and a source that follows them.
struct Scene {
    folder: TempDir,
    registry: Registry,
    source: Source,
}

impl Scene {
    fn new(active: &str, candidate: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("active"), active).unwrap();
        if let Some(candidate) = candidate {
            fs::write(folder.path().join("candidate"), candidate).unwrap();
        }
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let source = Source::load(settings(&folder), metrics).unwrap();
        Self {
            folder,
            registry,
            source,
        }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    /// Two looks, after which a change counts.
    fn settle(&mut self) {
        for _ in 0..2 {
            self.look();
        }
    }

    fn look(&mut self) {
        let seen = read(&self.source.settings);
        self.source.look(seen);
    }

    fn blocked(&self) -> Vec<String> {
        let current = self.source.policies().current();
        current.active.policy.blocked_secrets.clone()
    }

    fn candidate(&self) -> Option<Vec<String>> {
        let current = self.source.policies().current();
        let candidate = current.candidate.as_ref();
        candidate.map(|loaded| loaded.policy.blocked_secrets.clone())
    }

    #[track_caller]
    fn assert_shown(&self, line: &str) {
        let mut page = String::new();
        encode(&mut page, &self.registry).unwrap();
        assert!(page.lines().any(|shown| shown == line), "{line}\n{page}");
    }
}

fn settings(folder: &TempDir) -> Settings {
    Settings {
        file: Some(folder.path().join("active")),
        candidate: Some(folder.path().join("candidate")),
        overrides: Overrides::default(),
    }
}

const REFUSED: &str = "policy_reloads_total{policy=\"active\",result=\"refused\"}";
const RELOADED: &str = "policy_reloads_total{policy=\"active\",result=\"ok\"}";

#[test]
fn a_changed_file_is_in_force_after_it_was_seen_twice() {
    let mut scene = Scene::new("blockedSecrets: [a]", None);
    let first = scene.source.policies().current().active.hash.clone();
    scene.assert_shown(&format!("{RELOADED} 0"));
    scene.write("active", "blockedSecrets: [b]");
    scene.look();
    assert_eq!(scene.blocked(), ["a"], "it may still be being written");
    scene.look();
    assert_eq!(scene.blocked(), ["b"]);
    let second = scene.source.policies().current().active.hash.clone();
    assert_ne!(first, second);
    scene.assert_shown(&format!("{RELOADED} 1"));
    scene.assert_shown(&format!(
        "policy_info{{policy=\"active\",hash=\"{second}\"}} 1"
    ));
    scene.settle();
    scene.assert_shown(&format!("{RELOADED} 1"));
}

#[test]
fn a_bad_file_is_refused_whole_once_and_the_last_good_one_stays() {
    let mut scene = Scene::new("blockedSecrets: [a]", None);
    for (count, bad) in ["blockedSecrets: [b]\nimags: {}", "", "{"]
        .iter()
        .enumerate()
    {
        scene.write("active", bad);
        scene.settle();
        scene.settle();
        assert_eq!(scene.blocked(), ["a"], "{bad}");
        scene.assert_shown(&format!("{REFUSED} {}", count + 1));
    }
    fs::remove_file(scene.folder.path().join("active")).unwrap();
    scene.settle();
    assert_eq!(scene.blocked(), ["a"], "the file is gone");
    scene.assert_shown(&format!("{REFUSED} 4"));
    scene.write("active", "blockedSecrets: [c]");
    scene.settle();
    assert_eq!(scene.blocked(), ["c"]);
}

#[test]
fn a_candidate_comes_and_goes_without_harm() {
    let mut scene = Scene::new("{}", None);
    assert_eq!(scene.candidate(), None);
    for (text, expected) in [
        ("blockedSecrets: [x]", Some(vec!["x".to_owned()])),
        ("blockedSecrets: 1", None),
        ("blockedSecrets: [y]", Some(vec!["y".to_owned()])),
    ] {
        scene.write("candidate", text);
        scene.settle();
        assert_eq!(scene.candidate(), expected, "{text}");
        assert_eq!(scene.blocked(), Vec::<String>::new());
    }
    fs::remove_file(scene.folder.path().join("candidate")).unwrap();
    scene.settle();
    assert_eq!(scene.candidate(), None);
    scene.assert_shown("policy_reloads_total{policy=\"candidate\",result=\"refused\"} 1");
    scene.assert_shown("policy_reloads_total{policy=\"candidate\",result=\"absent\"} 2");
    assert_eq!(
        Scene::new("{}", Some("blockedSecrets: [x]")).candidate(),
        Some(vec!["x".to_owned()]),
        "there from the start"
    );
}

#[test]
fn a_bad_file_at_the_start_stops_it_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("active");
    let start = || {
        let metrics = Metrics::register(&mut Registry::default());
        Source::load(settings(&folder), metrics)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    let front = format!("policy file {} cannot be used: ", file.display());
    assert_eq!(start(), format!("{front}there is no such file"));
    fs::write(&file, "").unwrap();
    assert_eq!(
        start(),
        format!("{front}it is empty; write {{}} for a policy that lets everything through")
    );
    fs::write(&file, "a".repeat(1024 * 1024 + 1)).unwrap();
    assert_eq!(start(), format!("{front}it is larger than 1048576 bytes"));
    fs::write(&file, b"\xff\xfe").unwrap();
    assert_eq!(start(), format!("{front}it is not text in UTF-8"));
    fs::write(&file, "labels:\n  requird: [x]\n").unwrap();
    assert!(
        start().starts_with(&format!("{front}line 2, column ")),
        "{}",
        start()
    );
}

#[test]
fn equal_policies_have_equal_hashes_however_they_are_written() {
    let hash = |text: &str| Loaded::from(Policy::parse(text).unwrap()).hash;
    let yaml = hash("images: {denied: [a]}\nmodes: {DeniedImages: warn, BlockedSecrets: audit}");
    let json = hash(
        r#"{"modes":{"BlockedSecrets":"audit","DeniedImages":"warn"},"images":{"denied":["a"]}}"#,
    );
    assert_eq!(yaml, json);
    assert_eq!(yaml.len(), 12);
    assert!(yaml.bytes().all(|b| b.is_ascii_hexdigit()), "{yaml}");
    assert_ne!(yaml, hash("images: {denied: [b]}"));
}
