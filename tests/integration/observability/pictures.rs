//! The dashboards, drawn from their files and from what a Prometheus knows, so that a reader sees what he gets.
//!
//! Grafana is in no package registry, and its parts that are do not load a dashboard. So a page of ours draws it: places, titles,
//! units, colours and legends from the file that Grafana loads, and the data from the queries in it.

use std::{collections::BTreeMap, env, fs};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{browser::Browser, fixtures::repository, prometheus::Prometheus};
use tempfile::TempDir;

use super::{lint, live};

const PAGE: &str = include_str!("pictures.html");
/// As wide as most windows are; as high as the first rows.
const SIZE: (u32, u32) = (1400, 980);
/// How far back the pictures go.
const SECONDS: u32 = 120;

/// What a legend makes of a series: labels in place of their names.
fn legend(pattern: &str, metric: &Value) -> String {
    let mut text = pattern.to_owned();
    for (name, value) in metric.as_object().into_iter().flatten() {
        text = text.replace(
            &format!("{{{{{name}}}}}"),
            value.as_str().unwrap_or_default(),
        );
    }
    let mut left = String::new();
    for (at, part) in text.split("{{").enumerate() {
        // A label that the series does not have.
        left.push_str(if at == 0 {
            part
        } else {
            part.split_once("}}").map_or("", |rest| rest.1)
        });
    }
    left.trim().to_owned()
}

/// The lines of a panel: what each is called, and its points.
async fn lines(prometheus: &Prometheus, panel: &Value) -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    for target in panel["targets"].as_array().into_iter().flatten() {
        let expr = live::spelt_out(target["expr"].as_str().context("a query")?);
        for series in prometheus.range(&expr, SECONDS).await? {
            let points = series["values"].as_array().into_iter().flatten();
            let number = |point: &Value| {
                point[1]
                    .as_str()
                    .and_then(|value| value.parse::<f64>().ok())
            };
            let points = points.map(|point| json!([point[0], number(point)]));
            let name = legend(
                target["legendFormat"].as_str().unwrap_or_default(),
                &series["metric"],
            );
            lines.push(json!({"legend": name, "points": points.collect::<Vec<_>>()}));
        }
    }
    Ok(lines)
}

/// Draws every dashboard. Every panel of it has something to show.
pub(super) async fn draw(prometheus: &Prometheus, browser: &Browser) -> Result<()> {
    let folder = TempDir::new()?;
    browser.resize(SIZE.0, SIZE.1).await?;
    for (name, board) in lint::files() {
        let mut data = BTreeMap::new();
        for panel in board["panels"].as_array().into_iter().flatten() {
            data.insert(panel["id"].to_string(), lines(prometheus, panel).await?);
        }
        // Text of a label could end the script early.
        let told = json!({"board": board, "data": data})
            .to_string()
            .replace("</", "<\\/");
        let page = folder.path().join(format!("{name}.html"));
        fs::write(&page, PAGE.replace("/*DATA*/null", &told))?;
        browser.open(&format!("file://{}", page.display())).await?;
        browser.until("window.drawn === true").await?;
        let drawn = "[...document.querySelectorAll('.panel')].filter((panel) => panel.dataset.series === '0').map((panel) => panel.textContent).join()";
        let empty = browser.value(drawn).await?;
        ensure!(empty == "", "{name}: without data: {empty}");
        keep(browser, &name).await?;
    }
    Ok(())
}

/// Keeps what can be seen for the documents, if asked to.
async fn keep(browser: &Browser, name: &str) -> Result<()> {
    if env::var_os("GENERATE").is_some() {
        let file = repository().join(format!("docs/pictures/dashboard-{name}.png"));
        fs::write(file, browser.picture().await?)?;
    }
    Ok(())
}

#[test]
fn a_legend_is_made_of_labels_that_a_series_may_lack() {
    let metric = json!({"phase": "Failed"});
    for (pattern, expected) in [
        ("{{phase}}", "Failed"),
        ("ends {{phase}} {{runtime}}", "ends Failed"),
        ("waiting", "waiting"),
        ("{{runtime}} x", "x"),
    ] {
        assert_eq!(legend(pattern, &metric), expected);
    }
}
