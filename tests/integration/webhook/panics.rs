//! A fault of our own, sent through the port: one review fails, by its name, and nothing else does.

use std::{net::SocketAddr, sync::Arc};

use agents::{
    api::{contract::door, policy::Policy, registration::rung::Rung},
    kit::{
        http::{self, Limits, Server, Transport},
        readiness::Readiness,
        shutdown::{Trigger, channel},
        telemetry::Requests,
        tls,
    },
};
use agents_webhook::{
    Admission,
    decide::{Context, Stance, decide},
    decision::Decision,
    lookup::Lookup,
    metrics::Metrics,
    policy::Policies,
    service::{Room, Side, service},
    subject::Subject,
};
use anyhow::{Context as _, Result, ensure};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::Value;
use support::wait;
use tokio::{net::TcpListener, task::JoinSet};

use super::hostile::target::{post, review};
use crate::kit::{
    client::{DEADLINE, answer, connect, send},
    pki::{Authority, Mount},
};

/// The rules, but for one user, of whom they break.
fn broken(subject: &Subject<'_>, context: &Context<'_>) -> Decision {
    assert!(&*subject.user().username != "breaker", "a broken rule");
    decide(subject, context)
}

/// The port of a webhook whose rules are broken, in this process.
struct Running {
    address: SocketAddr,
    registry: Registry,
    readiness: Readiness,
    _tasks: JoinSet<()>,
    /// A trigger that is gone counts as a shutdown.
    _trigger: Trigger,
}

impl Running {
    async fn start(mount: &Mount) -> Result<Self> {
        let (trigger, shutdown) = channel();
        let (readiness, mut registry) = (Readiness::default(), Registry::default());
        let admission = Admission::new(
            Policies::fixed(Policy::default(), None),
            Lookup::empty(),
            Stance {
                rung: Rung::Fail,
                restorers: Vec::new(),
            },
            Side::default(),
            Metrics::register(&mut registry),
        );
        let admission = Arc::new(admission.judging_by(broken));
        let service = service(admission, Room::new(8), Requests::Named);
        let metrics = tls::Metrics::register(&mut registry);
        let source = tls::Source::new(mount.options(), readiness.gate("certificate"), metrics);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = Server {
            listener,
            transport: Transport::Tls(source.tls()),
            limits: Limits::default(),
            metrics: http::Metrics::register(&mut registry).of("admission"),
        };
        let mut tasks = JoinSet::new();
        let ending = shutdown.clone();
        tasks.spawn(async move { source.run(ending).await.expect("a source") });
        tasks.spawn(async move {
            server.serve(service, shutdown).await;
        });
        Ok(Self {
            address,
            registry,
            readiness,
            _tasks: tasks,
            _trigger: trigger,
        })
    }

    fn counts(&self, line: &str) -> Result<()> {
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        let has = page.lines().any(|found| found == line);
        ensure!(has, "no line {line} in {page}");
        Ok(())
    }
}

/// A review of this uid by this user, with so many bytes at least.
fn review_by(user: &str, uid: &str, size: usize) -> Vec<u8> {
    let mut review = review(uid);
    review["request"]["userInfo"]["username"] = user.into();
    let mut body = review.to_string().into_bytes();
    body.resize(size.max(body.len()), b' ');
    body
}

#[tokio::test]
async fn a_panic_is_answered_with_500_and_the_uid_and_the_next_review_is_judged() -> Result<()> {
    let authority = Authority::new();
    let mount = Mount::new(&authority.issue());
    let running = Running::start(&mount).await?;
    let certified = || async {
        let gates = running.readiness.gates();
        ensure!(gates[0].closed.is_none(), "{gates:?}");
        Ok(())
    };
    wait::retry("a certificate", DEADLINE, certified).await?;
    let client = authority.client(None);
    let mut stream = client.connect(connect(running.address).await).await?;
    // The first is judged where it is read, the second on a thread of its own. All come over one connection.
    for size in [0, 65 << 10] {
        for (user, status) in [("breaker", 500), ("tester", 200)] {
            for path in [door::MUTATE, door::VALIDATE] {
                let uid = format!("{user}-{size}");
                send(&mut stream, &post(path, &review_by(user, &uid, size))).await;
                let answer = answer(&mut stream).await.context("the connection ended")?;
                assert_eq!(answer.status, status, "{uid} at {path}: {}", answer.body);
                let told: Value = serde_json::from_str(&answer.body)?;
                assert_eq!(told["apiVersion"], "admission.k8s.io/v1", "{told}");
                let response = &told["response"];
                assert_eq!(response["uid"], uid.as_str(), "{told}");
                assert_eq!(response["allowed"], status == 200, "{told}");
            }
        }
    }
    running.counts("panics_total 4")?;
    running.counts(r#"refusals_total{cause="failed"} 4"#)?;
    // The net of the server, which knows no uid, caught none of them.
    running.counts(r#"http_request_failures_total{server="admission",cause="panic"} 0"#)
}
