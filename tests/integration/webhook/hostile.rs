//! Hostile input at the port: each gets a clear answer or a closed connection, and the next good review is answered.

use std::{net::SocketAddr, time::Duration};

use agents::api::{
    contract::{self, door},
    kind::Kind,
    registration::Door,
};
use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, stream::FuturesUnordered};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use support::builders::smallest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use super::hook::{Certificates, DEADLINE, Hook};

/// The largest body that is read, as the webhook derives it.
const LARGEST: usize = 7 << 20;
/// Far more than the webhook needs, far less than the input could make it need.
const MOST_MEMORY_KIB: u64 = 256 << 10;

/// A webhook at which nobody but this test aims.
struct Target {
    hook: Hook,
    certificates: Certificates,
}

/// What came back: the status line's code and all that followed, or nothing if the connection was closed.
type Answer = Option<(u16, String)>;

impl Target {
    async fn start() -> Result<Self> {
        let certificates = Certificates::new();
        let hook = Hook::start(&certificates, &[]).await?;
        Ok(Self { hook, certificates })
    }

    fn address(&self) -> SocketAddr {
        self.hook.address
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let connecting = async {
            let tcp = TcpStream::connect(self.address()).await?;
            self.certificates.authority.client(None).connect(tcp).await
        };
        Ok(timeout(DEADLINE, connecting)
            .await
            .context("no handshake")??)
    }

    /// Sends bytes, closes the sending half, and takes whatever comes.
    async fn send(&self, bytes: &[u8]) -> Result<Answer> {
        let mut stream = self.connect().await?;
        // A server that has heard enough may answer and close before all is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        self.answer(&mut stream).await
    }

    async fn answer(&self, stream: &mut TlsStream<TcpStream>) -> Result<Answer> {
        let mut said = Vec::new();
        let reading = async {
            let mut piece = [0; 4096];
            while whole(&said).is_none() {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => return,
                    Ok(length) => said.extend_from_slice(&piece[..length]),
                }
            }
        };
        timeout(DEADLINE, reading)
            .await
            .context("neither an answer nor a closed connection")?;
        if said.is_empty() {
            return Ok(None);
        }
        let said = String::from_utf8(said)?;
        let code = said.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(Some((code.context(said.clone())?, said)))
    }

    /// A review that is in order is answered, with its own uid.
    async fn still_answers(&self) -> Result<()> {
        let body = review("good").to_string();
        let answer = self.send(&post(door::VALIDATE, body.as_bytes())).await?;
        let (code, said) = answer.context("a good review was not answered")?;
        ensure!(code == 200, "a good review got {said}");
        let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let review: Value = serde_json::from_str(body).with_context(|| said.clone())?;
        ensure!(review["response"]["uid"] == "good", "{review}");
        ensure!(review["response"]["allowed"] == true, "{review}");
        Ok(())
    }

    /// The memory that was ever held is within its bound.
    fn stays_small(&self, after: &str) -> Result<()> {
        let (now, most) = self.hook.memory()?;
        eprintln!("memory after {after}: {now} KiB, at most {most} KiB");
        ensure!(most < MOST_MEMORY_KIB, "{most} KiB after {after}");
        Ok(())
    }
}

/// The end of the first answer, if all of it is there.
fn whole(said: &[u8]) -> Option<usize> {
    let head = said.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&said[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let end = head
        + length
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap_or(0);
    (said.len() >= end).then_some(end)
}

fn review(uid: &str) -> Value {
    let (group, version) = (Kind::Signal.group(), contract::VERSION);
    let resource = json!({"group": group, "version": version, "resource": "signals"});
    let kind = json!({"group": group, "version": version, "kind": "Signal"});
    let signal = smallest(Kind::Signal, "go").namespace("default");
    let signal = signal.spec(json!({"channel": "c"})).json();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "go", "namespace": "default", "operation": "CREATE", "dryRun": true,
            "userInfo": {"username": "tester"}, "options": null, "oldObject": null,
            "object": signal,
        },
    })
}

fn head(path: &str, kind: &str, length: usize) -> Vec<u8> {
    format!("POST {path}?timeout=30s HTTP/1.1\r\nHost: webhook\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    [&head(path, "application/json", body.len()), body].concat()
}

/// Refused in words: an error of HTTP, or a review that is not allowed.
fn clear(case: &str, answer: &Answer) -> Result<()> {
    let Some((code, said)) = answer else {
        return Ok(());
    };
    let refused = (400..600).contains(code) || said.contains(r#""allowed":false"#);
    ensure!(refused, "{case} was answered by {said}");
    Ok(())
}

#[tokio::test]
async fn unreadable_bodies_are_refused_and_the_next_review_is_answered() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let good = review("x").to_string();
    let half = &good.as_bytes()[..good.len() / 2];
    let deep = |open: &str, close: &str| {
        let nested = open.repeat(100_000) + "1" + &close.repeat(100_000);
        good.replace(r#""channel":"c""#, &format!(r#""channel":{nested}"#))
    };
    let twice = good.replace(r#""uid":"x""#, r#""uid":"x","uid":"y""#);
    let objects = good.replace(r#""object":{"#, r#""object":{"kind":"Agent"},"object":{"#);
    let mut invalid = good.clone().into_bytes();
    let channel = good.find(r#""c""#).context("a channel")?;
    invalid[channel + 1] = 0xff;
    let huge_number = good.replace(
        r#""channel":"c""#,
        &format!(r#""channel":{}"#, "9".repeat(100_000)),
    );
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("half a review", half.to_vec()),
        ("deep lists", deep("[", "]").into_bytes()),
        ("deep objects", deep(r#"{"a":"#, "}").into_bytes()),
        ("only brackets", "[".repeat(1_000_000).into_bytes()),
        ("two uids", twice.into_bytes()),
        ("two objects", objects.into_bytes()),
        ("invalid UTF-8", invalid),
        ("a huge number", huge_number.into_bytes()),
        ("a text", b"\"review\"".to_vec()),
        (
            "no request",
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_vec(),
        ),
        ("zeros", vec![0; 4096]),
    ];
    for (case, body) in &cases {
        for path in Door::ALL.map(Door::path) {
            let answer = target.send(&post(path, body)).await?;
            let (code, said) = answer
                .as_ref()
                .with_context(|| format!("{case} at {path}"))?;
            ensure!(*code != 500, "{case} at {path}: {said}");
            // The others let a review through that is not for them, whatever is in its object.
            if [door::MUTATE, door::VALIDATE].contains(&path) {
                clear(case, &answer)?;
            }
        }
        target
            .still_answers()
            .await
            .with_context(|| format!("after {case}"))?;
    }
    target.stays_small("unreadable bodies")
}

#[tokio::test]
async fn bodies_that_are_too_long_cut_short_or_of_another_type_are_refused() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let good = review("x").to_string().into_bytes();
    let too_long = post(door::VALIDATE, &vec![b' '; LARGEST + 1]);
    let answer = target.send(&too_long).await?;
    if let Some((code, said)) = &answer {
        ensure!(*code == 413, "{said}");
    }
    // Announced, but never sent: the answer must not wait for it.
    let (code, said) = target
        .send(&head(door::VALIDATE, "application/json", LARGEST + 1))
        .await?
        .context("an announced length should be answered")?;
    ensure!(code == 413, "{said}");
    let wrong_type = [
        &head(door::VALIDATE, "application/yaml", good.len()),
        &good[..],
    ]
    .concat();
    let (code, said) = target.send(&wrong_type).await?.context("an answer")?;
    ensure!(code == 415, "{said}");
    let (code, said) = target
        .send(&head(door::VALIDATE, "text/plain", LARGEST))
        .await?
        .context("an answer")?;
    ensure!(code == 415, "{said}");
    let get = format!("GET {} HTTP/1.1\r\nHost: webhook\r\n\r\n", door::VALIDATE);
    clear("a GET", &target.send(get.as_bytes()).await?)?;
    clear(
        "an unknown path",
        &target.send(&post("/unknown", &good)).await?,
    )?;
    let mut stream = target.connect().await?;
    stream
        .write_all(&head(door::VALIDATE, "application/json", good.len()))
        .await?;
    stream.write_all(&good[..good.len() / 2]).await?;
    stream.shutdown().await?;
    clear(
        "a body that ends too soon",
        &target.answer(&mut stream).await?,
    )?;
    target.still_answers().await?;
    let padded = [&good[..], &vec![b' '; LARGEST - good.len()]].concat();
    let (code, said) = target
        .send(&post(door::VALIDATE, &padded))
        .await?
        .context("an answer")?;
    ensure!(code == 200, "a body of exactly the largest size: {said}");
    target.still_answers().await?;
    target.stays_small("long bodies")
}

#[tokio::test]
async fn clients_that_dawdle_or_speak_no_tls_are_cut_off() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let cut = async |bytes: &'static [u8]| -> Result<()> {
        let mut tcp = TcpStream::connect(target.address()).await?;
        tcp.write_all(bytes).await?;
        let mut said = Vec::new();
        // An alert may come before the end; a reset is an end as well.
        let ended = timeout(DEADLINE, tcp.read_to_end(&mut said)).await;
        ended.map(drop).context("the connection stays open")
    };
    let garbage: &[u8] = &[0x5a; 2048];
    let oversized_record: &[u8] = &[0x16, 0x03, 0x01, 0xff, 0xff, 0x01, 0x00, 0x00];
    let half_a_hello: &[u8] = &[
        0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03,
    ];
    let plain: &[u8] = b"POST /validate HTTP/1.1\r\nHost: webhook\r\n\r\n";
    let slow_head = async {
        let mut stream = target.connect().await?;
        stream
            .write_all(b"POST /validate HTTP/1.1\r\nHost: web")
            .await?;
        target.answer(&mut stream).await.map(drop)
    };
    let slow_body = async {
        let mut stream = target.connect().await?;
        stream
            .write_all(&head(door::VALIDATE, "application/json", 1000))
            .await?;
        stream.write_all(b"{\"kind\":").await?;
        clear(
            "a body that never comes",
            &target.answer(&mut stream).await?,
        )
    };
    tokio::try_join!(
        cut(garbage),
        cut(oversized_record),
        cut(half_a_hello),
        cut(plain),
        cut(b""),
        slow_head,
        slow_body,
        async { target.still_answers().await.context("while others dawdle") },
    )?;
    target.still_answers().await?;
    target.stays_small("dawdling clients")
}

/// As many connections as this process may have, up to the wanted number.
fn room_for(wanted: u64) -> Result<u64> {
    const OTHERS: u64 = 512;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let room = (wanted + OTHERS).min(hard).max(soft);
    setrlimit(Resource::RLIMIT_NOFILE, room, hard)?;
    let possible = wanted.min(room.saturating_sub(OTHERS));
    if possible < wanted {
        eprintln!(
            "only {possible} connections instead of {wanted}: no more than {hard} files may be open here"
        );
    }
    Ok(possible)
}

/// A connection that says nothing until the other side has had enough.
async fn idle(address: SocketAddr) -> Result<()> {
    let mut tcp = match TcpStream::connect(address).await {
        Ok(tcp) => tcp,
        // No room for it even in the kernel's queue, which is an answer too.
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => return Ok(()),
        Err(error) => bail!(error),
    };
    let _ = tcp.read(&mut [0; 64]).await;
    Ok(())
}

#[tokio::test]
async fn ten_thousand_idle_connections_do_not_keep_a_review_from_its_answer() -> Result<()> {
    support::kinds!();
    const ONE_HANDSHAKE: Duration = Duration::from_secs(5);
    let target = Target::start().await?;
    let count = room_for(10_000)?;
    let address = target.address();
    let mut crowd: FuturesUnordered<_> = (0..count).map(|_| idle(address)).collect();
    let mut left = 0;
    // They are let in by the thousand and thrown out when their time for a handshake is over; ours waits in the same line.
    let waiting = async {
        loop {
            match crowd.next().await {
                Some(ended) => {
                    ended?;
                    left += 1;
                }
                None => std::future::pending().await,
            }
        }
    };
    let patience = DEADLINE + ONE_HANDSHAKE * 20;
    let answered: Result<()> = timeout(patience, async {
        tokio::select! {
            biased;
            failed = waiting => failed,
            answered = target.still_answers() => answered,
        }
    })
    .await
    .context("a good review waits too long")?;
    answered?;
    eprintln!("answered among {count} idle connections, of which {left} had been closed");
    target.stays_small("idle connections")?;
    drop(crowd);
    target.still_answers().await?;
    target.stays_small("the crowd has gone")
}
