//! Runs `helm` over the chart and keeps what it rendered or why it refused.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{collections::BTreeMap, path::PathBuf, process::Stdio, time::Duration};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{
    fixtures::repository,
    kubectl::Said,
    lab::{report::Report, tools::build::programs},
};

/// No command takes longer, also where everything else is busy and an install waits for pods.
const DEADLINE: Duration = Duration::from_secs(300);

/// The namespace that charts are rendered for.
pub const NAMESPACE: &str = "agents";

/// One of the pinned `helm` programs.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Helm {
    /// `helm` (version 4) or `helm3`, built where it is not in the cache.
    pub async fn named(name: &'static str) -> Result<Self> {
        let programs = programs(&[name], Report::start()).await?;
        Ok(Self {
            program: programs.path(name)?.clone(),
            environment: Vec::new(),
        })
    }

    /// The newer of the two.
    pub async fn new() -> Result<Self> {
        Self::named("helm").await
    }

    /// The same, with variables that say where a cluster is.
    pub fn at(self, environment: Vec<(&'static str, PathBuf)>) -> Self {
        Self {
            environment,
            ..self
        }
    }

    /// Runs a command with text on its standard input, as for `--values -`.
    pub async fn run(&self, arguments: &[&str], input: &str) -> Result<Said> {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(repository())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("could not run {}", self.program.display()))?;
        let mut stdin = child
            .stdin
            .take()
            .context("the input of helm is not ours")?;
        // A command that does not read its input closes it, which is its right.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = timeout(DEADLINE, child.wait_with_output()).await;
        Said::of(output.context("helm takes too long")??)
    }

    /// What the chart says to some values.
    pub async fn template(&self, values: &Value, flags: &[&str]) -> Result<Said> {
        let words = [
            "template",
            "agents",
            "charts/agents",
            "--namespace",
            NAMESPACE,
            "--values",
            "-",
        ];
        self.run(&[&words, flags].concat(), &values.to_string())
            .await
    }

    /// What the chart renders for some values, which must be right.
    pub async fn render(&self, values: &Value, flags: &[&str]) -> Result<Rendered> {
        let said = self.template(values, flags).await?;
        if said.code != Some(0) {
            bail!("{values} is refused: {}", said.stderr);
        }
        Rendered::read(&said.stdout)
    }

    /// Why the chart refuses some values.
    pub async fn refusal(&self, values: &Value, flags: &[&str]) -> Result<String> {
        let said = self.template(values, flags).await?;
        match said.code {
            Some(0) => bail!("{values} is not refused"),
            Some(_) | None => Ok(said.stderr),
        }
    }
}

/// Objects that were rendered.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The text, as helm printed it.
    pub text: String,
    /// All of them, in the order of the text.
    pub objects: Vec<Value>,
}

impl Rendered {
    /// Reads what helm printed.
    pub fn read(text: &str) -> Result<Self> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(text)
            .with_context(|| format!("helm printed something else than YAML:\n{text}"))?;
        objects.retain(|object| !object.is_null());
        Ok(Self {
            text: text.to_owned(),
            objects,
        })
    }

    /// Those of a kind.
    pub fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let is_it = move |object: &&Value| object["kind"] == kind;
        self.objects.iter().filter(is_it)
    }

    /// One of them, as `Kind/name`.
    pub fn get(&self, which: &str) -> Result<&Value> {
        let (kind, name) = which.split_once('/').context("Kind/name is wanted")?;
        let mut found = self.all(kind);
        found
            .find(|object| object["metadata"]["name"] == name)
            .with_context(|| format!("no {which} was rendered"))
    }

    /// A container by its name, wherever it is.
    pub fn container(&self, name: &str) -> Result<&Value> {
        let pods = self
            .objects
            .iter()
            .filter_map(|object| object.pointer("/spec/template/spec"));
        let mut containers = pods.flat_map(|pod| {
            let lists = ["initContainers", "containers"];
            lists
                .into_iter()
                .filter_map(|list| pod[list].as_array())
                .flatten()
        });
        containers
            .find(|container| container["name"] == name)
            .with_context(|| format!("no container {name} was rendered"))
    }

    /// The variables of a container, each once; those from elsewhere as the JSON that says from where.
    pub fn variables(&self, container: &str) -> Result<BTreeMap<String, String>> {
        self.read_variables(container, |entry| {
            let value = entry["value"].as_str().map(str::to_owned);
            Some(value.unwrap_or_else(|| entry["valueFrom"].to_string()))
        })
    }

    /// Those of them that have a value of their own.
    pub fn plain_variables(&self, container: &str) -> Result<BTreeMap<String, String>> {
        self.read_variables(container, |entry| {
            entry["value"].as_str().map(str::to_owned)
        })
    }

    fn read_variables(
        &self,
        container: &str,
        read: impl Fn(&Value) -> Option<String>,
    ) -> Result<BTreeMap<String, String>> {
        let mut variables = BTreeMap::new();
        let entries = self.container(container)?["env"].as_array();
        for entry in entries.into_iter().flatten() {
            let name = entry["name"].as_str().context("a variable has no name")?;
            let Some(text) = read(entry) else { continue };
            if variables.insert(name.to_owned(), text).is_some() {
                bail!("{container} is given {name} twice");
            }
        }
        Ok(variables)
    }
}
