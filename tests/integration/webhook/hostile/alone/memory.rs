//! Short texts that would become large trees, as many at once as are judged at once.

use agents::api::contract::door;
use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;

use super::super::target::{LARGEST, Target, post, review};

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
        let asked = post(door::MUTATE, &body);
        let answers = try_join_all((0..AT_ONCE).map(|_| target.send(&asked))).await?;
        for answer in answers {
            let (_, said) = answer.with_context(|| format!("{case}: no answer"))?;
            ensure!(said.contains("holds too many values"), "{case}: {said}");
            ensure!(said.contains(r#""uid":"hungry""#), "{case}: {said}");
        }
        target.still_answers().await.with_context(|| case)?;
        target.stays_small(case)?;
    }
    Ok(())
}
