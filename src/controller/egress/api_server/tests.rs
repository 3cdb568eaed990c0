use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex as Held};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::advance;

use super::*;

/// An API server that answers as it is told, as often as it is let.
#[derive(Clone)]
struct Server {
    answer: Arc<Held<(u16, Value)>>,
    /// Looks that are let through.
    let_through: Arc<Semaphore>,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn new(code: u16, body: Value) -> Self {
        Self {
            answer: Arc::new(Held::new((code, body))),
            let_through: Arc::new(Semaphore::new(0)),
            asked: Arc::default(),
        }
    }

    fn open(self) -> Self {
        self.let_through.add_permits(100);
        self
    }

    fn answers(&self, code: u16, body: Value) {
        *self.answer.lock().unwrap() = (code, body);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            let server = server.clone();
            async move {
                server.asked.fetch_add(1, Ordering::Relaxed);
                server.let_through.acquire().await.unwrap().forget();
                let (code, body) = server.answer.lock().unwrap().clone();
                let answer = Response::builder().status(code);
                let answer = answer.body(Body::from(body.to_string().into_bytes()));
                Ok::<_, std::io::Error>(answer.unwrap())
            }
        });
        Client::new(service, "default")
    }
}

fn slice_of(address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": NAME},
        "addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": [{"port": 6443}],
    })
}

fn refusal(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "as told", "code": code})
}

/// Looks once; where not to go as far as this look found it.
async fn look(api_server: &ApiServer, server: &Server) -> Result<Option<Vec<Place>>, Class> {
    let mut found = None;
    let client = server.client();
    let looked = api_server.look(&client, |places| found = Some(places));
    looked.await.map_err(|fault| fault.class)?;
    Ok(found)
}

fn found(address: &str) -> Result<Option<Vec<Place>>, Class> {
    Ok(Some(vec![(address.to_owned(), 6443)]))
}

#[tokio::test(start_paused = true)]
async fn machines_are_looked_up_once_in_five_minutes() {
    let (api_server, server) = (ApiServer::default(), Server::new(200, slice_of("10.0.0.1")));
    let server = server.open();
    assert_eq!(look(&api_server, &server).await, found("10.0.0.1"));
    server.answers(200, slice_of("10.0.0.2"));
    advance(FRESH - Duration::from_secs(1)).await;
    assert_eq!(look(&api_server, &server).await, Ok(None));
    assert_eq!(server.asked(), 1);
    advance(Duration::from_secs(1)).await;
    assert_eq!(look(&api_server, &server).await, found("10.0.0.2"));
    // There is no such object: nothing is kept from.
    server.answers(404, refusal(404));
    advance(FRESH).await;
    assert_eq!(look(&api_server, &server).await, Ok(Some(Vec::new())));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_lets_no_call_out_and_is_taken_again() {
    let (api_server, server) = (ApiServer::default(), Server::new(500, refusal(500)));
    let server = server.open();
    for code in [500, 503, 429, 401] {
        server.answers(code, refusal(code));
        let looked = look(&api_server, &server).await;
        assert_eq!(looked, Err(Class::Retryable), "{code}");
    }
    assert_eq!(server.asked(), 4, "each call looks until one look succeeds");
    server.answers(200, slice_of("10.0.0.1"));
    assert_eq!(look(&api_server, &server).await, found("10.0.0.1"));
    server.answers(500, refusal(500));
    advance(FRESH).await;
    let looked = look(&api_server, &server).await;
    assert_eq!(looked, Err(Class::Retryable), "what was known is too old");
}

#[tokio::test(start_paused = true)]
async fn a_look_without_an_answer_lets_no_call_out_in_time() {
    let (api_server, server) = (ApiServer::default(), Server::new(200, slice_of("10.0.0.1")));
    let started = Instant::now();
    // Those who wait for the look of another do not wait for one of their own after it.
    let (one, other) = tokio::join!(look(&api_server, &server), look(&api_server, &server));
    assert_eq!((one, other), (Err(Class::Retryable), Err(Class::Retryable)));
    assert_eq!(started.elapsed(), DEADLINE);
    let server = server.open();
    assert_eq!(look(&api_server, &server).await, found("10.0.0.1"));
}

#[tokio::test(start_paused = true)]
async fn nobody_calls_out_while_the_first_look_is_under_way() {
    let (api_server, server) = (ApiServer::default(), Server::new(200, slice_of("10.0.0.1")));
    let known = Held::new(None);
    let client = server.client();
    let first = api_server.look(&client, |places| *known.lock().unwrap() = Some(places));
    let second = async {
        look(&api_server, &server).await.unwrap();
        known.lock().unwrap().clone()
    };
    let release = async {
        // By then the second waits, too: both began before this was first looked at.
        while server.asked() == 0 {
            yield_now().await;
        }
        server.let_through.add_permits(1);
    };
    let (first, second, ()) = tokio::join!(first, second, release);
    first.expect("a look");
    assert_eq!(Ok(second), found("10.0.0.1"), "known before anyone goes on");
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_goes_by_what_is_known() {
    let (api_server, server) = (ApiServer::default(), Server::new(403, refusal(403)));
    let server = server.open();
    assert_eq!(look(&api_server, &server).await, Ok(None));
    assert_eq!(look(&api_server, &server).await, Ok(None));
    assert_eq!(server.asked(), 1, "nor is it asked before every call");
    server.answers(200, slice_of("10.0.0.1"));
    advance(FRESH).await;
    assert_eq!(look(&api_server, &server).await, found("10.0.0.1"));
}

#[test]
fn the_api_server_is_known_by_host_and_port() {
    for (url, host, port) in [
        ("https://10.96.0.1", "10.96.0.1", 443),
        ("https://[fd00::1]:6443/", "fd00::1", 6443),
        ("http://127.0.0.1:8001", "127.0.0.1", 8001),
    ] {
        let found = place(&url.parse().expect(url));
        assert_eq!(found, Some((host.to_owned(), port)), "{url}");
    }
}

#[test]
fn every_machine_of_the_api_server_is_one_that_may_not_be_called() {
    let slice = |endpoints: Value, ports: Value| -> EndpointSlice {
        serde_json::from_value(
            json!({"addressType": "IPv4", "endpoints": endpoints, "ports": ports}),
        )
        .unwrap()
    };
    let two = json!([{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}]);
    let https = json!([{"name": "https", "port": 6443}]);
    let places = |slice: &EndpointSlice| {
        let places = machines(slice).into_iter();
        let places = places.map(|(host, port)| format!("{host}:{port}"));
        places.collect::<Vec<_>>().join(" ")
    };
    for (row, slice, expected) in [
        (
            "two",
            slice(two.clone(), https.clone()),
            "10.0.0.1:6443 10.0.0.2:6443",
        ),
        ("none", slice(json!([]), https), ""),
        ("no port", slice(two, json!([{"name": "https"}])), ""),
    ] {
        assert_eq!(places(&slice), expected, "{row}");
    }
}
