//! What is linked: the packages that the project is built on are in real use, and there is one TLS stack.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use support::{cargo, fixtures::repository};

/// Packages that the project promises to build on, and which of ours use each directly.
const BUILT_ON: &[(&str, &[&str])] = &[
    ("hyper", &["agents", "agents-webhook"]),
    ("tower", &["agents", "agents-webhook"]),
    ("tower-http", &["agents"]),
    ("rustls", &["agents"]),
    ("json-patch", &["agents", "agents-webhook", "agents-tests"]),
    ("prometheus-client", &["agents", "agents-webhook"]),
    ("opentelemetry", &["agents"]),
    ("opentelemetry-otlp", &["agents"]),
    ("tracing", &["agents", "agents-webhook"]),
    ("kube", &["agents", "agents-webhook"]),
    ("k8s-openapi", &["agents"]),
    ("serde", &["agents"]),
    ("tokio", &["agents"]),
];

/// Other TLS and crypto stacks; `openssl-probe` is none, it only knows where systems keep their authorities.
const OTHER_STACKS: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "boring-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
    "s2n-tls",
];

/// One of our packages: where it is, and what it needs in order to run.
struct Package {
    folder: String,
    needs: Vec<String>,
}

fn metadata() -> Value {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = cargo::command()
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", &target])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn texts<'a>(list: &'a Value, key: &'a str) -> impl Iterator<Item = &'a str> {
    let entries = list.as_array().into_iter().flatten();
    entries.filter_map(move |entry| entry[key].as_str())
}

/// The packages of the workspace, by name.
fn ours(metadata: &Value) -> BTreeMap<String, Package> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // What comes from a registry has a source.
    let local = packages.filter(|package| package["source"].is_null());
    local
        .map(|package| {
            let declared = package["dependencies"].as_array().into_iter().flatten();
            let needs = declared
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| dependency["name"].as_str());
            let manifest = Path::new(package["manifest_path"].as_str().unwrap());
            let folder = manifest.parent().unwrap().display().to_string();
            let needs = needs.map(str::to_owned).collect();
            let name = package["name"].as_str().unwrap().to_owned();
            (name, Package { folder, needs })
        })
        .collect()
}

/// Whether a Rust file of the folder mentions the crate in its code; packages inside are not looked at.
fn mentions(folder: &Path, word: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return !path.join("Cargo.toml").exists() && mentions(&path, word);
        }
        path.extension().is_some_and(|ending| ending == "rs")
            && fs::read_to_string(&path).unwrap().lines().any(|line| {
                let code = line.split("//").next().unwrap_or_default();
                code.contains(word)
            })
    })
}

#[test]
fn the_packages_that_the_project_is_built_on_are_in_real_use() {
    let ours = ours(&metadata());
    let mut unused = Vec::new();
    for (package, users) in BUILT_ON {
        let word = format!("{}::", package.replace('-', "_"));
        for user in *users {
            let Package { folder, needs } = &ours[*user];
            // The root package's folder holds all the others.
            let sources = match *user {
                "agents" => repository().join("src"),
                _ => folder.into(),
            };
            if !needs.iter().any(|need| need == package) {
                unused.push(format!("{user} does not depend on {package}"));
            } else if !mentions(&sources, &word) {
                unused.push(format!("{user} depends on {package} and never says {word}"));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn there_is_one_tls_stack() {
    let metadata = metadata();
    let linked: Vec<_> = texts(&metadata["packages"], "name").collect();
    assert!(linked.contains(&"rustls") && linked.contains(&"ring"));
    let others: Vec<_> = linked
        .iter()
        .filter(|name| OTHER_STACKS.contains(name))
        .collect();
    assert_eq!(others, Vec::<&&str>::new());
}
