//! Short texts that would become large trees, as many at once as are judged at once.

use agents::api::{contract::door, kind::Kind};
use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use support::builders::smallest;

use super::super::target::{LARGEST, Target, post, review, review_of};

/// Large reviews that are judged at once.
const AT_ONCE: usize = 4;

/// A review of the largest size in which as many entries as fit stand in the place of a part of a good one.
fn filled(part: &str, before: &str, entry: &str, after: &str) -> Result<Vec<u8>> {
    let good = review("hungry").to_string();
    ensure!(good.contains(part), "{part} is not in {good}");
    let room = LARGEST - good.len() - before.len() - after.len();
    let entries = entry.repeat(room / entry.len());
    let entries = entries.trim_end_matches(',');
    let mut body = good
        .replacen(part, &format!("{before}{entries}{after}"), 1)
        .into_bytes();
    body.resize(LARGEST, b' ');
    Ok(body)
}

#[tokio::test]
async fn a_review_that_would_fill_the_memory_is_refused_also_if_four_come_at_once() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let (channel, name, user) = (
        r#""channel":"c""#,
        r#""metadata":{"#,
        r#""username":"tester""#,
    );
    let (list, owners) = (r#""channel":["#, r#""metadata":{"ownerReferences":["#);
    for (case, body) in [
        ("zeros", filled(channel, list, "0,", "]")?),
        ("texts", filled(channel, list, r#""","#, "]")?),
        ("objects", filled(channel, list, r#"{"a":0},"#, "]")?),
        ("owners", filled(name, owners, "{},", "],")?),
        ("groups", filled(user, r#""groups":["#, r#""","#, "]")?),
        ("one text", filled(channel, r#""channel":""#, "x", "\"")?),
    ] {
        answered(&target, case, &body, "holds too many values").await?;
    }
    Ok(())
}

/// Sends the review as many times at once as are judged at once, and wants these words in each answer.
async fn answered(target: &Target, case: &str, body: &[u8], words: &str) -> Result<()> {
    let asked = post(door::MUTATE, body);
    let answers = try_join_all((0..AT_ONCE).map(|_| target.send(&asked))).await?;
    for answer in answers {
        let (_, said) = answer.with_context(|| format!("{case}: no answer"))?;
        let (names, says) = (said.contains(r#""uid":"hungry""#), said.contains(words));
        ensure!(names && says, "{case}: {said}");
    }
    target
        .still_answers()
        .await
        .with_context(|| format!("after {case}"))?;
    target.stays_small(case)
}

#[tokio::test]
async fn as_much_as_is_judged_fits_into_the_memory_four_times() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let zeros = |count: usize| json!(vec![0; count]);
    let objects = |count: usize| json!(vec![json!({"a": 0}); count]);
    let text = |length: usize| json!("x".repeat(length));
    // With a type that is not known, the object is mended to look for further faults.
    let run = |part: Value| {
        let run = smallest(Kind::AgentRun, "hungry").namespace("default");
        run.spec(json!({"runtime": {"type": "jbo", "config": {"part": part}}}))
            .json()
    };
    for (case, new, old) in [
        ("most zeros", zeros(60_000), zeros(59_999)),
        ("most objects", objects(4_500), objects(4_499)),
        ("the longest text", text(3 << 20), text((3 << 20) - 1)),
    ] {
        let mut review = review_of("hungry", Kind::AgentRun, &run(new));
        review["request"]["operation"] = json!("UPDATE");
        review["request"]["oldObject"] = run(old);
        review["request"]["oldObject"]["spec"]["runtime"]["type"] = json!("job");
        let body = review.to_string().into_bytes();
        answered(&target, case, &body, "spec.runtime.type").await?;
    }
    Ok(())
}
