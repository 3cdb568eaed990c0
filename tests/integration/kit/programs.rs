//! Programs as processes: what they print, how they start, how they end.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::ensure;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{lab::report::in_time, wait};

use super::{
    client::{DEADLINE, answer, ask, connect, get, send},
    pki::{Authority, Mount, shown},
    process::{Ended, Process, kit_program, product},
};

const PRODUCTS: [(&str, &[&str]); 3] = [
    ("agents", &["controller"]),
    ("agents-webhook", &[]),
    ("agents-sidecar", &[]),
];

/// Ports that the system chooses.
const ANY_PORT: [(&str, &str); 2] = [
    ("AGENTS_ADMIN_LISTEN", "127.0.0.1:0"),
    ("AGENTS_WEBHOOK_LISTEN", "127.0.0.1:0"),
];

/// A request that is in flight until the process is told to release it.
async fn hold(process: &mut Process) -> tokio::net::TcpStream {
    let mut client = connect(process.address("work").await).await;
    send(&mut client, b"GET /hold HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let pressed = |line: &Value| line["message"] == "Button pressed" && line["path"] == "/hold";
    process.line("the held request", pressed).await;
    client
}

async fn message(process: &mut Process, message: &str) -> Value {
    process
        .line(message, |line| line["message"] == message)
        .await
}

/// Returns once every gate is open.
async fn ready(admin: SocketAddr) {
    let open = || async {
        let answer = get(admin, "/readyz?verbose").await;
        ensure!(answer.status == 200, "{}", answer.body);
        Ok(())
    };
    wait::retry("open gates", DEADLINE, open).await.unwrap();
}

/// The webhook needs a certificate, see below, and the controllers a cluster, see there.
#[tokio::test]
async fn the_sidecar_starts_is_ready_is_scraped_and_ends_on_sigterm() {
    let mut process = Process::start(&product("agents-sidecar"), &[], &ANY_PORT);
    let admin = process.address("admin").await;
    assert_eq!(get(admin, "/livez").await.status, 200);
    ready(admin).await;
    let gates = get(admin, "/readyz?verbose").await;
    assert_eq!((gates.status, &*gates.body), (200, "ready\n[+] running\n"));
    let page = support::http::get(&admin.to_string(), "/metrics").await;
    let page = page.expect("a page");
    let named = "agents_build_info{program=\"agents-sidecar\"";
    assert!(page.contains(named), "{page}");
    process.signal(Signal::SIGTERM);
    assert_eq!(process.end().await.code, Some(0));
}

#[tokio::test]
async fn the_webhook_is_ready_with_a_certificate_and_serves_over_tls() {
    let authority = Authority::new();
    let (old, new) = (authority.issue(), authority.issue());
    let mount = Mount::new(&old);
    mount.put("", "");
    let files = mount.files();
    let environment = [
        ANY_PORT[0],
        ANY_PORT[1],
        (
            "AGENTS_TLS_CERTIFICATE_FILE",
            files.certificate.to_str().expect("a path"),
        ),
        ("AGENTS_TLS_KEY_FILE", files.key.to_str().expect("a path")),
        ("AGENTS_SHUTDOWN_LINGER", "0"),
        ("AGENTS_WEBHOOK_LOOKUP", "off"),
    ];
    let mut process = Process::start(&product("agents-webhook"), &[], &environment);
    let admin = process.address("admin").await;
    let closed = get(admin, "/readyz").await;
    assert_eq!(
        (closed.status, &*closed.body),
        (503, "not ready, closed: certificate\n")
    );
    message(&mut process, "Certificate files cannot be used").await;
    mount.swap(&new);
    message(&mut process, "Certificate in use").await;
    ready(admin).await;
    let tcp = connect(process.address("admission").await).await;
    let mut tls = authority
        .client(None)
        .connect(tcp)
        .await
        .expect("a handshake");
    assert_eq!(shown(&tls), new.certificate);
    assert_eq!(ask(&mut tls, "/anything").await.status, 404);
    process.signal(Signal::SIGTERM);
    assert_eq!(process.end().await.code, Some(0));
}

#[tokio::test]
async fn wrong_settings_are_all_listed_and_nothing_starts() {
    for (name, flags) in PRODUCTS {
        let flags = [flags, &["--shutdown-drain", "2d"]].concat();
        let environment = [
            ("AGENTS_ADMIN_LISTEN", "8080"),
            ("AGENTS_LOG_FORMAT", "xml"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ];
        let Ended { code, stdout, log } = Process::start(&product(name), &flags, &environment)
            .end()
            .await;
        assert_eq!((code, &*stdout), (Some(2), ""), "{name}");
        let expected = "\
error: 4 settings are wrong:
  AGENTS_LOG_FORMAT: `xml` is not json or text
  OTEL_EXPORTER_OTLP_HEADERS: the value given (not shown, it is a secret) is not a list of headers such as name=value,other=value
  AGENTS_ADMIN_LISTEN: `8080` is not an address and a port such as 0.0.0.0:8080 or [::]:8080
  --shutdown-drain: `2d` is not a duration such as 30 or 30s, 250ms, 5m, 1h, from 0s to 10m
--help describes every setting, --print-config shows what is in force.";
        assert_eq!(log.join("\n"), expected, "{name}");
    }
}

#[tokio::test]
async fn print_config_shows_origins_and_no_secret() {
    let environment = [
        ("AGENTS_LOG_FORMAT", "text"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2"),
    ];
    for (name, flags) in PRODUCTS {
        let flags = [flags, &["--print-config", "--log-filter=debug"]].concat();
        let ended = Process::start(&product(name), &flags, &environment)
            .end()
            .await;
        assert_eq!((ended.code, ended.log), (Some(0), vec![]), "{name}");
        let line = |start: &str| {
            let line = ended.stdout.lines().find(|line| line.starts_with(start));
            line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        for (variable, expected) in [
            (
                "AGENTS_LOG_FILTER=",
                "AGENTS_LOG_FILTER=debug # --log-filter",
            ),
            ("AGENTS_LOG_FORMAT=", "AGENTS_LOG_FORMAT=text # environment"),
            (
                "OTEL_EXPORTER_OTLP_H",
                "OTEL_EXPORTER_OTLP_HEADERS=(secret) # environment",
            ),
            (
                "AGENTS_SHUTDOWN_DRAIN=",
                "AGENTS_SHUTDOWN_DRAIN=20s # default",
            ),
        ] {
            assert_eq!(line(variable).as_deref(), Some(expected), "{name}");
        }
        // Kubernetes sets such variables for every Service, and ours are called agents and agents-webhook.
        let names = ended
            .stdout
            .lines()
            .filter_map(|line| line.split('=').next());
        for variable in names {
            let taken = ["_PORT", "_SERVICE_HOST", "_SERVICE_PORT"];
            let clash = taken.iter().any(|end| variable.ends_with(end));
            assert!(!clash, "{variable} of {name} may be set by Kubernetes");
        }
    }
}

#[tokio::test]
async fn help_and_version_are_answered() {
    for (name, flags) in PRODUCTS {
        let help = [flags, &["--help"]].concat();
        let ended = Process::start(&product(name), &help, &[]).end().await;
        assert_eq!(ended.code, Some(0), "{name}");
        for part in [
            "--admin-listen",
            "[env: AGENTS_ADMIN_LISTEN]",
            "Allowed: ",
            "Shutdown:",
        ] {
            assert!(ended.stdout.contains(part), "{name}: {}", ended.stdout);
        }
        let ended = Process::start(&product(name), &["--version"], &[])
            .end()
            .await;
        assert!(
            ended.stdout.starts_with(&format!("{name} ")),
            "{}",
            ended.stdout
        );
    }
}

#[tokio::test]
async fn a_variable_that_is_almost_a_setting_is_pointed_out_in_the_log() {
    let environment = [ANY_PORT[0], ("AGENTS_LOG_FORMATT", "text")];
    let mut process = Process::start(&product("agents-sidecar"), &[], &environment);
    let warned = |line: &Value| line["level"] == "WARN";
    let line = process.line("the typo", warned).await;
    assert_eq!(
        line["message"],
        json!("AGENTS_LOG_FORMATT is no setting of this program; did you mean AGENTS_LOG_FORMAT?")
    );
}

/// The settings are told at the start, and then the port is not free, so that each program ends by itself.
#[tokio::test]
async fn no_program_logs_a_secret_in_either_format() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (password, token) = ("hunterhunter", "ghp_0123456789abcdefABCDEF0123456789abcd");
    let planted = format!("https://bob:{password}@git.example/x {token}");
    for (name, flags) in PRODUCTS {
        for format in ["json", "text"] {
            let environment = [
                ("AGENTS_ADMIN_LISTEN", &*address),
                ("AGENTS_LOG_FORMAT", format),
                ("OTEL_SERVICE_NAMESPACE", &*planted),
            ];
            let ended = Process::start(&product(name), flags, &environment)
                .end()
                .await;
            let log = ended.log.join("\n");
            let told = "OTEL_SERVICE_NAMESPACE=https://[redacted]@git.example/x [redacted]";
            assert!(log.contains(told), "{name}, {format}: {log}");
            for secret in [password, token] {
                assert!(!log.contains(secret), "{name}, {format}: {log}");
            }
        }
    }
}

#[tokio::test]
async fn readiness_follows_the_gates_of_the_program() {
    let mut process = Process::start(&kit_program(), &[], &[]);
    let admin = process.address("admin").await;
    let work = process.address("work").await;
    let closed = get(admin, "/readyz?verbose").await;
    let expected = "not ready, closed: button\n[+] running\n[-] button: not yet opened\n";
    assert_eq!((closed.status, &*closed.body), (503, expected));
    assert_eq!(get(work, "/ready").await.status, 200);
    ready(admin).await;
}

#[tokio::test]
async fn sigterm_lets_what_is_in_flight_finish() {
    let mut process = Process::start(&kit_program(), &[], &[("AGENTS_SHUTDOWN_LINGER", "20s")]);
    let mut held = hold(&mut process).await;
    let admin = process.address("admin").await;
    process.signal(Signal::SIGTERM);
    message(&mut process, "Shutdown announced").await;
    // It lingers: no longer ready, still serving, and so the held request can be released.
    let closed = get(admin, "/readyz").await.body;
    assert_eq!(closed, "not ready, closed: running, button\n");
    let release = get(process.address("work").await, "/release").await;
    assert_eq!(release.status, 200);
    assert!(
        release.head.contains("connection: close"),
        "{}",
        release.head
    );
    let answer = answer(&mut held).await.expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (200, "done\n"));
}

#[tokio::test]
async fn sigterm_drains_and_ends_in_order() {
    let mut process = Process::start(&kit_program(), &[], &[("AGENTS_SHUTDOWN_DRAIN", "1s")]);
    let mut held = hold(&mut process).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(
        answer(&mut held).await,
        None,
        "the drain does not wait for ever"
    );
    let Ended { code, log, .. } = process.end().await;
    assert_eq!(code, Some(0), "{}", log.join("\n"));
    let log: Vec<Value> = log
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let messages: Vec<_> = log
        .iter()
        .filter_map(|line| line["message"].as_str())
        .collect();
    let from = messages
        .iter()
        .position(|message| *message == "Shutdown announced");
    let expected = [
        "Shutdown announced",
        "Draining",
        "Connections cut, the time to drain is over",
        "Drained",
        "Ended",
    ];
    assert_eq!(messages[from.expect("an announcement")..], expected);
}

#[tokio::test]
async fn a_second_signal_ends_at_once_even_with_an_exporter_that_hangs() {
    // Far less than the drain, and less than a flush of telemetry would take.
    const AT_ONCE: Duration = Duration::from_secs(4);
    // A port that accepts and never answers.
    let hole = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let endpoint = format!("http://{}", hole.local_addr().expect("an address"));
    for (first, second) in [
        (Signal::SIGTERM, Signal::SIGTERM),
        (Signal::SIGINT, Signal::SIGINT),
        (Signal::SIGTERM, Signal::SIGINT),
    ] {
        in_time(AT_ONCE, async || {
            Ok(ended_by(first, second, &endpoint).await)
        })
        .await
        .unwrap();
    }
}

/// How long a program with a request in flight takes to end after the second signal.
async fn ended_by(first: Signal, second: Signal, endpoint: &str) -> Duration {
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)];
    let mut process = Process::start(&kit_program(), &[], &environment);
    let mut held = hold(&mut process).await;
    process.signal(first);
    message(&mut process, "Draining").await;
    let start = Instant::now();
    process.signal(second);
    assert_eq!(answer(&mut held).await, None);
    let Ended { code, log, .. } = process.end().await;
    let took = start.elapsed();
    eprintln!("{first}, {second} took {took:?}");
    assert_eq!(code, Some(1));
    let expected = format!("ended at once by a second signal, {second}");
    let log = log.join("\n");
    assert!(log.contains(&expected), "{log}");
    took
}

#[tokio::test]
async fn a_panic_in_a_task_ends_the_program_with_its_name() {
    let mut process = Process::start(&kit_program(), &[], &[]);
    assert_eq!(get(process.address("work").await, "/die").await.status, 200);
    let panic = message(&mut process, "Panic").await;
    assert_eq!(panic["panic"], json!("the panic button was pressed"));
    let location = panic["location"].as_str().expect("a place");
    assert!(location.contains("kit/program/main.rs:"), "{location}");
    let Ended { code, log, .. } = process.end().await;
    assert_eq!(code, Some(1));
    let last: Value = serde_json::from_str(log.last().expect("a log")).expect("JSON");
    assert_eq!(last["message"], json!("Program ended"));
    assert_eq!(
        last["error"],
        json!("task button panicked: the panic button was pressed")
    );
}

#[tokio::test]
async fn a_panic_in_a_handler_is_logged_and_harms_nobody_else() {
    let mut process = Process::start(&kit_program(), &[], &[]);
    let work = process.address("work").await;
    assert_eq!(get(work, "/panic").await.status, 500);
    let panic = message(&mut process, "Panic").await;
    assert_eq!(panic["trace_id"].as_str().map(str::len), Some(32));
    assert_eq!(get(work, "/work").await.status, 200);
    let page = get(process.address("admin").await, "/metrics").await.body;
    let counter = "kit_program_http_request_failures_total{server=\"work\",cause=\"panic\"} 1";
    assert!(page.contains(counter), "{page}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let environment = [("AGENTS_ADMIN_LISTEN", &*address)];
    let ended = Process::start(&product("agents-sidecar"), &[], &environment)
        .end()
        .await;
    assert_eq!(ended.code, Some(1));
    let last: Value = serde_json::from_str(ended.log.last().expect("a log")).expect("JSON");
    let error = last["error"].as_str().expect("an error");
    let expected = format!("could not listen on {address} for admin: ");
    assert!(error.starts_with(&expected), "{error}");
}
