//! Objects that are kept as files: full ones, wrong ones, the examples, and the generated definitions.
//!
//! Reads files only; what the API server says to an object is asked elsewhere.

use agents::api::crd;
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// An object that the schema of its kind refuses.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The file, as `<kind>/<what>.yaml`.
    pub file: String,
    /// Text that the refusal must contain.
    pub expect: String,
    /// The object.
    pub object: Value,
}

/// The folder of the repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// The kind as file and folder names write it: `AgentRun` is `agent-run`.
pub fn file_stem(kind: Kind) -> String {
    let mut stem = String::new();
    for letter in kind.as_str().chars() {
        if letter.is_ascii_uppercase() && !stem.is_empty() {
            stem.push('-');
        }
        stem.push(letter.to_ascii_lowercase());
    }
    stem
}

/// Objects of a kind that together set every field, status included.
pub fn full(kind: Kind) -> Result<Vec<Value>> {
    let file = format!("tests/fixtures/full/{}.yaml", file_stem(kind));
    documents(&repository().join(file))
}

/// Objects of a kind that the schema refuses.
pub fn wrong(kind: Kind) -> Result<Vec<Wrong>> {
    let stem = file_stem(kind);
    let folder = repository().join("tests/fixtures/wrong").join(&stem);
    yaml_files(&folder)?
        .into_iter()
        .map(|path| {
            let text = read(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = format!("{stem}/{name}");
            let expect = text
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("# expect: "))
                .with_context(|| format!("{file}: the first line must be `# expect: <text>`"))?
                .to_owned();
            let object =
                serde_saphyr::from_str(&text).with_context(|| format!("{file} is not YAML"))?;
            Ok(Wrong {
                file,
                expect,
                object,
            })
        })
        .collect()
}

/// The files of `examples/` in order, each with its objects.
pub fn examples() -> Result<Vec<(PathBuf, Vec<Value>)>> {
    yaml_files(&repository().join("examples"))?
        .into_iter()
        .map(|path| documents(&path).map(|objects| (path, objects)))
        .collect()
}

/// The generated definition of a kind as it is in `crds/`.
pub fn definition(kind: Kind) -> Result<Value> {
    let path = repository().join("crds").join(crd::file_name(kind));
    serde_saphyr::from_str(&read(&path)?).with_context(|| format!("{} is not YAML", path.display()))
}

fn documents(path: &Path) -> Result<Vec<Value>> {
    serde_saphyr::from_multiple(&read(path)?)
        .with_context(|| format!("{} is not YAML", path.display()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .with_context(|| format!("could not list {}", folder.display()))?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    paths.sort();
    Ok(paths)
}
