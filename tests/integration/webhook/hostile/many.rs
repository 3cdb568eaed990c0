//! More reviews at once than the operator allows.

use agents::api::contract::door;
use agents_webhook::args::variable;
use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::target::{Target, post, review};

/// Reviews that are allowed at once, and that come at once.
const ALLOWED: usize = 4;
const MANY: usize = 64;

#[tokio::test]
async fn reviews_beyond_the_cap_are_turned_away_by_name_and_counted() -> Result<()> {
    support::kinds!();
    let allowed = ALLOWED.to_string();
    let target = Target::start_with(&[(variable::REVIEWS, &allowed)]).await?;
    let mut streams = Vec::new();
    for _ in 0..MANY {
        streams.push(target.connect_and_rest().await?);
    }
    assert_eq!(target.metric("shed_total", &[]).await?, 0.0);
    // One after the other was no matter. Now all of them are there before the first is looked at.
    let paused = target.pause()?;
    for (number, stream) in streams.iter_mut().enumerate() {
        let body = review(&format!("review-{number}")).to_string();
        stream
            .write_all(&post(door::VALIDATE, body.as_bytes()))
            .await?;
        stream.flush().await?;
    }
    drop(paused);
    let answers = try_join_all(streams.iter_mut().map(|stream| target.answer(stream))).await?;
    let (mut judged, mut shed) = (0, 0);
    for (number, answer) in answers.into_iter().enumerate() {
        let (code, said) = answer.context("a review was not answered")?;
        let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let told: Value = serde_json::from_str(body).with_context(|| said.clone())?;
        let response = &told["response"];
        assert_eq!(response["uid"], format!("review-{number}"), "{told}");
        match code {
            200 => {
                assert_eq!(response["allowed"], true, "{told}");
                judged += 1;
            }
            503 => {
                assert_eq!(response["status"]["reason"], "TooManyRequests", "{told}");
                shed += 1;
            }
            other => anyhow::bail!("{other}: {said}"),
        }
    }
    eprintln!("{MANY} reviews at once, {ALLOWED} allowed: {judged} judged, {shed} turned away");
    ensure!(judged >= ALLOWED, "{judged} judged");
    ensure!(shed > 0, "none was turned away");
    assert_eq!(target.metric("shed_total", &[]).await?, f64::from(shed));
    let labels = [("cause", "shed")];
    assert_eq!(
        target.metric("refusals_total", &labels).await?,
        f64::from(shed)
    );
    target.still_answers().await
}
