//! What a refused object holds is told to whoever sent it, and to nobody else.

use agents::api::{contract::door, kind::Kind};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use support::{builders::smallest, wait};

use super::target::{Target, post, review_of};
use crate::webhook::hook::DEADLINE;

const TOKEN: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";
const WORD: &str = "xylophone";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[tokio::test]
async fn a_refusal_is_logged_with_its_trace_and_without_what_was_refused() -> Result<()> {
    support::kinds!();
    let target = Target::start().await?;
    let here = support::namespace("discreet").await?;
    let run = smallest(Kind::AgentRun, "leaky").namespace(&here.name);
    let run = run.spec(json!({
        "runtime": {"type": format!("{WORD} {TOKEN}")},
        "parameters": {(format!("{WORD} {TOKEN}")): WORD, "key": TOKEN, "word": WORD},
        "secrets": [format!("{WORD} {TOKEN}"), TOKEN],
    }));
    let mut review = review_of("leaky", Kind::AgentRun, &run.json());
    review["request"]["dryRun"] = json!(false);
    let asked = String::from_utf8(post(door::MUTATE, review.to_string().as_bytes()))?;
    let header = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01");
    let asked = asked.replacen("\r\n", &format!("\r\n{header}\r\n"), 1);
    let (code, said) = target.send(asked.as_bytes()).await?.context("an answer")?;
    ensure!(
        code == 200 && said.contains(r#""allowed":false"#) && said.contains("spec.secrets[0]"),
        "{said}"
    );

    let about = |event: &Event| event.regarding.as_ref().and_then(|one| one.name.clone());
    let is_ours = |event: &&Event| about(event).as_deref() == Some("leaky");
    let events = here.api::<Event>();
    let list = wait::until_listed(&events, "", DEADLINE, |list: &[Event]| {
        list.iter().any(|event| is_ours(&event))
    });
    let list = list.await?;
    let event = list.iter().find(is_ours).context("an Event")?;
    let note = event.note.as_deref().unwrap_or_default();
    ensure!(
        note.contains("spec.runtime.type") && !note.contains(TOKEN),
        "{note}"
    );

    let log = target.logged();
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refused = lines.find(|line| line["message"] == "Refused");
    let refused = refused.with_context(|| log.clone())?;
    assert_eq!(
        (&refused["trace_id"], &refused["level"], &refused["name"]),
        (&json!(TRACE), &json!("INFO"), &json!("leaky")),
        "{refused}"
    );
    for text in [TOKEN, WORD] {
        assert!(!log.contains(text), "{text} is in the log: {log}");
    }
    Ok(())
}
