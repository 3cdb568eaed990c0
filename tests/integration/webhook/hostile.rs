//! Hostile input at the port: each gets a clear answer or a closed connection, and the next good review is answered.

mod alone;
mod discreet;
mod many;
mod slow;
pub(crate) mod target;

use agents::api::{contract::door, registration::Door};
use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;

use target::{LARGEST, Target, clear, head, post, review};

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
async fn the_port_speaks_http_1_1_and_nothing_else() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let h2 = target.client().speaking(b"h2");
    ensure!(
        target.connect_as(&h2).await.is_err(),
        "HTTP/2 was agreed upon"
    );
    let h1 = target.client().speaking(b"http/1.1");
    let mut stream = target.connect_as(&h1).await?;
    let (_, session) = stream.get_ref();
    ensure!(session.alpn_protocol() == Some(&b"http/1.1"[..]));
    target.answers(&mut stream, 0).await?;
    // Unasked, with the first frame that a client sends: no settings.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    clear("the preface of HTTP/2", &target.send(preface).await?)?;
    target.still_answers().await
}
