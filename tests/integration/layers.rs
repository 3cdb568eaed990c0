//! The direction of imports, held by reading the sources: `programs -> cli -> controller -> events -> {kit, api}`.
//!
//! The compiler checks what a package may see (`make lint` checks each package alone); this checks what a module may see.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use support::fixtures::repository;

/// All Rust files below `folder`, with the path relative to the workspace.
fn files(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path
                    .strip_prefix(repository())
                    .unwrap()
                    .display()
                    .to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The same without unit tests, neither whole files nor the modules at the end of a file.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut product = files(folder);
    product.retain(|(name, _)| !name.ends_with("/tests.rs") && !name.contains("/tests/"));
    for (_, text) in &mut product {
        if let Some(end) = text.find("#[cfg(test)]") {
            text.truncate(end);
        }
    }
    product
}

/// Lines of code (comments left out) in `files` that contain one of `banned`.
fn offences(files: &[(String, String)], banned: &[&str]) -> Vec<String> {
    let mut offences = Vec::new();
    for (name, text) in files {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if banned.iter().any(|word| code.contains(word)) {
                offences.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    offences
}

fn in_layer(layer: &str) -> Vec<(String, String)> {
    sources("src")
        .into_iter()
        .filter(|(name, _)| {
            *name == format!("src/{layer}.rs") || name.starts_with(&format!("src/{layer}/"))
        })
        .collect()
}

const NO_OUTSIDE_WORLD: &[&str] = &[
    "async fn",
    "tokio::",
    "kube::Client",
    "kube::Api",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "std::env::",
    "std::fs",
    "std::net",
    "println!",
];

/// What each module of the library may use of the others.
const MAY_USE: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("kit", &[]),
    ("cluster", &["api", "kit"]),
    ("events", &["api", "kit"]),
    ("controller", &["api", "kit", "cluster", "events"]),
    ("cli", &["api", "kit", "cluster", "events", "controller"]),
];

/// The modules of this crate that a file uses, by full path or in a list.
fn used_modules(text: &str) -> BTreeSet<String> {
    let code: Vec<_> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut used = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => drop(used.insert(first_word(rest))),
            Some(list) => used.extend(heads(list)),
        }
    }
    used
}

/// The first word of each entry of a list, up to the brace that closes it.
fn heads(list: &str) -> Vec<String> {
    let (mut heads, mut depth, mut entry) = (Vec::new(), 0, String::new());
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(first_word(&std::mem::take(&mut entry))),
            _ => entry.push(letter),
        }
    }
    heads.push(first_word(&entry));
    heads.retain(|head| !head.is_empty());
    heads
}

fn first_word(text: &str) -> String {
    let word = text.trim_start().chars();
    word.take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

#[test]
fn a_module_uses_only_what_lies_below_it() {
    let mut offences = Vec::new();
    for (layer, below) in MAY_USE {
        let files = in_layer(layer);
        assert!(!files.is_empty(), "{layer} has no file");
        for (name, text) in files {
            for used in used_modules(&text) {
                let module = MAY_USE.iter().any(|(module, _)| *module == used);
                if module && used != *layer && !below.contains(&used.as_str()) {
                    offences.push(format!("{name} uses {used}"));
                }
            }
        }
    }
    assert_eq!(offences, Vec::<String>::new());
}

#[test]
fn every_module_of_the_library_has_its_bound() {
    let library = fs::read_to_string(repository().join("src/lib.rs")).unwrap();
    let declared: BTreeSet<_> = library
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let bound: BTreeSet<_> = MAY_USE.iter().map(|(module, _)| *module).collect();
    assert_eq!(declared, bound);
}

#[test]
fn uses_are_found_in_paths_and_in_lists() {
    let text = "use crate::api::kind;\nuse crate::{\n    ADMIN, events::{self, Note},\n    kit::{http, tls::{Files}}, // crate::cli\n};\n";
    let expected = ["ADMIN", "api", "events", "kit"].map(str::to_owned);
    assert_eq!(used_modules(text), expected.into());
}

#[test]
fn api_is_pure() {
    let api = in_layer("api");
    assert!(api.len() > 20, "found only {} files of api", api.len());
    assert_eq!(offences(&api, NO_OUTSIDE_WORLD), Vec::<String>::new());
    assert_eq!(offences(&api, &["tracing::"]), Vec::<String>::new());
}

#[test]
fn kit_knows_no_kubernetes_object() {
    let kit = in_layer("kit");
    assert!(kit.len() > 5, "found only {} files of kit", kit.len());
    let banned = ["kube::", "k8s_openapi::"];
    assert_eq!(offences(&kit, &banned), Vec::<String>::new());
}

#[test]
fn webhook_and_sidecar_see_neither_the_controller_nor_each_other() {
    for (program, other) in [("webhook", "agents_sidecar"), ("sidecar", "agents_webhook")] {
        let banned = ["agents::controller", "agents::cli", other];
        let files = sources(&format!("{program}/src"));
        assert_eq!(offences(&files, &banned), Vec::<String>::new());
    }
}

#[test]
fn files_with_the_name_of_a_decision_are_pure() {
    let pure = [
        "plan.rs",
        "status.rs",
        "decide.rs",
        "decision.rs",
        "patch.rs",
        "limiter.rs",
        "sanitise.rs",
    ];
    let mut files = sources("src");
    files.extend(sources("webhook/src"));
    files.extend(sources("sidecar/src"));
    files.retain(|(name, _)| {
        Path::new(name)
            .file_name()
            .is_some_and(|file| pure.iter().any(|known| file == *known))
    });
    assert!(!files.is_empty());
    assert_eq!(offences(&files, NO_OUTSIDE_WORLD), Vec::<String>::new());
}

#[test]
fn an_entry_point_only_enters() {
    for main in ["src/main.rs", "webhook/src/main.rs", "sidecar/src/main.rs"] {
        let lines = fs::read_to_string(repository().join(main))
            .unwrap()
            .lines()
            .count();
        assert!(lines <= 30, "{main} has {lines} lines; 30 at most");
    }
}

#[test]
fn every_source_file_is_reached_by_a_mod_declaration() {
    let mut orphans = BTreeSet::new();
    for folder in [
        "src",
        "webhook/src",
        "sidecar/src",
        "tests/support",
        "tests/integration",
        "tests/lab",
        "tests/bench/src",
    ] {
        let files = files(folder);
        let whole: String = files.iter().map(|(_, text)| text.as_str()).collect();
        for (name, _) in &files {
            let stem = Path::new(name)
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let entry = ["main", "lib"].contains(&stem.as_str());
            if !entry && !whole.contains(&format!("mod {stem};")) {
                orphans.insert(name.clone());
            }
        }
    }
    assert_eq!(orphans, BTreeSet::new());
}
