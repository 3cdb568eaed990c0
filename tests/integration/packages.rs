//! What is built and linked: every package of ours is checked and tested, those that the project is built on are in real
//! use, there is one TLS stack, and the images hold programs that there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;
use support::{cargo, fixtures::repository, image::Image};

/// Packages that the project promises to build on, and which of ours use each directly.
const BUILT_ON: &[(&str, &[&str])] = &[
    ("hyper", &["agents", "agents-sidecar", "agents-webhook"]),
    ("tower", &["agents", "agents-webhook"]),
    ("tower-http", &["agents"]),
    ("rustls", &["agents", "agents-sidecar"]),
    ("json-patch", &["agents", "agents-webhook", "agents-tests"]),
    (
        "prometheus-client",
        &["agents", "agents-sidecar", "agents-webhook"],
    ),
    ("opentelemetry", &["agents"]),
    ("opentelemetry-otlp", &["agents"]),
    ("tracing", &["agents", "agents-sidecar", "agents-webhook"]),
    ("kube", &["agents", "agents-webhook"]),
    ("k8s-openapi", &["agents"]),
    ("serde", &["agents", "agents-sidecar"]),
    ("tokio", &["agents", "agents-sidecar"]),
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

#[test]
fn every_package_is_checked_alone_and_tested() {
    let metadata = metadata();
    let ours: BTreeSet<_> = ours(&metadata).into_keys().collect();
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let checked = makefile
        .lines()
        .find_map(|line| line.strip_prefix("PACKAGES := "));
    let checked = checked.unwrap().split_whitespace().map(str::to_owned);
    assert_eq!(checked.collect::<BTreeSet<_>>(), ours);
    // What `cargo test` runs.
    let tested = metadata["workspace_default_members"].as_array().unwrap();
    assert_eq!(tested.len(), ours.len(), "{tested:?}");
}

/// The crates of others that a build consists of, each with the features that it has there.
fn crates(selection: &[&str]) -> BTreeSet<String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = cargo::command()
        .args(["tree", "--locked", "--offline", "--prefix=none"])
        .args(["--format={p} {f}", "--target", &target])
        .args(selection)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    // What is ours is shown with its folder.
    let others = lines.filter(|line| !line.is_empty() && !line.contains(" (/"));
    others.map(str::to_owned).collect()
}

/// A crate with other features is another crate to compile, with all that is built on it: one feature more of what derive
/// macros are made of, and nearly everything is compiled twice in a run of `make test`.
#[test]
fn a_package_alone_is_made_of_the_same_crates_as_all_together() {
    let together = crates(&["--workspace", "--edges=normal,build,dev"]);
    assert!(together.len() > 100, "found only {}", together.len());
    let mut alone = vec![(
        "the lab",
        crates(&["--package=agents-tests", "--edges=normal,build"]),
    )];
    let packages = ours(&metadata());
    for name in packages.keys() {
        let package = format!("--package={name}");
        alone.push((name, crates(&[&package, "--edges=normal,build,dev"])));
    }
    for (name, crates) in alone {
        let others: Vec<_> = crates.difference(&together).collect();
        assert!(others.is_empty(), "{name} has other features of {others:?}");
    }
}

/// The programs that there are, each with its package.
fn programs(metadata: &Value) -> BTreeSet<(String, String)> {
    let mut programs = BTreeSet::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let targets = package["targets"].as_array().into_iter().flatten();
        let binaries = targets.filter(|target| target["kind"][0] == "bin");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        programs.extend(binaries.map(|target| (text(&package["name"]), text(&target["name"]))));
    }
    programs
}

/// The one package and the one program that a build names.
fn built_alone(flags: &str) -> (String, String) {
    let words: Vec<_> = flags.split_whitespace().collect();
    let named = |flag: &str| -> Vec<_> {
        let pairs = words.windows(2).filter(|pair| pair[0] == flag);
        pairs.map(|pair| pair[1].to_owned()).collect()
    };
    match (named("--package").as_slice(), named("--bin").as_slice()) {
        ([package], [program]) => (package.clone(), program.clone()),
        (packages, programs) => panic!("not one alone: {packages:?} {programs:?}"),
    }
}

/// Built alone, a program has only the features that it asks for itself.
#[test]
fn the_images_are_made_of_programs_that_there_are_each_built_alone() {
    let programs = programs(&metadata());
    let dockerfile = fs::read_to_string(repository().join("Dockerfile")).unwrap();
    let after = |text| dockerfile.split(text).skip(1);
    let built =
        after("cargo auditable build ").map(|rest| built_alone(rest.lines().next().unwrap()));
    let built: BTreeSet<_> = built.collect();
    assert!(built.is_subset(&programs), "{built:?}");
    let built: BTreeSet<_> = built.iter().map(|(_, program)| program.as_str()).collect();
    let copied = after("COPY --from=build /src/target/release/");
    let copied = copied.filter_map(|rest| rest.split(' ').next());
    assert_eq!(built, copied.collect());
    assert_eq!(built.len(), 3);
}

#[test]
fn every_image_is_built_by_the_same_cargo_auditable() {
    let read = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let (makefile, dockerfile) = (read("Makefile"), read("Dockerfile"));
    let version = makefile
        .lines()
        .find_map(|line| line.strip_prefix("AUDITABLE_VERSION := "));
    let installed = format!(
        "cargo install --locked cargo-auditable@{}\n",
        version.unwrap()
    );
    assert!(dockerfile.contains(&installed), "{installed}");
    assert!(
        !dockerfile.contains("cargo build"),
        "each says what it is made of"
    );
}

/// Where the files are that a stage of the Dockerfile puts into its image.
fn copied(dockerfile: &str, wanted: &str) -> BTreeSet<String> {
    let (mut stage, mut found) = ("", BTreeSet::new());
    for line in dockerfile.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["FROM", _, "AS", name] => stage = name,
            ["COPY", .., place] if stage == wanted => drop(found.insert(place.to_owned())),
            _ => {}
        }
    }
    found
}

#[test]
fn the_images_of_the_lab_hold_what_the_dockerfile_puts_into_them() {
    let dockerfile = fs::read_to_string(repository().join("Dockerfile")).unwrap();
    let base = copied(&dockerfile, "base");
    assert_eq!(base.len(), 1, "whom they trust: {base:?}");
    for program in ["agents", "agents-webhook", "agents-sidecar"] {
        let written = &base | &copied(&dockerfile, program);
        let image = Image::of_product("localhost/x:1", Path::new(program)).unwrap();
        let held: BTreeSet<_> = image.inside().map(str::to_owned).collect();
        assert_eq!(held, written, "{program}");
    }
}

#[test]
fn no_image_is_built_from_what_git_ignores() {
    let read = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let sent = read(".dockerignore");
    let kept_back: BTreeSet<_> = sent.lines().collect();
    for name in [".git", "target"] {
        assert!(kept_back.contains(name), "{name}");
    }
}
