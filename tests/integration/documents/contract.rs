//! The names of `src/api/contract.rs`, read from its text, so that none can be declared and not be promised.

use std::fs;

use support::fixtures::repository;

/// One name that crosses a process boundary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The name itself.
    pub(super) value: String,
    /// What it stands for.
    pub(super) meaning: String,
}

/// The names of one module; those outside of any are in the module "".
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    /// How the module is called.
    pub(super) name: String,
    /// What it holds.
    pub(super) about: String,
    /// Its names, in their order.
    pub(super) names: Vec<Name>,
}

/// Every module of the contract that has names.
pub(super) fn modules() -> Vec<Module> {
    let path = repository().join("src/api/contract.rs");
    parse(&fs::read_to_string(path).unwrap())
}

fn parse(text: &str) -> Vec<Module> {
    let mut modules = vec![Module::default()];
    let mut open = vec![0];
    let mut doc = Vec::new();
    let mut statement = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            doc.push(words);
            continue;
        }
        if line.starts_with("//") || line.starts_with("#[") || line.is_empty() {
            continue;
        }
        statement = [statement.as_str(), line].join(" ").trim().to_owned();
        if line == "}" {
            open.pop();
        } else if let Some(name) = between(&statement, "pub mod ", " {") {
            open.push(modules.len());
            modules.push(Module {
                name: name.to_owned(),
                about: doc.join(" "),
                names: Vec::new(),
            });
        } else if let Some(declared) = between(&statement, "pub const ", ";") {
            let (_, value) = declared.split_once(" = ").expect("a constant has a value");
            modules[*open.last().expect("a module")].names.push(Name {
                value: value.trim_matches('"').to_owned(),
                meaning: doc.join(" "),
            });
        } else {
            assert!(
                statement.starts_with("pub const "),
                "not understood: {statement}"
            );
            continue; // the value stands on the next line
        }
        doc.clear();
        statement.clear();
    }
    modules.retain(|module| !module.names.is_empty());
    modules
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.strip_prefix(start)?.strip_suffix(end)
}

#[test]
fn names_are_read_with_their_module_and_meaning() {
    let text = r#"//! About.

/// The group.
pub const GROUP: &str = "x.io";

/// Ports
/// of programs.
pub mod port {
    /// Where
    /// it listens.
    pub const ADMIN: u16 = 8080;
    /// Long.
    pub const LONG: &str =
        "x.io/long";
}
"#;
    let name = |value: &str, meaning: &str| Name {
        value: value.to_owned(),
        meaning: meaning.to_owned(),
    };
    let expected = [
        Module {
            names: vec![name("x.io", "The group.")],
            ..Module::default()
        },
        Module {
            name: "port".to_owned(),
            about: "Ports of programs.".to_owned(),
            names: vec![
                name("8080", "Where it listens."),
                name("x.io/long", "Long."),
            ],
        },
    ];
    assert_eq!(parse(text), expected);
}
