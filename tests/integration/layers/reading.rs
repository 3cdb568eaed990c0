//! Reads Rust sources as far as the rules about them need: what is product code, and what it names.

use std::fs;
use support::fixtures::repository;

/// A file: its path relative to the workspace, and its text.
pub(super) type Source = (String, String);

/// All Rust files below `folder`.
pub(super) fn files(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(repository()).unwrap();
                let text = fs::read_to_string(&path).unwrap();
                found.push((name.display().to_string(), text));
            }
        }
    }
    found.sort();
    found
}

/// The same without unit tests and comments; what is left stays in its line.
pub(super) fn sources(folder: &str) -> Vec<Source> {
    let mut product = files(folder);
    product.retain(|(name, _)| !name.ends_with("/tests.rs") && !name.contains("/tests/"));
    for (_, text) in &mut product {
        *text = product_code(text);
    }
    product
}

/// A text without comments and without what is compiled for tests only: a declared module, or one that is written out
/// and then stands at the end.
fn product_code(text: &str) -> String {
    let mut code = String::new();
    let mut for_tests = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let marked = std::mem::replace(&mut for_tests, line.trim() == "#[cfg(test)]");
        if marked && line.contains("mod ") && line.ends_with('{') {
            break;
        }
        if !marked && !for_tests {
            code += line;
        }
        code.push('\n');
    }
    code
}

/// Lines of code that contain one of `banned`, and imports that come to one of them when written out.
pub(super) fn offences(files: &[Source], banned: &[&str]) -> Vec<String> {
    let mut offences = Vec::new();
    for (name, text) in files {
        let is_banned = |code: &str| banned.iter().any(|word| code.contains(word));
        for (number, line) in text.lines().enumerate() {
            if is_banned(line) {
                offences.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
        let listed = imports(text).into_iter().filter(|path| is_banned(path));
        offences.extend(listed.map(|path| format!("{name}: use {path}")));
    }
    offences
}

/// The paths that the lists among the imports of a text come to: `use std::{env, fs::{self}};` is `std::env`, `std::fs::self`.
fn imports(text: &str) -> Vec<String> {
    let statements = text.split("use ").skip(1);
    let statements = statements.filter_map(|rest| rest.split(';').next());
    let lists = statements.filter(|statement| statement.contains('{'));
    lists.flat_map(spelt_out).collect()
}

/// Every path of an import, without its lists.
fn spelt_out(import: &str) -> Vec<String> {
    let Some((head, list)) = import.split_once('{') else {
        return vec![import.trim().to_owned()];
    };
    let entries = entries(list);
    let paths = entries.iter().flat_map(|entry| spelt_out(entry));
    paths.map(|path| format!("{}{path}", head.trim())).collect()
}

/// The entries of a list, up to the brace that closes it.
pub(super) fn entries(list: &str) -> Vec<String> {
    let (mut entries, mut depth, mut entry) = (Vec::new(), 0, String::new());
    for letter in list.chars() {
        match letter {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                entries.push(std::mem::take(&mut entry));
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        entry.push(letter);
    }
    entries.push(entry);
    entries.retain(|entry| !entry.trim().is_empty());
    entries
}

/// The functions of a text that have a body, with their lines; reads what `cargo fmt` writes.
pub(super) fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let margin = &line[..line.len() - line.trim_start().len()];
        let at_margin =
            |line: &&str| line.starts_with(margin) && !line[margin.len()..].starts_with(' ');
        let ends = |line: &&str| at_margin(line) && (line.ends_with('}') || line.ends_with(';'));
        let end = lines[start..].iter().position(ends);
        if let Some(end) = end.filter(|end| lines[start + end].ends_with('}')) {
            found.push((name, end + 1));
        }
    }
    found
}

/// The name of the function whose head begins in this line.
fn function_name(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let word = |word: &str| word.starts_with("pub") || ["const", "async"].contains(&word);
    let head = before.split_whitespace().all(word) && !before.trim_start().starts_with('(');
    let name = after
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_');
    let name: String = name.collect();
    (head && !name.is_empty()).then_some(name)
}

#[test]
fn functions_are_measured_from_their_head_to_their_end() {
    let text = "pub(super) async fn a(\n    b: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n    if b {\n    }\n}\n\ntrait T {\n    fn d(\n        \
                &self,\n    );\n    fn e(&self) {}\n    const fn f() {\n        let g = [\n            1,\n        ];\n    }\n}\n";
    let expected = [("a", 9), ("e", 1), ("f", 5)].map(|(name, lines)| (name.to_owned(), lines));
    assert_eq!(functions(text), expected);
}

#[test]
fn code_behind_a_declared_test_module_is_product_code() {
    let text = "#[cfg(test)]\nmod tests;\nmod a; // std::fs\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    assert_eq!(product_code(text), "\n\nmod a; \n\n\n");
}

#[test]
fn a_banned_name_is_found_in_a_path_and_in_a_list_of_a_list() {
    let file = |text: &str| [("a.rs".to_owned(), text.to_owned())];
    let banned = ["std::fs", "kube::Client"];
    let cases = [
        (
            "use std::fmt;\nfn f() { std::fs::read(x) }",
            vec!["a.rs:2: fn f() { std::fs::read(x) }"],
        ),
        (
            "use std::{\n    fmt,\n    fs::{self, File},\n};",
            vec!["a.rs: use std::fs::self", "a.rs: use std::fs::File"],
        ),
        (
            "pub(super) use kube::{Api, Client};",
            vec!["a.rs: use kube::Client"],
        ),
        ("use std::{fmt, io};\nuse my::{fs, Client};", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(offences(&file(text), &banned), expected, "{text}");
    }
}
