//! A real Prometheus with the rules of the chart. Waits are taken out of the rules, and windows and bars of minutes are cut, so that
//! an alert fires when its fault is there and not minutes later; nothing else is changed.

use std::{cell::RefCell, collections::BTreeSet, fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{prometheus::Prometheus, wait};
use tempfile::TempDir;

use super::{super::rules, Story, provoked};

/// Longer than the windows and than a lease, also where everything else is busy.
pub(super) const DEADLINE: Duration = Duration::from_secs(180);
/// What every window is cut to. Pages are read every other second.
const WINDOW: &str = "30s";
/// How alerts end whose bar is minutes that pass.
const BARS: [&str; 2] = ["> 300", "> 1800"];
/// What those are cut to: longer than anything takes that goes well, also where everything else is busy.
const BAR: &str = "> 5";

/// The rules of the chart in a folder, without waits and with cut windows.
fn without_waits() -> Result<(TempDir, Vec<PathBuf>)> {
    let folder = TempDir::new()?;
    let mut files = Vec::new();
    for file in rules::files() {
        let mut read: Value = serde_saphyr::from_str(&fs::read_to_string(&file)?)?;
        let groups = read["groups"].as_array_mut().context("groups")?;
        for rule in groups
            .iter_mut()
            .filter_map(|group| group["rules"].as_array_mut())
            .flatten()
        {
            let expr = cut(rule["expr"].as_str().context("an expression")?);
            rule["expr"] = json!(expr);
            rule.as_object_mut().map(|rule| rule.remove("for"));
        }
        let name = file.file_name().context("a name")?;
        let path = folder.path().join(name);
        fs::write(&path, read.to_string())?;
        files.push(path);
    }
    Ok((folder, files))
}

/// An expression with its windows and its bar cut.
fn cut(expr: &str) -> String {
    let rest = BARS.iter().find_map(|bar| expr.strip_suffix(bar));
    let expr = rest.map_or_else(|| expr.to_owned(), |rest| format!("{rest}{BAR}"));
    let windows = ["5m", "10m", "15m", "1h", "1w", "30d"];
    windows.iter().fold(expr, |expr, window| {
        expr.replace(&format!("[{window}]"), &format!("[{WINDOW}]"))
            .replace(&format!("offset {window}"), &format!("offset {WINDOW}"))
    })
}

/// Watches over the alerts, and keeps which have been shown.
pub(super) struct Watch {
    pub(super) prometheus: Prometheus,
    shown: RefCell<BTreeSet<&'static str>>,
    _rules: TempDir,
}

impl Watch {
    pub(super) async fn start(pages: &[Value]) -> Result<Self> {
        let (folder, files) = without_waits()?;
        let settings = json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
            "rule_files": files,
            "scrape_configs": pages,
        });
        Ok(Self {
            prometheus: Prometheus::plain(&settings).await?,
            shown: RefCell::default(),
            _rules: folder,
        })
    }

    /// Alerts that fire now.
    async fn firing(&self) -> Result<BTreeSet<String>> {
        let mut firing = BTreeSet::new();
        for rule in self.prometheus.rules().await? {
            ensure!(rule["health"] == "ok", "{rule:#}");
            if rule["state"] == "firing" {
                firing.insert(rule["name"].as_str().unwrap_or_default().to_owned());
            }
        }
        Ok(firing)
    }

    /// Waits until none of some alerts fires.
    pub(super) async fn until_silent(&self, alerts: &BTreeSet<&str>) -> Result<()> {
        wait::retry("silence before a fault", DEADLINE, || async {
            let firing = self.firing().await?;
            let loud: Vec<_> = alerts
                .iter()
                .filter(|name| firing.contains(**name))
                .collect();
            ensure!(loud.is_empty(), "{loud:?}");
            Ok(())
        })
        .await
    }

    /// These are silent, and after the fault each of them fires.
    pub(super) async fn provoke<F>(&self, alerts: &[&'static str], fault: F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let all: BTreeSet<_> = alerts.iter().copied().collect();
        self.until_silent(&all).await?;
        fault
            .await
            .with_context(|| format!("the fault of {alerts:?}"))?;
        wait::retry(&format!("{alerts:?} in their fault"), DEADLINE, || async {
            let firing = self.firing().await?;
            let silent: Vec<_> = alerts
                .iter()
                .filter(|name| !firing.contains(**name))
                .collect();
            ensure!(silent.is_empty(), "{silent:?} are silent, {firing:?} fire");
            Ok(())
        })
        .await?;
        self.shown.borrow_mut().extend(all);
        Ok(())
    }

    /// Waits until a query has an answer.
    pub(super) async fn until_told(&self, query: &str) -> Result<()> {
        wait::retry(query, DEADLINE, || async {
            ensure!(!self.prometheus.query(query).await?.is_empty(), "no answer");
            Ok(())
        })
        .await
    }
    /// Every alert of a story has been shown, and no other.
    pub(super) fn has_shown(&self, story: Story) -> Result<()> {
        let shown = self.shown.borrow();
        ensure!(*shown == provoked(story), "only {shown:?} were shown");
        Ok(())
    }
}

#[test]
fn windows_and_bars_of_minutes_are_cut_and_nothing_else_is() {
    for (expr, expected) in [
        ("max(a_seconds) > 300", "max(a_seconds) > 5"),
        ("a:max > 1800", "a:max > 5"),
        ("increase(a[15m]) > 0", "increase(a[30s]) > 0"),
        ("a - time() < 604800", "a - time() < 604800"),
        ("a unless a offset 1h", "a unless a offset 30s"),
    ] {
        assert_eq!(cut(expr), expected);
    }
    let cut_bars = rules::all().into_iter().filter(|rule| {
        let is_bar = BARS.iter().any(|bar| rule.expr.ends_with(bar));
        rule.alert.is_some() && is_bar
    });
    assert_eq!(cut_bars.count(), 4);
}
