//! Scrapes answered: each page is written while it is sent, and few at once.
//!
//! Scrapes that ask for the same thing share one page as long as nothing of it has been written, so what they get is never
//! older than their request. Nobody writes ahead of those who read: a page is pulled, so no task runs beside its connection.

mod tape;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use agents::kit::http::{TextBody, text};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::Either;
use prometheus_client::registry::Registry;
use tokio::{
    sync::Semaphore,
    task::yield_now,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    accept::{Encoding, Style},
    metrics::{Cut, Metrics},
    own,
    render::{Families, Order, Render, Source, Sources},
};
use crate::{lock::lock, names::Strategy};
pub use tape::PageBody;
use tape::{Reel, Tape};

/// How scrapes are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// By which names are made; decides whether two of them can become one on a page.
    pub strategy: Strategy,
    /// Whether OpenMetrics 1.0 has a further line for when each series began.
    pub created: bool,
    /// Pages written at once.
    pub renders: usize,
    /// The most time that a scrape may take, from the request to the last byte; the scraper can ask for less.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            created: false,
            renders: 2,
            patience: Duration::from_secs(30),
        }
    }
}

/// The answer to a scrape.
pub type Answer = Response<Either<PageBody, TextBody>>;

/// What makes two scrapes the same.
type Key = (Style, Encoding);

/// Answers scrapes. Clones are the same exposer.
#[derive(Clone)]
pub struct Exposer {
    inner: Arc<Inner>,
}

struct Inner {
    families: Arc<dyn Families>,
    registry: Arc<Registry>,
    settings: Settings,
    metrics: Metrics,
    turns: Arc<Semaphore>,
    desk: Mutex<Desk>,
}

/// The last page of each sort, which may be joined until something of it is written, and those that have their turn. Who reads
/// a page keeps it, so one that nobody waits for any more is gone.
#[derive(Default)]
struct Desk {
    last: HashMap<Key, Weak<Tape>>,
    writing: Vec<Weak<Tape>>,
}

impl fmt::Debug for Exposer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.inner.settings;
        f.debug_struct("Exposer")
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

/// There is no page: others are being written for too long.
struct Busy;

impl Exposer {
    /// Shows what is in the store, and what the program says about itself.
    pub fn new(
        families: Arc<dyn Families>,
        registry: Arc<Registry>,
        metrics: Metrics,
        settings: Settings,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                families,
                registry,
                settings,
                metrics,
                turns: Arc::new(Semaphore::new(settings.renders.max(1))),
                desk: Mutex::default(),
            }),
        }
    }

    /// Answers a scrape with these headers.
    pub async fn answer(&self, headers: &HeaderMap) -> Answer {
        let style = Style::accepted(&said(headers, header::ACCEPT.as_str()));
        let encoding = Encoding::accepted(&said(headers, header::ACCEPT_ENCODING.as_str()));
        let deadline = Instant::now() + self.patience(headers);
        let (tape, body) = self.join((style, encoding), deadline);
        match self.begin(&tape, (style, encoding), deadline).await {
            Ok(()) => page(style, encoding, body),
            Err(Busy) => {
                self.inner.metrics.cut(Cut::Busy);
                busy()
            }
        }
    }

    /// As long as the scraper waits, but not longer than we do.
    fn patience(&self, headers: &HeaderMap) -> Duration {
        let asked = said(headers, "x-prometheus-scrape-timeout-seconds");
        let asked = asked.trim().parse().ok();
        let asked = asked.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        let longest = self.inner.settings.patience;
        asked
            .filter(|asked| !asked.is_zero())
            .unwrap_or(longest)
            .min(longest)
    }

    /// Takes part in a page of which nothing is written, or makes one wait.
    fn join(&self, key: Key, deadline: Instant) -> (Arc<Tape>, PageBody) {
        let mut desk = lock(&self.inner.desk);
        let last = desk.last.get(&key).and_then(Weak::upgrade);
        if let Some(tape) = last
            && let Some(body) = tape.join(deadline)
        {
            self.inner.metrics.shared();
            return (tape, body);
        }
        let (tape, body) = Tape::with_reader(self.inner.metrics.clone(), deadline);
        desk.last.insert(key, Arc::downgrade(&tape));
        (tape, body)
    }

    /// Waits until the page has its turn. Whoever gets it begins the page for all who wait.
    async fn begin(&self, tape: &Arc<Tape>, key: Key, deadline: Instant) -> Result<(), Busy> {
        let begun = tape.begun.get_or_try_init(|| async {
            let permit = loop {
                let next = self.cut_overdue();
                let permit = Arc::clone(&self.inner.turns).acquire_owned();
                tokio::select! {
                    permit = permit => break permit.map_err(|_| Busy)?,
                    () = sleep_until(next.unwrap_or(deadline)) => {}
                }
            };
            // Scrapes that came at the same time get here before the first piece is written.
            yield_now().await;
            {
                let mut desk = lock(&self.inner.desk);
                desk.writing.retain(|tape| tape.strong_count() > 0);
                desk.writing.push(Arc::downgrade(tape));
            }
            let inner = Arc::clone(&self.inner);
            let render = Box::new(move || inner.render(key.0));
            tape.begin(Reel::new(render, key, permit));
            Ok(())
        });
        let begun = timeout_at(deadline, begun).await;
        begun.map_err(|_| Busy)?.map(|_| ())
    }

    /// Cuts pages that are overdue, whose turn others wait for. Says when the next will be.
    fn cut_overdue(&self) -> Option<Instant> {
        let tapes: Vec<_> = lock(&self.inner.desk)
            .writing
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let now = Instant::now();
        tapes.iter().filter_map(|tape| tape.cut_overdue(now)).min()
    }
}

impl Inner {
    /// What writes a page, with everything that is known by now.
    fn render(&self, style: Style) -> Result<Render, fmt::Error> {
        let Self {
            families,
            registry,
            settings,
            ..
        } = self;
        let own = own::families(registry)?;
        let own: Vec<Arc<dyn Source>> = own.into_iter().map(|own| Arc::new(own) as _).collect();
        let count = own.len();
        let sources = Sources {
            all: own.into_iter().chain(families.all()).collect(),
            own: count,
        };
        let order = Order {
            style,
            created: settings.created,
            utf8: !settings.strategy.escapes(),
        };
        Ok(Render::new(sources, order))
    }
}

/// All values of a header; a scraper may send several.
fn said(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

fn page(style: Style, encoding: Encoding, body: PageBody) -> Answer {
    let mut response = Response::new(Either::Left(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, style.content_type());
    headers.insert(
        header::VARY,
        HeaderValue::from_static("Accept, Accept-Encoding"),
    );
    if let Some(encoding) = encoding.header() {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
    response
}

fn busy() -> Answer {
    let sorry = Bytes::from_static(b"other pages are still being sent, try again\n");
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, sorry).map(Either::Right);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

#[cfg(test)]
mod tests;
