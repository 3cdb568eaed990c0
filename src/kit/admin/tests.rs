use http_body_util::Empty;
use tower::ServiceExt;

use super::*;
use crate::kit::http::read_body;

const PATHS: Paths = Paths {
    livez: "/livez",
    readyz: "/readyz",
    metrics: Some("/metrics"),
    profile: "/profile",
};

const IDENTITY: Identity = Identity {
    program: "agents-test",
    version: "1.2.3",
    clean: str::to_owned,
};

async fn ask(readiness: &Readiness, request: Request<Empty<Bytes>>) -> (u16, String, String) {
    let admin = Admin::new(
        PATHS,
        readiness.clone(),
        registry(IDENTITY),
        Profiling(false),
        None,
    );
    let Ok(response) = admin.oneshot(request).await;
    let status = response.status().as_u16();
    let kind = response.headers()[header::CONTENT_TYPE].clone();
    let kind = kind.to_str().expect("a content type").to_owned();
    let body = read_body(response.into_body(), 1 << 20)
        .await
        .expect("a body");
    (
        status,
        kind,
        String::from_utf8(body.to_vec()).expect("text"),
    )
}

async fn get(readiness: &Readiness, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Empty::new()).expect("a request");
    let (status, _, body) = ask(readiness, request).await;
    (status, body)
}

#[tokio::test]
async fn readyz_names_the_closed_gates_and_lists_all_when_verbose() {
    let readiness = Readiness::default();
    let certificate = readiness.gate("certificate");
    let cache = readiness.gate("cache");
    cache.open();
    let closed = "not ready, closed: certificate\n";
    assert_eq!(get(&readiness, "/readyz").await, (503, closed.to_owned()));
    let verbose = format!("{closed}[-] certificate: not yet opened\n[+] cache\n");
    assert_eq!(get(&readiness, "/readyz?verbose").await, (503, verbose));
    certificate.open();
    assert_eq!(
        get(&readiness, "/readyz").await,
        (200, "ready\n".to_owned())
    );
    cache.open_but("a minute old");
    assert_eq!(
        get(&readiness, "/readyz?verbose").await,
        (
            200,
            "ready\n[+] certificate\n[+] cache: a minute old\n".to_owned()
        )
    );
}

#[tokio::test]
async fn livez_does_not_depend_on_gates() {
    let readiness = Readiness::default();
    let _closed = readiness.gate("certificate");
    assert_eq!(get(&readiness, "/livez").await, (200, "alive\n".to_owned()));
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_shortly() {
    let readiness = Readiness::default();
    let missing = get(&readiness, "/").await;
    assert_eq!(missing, (404, "no such path\n".to_owned()));
    let post = Request::post("/metrics").body(Empty::new());
    let (status, _, body) = ask(&readiness, post.expect("a request")).await;
    assert_eq!((status, body.as_str()), (405, "only GET and HEAD\n"));
    let (status, body) = get(&readiness, "/profile").await;
    assert_eq!(
        (status, body.as_str()),
        (404, "profiles are switched off\n")
    );
}

#[tokio::test]
async fn metrics_tell_build_and_process() {
    let readiness = Readiness::default();
    let scrape = Request::get("/metrics")
        .header(
            header::ACCEPT,
            "application/openmetrics-text; version=1.0.0",
        )
        .body(Empty::new());
    let (status, kind, page) = ask(&readiness, scrape.expect("a request")).await;
    assert_eq!(status, 200);
    assert_eq!(
        kind,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    for part in [
        "agents_build_info{program=\"agents-test\",version=\"1.2.3\"} 1\n",
        "\nprocess_cpu_seconds_total ",
        "\nprocess_resident_memory_bytes ",
        "\nprocess_start_time_seconds ",
        "\nprocess_open_fds ",
        "\n# EOF\n",
    ] {
        assert!(page.contains(part), "{part:?} is missing in {page}");
    }
    let (_, kind, _) = ask(
        &readiness,
        Request::get("/metrics")
            .body(Empty::new())
            .expect("a request"),
    )
    .await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
}
