//! What a program is made of, in CycloneDX.
//!
//! The list is read from the program itself, where `cargo auditable` puts it, so it is about what was linked and not about what
//! a manifest allows. Scanners read the same from the image. A crate that writes CycloneDX would bring more crates than this has
//! lines.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;

/// The list of a program, which must have been built by `cargo auditable`.
pub(super) fn of_program(program: &Path) -> Result<Value> {
    let told = auditable_info::json_from_file(program, auditable_info::Limits::default());
    let told = told.map_err(|error| anyhow::anyhow!("{error}"));
    let told =
        told.with_context(|| format!("{} does not say what it is made of", program.display()))?;
    document(&serde_json::from_str(&told)?)
}

/// From what is in a program: packages, each naming others by their place.
fn document(told: &Value) -> Result<Value> {
    let packages = told["packages"].as_array().context("a list of packages")?;
    let references = packages.iter().map(reference);
    let references = references.collect::<Result<Vec<_>>>()?;
    let is_root = |package: &Value| package["root"] == true;
    let root = packages.iter().position(is_root);
    let root = root.context("the package of the program")?;
    let components = packages.iter().zip(&references);
    let components = components.filter(|(package, _)| !is_root(package));
    let components =
        components.map(|(package, reference)| component("library", package, reference));
    let dependencies = packages
        .iter()
        .zip(&references)
        .map(|(package, reference)| {
            let places = package["dependencies"].as_array().into_iter().flatten();
            let on = places.map(|place| {
                let place = place.as_u64().and_then(|place| usize::try_from(place).ok());
                let found = place.and_then(|place| references.get(place));
                found.context("a dependency that is not in the list")
            });
            Ok(json!({"ref": reference, "dependsOn": on.collect::<Result<Vec<_>>>()?}))
        });
    let dependencies = dependencies.collect::<Result<Vec<_>>>()?;
    ensure!(packages.len() > 1, "a program that is made of nothing");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("application", &packages[root], &references[root])},
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

/// The address of a package, by which the parts of the document name each other.
fn reference(package: &Value) -> Result<String> {
    let [name, version] = ["name", "version"].map(|field| package[field].as_str());
    let (name, version) = name
        .zip(version)
        .context("a package without name or version")?;
    Ok(format!("pkg:cargo/{name}@{version}"))
}

fn component(kind: &str, package: &Value, reference: &str) -> Value {
    // What only the build needed is not in the program.
    let scope = match package["kind"] == "build" {
        true => "excluded",
        false => "required",
    };
    json!({
        "type": kind, "bom-ref": reference, "name": package["name"], "version": package["version"],
        "purl": reference, "scope": scope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Value {
        json!({"packages": [
            {"name": "agents", "version": "0.1.0", "source": "local", "dependencies": [1, 2], "root": true},
            {"name": "cc", "version": "1.2.3", "source": "crates.io", "kind": "build"},
            {"name": "serde", "version": "1.0.1", "source": "crates.io"},
        ]})
    }

    #[test]
    fn a_document_names_every_package_and_who_needs_it() {
        let document = document(&told()).unwrap();
        let component = |kind: &str, name: &str, version: &str, scope: &str| {
            let purl = format!("pkg:cargo/{name}@{version}");
            json!({"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, "scope": scope})
        };
        assert_eq!(
            document,
            json!({
                "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
                "metadata": {"component": component("application", "agents", "0.1.0", "required")},
                "components": [
                    component("library", "cc", "1.2.3", "excluded"),
                    component("library", "serde", "1.0.1", "required"),
                ],
                "dependencies": [
                    {"ref": "pkg:cargo/agents@0.1.0", "dependsOn": ["pkg:cargo/cc@1.2.3", "pkg:cargo/serde@1.0.1"]},
                    {"ref": "pkg:cargo/cc@1.2.3", "dependsOn": []},
                    {"ref": "pkg:cargo/serde@1.0.1", "dependsOn": []},
                ],
            })
        );
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        let without = |change: fn(&mut Value)| {
            let mut told = told();
            change(&mut told);
            document(&told).unwrap_err().to_string()
        };
        assert_eq!(
            without(|told| told["packages"] = json!([])),
            "the package of the program"
        );
        assert_eq!(
            without(|told| told["packages"][0]["dependencies"] = json!([7])),
            "a dependency that is not in the list"
        );
        assert_eq!(
            without(|told| told["packages"][1]["name"] = Value::Null),
            "a package without name or version"
        );
    }

    #[test]
    fn a_program_that_does_not_say_it_is_named() {
        let own = std::env::current_exe().unwrap();
        let said = format!("{:#}", of_program(&own).unwrap_err());
        assert!(said.contains("does not say what it is made of"), "{said}");
    }
}
