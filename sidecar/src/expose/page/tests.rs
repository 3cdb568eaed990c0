use futures::future::join_all;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;

use super::{super::compress::tests::opened, *};
use crate::model::{Family, Kind, Labels, Number, Series, Value};

/// One family of a number of gauges.
struct Gauges(u32);

impl Families for Gauges {
    fn all(&self) -> Vec<Arc<dyn Source>> {
        vec![Arc::new(Self(self.0))]
    }
}

impl Source for Gauges {
    fn family(&self) -> Arc<Family> {
        Arc::new(Family {
            name: "x".into(),
            kind: Kind::Gauge,
            help: "".into(),
            unit: "".into(),
        })
    }

    fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        let from = after.as_ref().map_or(0, |labels| {
            let (_, value) = labels.pairs().next().expect("a label");
            value.parse::<u32>().expect("a number") + 1
        });
        let to = self
            .0
            .min(from.saturating_add(u32::try_from(most).expect("few")));
        for at in from..to {
            let id = format!("{at:08}");
            let labels = Labels::of([("id", &*id), ("path", "/a/long/path/that/takes/room")]);
            visit(&Series {
                labels: labels.clone(),
                start: 0,
                time: 0,
                value: Value::Number(Number::Integer(i64::from(at))),
            });
            *after = Some(labels);
        }
        to < self.0
    }
}

fn exposer(series: u32, settings: Settings) -> Exposer {
    let mut registry = Registry::default();
    let metrics = Metrics::register(registry.sub_registry_with_prefix("agents_sidecar"));
    Exposer::new(
        Arc::new(Gauges(series)),
        Arc::new(registry),
        metrics,
        settings,
    )
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    pairs.collect()
}

/// The bytes of an answer, read to the end.
async fn bytes(answer: Answer) -> Vec<u8> {
    let mut body = answer.into_body();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        all.extend(frame.expect("a frame").into_data().expect("data"));
    }
    all
}

async fn value(exposer: &Exposer, sample: &str) -> String {
    let page = bytes(exposer.answer(&HeaderMap::new()).await).await;
    let page = String::from_utf8(page).expect("text");
    let mut lines = page.lines();
    let line = lines
        .find_map(|line| line.strip_prefix(sample))
        .expect("the sample");
    line.trim().to_owned()
}

#[tokio::test]
async fn a_page_has_what_came_in_and_what_the_program_says() {
    let answer = exposer(2, Settings::default())
        .answer(&HeaderMap::new())
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(
        answer.headers()[header::CONTENT_TYPE],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let page = String::from_utf8(bytes(answer).await).expect("text");
    assert!(
        page.contains("x{id=\"00000001\",path=\"/a/long/path/that/takes/room\"} 1\n"),
        "{page}"
    );
    assert!(page.contains(
        "# TYPE agents_sidecar_page_shared_total counter\nagents_sidecar_page_shared_total 0\n"
    ));
}

#[tokio::test]
async fn a_page_is_the_same_compressed() {
    let exposer = exposer(5_000, Settings::default());
    let open = ("accept", "application/openmetrics-text;version=1.0.0");
    let plain = bytes(exposer.answer(&headers(&[open])).await).await;
    assert!(plain.len() > 250_000, "{}", plain.len());
    for (name, encoding) in [("gzip", Encoding::Gzip), ("zstd", Encoding::Zstd)] {
        let answer = exposer
            .answer(&headers(&[open, ("accept-encoding", name)]))
            .await;
        assert_eq!(answer.headers()[header::CONTENT_ENCODING], name);
        let sent = bytes(answer).await;
        assert!(
            sent.len() < plain.len() / 4,
            "{} of {}",
            sent.len(),
            plain.len()
        );
        let read = opened(&sent, encoding);
        assert_eq!(received(&read), received(&plain));
    }
}

/// What came in; what is before it counts the pages themselves.
fn received(page: &[u8]) -> &[u8] {
    let mark = b"# TYPE x ";
    let at = page.windows(mark.len()).position(|bytes| bytes == mark);
    &page[at.expect("the family")..]
}

/// Reads one piece and keeps the rest waiting.
async fn hold(exposer: &Exposer) -> Answer {
    let mut answer = exposer.answer(&HeaderMap::new()).await;
    answer
        .body_mut()
        .frame()
        .await
        .expect("a frame")
        .expect("data");
    answer
}

#[tokio::test(start_paused = true)]
async fn scrapes_that_wait_share_a_page() {
    let one = Settings {
        renders: 1,
        ..Settings::default()
    };
    let exposer = exposer(20_000, one);
    let held = hold(&exposer).await;
    let none = HeaderMap::new();
    let waiting = join_all((0..5).map(|_| async { bytes(exposer.answer(&none).await).await }));
    let (pages, _) = tokio::join!(waiting, async { drop(bytes(held).await) });
    assert!(pages.iter().all(|page| *page == pages[0]));
    assert_eq!(
        value(&exposer, "agents_sidecar_page_shared_total").await,
        "4"
    );
}

#[tokio::test]
async fn scrapes_that_come_at_once_share_a_page_although_there_is_a_turn_for_each() {
    let exposer = exposer(5_000, Settings::default());
    let none = HeaderMap::new();
    let read = || async { bytes(exposer.answer(&none).await).await };
    let (one, other) = tokio::join!(read(), read());
    assert_eq!(one, other);
    assert_eq!(
        value(&exposer, "agents_sidecar_page_shared_total").await,
        "1"
    );
}

#[tokio::test]
async fn a_page_is_shared_until_something_of_it_is_written_and_only_by_its_like() {
    let exposer = exposer(5_000, Settings::default());
    let shared = async || value(&exposer, "agents_sidecar_page_shared_total").await;
    let (none, gzip) = (HeaderMap::new(), headers(&[("accept-encoding", "gzip")]));
    let (first, second) = (exposer.answer(&none).await, exposer.answer(&none).await);
    let packed = exposer.answer(&gzip).await;
    let page = bytes(first).await;
    // What is told of the pages themselves is gathered after the last reader has come.
    let text = String::from_utf8(page.clone()).expect("text");
    assert!(text.contains("agents_sidecar_page_shared_total 1\n"));
    assert_eq!(page, bytes(second).await);
    let packed = opened(&bytes(packed).await, Encoding::Gzip);
    assert_eq!(received(&packed), received(&page));
    let late = hold(&exposer).await;
    assert_eq!(shared().await, "1", "it came after the first piece");
    drop(late);
}

#[tokio::test]
async fn a_page_that_was_left_before_it_was_written_is_not_joined() {
    let exposer = exposer(5_000, Settings::default());
    let left = exposer.answer(&HeaderMap::new()).await;
    drop(left);
    let page = bytes(exposer.answer(&HeaderMap::new()).await).await;
    assert!(page.len() > 250_000, "{} bytes", page.len());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stands_still_is_cut_when_others_wait() {
    let one = Settings {
        renders: 1,
        patience: Duration::from_secs(10),
        ..Settings::default()
    };
    let exposer = exposer(20_000, one);
    let mut held = hold(&exposer).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    // It waits no longer than the other may take.
    assert!(bytes(exposer.answer(&HeaderMap::new()).await).await.len() > 1_000_000);
    let broken = held.body_mut().frame().await.expect("a frame");
    assert!(broken.is_err());
    assert_eq!(
        value(
            &exposer,
            "agents_sidecar_page_cut_total{cause=\"deadline\"}"
        )
        .await,
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_scrape_does_not_wait_for_ever() {
    let one = Settings {
        renders: 1,
        ..Settings::default()
    };
    let exposer = exposer(20_000, one);
    let held = hold(&exposer).await;
    let impatient = headers(&[("x-prometheus-scrape-timeout-seconds", "0.5")]);
    let answer = exposer.answer(&impatient).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key(header::RETRY_AFTER));
    drop(held);
    assert_eq!(
        value(&exposer, "agents_sidecar_page_cut_total{cause=\"busy\"}").await,
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_does_not_stop_the_others() {
    let one = Settings {
        renders: 1,
        ..Settings::default()
    };
    let exposer = exposer(50_000, one);
    let held = hold(&exposer).await;
    let none = HeaderMap::new();
    let (slow, quick, ()) = tokio::join!(exposer.answer(&none), exposer.answer(&none), async {
        drop(held)
    });
    assert!(bytes(quick).await.len() > 2_000_000);
    let mut slow = slow.into_body();
    let broken = slow.frame().await.expect("a frame");
    assert!(broken.is_err());
    drop(slow);
    assert_eq!(
        value(&exposer, "agents_sidecar_page_cut_total{cause=\"stalled\"}").await,
        "1"
    );
}

#[tokio::test]
async fn a_page_that_nobody_reads_gives_its_turn_back() {
    let one = Settings {
        renders: 1,
        ..Settings::default()
    };
    let exposer = exposer(20_000, one);
    for _ in 0..3 {
        drop(hold(&exposer).await);
    }
    let answer = exposer.answer(&HeaderMap::new()).await;
    assert!(!answer.body().is_end_stream());
    assert_eq!(answer.status(), StatusCode::OK);
}
