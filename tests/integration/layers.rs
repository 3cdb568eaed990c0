//! The direction of imports, held by reading the sources: `programs -> cli -> serve -> controller -> {events, cluster} -> {kit, api}`,
//! and `admission`, which stands on `api`.
//!
//! The compiler checks what a package may see (`make lint` checks each package alone); this checks what a module may see.

mod names;
mod reading;
mod told;

use agents::api::kind::Kind;
use reading::{Source, entries, files, functions, offences, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use support::fixtures::{file_stem, repository};

fn in_layer(layer: &str) -> Vec<Source> {
    sources("src")
        .into_iter()
        .filter(|(name, _)| {
            *name == format!("src/{layer}.rs") || name.starts_with(&format!("src/{layer}/"))
        })
        .collect()
}

const NO_OUTSIDE_WORLD: &[&str] = &[
    "async fn",
    ".await",
    "tokio::",
    "kube::Client",
    "kube::Api",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "std::env",
    "std::fs",
    "std::net",
    "println!",
];

/// What each module of the library may use of the others.
const MAY_USE: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("kit", &[]),
    ("admission", &["api"]),
    ("cluster", &["api", "kit"]),
    ("events", &["api", "kit"]),
    ("controller", &["api", "kit", "cluster", "events"]),
    ("serve", &["api", "kit", "cluster", "events", "controller"]),
    (
        "cli",
        &[
            "admission",
            "api",
            "kit",
            "cluster",
            "events",
            "controller",
            "serve",
        ],
    ),
];

/// The modules of this crate that a file uses, by full path or in a list.
fn used_modules(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => drop(used.insert(first_word(rest))),
            Some(list) => used.extend(entries(list).iter().map(|entry| first_word(entry))),
        }
    }
    used
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
    let text = "use crate::api::kind;\nuse crate::{\n    ADMIN, events::{self, Note},\n    kit::{http, tls::{Files}},\n};\n";
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
fn admission_is_pure() {
    let admission = in_layer("admission");
    assert!(admission.len() > 10, "found only {}", admission.len());
    let banned = [NO_OUTSIDE_WORLD, &["tracing::"]].concat();
    assert_eq!(offences(&admission, &banned), Vec::<String>::new());
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
        let banned = ["agents::controller", "agents::serve", "agents::cli", other];
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
        "judge.rs",
        "standing.rs",
        "view.rs",
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
fn every_kind_has_a_file_for_its_fields_and_one_for_its_rules() {
    for folder in ["src/api/kinds", "src/api/validate"] {
        let files = files(folder);
        for kind in Kind::ALL {
            let file = format!("/{}.rs", file_stem(kind).replace('-', "_"));
            let found = files.iter().filter(|(name, _)| name.ends_with(&file));
            assert_eq!(found.count(), 1, "{folder}: {file}");
        }
    }
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

/// One entry per setting or metric: longer than they are deep.
const LISTS: &[(&str, &str)] = &[
    ("src/controller/agent_run/settings.rs", "read_pod"),
    ("webhook/src/args.rs", "read"),
    ("webhook/src/metrics.rs", "register"),
    ("src/controller/metrics.rs", "new"),
    ("src/kit/telemetry/settings.rs", "read"),
    ("src/controller.rs", "run"),
    ("src/controller/wiring.rs", "agents"),
];

/// Files that list what others are made of, and a model that stands for a whole cluster.
const LONG_FILES: &[&str] = &[
    "src/api/contract.rs",
    "src/controller/agent_run/simulation.rs",
    "src/controller/wiring.rs",
];

#[test]
fn files_and_functions_can_be_read_without_getting_lost() {
    const FILE: usize = 400;
    const FUNCTION: usize = 60;
    let folders = ["src", "webhook/src", "sidecar/src"];
    let (mut measured, mut too_long) = (0, Vec::new());
    for (file, text) in folders.into_iter().flat_map(sources) {
        let lines = text.lines().count();
        if lines > FILE && !LONG_FILES.contains(&&*file) {
            too_long.push(format!("{file} has {lines} lines before its tests"));
        }
        for (function, lines) in functions(&text) {
            measured += 1;
            if lines > FUNCTION && !LISTS.contains(&(&*file, &*function)) {
                too_long.push(format!("{function} in {file} has {lines} lines"));
            }
        }
    }
    assert!(measured > 1_000, "found only {measured} functions");
    assert_eq!(too_long, Vec::<String>::new());
    let excused = LISTS.iter().map(|(file, _)| file).chain(LONG_FILES);
    let gone: Vec<_> = excused
        .filter(|file| !repository().join(file).is_file())
        .collect();
    assert_eq!(gone, Vec::<&&str>::new(), "excused and not there");
}

/// The path of one run or one point, step by step, and the programs that tests start: more files than subjects.
const WIDE_FOLDERS: &[&str] = &[
    "sidecar/src/otlp",
    "sidecar/src/store",
    "src/cli/check",
    "src/controller/agent_run",
    "src/serve",
    "tests/integration",
    "tests/integration/chart",
    "tests/support",
    "webhook/src",
];

#[test]
fn a_folder_can_be_taken_in_at_a_glance() {
    const FOLDER: usize = 14;
    let mut folders = BTreeMap::<String, usize>::new();
    for (file, _) in ["src", "webhook/src", "sidecar/src", "tests"]
        .into_iter()
        .flat_map(files)
    {
        let folder = Path::new(&file).parent().unwrap();
        *folders.entry(folder.display().to_string()).or_default() += 1;
    }
    let wide = folders.into_iter().filter(|(_, files)| *files > FOLDER);
    let wide: Vec<_> = wide.map(|(folder, _)| folder).collect();
    assert_eq!(wide, WIDE_FOLDERS, "wider than {FOLDER} files");
}

#[test]
fn every_source_file_is_declared_by_the_module_above_it() {
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
        let files: BTreeMap<_, _> = files(folder).into_iter().collect();
        orphans.extend(undeclared(&files));
    }
    assert_eq!(orphans, BTreeSet::new());
}

/// Files that no module above them declares. Programs and libraries are their own top.
fn undeclared(files: &BTreeMap<String, String>) -> Vec<String> {
    let is_orphan = |name: &&String| {
        let path = Path::new(name);
        let stem = path.file_stem().unwrap().to_string_lossy();
        let folder = path.parent().unwrap().display();
        let above = [".rs", "/lib.rs", "/main.rs"].map(|end| format!("{folder}{end}"));
        let declared = above.iter().any(|file| {
            let text = files.get(file).map_or("", String::as_str);
            text.contains(&format!("mod {stem};"))
        });
        !["main", "lib"].contains(&&*stem) && !declared
    };
    files.keys().filter(is_orphan).cloned().collect()
}

#[test]
fn a_declaration_elsewhere_does_not_hide_an_orphan() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = [
        file("src/lib.rs", "mod a;\nmod metrics;"),
        file("src/a.rs", "mod b;"),
        file("src/a/b.rs", ""),
        file("src/a/metrics.rs", ""),
        file("src/metrics.rs", ""),
    ];
    assert_eq!(undeclared(&files.into()), ["src/a/metrics.rs"]);
}
