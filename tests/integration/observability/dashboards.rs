//! `dashboards/*.json`, expanded from `dashboards/panels/*.yaml`: what all panels have in common is said once, here.

use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use support::fixtures::repository;

use crate::documents::bind;

/// The newest form that both the loader of ConfigMaps and the Grafana operator take.
pub(super) const SCHEMA: u64 = 41;
/// How `<at>` is written out: of what is scraped, all labels of a target can be chosen.
const AT: &str = r#"namespace=~"$namespace",job=~"$job",instance=~"$instance""#;
/// How `<in>` is written out: a recording rule keeps the namespace alone.
const IN: &str = r#"namespace=~"$namespace""#;
/// Columns of a dashboard.
const COLUMNS: u64 = 24;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Board {
    title: String,
    description: String,
    /// Whose pages the variables offer, as a pattern.
    program: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    title: String,
    panels: Vec<Panel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    about: String,
    #[serde(default, rename = "type")]
    sort: Sort,
    #[serde(default = "plain")]
    unit: String,
    width: Option<u64>,
    warn: Option<f64>,
    bad: Option<f64>,
    #[serde(default)]
    low_is_bad: bool,
    queries: Vec<Query>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Timeseries,
    Stat,
    Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    expr: String,
    #[serde(default)]
    legend: String,
}

fn plain() -> String {
    "short".to_owned()
}

impl Board {
    /// The dashboard as Grafana loads it.
    fn expand(&self, name: &str) -> Value {
        json!({
            "uid": format!("agents-{name}"),
            "title": self.title,
            "description": self.description,
            "tags": ["agents"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": false,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "utc",
            "annotations": {"list": []},
            "links": [{
                "type": "dashboards", "title": "Agents", "tags": ["agents"], "asDropdown": true,
                "includeVars": true, "keepTime": true, "icon": "external link", "targetBlank": false,
            }],
            "templating": {"list": self.variables()},
            "panels": self.panels(),
        })
    }

    fn variables(&self) -> Vec<Value> {
        let source = json!({
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
            "current": {}, "hide": 0, "includeAll": false, "multi": false, "refresh": 1, "regex": "",
        });
        let ours = format!("program=~\"{}\"", self.program);
        let chosen = [
            ("namespace", "Namespace", ours.clone()),
            ("job", "Job", format!("{ours},namespace=~\"$namespace\"")),
            (
                "instance",
                "Instance",
                format!("{ours},namespace=~\"$namespace\",job=~\"$job\""),
            ),
        ];
        let chosen = chosen.map(|(name, label, which)| {
            let query = format!("label_values(agents_build_info{{{which}}}, {name})");
            json!({
                "name": name, "label": label, "type": "query", "datasource": datasource(),
                "definition": query, "query": {"query": query, "refId": "Variable"},
                "includeAll": true, "allValue": ".*", "multi": true, "current": {"text": "All", "value": "$__all"},
                "hide": 0, "refresh": 2, "regex": "", "sort": 1,
            })
        });
        [vec![source], chosen.into()].concat()
    }

    fn panels(&self) -> Vec<Value> {
        let (mut panels, mut top) = (Vec::new(), 0);
        for row in &self.rows {
            let id = panels.len() + 1;
            panels.push(json!({
                "id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
                "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
            }));
            top += 1;
            let (mut left, mut height) = (0, 0);
            for panel in &row.panels {
                let (width, tall) = panel.size();
                if left + width > COLUMNS {
                    (left, top) = (0, top + height);
                }
                let place = json!({"x": left, "y": top, "w": width, "h": tall});
                panels.push(panel.expand(panels.len() + 1, place));
                (left, height) = (left + width, tall);
            }
            top += height;
        }
        panels
    }
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

impl Panel {
    fn size(&self) -> (u64, u64) {
        let (width, height) = match self.sort {
            Sort::Stat => (4, 4),
            Sort::Timeseries | Sort::Table => (8, 8),
        };
        (self.width.unwrap_or(width), height)
    }

    fn expand(&self, id: usize, place: Value) -> Value {
        let targets = self.queries.iter().zip('A'..='Z');
        let targets = targets.map(|(query, letter)| self.target(query, letter));
        let mut panel = json!({
            "id": id,
            "type": match self.sort { Sort::Timeseries => "timeseries", Sort::Stat => "stat", Sort::Table => "table" },
            "title": self.title,
            "description": self.about,
            "datasource": datasource(),
            "gridPos": place,
            "fieldConfig": {"defaults": {
                "unit": self.unit,
                "thresholds": {"mode": "absolute", "steps": self.steps()},
                "custom": self.look(),
            }, "overrides": []},
            "options": self.options(),
            "targets": targets.collect::<Vec<_>>(),
        });
        if self.sort == Sort::Table {
            let hidden = json!({"Time": true});
            let organize = json!({"id": "organize", "options": {"excludeByName": hidden}});
            panel["transformations"] = json!([organize]);
        }
        panel
    }

    fn target(&self, query: &Query, letter: char) -> Value {
        let expr = query.expr.replace("<at>", AT).replace("<in>", IN);
        let is_table = self.sort == Sort::Table;
        json!({
            "refId": letter.to_string(), "datasource": datasource(), "editorMode": "code",
            "expr": expr, "legendFormat": query.legend,
            "format": if is_table { "table" } else { "time_series" },
            "instant": is_table, "range": !is_table,
        })
    }

    /// Colours from the lowest value up.
    fn steps(&self) -> Value {
        let step = |colour: &str, from: Option<f64>| json!({"color": colour, "value": from});
        let mut steps = match self.low_is_bad {
            true => vec![("red", None), ("orange", self.bad), ("green", self.warn)],
            false => vec![("green", None), ("orange", self.warn), ("red", self.bad)],
        };
        if self.low_is_bad && self.warn.is_none() {
            steps = vec![("red", None), ("green", self.bad)];
        }
        let first = steps.remove(0);
        let rest = steps.into_iter().filter(|(_, from)| from.is_some());
        let steps = [first].into_iter().chain(rest);
        steps.map(|(colour, from)| step(colour, from)).collect()
    }

    fn look(&self) -> Value {
        let has_bounds = self.warn.is_some() || self.bad.is_some();
        match self.sort {
            Sort::Timeseries => json!({
                "drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "auto", "spanNulls": false,
                "thresholdsStyle": {"mode": if has_bounds { "dashed" } else { "off" }},
            }),
            Sort::Table => json!({"cellOptions": {"type": "color-text"}}),
            Sort::Stat => json!({}),
        }
    }

    fn options(&self) -> Value {
        match self.sort {
            Sort::Timeseries => json!({
                "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": true},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
            Sort::Stat => json!({
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
                "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
            }),
            Sort::Table => json!({"showHeader": true, "cellHeight": "sm"}),
        }
    }
}

/// Names of the dashboards, by their files of panels.
fn boards() -> Vec<(String, PathBuf)> {
    let folder = repository().join("dashboards/panels");
    let entries = fs::read_dir(folder).unwrap();
    let mut boards: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                path,
            )
        })
        .collect();
    boards.sort();
    boards
}

#[test]
fn every_dashboard_is_what_its_panels_say() {
    let boards = boards();
    assert_eq!(boards.len(), 6);
    for (name, path) in boards {
        let text = fs::read_to_string(&path).unwrap();
        let board: Board = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let expanded = serde_json::to_string_pretty(&board.expand(&name)).unwrap();
        bind(&format!("dashboards/{name}.json"), &format!("{expanded}\n"));
    }
}
