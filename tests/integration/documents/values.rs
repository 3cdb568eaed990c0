//! `docs/values.md`: every value of the chart, from the comments of `values.yaml` and the types of `files/values.schema.json`. And what
//! the chart keeps as files: the names of the values, their defaults, and the entries of the webhook configurations.

use agents::api::registration::rung::Rung;
use agents::api::registration::{DEFAULT_NAME, Reach, Registration};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs};
use support::{fixtures::repository, helm::NAMESPACE};

use super::bind;

const CHART: &str = "charts/agents";
/// What each value may be. The chart applies it itself, so that all that is wrong is in one message.
const SCHEMA: &str = "files/values.schema.json";

/// A value that is documented: where it is, and its comment.
#[derive(Debug, PartialEq, Eq)]
struct Documented {
    path: Vec<String>,
    comment: String,
}

/// A value of earlier charts that is refused.
#[derive(Debug, Deserialize)]
struct Refused {
    path: String,
    fine: Vec<Value>,
    instead: String,
}

/// Values with a comment that begins with `# --`, in the order of the file.
fn documented(text: &str) -> Vec<Documented> {
    let mut found = Vec::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut comment: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let depth = line.len() - bare.len();
        if let Some(said) = bare.strip_prefix("# -- ") {
            comment = Some(said.to_owned());
            continue;
        }
        if let (Some(more), Some(said)) = (bare.strip_prefix("# "), &mut comment) {
            *said = format!("{said} {more}");
            continue;
        }
        let key = bare.split_once(':').map(|(key, _)| key);
        let Some(key) = key.filter(|key| !key.is_empty() && !key.contains([' ', '#', '-', '{']))
        else {
            continue;
        };
        above.retain(|(other, _)| *other < depth);
        above.push((depth, key.to_owned()));
        if let Some(comment) = comment.take() {
            let path = above.iter().map(|(_, key)| key.clone()).collect();
            found.push(Documented { path, comment });
        }
    }
    found
}

fn yaml(file: &str) -> Result<Value> {
    let text = fs::read_to_string(repository().join(CHART).join(file))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// The schema of a value.
fn schema_of<'a>(schema: &'a Value, path: &[String]) -> Result<&'a Value> {
    path.iter().try_fold(schema, |at, key| {
        let properties = &at["properties"];
        properties
            .get(key)
            .with_context(|| format!("{} is not in the schema", path.join(".")))
    })
}

/// What is allowed, in words.
fn allowed(schema: &Value) -> String {
    let code = |value: &Value| match value.as_str() {
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{text}`"),
        None => format!("`{value}`"),
    };
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(code).collect::<Vec<_>>().join(", ");
    }
    let names = match schema["type"].as_array() {
        Some(types) => {
            let types = types.iter().filter_map(Value::as_str);
            types.collect::<Vec<_>>().join(" or ")
        }
        None => schema["type"].as_str().unwrap_or("anything").to_owned(),
    };
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(low), Some(high)) => format!("{names}, {low} to {high}"),
        (Some(low), None) => format!("{names}, at least {low}"),
        (None, _) => names,
    }
}

/// Every end of the schema: values that are no closed object.
fn ends(schema: &Value, path: &str, found: &mut Vec<String>) {
    let closed = schema["additionalProperties"] == json!(false);
    match schema["properties"].as_object().filter(|_| closed) {
        None => found.push(path.to_owned()),
        Some(properties) => {
            for (key, inner) in properties {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                ends(inner, &path, found);
            }
        }
    }
}

/// The schema for Helm: it is closed, and says in words what each value means and may be. Helm applies it before any template, and
/// says what it finds alone.
fn names(schema: &Value, path: &str, comments: &BTreeMap<String, String>) -> Value {
    let mut names = json!({});
    if schema["additionalProperties"] == json!(false) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties = properties.map(|(key, inner)| {
            let path = format!("{path}.{key}");
            (key.clone(), names_of(inner, &path, comments))
        });
        names["additionalProperties"] = json!(false);
        names["properties"] = properties.collect();
    } else if schema["items"]["additionalProperties"] == json!(false) {
        names["items"] = names_of(&schema["items"], &format!("{path}[]"), comments);
    }
    names
}

/// The same with what it means and may be.
fn names_of(schema: &Value, path: &str, comments: &BTreeMap<String, String>) -> Value {
    let mut names = names(schema, path, comments);
    let allowed = allowed(schema);
    names["description"] = match comments.get(path) {
        Some(comment) => json!(format!("{comment} Allowed: {allowed}.")),
        None => json!(format!("Allowed: {allowed}.")),
    };
    names
}

fn document() -> Result<String> {
    let text = fs::read_to_string(repository().join(CHART).join("values.yaml"))?;
    let (defaults, schema) = (yaml("values.yaml")?, yaml(SCHEMA)?);
    let refused: Vec<Refused> = serde_json::from_value(yaml("files/refused.yaml")?)?;
    let mut page = format!("{INTRODUCTION}\n## At the top\n\n{HEAD}");
    let (single, grouped): (Vec<_>, Vec<_>) = documented(&text)
        .into_iter()
        .partition(|value| value.path.len() == 1);
    let mut section = String::new();
    for Documented { path, comment } in single.into_iter().chain(grouped) {
        let first = path.first().context("a path has a beginning")?;
        if path.len() > 1 && *first != section {
            section.clone_from(first);
            page += &format!("\n## `{section}`\n\n{HEAD}");
        }
        let default = defaults.pointer(&format!("/{}", path.join("/")));
        let default = default.unwrap_or(&Value::Null);
        page += &format!(
            "| `{}` | {} | `{default}` | {comment} |\n",
            path.join("."),
            allowed(schema_of(&schema, &path)?)
        );
    }
    page += REFUSED;
    for Refused {
        path,
        fine,
        instead,
    } in refused
    {
        let fine: Vec<_> = fine.iter().map(|value| format!("`{value}`")).collect();
        page += &format!("| `{path}` | {} | {instead} |\n", fine.join(" or "));
    }
    Ok(page)
}

const HEAD: &str = "| Value | Allowed | Default | Meaning |\n|---|---|---|---|\n";

const INTRODUCTION: &str = "# Values of the chart\n\n\
    <!-- Generated by `make generate` from charts/agents/values.yaml and its schema; do not edit. -->\n\n\
    Values that are not here are refused, but for `global`, which umbrella charts use. Helm refuses names that it does not know; of everything else that is wrong the chart says all at once, each with its path and what would be right.\n\
    A number of seconds or a limit that is 0 means none, and is never replaced by a default.\n\n\
    ## Modes of optional kinds\n\n\
    ServiceMonitor, PodMonitor, PrometheusRule, GrafanaDashboard, Certificate and Rollout come from other projects. Each has a\n\
    `renderMode`:\n\n\
    | Mode | The cluster has the kind | It has not | Nobody knows (`helm template`, Argo CD) |\n\
    |---|---|---|---|\n\
    | `auto` | rendered | left out, and the notes say so; Certificate and Rollout are an error | left out unless `--api-versions` names it; Certificate and Rollout are rendered |\n\
    | `require` | rendered | an error | an error unless `--api-versions` names it |\n\
    | `always` | rendered | rendered, and refused by the cluster | rendered |\n\
    | `never` | left out | left out | left out |\n\n\
    ## Precedence of variables\n\n\
    In rising order: what the values say, `env.vars`, `controllers.env.vars` or `controlPlane.env.vars`, `env.secrets`, `env.config`,\n\
    `env.extra`. No variable is given twice. `envFrom...` comes last, as Kubernetes has it. The webhook and the sidecar follow the\n\
    controllers in every variable that they share with them.\n";

const REFUSED: &str = "\n## Values of earlier charts that are refused\n\n\
    | Value | Accepted if | Instead |\n|---|---|---|\n";

#[test]
fn the_values_document_shows_every_value() -> Result<()> {
    bind("docs/values.md", &document()?);
    Ok(())
}

#[test]
fn the_chart_has_the_names_and_the_defaults_of_all_values() -> Result<()> {
    let text = fs::read_to_string(repository().join(CHART).join("values.yaml"))?;
    let comments = documented(&text).into_iter();
    let comments = comments.map(|value| (format!(".{}", value.path.join(".")), value.comment));
    let schema = yaml(SCHEMA)?;
    let mut closed = names(&schema, "", &comments.collect());
    for of_the_whole in ["$schema", "title"] {
        closed[of_the_whole] = schema[of_the_whole].clone();
    }
    for (file, content) in [
        ("values.schema.json", closed),
        ("files/defaults.json", yaml("values.yaml")?),
    ] {
        let content = format!("{content:#}\n");
        bind(&format!("{CHART}/{file}"), &content);
    }
    Ok(())
}

#[test]
fn every_value_of_the_schema_is_documented_or_belongs_to_an_earlier_chart() -> Result<()> {
    let text = fs::read_to_string(repository().join(CHART).join("values.yaml"))?;
    let known: Vec<_> = documented(&text)
        .into_iter()
        .map(|value| value.path.join("."))
        .collect();
    let mut found = Vec::new();
    ends(&yaml(SCHEMA)?, "", &mut found);
    assert!(found.len() > 250, "found only {} values", found.len());
    // What belongs to something that is refused as a whole has no meaning to document.
    let earlier = ["audit.", "workflowRuntime.", "agentComms.", "argocdHooks."];
    let covered = |path: &String| {
        let inside = |known: &String| path == known || path.starts_with(&format!("{known}."));
        known.iter().any(inside) || earlier.iter().any(|area| path.starts_with(area))
    };
    let missing: Vec<_> = found.iter().filter(|path| !covered(path)).collect();
    assert_eq!(missing, Vec::<&String>::new());
    Ok(())
}

#[test]
fn resources_name_the_measurement_that_they_come_from() -> Result<()> {
    let text = fs::read_to_string(repository().join(CHART).join("values.yaml"))?;
    let measured = fs::read_to_string(repository().join("docs/performance.md"))?;
    let defaults = yaml("values.yaml")?;
    let mut sized = 0;
    for Documented { path, comment } in documented(&text) {
        let default = &defaults.pointer(&format!("/{}", path.join("/")));
        let is_sized = default.is_some_and(|value| value.get("requests").is_some());
        if !is_sized || path.last().is_none_or(|last| last != "resources") {
            continue;
        }
        assert!(comment.contains("(docs/performance.md)"), "{comment}");
        let words: Vec<_> = comment.split([' ', ';']).collect();
        let figures = words
            .windows(2)
            .filter(|pair| ["MiB", "ms", "%"].contains(&pair[1].trim_end_matches(',')));
        let figures: Vec<_> = figures
            .map(|pair| pair.join(" ").trim_end_matches(',').to_owned())
            .collect();
        assert!(figures.len() > 1, "{comment}");
        for figure in figures {
            assert!(measured.contains(&figure), "nobody measured {figure}");
        }
        sized += 1;
    }
    assert_eq!(sized, 3);
    Ok(())
}

#[test]
fn comments_are_found_with_their_paths() {
    let text = "# Not this.\na:\n  # -- One,\n  # in two lines.\n  b: 1\n# -- Two.\nc: {}\n";
    let found: Vec<_> = documented(text)
        .into_iter()
        .map(|one| (one.path.join("."), one.comment))
        .collect();
    let expected = [("a.b", "One, in two lines."), ("c", "Two.")];
    assert_eq!(
        found,
        expected.map(|(path, said)| (path.to_owned(), said.to_owned()))
    );
}

#[test]
fn the_chart_has_the_entries_of_every_rung() -> Result<()> {
    for rung in Rung::ALL {
        let registration = Registration {
            name: DEFAULT_NAME.to_owned(),
            rung,
            reach: Reach::Service {
                namespace: NAMESPACE.to_owned(),
                name: DEFAULT_NAME.to_owned(),
                port: 443,
            },
            ca: None,
        };
        let both =
            json!({"mutating": registration.mutating(), "validating": registration.validating()});
        let text = format!(
            "# Generated by `make generate` from src/api/registration; do not edit.\n{}",
            serde_saphyr::to_string(&both)?
        );
        bind(&format!("{CHART}/files/registration/{rung}.yaml"), &text);
    }
    Ok(())
}
