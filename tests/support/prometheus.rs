//! A real Prometheus on the loopback, for one test: in a folder of its own, asked by its HTTP API, ended with its handle.
//!
//! Values are kept as Prometheus writes them, so that they can be compared without rounding.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http,
    lab::{Lab, process::supervisor, relay::Relay, report::Report, tools::build::programs},
    metrics::Series,
    ports::free_addresses,
    wait,
};

/// Nothing that is waited for takes longer, also where everything else is busy.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// Formats and protocols that are not on by default.
const FEATURES: &str = "exemplar-storage,openmetrics2,created-timestamp-zero-ingestion";
/// Exemplars of this time before and after now.
const WHOLE_RANGE: [(&str, &str); 2] = [
    ("start", "1970-01-01T00:00:00Z"),
    ("end", "2200-01-01T00:00:00Z"),
];

/// A page that is scraped.
#[derive(Clone, Debug)]
pub struct Job {
    /// The label `job` of what it gives.
    pub name: String,
    /// Where the page is.
    pub target: SocketAddr,
    /// The only format that is asked for.
    pub protocol: &'static str,
    /// How names are to be escaped.
    pub escaping: &'static str,
}

impl Job {
    fn settings(&self) -> Value {
        json!({
            "job_name": self.name,
            "scrape_protocols": [self.protocol],
            "metric_name_escaping_scheme": self.escaping,
            "scrape_native_histograms": true,
            "static_configs": [{"targets": [self.target.to_string()], "labels": {"instance": "page"}}],
        })
    }
}

/// What a Prometheus does: scrape pages, and translate OTLP that is pushed to it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pages that are scraped.
    pub jobs: Vec<Job>,
    /// How names of OTLP are translated.
    pub strategy: &'static str,
}

impl Settings {
    /// What it is told beside them.
    fn flags(&self) -> [String; 2] {
        let features = format!("--enable-feature={FEATURES}");
        ["--web.enable-otlp-receiver".to_owned(), features]
    }

    /// As the file of settings says it: JSON is YAML.
    fn file(&self) -> Value {
        json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
            "scrape_configs": self.jobs.iter().map(Job::settings).collect::<Vec<_>>(),
            // As the specification wants it, which is not what Prometheus does by itself.
            "otlp": {
                "translation_strategy": self.strategy,
                "promote_scope_metadata": true,
                "keep_identifying_resource_attributes": true,
                "label_name_underscore_sanitization": false,
                "label_name_preserve_multiple_underscores": false,
            },
        })
    }
}

/// An example of a series: its labels and its value.
pub type Exemplar = (BTreeMap<String, String>, String);

/// A Prometheus that runs, until it is dropped.
pub struct Prometheus {
    authority: String,
    folder: TempDir,
    server: Child,
    _way: Option<Relay>,
}

impl Prometheus {
    /// One that is ready.
    pub async fn start(settings: &Settings) -> Result<Self> {
        Self::run(&settings.file(), &settings.flags()).await
    }

    /// The same for the `lab` program alone: the kernel ends it with that program, however that goes, and its data are below
    /// a folder that goes with the lab.
    pub async fn bound(settings: &Settings, folder: &Path) -> Result<Self> {
        let place = tempfile::tempdir_in(folder)?;
        let nothing: [&str; 0] = [];
        let command = supervisor::bound(&program().await?, nothing);
        let flags = settings.flags();
        let (mut command, address) = prepare(command, place.path(), &settings.file(), &flags)?;
        let server = command.spawn()?;
        Self::await_ready(address.to_string(), place, server, None).await
    }

    /// One that is ready, by a file of settings of its own and with nothing that is not on by default.
    pub async fn plain(settings: &Value) -> Result<Self> {
        Self::run::<&str>(settings, &[]).await
    }

    /// The same in the network of a lab with a node, where it reaches pods as one in a cluster does.
    pub async fn inside(lab: &Lab, settings: &Value) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let command = Command::new(program().await?);
        let (mut command, address) = prepare::<&str>(command, folder.path(), settings, &[])?;
        // A process is born into the network of the thread that starts it.
        let start = || -> Result<Child> {
            lab.enter_network()?;
            Ok(command.spawn()?)
        };
        let started = thread::scope(|scope| scope.spawn(start).join());
        let server = match started {
            Ok(server) => server?,
            Err(_) => bail!("the thread that starts Prometheus panicked"),
        };
        let way = lab.reach(address)?;
        let authority = way.address().to_string();
        Self::await_ready(authority, folder, server, Some(way)).await
    }

    async fn run<F: AsRef<OsStr>>(settings: &Value, flags: &[F]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let command = Command::new(program().await?);
        let (mut command, address) = prepare(command, folder.path(), settings, flags)?;
        let server = command.spawn()?;
        Self::await_ready(address.to_string(), folder, server, None).await
    }

    async fn await_ready(
        authority: String,
        folder: TempDir,
        server: Child,
        way: Option<Relay>,
    ) -> Result<Self> {
        let mut running = Self {
            authority,
            folder,
            server,
            _way: way,
        };
        running.until_ready().await?;
        Ok(running)
    }

    async fn until_ready(&mut self) -> Result<()> {
        let authority = self.authority.clone();
        let ready = || http::get(&authority, "/-/ready");
        let waited = wait::retry("a Prometheus that is ready", DEADLINE, ready).await;
        waited.map(drop).with_context(|| self.log())
    }

    /// Where it answers, as `host:port`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Has it do something else from now on.
    pub async fn change(&self, settings: &Settings) -> Result<()> {
        write(self.folder.path(), &settings.file())?;
        let reload = http::post(&self.authority, "/-/reload", "text/plain", Vec::new());
        reload.await.map(drop).with_context(|| self.log())
    }

    /// Pushes to its own OTLP endpoint, in JSON.
    pub async fn push(&self, request: &Value) -> Result<()> {
        let path = "/api/v1/otlp/v1/metrics";
        let body = request.to_string().into_bytes();
        let answer = http::post(&self.authority, path, "application/json", body);
        answer.await.map(drop).with_context(|| self.log())
    }

    async fn ask(&self, path: &str, pairs: &[(&str, &str)]) -> Result<Value> {
        let kind = "application/x-www-form-urlencoded";
        let answer = http::post(&self.authority, path, kind, http::form(pairs)).await?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["data"].take())
    }

    /// What an expression is now: series with their values.
    pub async fn query(&self, expression: &str) -> Result<BTreeMap<Series, String>> {
        let data = self.ask("/api/v1/query", &[("query", expression)]).await?;
        let rows = data["result"].as_array().context("a list of series")?;
        rows.iter()
            .map(|row| Ok((series(&row["metric"])?, value(row)?)))
            .collect()
    }

    /// What an expression was in the last seconds, every two of them: a list of series with their values.
    pub async fn range(&self, expression: &str, seconds: u32) -> Result<Vec<Value>> {
        let now = Timestamp::now().as_second();
        let [start, end] = [now - i64::from(seconds), now].map(|time| time.to_string());
        let pairs = [
            ("query", expression),
            ("start", &*start),
            ("end", &*end),
            ("step", "2"),
        ];
        let mut data = self.ask("/api/v1/query_range", &pairs).await?;
        let Value::Array(series) = data["result"].take() else {
            bail!("no list of series: {data}");
        };
        Ok(series)
    }

    /// The first sample of each series in the last ten minutes: its time, and its value.
    pub async fn first(&self, selector: &str) -> Result<BTreeMap<Series, (f64, String)>> {
        let expression = format!("{selector}[10m]");
        let data = self.ask("/api/v1/query", &[("query", &expression)]).await?;
        let rows = data["result"].as_array().context("a list of series")?;
        rows.iter()
            .map(|row| {
                let found = ["values", "histograms"].map(|kind| row[kind].as_array());
                let samples = found.into_iter().flatten().flatten();
                let time = |sample: &&Value| sample[0].as_f64().unwrap_or(f64::MAX);
                let first = samples.min_by(|one, other| time(one).total_cmp(&time(other)));
                let first = first.context("a sample")?;
                Ok((series(&row["metric"])?, (time(&first), sample(&first[1])?)))
            })
            .collect()
    }

    /// The exemplars of the series that an expression picks.
    pub async fn exemplars(&self, selector: &str) -> Result<BTreeMap<Series, Vec<Exemplar>>> {
        let [start, end] = WHOLE_RANGE;
        let data = self
            .ask(
                "/api/v1/query_exemplars",
                &[("query", selector), start, end],
            )
            .await?;
        let rows = data.as_array().context("a list of series")?;
        rows.iter()
            .map(|row| {
                let all = row["exemplars"].as_array().context("a list of exemplars")?;
                let all = all.iter().map(|one| {
                    let value = one["value"].as_str().context("a value")?;
                    Ok((labels(&one["labels"])?, value.to_owned()))
                });
                Ok((series(&row["seriesLabels"])?, all.collect::<Result<_>>()?))
            })
            .collect()
    }

    /// Its rules of both sorts, each with its health and, if it is an alert, its state.
    pub async fn rules(&self) -> Result<Vec<Value>> {
        let answer: Value =
            serde_json::from_str(&http::get(&self.authority, "/api/v1/rules").await?)?;
        let groups = answer["data"]["groups"].as_array();
        let groups = groups.context("a list of groups")?.iter();
        let rules = groups
            .filter_map(|group| group["rules"].as_array())
            .flatten();
        Ok(rules.cloned().collect())
    }

    /// Why each page that could not be scraped could not.
    pub async fn failures(&self) -> Result<Vec<String>> {
        let path = "/api/v1/targets?state=active";
        let answer: Value = serde_json::from_str(&http::get(&self.authority, path).await?)?;
        let targets = answer["data"]["activeTargets"].as_array();
        let targets = targets.context("a list of targets")?.iter();
        let down = targets.filter(|target| target["health"] != "up");
        let told = down.map(|target| format!("{}: {}", target["scrapePool"], target["lastError"]));
        Ok(told.collect())
    }

    /// Waits until every page has been scraped, and none in vain.
    pub async fn until_scraped(&self, jobs: usize) -> Result<()> {
        wait::retry("pages that can be scraped", DEADLINE, || async {
            let failures = self.failures().await?;
            ensure!(failures.is_empty(), "{failures:#?}");
            let up = self.query("up == 1").await?;
            ensure!(up.len() == jobs, "{} of {jobs} are up", up.len());
            Ok(())
        })
        .await
    }
}

async fn program() -> Result<PathBuf> {
    let built = programs(&["prometheus"], Report::start()).await?;
    Ok(built.path("prometheus")?.clone())
}

/// Has a command start it in a folder. Says where it will listen.
fn prepare<F: AsRef<OsStr>>(
    mut command: Command,
    folder: &Path,
    settings: &Value,
    flags: &[F],
) -> Result<(Command, SocketAddr)> {
    let [address] = free_addresses()?;
    write(folder, settings)?;
    let log = File::create(folder.join("log"))?;
    command
        .arg("--config.file=settings.json")
        .arg("--storage.tsdb.path=data")
        .arg(format!("--web.listen-address={address}"))
        .arg("--web.enable-lifecycle")
        .args(flags)
        .arg("--scrape.discovery-reload-interval=100ms")
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    Ok((command, address))
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // At once: nobody needs what is in it.
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// With what `promtool check metrics` ends for a page, and what it says: 0 if it is in order, 3 if names could be better.
pub async fn check_metrics(page: &str) -> Result<(Option<i32>, String)> {
    let built = programs(&["promtool"], Report::start()).await?;
    check(built.path("promtool")?, page)
}

/// With what promtool ends for rules, and what it says: 0 if all is in order.
pub async fn promtool(arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let built = programs(&["promtool"], Report::start()).await?;
    let mut command = Command::new(built.path("promtool")?);
    let output = command.args(arguments).env_clear().output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

fn check(promtool: &Path, page: &str) -> Result<(Option<i32>, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("page");
    fs::write(&file, page)?;
    let output = Command::new(promtool)
        .args(["check", "metrics"])
        .env_clear()
        .stdin(File::open(&file)?)
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok((output.status.code(), said))
}

fn write(folder: &Path, settings: &Value) -> Result<()> {
    Ok(fs::write(
        folder.join("settings.json"),
        settings.to_string(),
    )?)
}

fn labels(of: &Value) -> Result<BTreeMap<String, String>> {
    let all = of.as_object().context("labels")?.iter();
    all.map(|(name, value)| Ok((name.clone(), value.as_str().context("a text")?.to_owned())))
        .collect()
}

fn series(of: &Value) -> Result<Series> {
    let mut labels = labels(of)?;
    let name = labels.remove("__name__").unwrap_or_default();
    Ok(Series { name, labels })
}

fn value(row: &Value) -> Result<String> {
    match (row.get("value"), row.get("histogram")) {
        (Some(float), None) => sample(&float[1]),
        (None, Some(histogram)) => sample(&histogram[1]),
        _ => bail!("neither a number nor a histogram: {row}"),
    }
}

/// A number as it is written, or a native histogram as one line.
fn sample(of: &Value) -> Result<String> {
    if let Some(number) = of.as_str() {
        return Ok(number.to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let mut line = format!("count {} sum {}", text(&of["count"]), text(&of["sum"]));
    for bucket in of["buckets"].as_array().into_iter().flatten() {
        let [from, to, count] = [1, 2, 3].map(|at| text(&bucket[at]));
        // Open at the left, at the right, at both, at none.
        let (open, close) = match bucket[0].as_u64() {
            Some(0) => ('(', ']'),
            Some(1) => ('[', ')'),
            Some(2) => ('(', ')'),
            Some(3) => ('[', ']'),
            _ => bail!("a bucket with other ends: {bucket}"),
        };
        line += &format!(" {open}{from}, {to}{close} {count}");
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_number_or_a_histogram() {
        let number = json!({"metric": {"__name__": "up"}, "value": [1.5, "+Inf"]});
        assert_eq!(value(&number).unwrap(), "+Inf");
        assert_eq!(series(&number["metric"]).unwrap(), Series::new("up", &[]));
        let histogram = json!({"histogram": [1.5, {"count": "3", "sum": "-1.5",
            "buckets": [[1, "-2", "-1", "1"], [3, "-0.5", "0.5", "2"], [0, "1", "2", "4"]]}]});
        let line = "count 3 sum -1.5 [-2, -1) 1 [-0.5, 0.5] 2 (1, 2] 4";
        assert_eq!(value(&histogram).unwrap(), line);
        assert!(value(&json!({})).is_err());
    }
}
