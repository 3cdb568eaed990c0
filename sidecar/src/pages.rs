//! The pages on the admin port that only this program has: all metrics in every format, and which names they came under.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use agents::{
    ADMIN_PATHS,
    kit::{
        admin::{PageBody, Pages, whole},
        http::text,
        program::Program,
        shutdown::Farewell,
    },
};
use futures::future::{BoxFuture, FutureExt, ready};
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;

use crate::{
    expose::{
        Exposer, Metrics, Settings,
        names_page::{self, NameRow, Refusal},
    },
    otlp,
    store::{Named, Sort, Store},
};

/// Which names metrics came under.
const NAMES: &str = "/debug/names";

/// Others of its name that a row names, at most.
const MOST_CONFLICTS: usize = 20;

/// Shows them from now on.
pub(super) fn show(program: &mut Program, store: Arc<Store>, otlp: &otlp::Settings) {
    let metrics = Metrics::register(program.metrics());
    let farewell = program.tasks.farewell();
    let settings = Settings {
        strategy: otlp.rules.names.strategy,
        created: otlp.created,
        ..Settings::default()
    };
    program.show(Box::new(move |registry| {
        let families = Arc::clone(&store);
        Arc::new(Own {
            exposer: Exposer::new(families, registry, metrics, settings),
            store,
            farewell,
        })
    }));
}

struct Own {
    exposer: Exposer,
    store: Arc<Store>,
    /// A scrape after SIGTERM has the last values: nothing else is waited for, and it is finished before the end.
    farewell: Farewell,
}

impl Pages for Own {
    fn answer(&self, head: &Parts) -> Option<BoxFuture<'static, Response<PageBody>>> {
        let path = head.uri.path();
        if Some(path) == ADMIN_PATHS.metrics {
            self.farewell.say();
            let (exposer, headers) = (self.exposer.clone(), head.headers.clone());
            let page = async move {
                let page = exposer.answer(&headers).await;
                page.map(|body| body.map_err(Into::into).boxed_unsync())
            };
            return Some(page.boxed());
        }
        (path == NAMES).then(|| {
            let accept = head.headers.get(header::ACCEPT);
            let wants_html = accept
                .and_then(|accept| accept.to_str().ok())
                .is_some_and(|accept| accept.contains("text/html"));
            ready(whole(self.names(wants_html))).boxed()
        })
    }
}

impl Own {
    fn names(&self, wants_html: bool) -> Response<agents::kit::http::TextBody> {
        let rows = rows(self.store.names());
        let (kind, page) = match wants_html {
            true => (
                "text/html; charset=utf-8",
                Ok(names_page::html(rows).into_bytes()),
            ),
            false => ("application/json", names_page::json(rows)),
        };
        let Ok(page) = page else {
            return text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the names cannot be written\n",
            );
        };
        let mut response = text(StatusCode::OK, page);
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// One row for each metric, which names the others that have its name.
fn rows(named: Vec<Named>) -> Vec<NameRow> {
    let mut sharing: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for this in &named {
        if let Some(exposed) = &this.exposed {
            sharing.entry(exposed).or_default().insert(title(this));
        }
    }
    let conflicts = |this: &Named| {
        let all = this
            .exposed
            .as_ref()
            .and_then(|exposed| sharing.get(exposed.as_str()));
        let others = all
            .into_iter()
            .flatten()
            .filter(|other| **other != title(this));
        others.take(MOST_CONFLICTS).cloned().collect()
    };
    let row = |this: &Named| NameRow {
        original: this.original.clone(),
        unit: this.unit.clone(),
        kind: kind(this.sort).to_owned(),
        exposed: this.exposed.clone(),
        series: this.series as u64,
        conflicts: conflicts(this),
        refusals: this
            .refused
            .iter()
            .map(|(refusal, points)| Refusal {
                reason: refusal.as_str().to_owned(),
                points: *points,
            })
            .collect(),
    };
    named.iter().map(row).collect()
}

/// What tells a metric from others of its name on the page.
fn title(this: &Named) -> String {
    match this.unit.as_str() {
        "" => this.original.clone(),
        unit => format!("{} in {unit}", this.original),
    }
}

fn kind(sort: Sort) -> &'static str {
    match sort {
        Sort::Gauge => "gauge",
        Sort::Sum {
            is_monotonic: true, ..
        } => "counter",
        Sort::Sum { .. } => "sum",
        Sort::Histogram(_) => "histogram",
        Sort::Exponential(_) => "exponential histogram",
        Sort::Summary => "summary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(original: &str, unit: &str, exposed: &str) -> Named {
        Named {
            original: original.to_owned(),
            unit: unit.to_owned(),
            sort: Sort::Gauge,
            exposed: Some(exposed.to_owned()),
            series: 1,
            refused: vec![(crate::store::Refusal::Time, 2)],
        }
    }

    #[test]
    fn metrics_of_one_name_are_told_of_each_other() {
        let rows = rows(vec![
            named("a.b", "", "a_b"),
            named("a_b", "By", "a_b"),
            named("c", "", "c"),
        ]);
        let conflicts: Vec<_> = rows.iter().map(|row| row.conflicts.clone()).collect();
        let none = Vec::<String>::new();
        assert_eq!(
            conflicts,
            [vec!["a_b in By".to_owned()], vec!["a.b".to_owned()], none]
        );
        let refused = Refusal {
            reason: "time".to_owned(),
            points: 2,
        };
        assert_eq!(rows[0].refusals, [refused]);
    }
}
