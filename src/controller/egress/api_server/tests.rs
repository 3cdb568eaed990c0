//! What a look leads to. That nobody is called without one is shown on a real API server, in `controller::egress`.

use kube::core::Status;
use serde_json::{Value, json};

use super::*;

fn slice(endpoints: Value, ports: Value) -> EndpointSlice {
    let slice = json!({"addressType": "IPv4", "endpoints": endpoints, "ports": ports});
    serde_json::from_value(slice).unwrap()
}

#[test]
fn machines_are_looked_up_once_in_five_minutes() {
    let looked = Instant::now();
    let second = Duration::from_secs(1);
    for (last, after, expected) in [
        (None, Duration::ZERO, true),
        (Some(looked), Duration::ZERO, false),
        (Some(looked), FRESH - second, false),
        (Some(looked), FRESH, true),
        (Some(looked), FRESH + second, true),
    ] {
        assert_eq!(is_due(last, looked + after), expected, "{last:?} {after:?}");
    }
}

#[test]
fn only_an_answer_about_the_machines_lets_anyone_call_out() {
    let refusal = |code: u16| {
        let status = Status::failure("as told", "Reason").with_code(code);
        Err(kube::Error::Api(status.boxed()))
    };
    let broken = kube::Error::ReadEvents(std::io::ErrorKind::BrokenPipe.into());
    let one = slice(
        json!([{"addresses": ["10.0.0.1"]}]),
        json!([{"port": 6443}]),
    );
    let known = vec![("10.0.0.1".to_owned(), 6443)];
    for (row, answer, expected) in [
        ("known", Ok(one), Ok(Some(known))),
        (
            "there is no such object",
            refusal(404),
            Ok(Some(Vec::new())),
        ),
        (
            "who may not look goes by what is known",
            refusal(403),
            Ok(None),
        ),
        (
            "who we are is not known",
            refusal(401),
            Err(Class::Retryable),
        ),
        ("too many ask", refusal(429), Err(Class::Retryable)),
        ("a defect", refusal(500), Err(Class::Retryable)),
        ("not ready", refusal(503), Err(Class::Retryable)),
        ("no answer", Err(broken), Err(Class::Retryable)),
    ] {
        let judged = judge(answer).map_err(|fault| fault.class);
        assert_eq!(judged, expected, "{row}");
    }
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
