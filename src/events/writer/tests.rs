//! The writer against an API server that answers from a script. The clock stands still unless all wait for it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::*;
use crate::api::kind::Kind;
use crate::events::metrics::Failure;
use crate::events::reason::{Reason, Severity};
use crate::events::{Config, Effect, Emitter, Note, Occurrence, Regarding, Reporter, Settings};

/// What the API server says to a call.
#[derive(Clone)]
enum Answer {
    /// Done.
    Yes,
    /// No, with code, reason and kind of the details.
    No(u16, &'static str, &'static str),
    /// This is what is stored.
    Shows(Value),
    /// Nothing, ever, although it is stored.
    Silence,
    /// What was stored in silence.
    Kept,
}

#[derive(Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<Answer>>>,
    calls: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Value>>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
        let group = if head.uri.path().starts_with("/apis/events.k8s.io/") {
            "events"
        } else {
            "core"
        };
        let tally = ["/series/count", "/count"]
            .iter()
            .find_map(|path| body.pointer(path)?.as_u64());
        let version = body
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let call = match (head.method.as_str(), tally, version) {
            ("PATCH", None, _) => format!("read {group}"),
            ("PATCH", Some(count), version) => {
                format!("count {group} {count} at {}", version.unwrap_or("any"))
            }
            (_, count, _) => format!("create {group} {}", count.unwrap_or(1)),
        };
        self.calls.lock().unwrap().push(call);
        let answer = self.script.lock().unwrap().pop_front();
        let (code, shown) = match answer.unwrap_or(Answer::Yes) {
            Answer::Yes => (200, stored(body, "9")),
            Answer::Shows(event) => (200, stored(event, "5")),
            Answer::No(code, reason, kind) => (
                code,
                json!({ "kind": "Status", "code": code, "reason": reason, "details": { "kind": kind } }),
            ),
            Answer::Kept => (200, stored(self.kept.lock().unwrap().clone(), "5")),
            Answer::Silence => {
                *self.kept.lock().unwrap() = body;
                pending().await
            }
        };
        let body = Bytes::from(shown.to_string());
        Response::builder()
            .status(code)
            .body(Full::new(body))
            .unwrap()
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn stored(mut event: Value, version: &str) -> Value {
    event["metadata"]["name"] = json!("stored");
    event["metadata"]["resourceVersion"] = json!(version);
    // The core form cannot be read without it.
    event["involvedObject"] = json!({});
    event
}

/// An emitter and the task that turns it, with an end to it.
struct Bench {
    server: Server,
    emitter: Emitter,
    metrics: Metrics,
    writer: Option<Writer>,
}

impl Bench {
    fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(script, |_| {})
    }

    fn with(script: impl IntoIterator<Item = Answer>, change: impl FnOnce(&mut Config)) -> Self {
        let server = Server::default();
        server.script.lock().unwrap().extend(script);
        let settings = Settings {
            enabled: true,
            per_minute: 10,
        };
        let mut config = Config::new(
            settings,
            Reporter::new("agents.proompteng.ai/controller", "pod-0"),
        );
        change(&mut config);
        let metrics = Metrics::default();
        let (emitter, writer) = crate::events::new(server.client(), config, metrics.clone());
        Self {
            server,
            emitter,
            metrics,
            writer: Some(writer),
        }
    }

    fn emit(&self, reason: Reason) {
        let regarding = Regarding::named(Kind::AgentRun, "ns", "nightly");
        self.emitter.emit(
            Effect::Real,
            Occurrence::new(regarding, reason, Note::new("It happened")),
        );
    }

    /// Runs the writer beside `story`, then ends it with `grace` to finish.
    async fn run(&mut self, grace: Duration, story: impl AsyncFnOnce(&Self)) {
        let writer = self.writer.take().unwrap();
        let (end, shutdown) = oneshot::channel();
        let story = async {
            story(self).await;
            end.send(Instant::now() + grace).unwrap();
        };
        let shutdown = async { shutdown.await.unwrap() };
        tokio::join!(writer.run(shutdown), story);
    }
}

/// Lets the clock go on; it does so only when there is nothing else to do.
async fn pass(duration: Duration) {
    sleep(duration).await;
}

async fn fails_twice(bench: &Bench) {
    bench.emit(Reason::Failed);
    pass(MOMENT).await;
    bench.emit(Reason::Failed);
}

const GRACE: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn the_first_is_created_the_repeat_counted_and_the_rest_counted_at_the_end() {
    let mut bench = Bench::new([]);
    bench
        .run(GRACE, async |bench| {
            for _ in 0..4 {
                bench.emit(Reason::Failed);
                pass(MOMENT).await;
            }
        })
        .await;
    assert_eq!(
        bench.server.calls(),
        [
            "create events 1",
            "count events 2 at 9",
            "count events 4 at 9"
        ]
    );
    assert_eq!(bench.metrics.emitted(Severity::Warning, Group::Events), 1);
    assert_eq!(
        (bench.metrics.updated(), bench.metrics.aggregated()),
        (2, 3)
    );
    assert_eq!(bench.metrics.dropped(Loss::Shutdown), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_group_gets_core_events_and_is_not_asked_again() {
    let mut bench = Bench::new([Answer::No(404, "", "")]);
    bench
        .run(GRACE, async |bench| {
            bench.emit(Reason::Started);
            pass(MOMENT).await;
            bench.emit(Reason::Succeeded);
            pass(MOMENT).await;
            bench.emit(Reason::Succeeded);
        })
        .await;
    let expected = [
        "create events 1",
        "create core 1",
        "create core 1",
        "count core 2 at 9",
    ];
    assert_eq!(bench.server.calls(), expected);
    assert_eq!(bench.metrics.emitted(Severity::Normal, Group::Core), 2);
    assert_eq!(bench.metrics.errors(Failure::GroupAbsent), 1);
}

#[tokio::test(start_paused = true)]
async fn what_neither_group_may_do_is_dropped_and_counted() {
    let no = Answer::No(403, "Forbidden", "events");
    let mut bench = Bench::new([no.clone(), no]);
    bench
        .run(GRACE, async |bench| bench.emit(Reason::Failed))
        .await;
    assert_eq!(bench.server.calls(), ["create events 1", "create core 1"]);
    assert_eq!(bench.metrics.errors(Failure::Forbidden), 2);
    assert_eq!(bench.metrics.dropped(Loss::Undelivered), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_from_before_a_restart_is_counted_on() {
    let before =
        json!({ "series": { "count": 7, "lastObservedTime": "2026-02-06T10:00:00.000000Z" } });
    let mut bench = Bench::new([
        Answer::No(409, "AlreadyExists", "events"),
        Answer::Shows(before),
    ]);
    bench
        .run(GRACE, async |bench| bench.emit(Reason::Failed))
        .await;
    assert_eq!(
        bench.server.calls(),
        ["create events 1", "read events", "count events 8 at 5"]
    );
    assert_eq!(bench.metrics.emitted(Severity::Warning, Group::Events), 0);
}

#[tokio::test(start_paused = true)]
async fn what_happens_once_and_someone_else_has_told_is_left_as_it_is() {
    let exists = Answer::No(409, "AlreadyExists", "events");
    let mut bench = Bench::new([exists, Answer::Shows(json!({}))]);
    let story = async |bench: &Bench| {
        let regarding = Regarding::named(Kind::AgentRun, "ns", "nightly");
        let note = Note::new("It happened");
        let gone = Occurrence::new(regarding, Reason::JobDeletedUnknown, note);
        let job = Regarding::job("ns", "nightly-job").with_uid("j-1");
        bench.emitter.emit(Effect::Real, gone.related_to(job));
    };
    bench.run(GRACE, story).await;
    assert_eq!(bench.server.calls(), ["create events 1", "read events"]);
    assert_eq!(bench.metrics.emitted(Severity::Warning, Group::Events), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_answer_never_came_is_not_counted_twice() {
    let exists = Answer::No(409, "AlreadyExists", "events");
    let mut bench = Bench::new([Answer::Silence, exists, Answer::Kept]);
    bench
        .run(GRACE, async |bench| {
            fails_twice(bench).await;
            pass(HOUR).await;
        })
        .await;
    let expected = [
        "create events 1",
        "create events 2",
        "read events",
        "count events 2 at 5",
    ];
    assert_eq!(bench.server.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_count_that_someone_else_changed_is_added_to_theirs() {
    let theirs =
        json!({ "series": { "count": 30, "lastObservedTime": "2026-02-06T10:00:00.000000Z" } });
    let mut bench = Bench::new([
        Answer::Yes,
        Answer::No(409, "Conflict", "events"),
        Answer::Shows(theirs),
    ]);
    bench.run(GRACE, fails_twice).await;
    let expected = [
        "create events 1",
        "count events 2 at 9",
        "read events",
        "count events 31 at 5",
    ];
    assert_eq!(bench.server.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_event_is_created_anew_with_its_count() {
    let mut bench = Bench::new([Answer::Yes, Answer::No(404, "NotFound", "events")]);
    bench.run(GRACE, fails_twice).await;
    assert_eq!(
        bench.server.calls(),
        ["create events 1", "count events 2 at 9", "create events 2"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_for_a_namespace_that_goes_is_dropped_without_another_try() {
    for answer in [
        Answer::No(404, "NotFound", "namespaces"),
        Answer::No(422, "Invalid", "events"),
    ] {
        let mut bench = Bench::new([answer]);
        bench
            .run(GRACE, async |bench| bench.emit(Reason::Failed))
            .await;
        assert_eq!(bench.server.calls(), ["create events 1"]);
        assert_eq!(bench.metrics.dropped(Loss::Undelivered), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_while_gets_the_event_afterwards() {
    let away = [
        Answer::No(503, "ServiceUnavailable", ""),
        Answer::No(429, "TooManyRequests", ""),
        Answer::Silence,
    ];
    let mut bench = Bench::new(away);
    bench
        .run(GRACE, async |bench| {
            bench.emit(Reason::Failed);
            pass(HOUR).await;
        })
        .await;
    assert_eq!(bench.server.calls(), ["create events 1"; 4]);
    assert_eq!(bench.metrics.emitted(Severity::Warning, Group::Events), 1);
    let errors = [Failure::Server, Failure::Throttled, Failure::Timeout]
        .map(|cause| bench.metrics.errors(cause));
    assert_eq!(errors, [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_is_given_up_after_twelve_tries() {
    let mut bench = Bench::new(vec![Answer::No(500, "InternalError", ""); 100]);
    bench
        .run(GRACE, async |bench| {
            bench.emit(Reason::Failed);
            pass(HOUR).await;
        })
        .await;
    assert_eq!(bench.server.calls().len(), 12);
    assert_eq!(bench.metrics.dropped(Loss::Undelivered), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_a_silent_server_no_longer_than_it_may() {
    let mut bench = Bench::new(vec![Answer::Silence; 100]);
    let start = Instant::now();
    bench
        .run(GRACE, async |bench| {
            bench.emit(Reason::Failed);
            pass(MOMENT).await;
            bench.emit(Reason::Failed);
            bench.emit(Reason::Started);
        })
        .await;
    assert_eq!(start.elapsed(), GRACE + MOMENT);
    assert_eq!(bench.metrics.dropped(Loss::Shutdown), 3);
    bench.emit(Reason::Failed);
    assert_eq!(bench.metrics.dropped(Loss::Closed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts() {
    let mut bench = Bench::with([], |config| config.limits.queue = 4);
    for _ in 0..10 {
        bench.emit(Reason::Failed);
    }
    assert_eq!(bench.metrics.dropped(Loss::QueueFull), 6);
    bench.run(GRACE, async |_| {}).await;
    assert_eq!(bench.metrics.aggregated(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_and_a_switched_off_emitter_leave_no_trace() {
    let regarding = Regarding::named(Kind::AgentRun, "ns", "nightly");
    let occurrence = Occurrence::new(regarding, Reason::InvalidSpec, Note::new("It is wrong"));
    let mut dry = Bench::new([]);
    dry.run(GRACE, async |bench| {
        bench.emitter.emit(Effect::of_request(true), occurrence)
    })
    .await;
    let mut off = Bench::with([], |config| config.enabled = false);
    off.run(GRACE, async |bench| bench.emit(Reason::Failed))
        .await;
    for bench in [dry, off] {
        assert_eq!(bench.server.calls(), Vec::<String>::new());
        assert_eq!(
            bench.metrics.dropped(Loss::Closed) + bench.metrics.dropped(Loss::QueueFull),
            0
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_about_one_object_costs_two_writes_in_its_minute() {
    let mut bench = Bench::new([]);
    let calls = Arc::clone(&bench.server.calls);
    bench
        .run(GRACE, async |bench| {
            for _ in 0..1_000 {
                bench.emit(Reason::Failed);
                pass(Duration::from_millis(60)).await;
            }
            assert_eq!(calls.lock().unwrap().len(), 2);
        })
        .await;
    assert_eq!(
        bench.server.calls(),
        [
            "create events 1",
            "count events 2 at 9",
            "count events 1000 at 9"
        ]
    );
}

#[test]
fn the_delay_doubles_up_to_its_bound_and_is_spread() {
    let table = [
        (0, 0.0, 250),
        (0, 1.0, 500),
        (1, 1.0, 1_000),
        (5, 1.0, 16_000),
        (6, 1.0, 30_000),
        (90, 0.0, 15_000),
    ];
    for (failures, jitter, milliseconds) in table {
        assert_eq!(
            backoff(failures, jitter),
            Duration::from_millis(milliseconds),
            "after {failures} failures"
        );
    }
}
