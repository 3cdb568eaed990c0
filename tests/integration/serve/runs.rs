//! Runs from submission to their end.

use agents::api::contract::annotation;
use agents::serve::variable;
use anyhow::{Context, Result, bail};
use futures::future::join_all;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::wait;

use agents::api::kinds::{AgentRun, Budget};

use super::scene::{ALL, DEADLINE, Plane, bearer, submission};
use crate::kit::client;

fn submit(plane: &Plane) -> String {
    format!("/v1/agent-runs?namespace={}", plane.namespace())
}

#[tokio::test]
async fn a_run_is_submitted_followed_cancelled_and_its_end_is_waited_for() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let _controller = plane.scene.controller().await?;
    let given = submission(json!({"labels": {"team": "a"}}));
    let made = plane
        .expect(("POST", &submit(&plane)), &token, Some(&given), 201)
        .await?;
    let name = made["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.starts_with("coder-"), "{made}");
    assert_eq!(made["kind"], "AgentRun");
    plane.scene.until_phase(&name, "Running").await?;
    let run = plane
        .expect(("GET", &plane.run(&name)), &token, None, 200)
        .await?;
    assert_eq!(
        (&run["phase"], &run["agent"]),
        (&json!("Running"), &json!("coder"))
    );
    assert_eq!(
        run["resource"]["spec"]["implementation"]["inline"]["text"],
        "Do it."
    );
    let wait = format!("{}/wait?timeout=10ms", plane.run(&name));
    let waited = plane.expect(("GET", &wait), &token, None, 200).await?;
    assert_eq!(waited["ended"], false);
    let events = format!("{}/events", plane.run(&name));
    wait::retry("an Event", DEADLINE, || async {
        let events = plane.expect(("GET", &events), &token, None, 200).await?;
        anyhow::ensure!(events["items"][0]["reason"].is_string(), "{events}");
        Ok(())
    })
    .await?;
    let cancel = format!("{}/cancel", plane.run(&name));
    let wait = format!("{}/wait?timeout=60s", plane.run(&name));
    let waiting = plane.expect(("GET", &wait), &token, None, 200);
    let cancelling = plane.expect(("POST", &cancel), &token, None, 200);
    let (waited, cancelled) = tokio::join!(waiting, cancelling);
    assert_eq!(cancelled?["cancel"], true);
    let waited = waited?;
    assert_eq!(
        (&waited["ended"], &waited["run"]["phase"]),
        (&json!(true), &json!("Cancelled"))
    );
    // Again changes nothing; and a run that ended otherwise cannot be cancelled.
    plane.expect(("POST", &cancel), &token, None, 200).await?;
    plane.scene.run("done", json!({})).await?;
    plane.scene.until_phase("done", "Running").await?;
    plane.scene.end_pod("done", 0).await?;
    plane.scene.until_phase("done", "Succeeded").await?;
    let cancel = format!("{}/cancel", plane.run("done"));
    let refused = plane.expect(("POST", &cancel), &token, None, 409).await?;
    assert_eq!(refused["reason"], "AlreadyEnded");
    Ok(())
}

#[tokio::test]
async fn the_same_key_makes_one_run_whoever_is_asked_and_another_request_is_refused() -> Result<()>
{
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let key = "Idempotency-Key: delivery 1\r\n";
    let given = submission(json!({}));
    let path = submit(&plane);
    let ask = || plane.ask_with(("POST", &path), Some(&token), Some(&given), key);
    // All at once.
    let answers = join_all((0..8).map(|_| ask())).await;
    let first = answers[0].clone();
    for answer in &answers {
        assert_eq!((answer.status, &answer.body), (201, &first.body));
    }
    let made: Value = serde_json::from_str(&first.body)?;
    let name = made["name"].as_str().unwrap_or_default();
    let stored: AgentRun = plane.scene.here.api().get(name).await?;
    assert!(
        stored
            .annotations()
            .contains_key(annotation::SUBMISSION_HASH)
    );
    let other = submission(json!({"labels": {"team": "b"}}));
    let refused = plane
        .ask_with(("POST", &path), Some(&token), Some(&other), key)
        .await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(
        refused.body.contains("IdempotencyConflict"),
        "{}",
        refused.body
    );
    // Another process knows nothing but what the cluster keeps.
    let Plane { scene, process, .. } = plane;
    drop(process);
    let plane = Plane::beside(scene, &[]).await?;
    let again = plane
        .ask_with(("POST", &path), Some(&token), Some(&given), key)
        .await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert!(
        again.head.contains("idempotency-replayed: true"),
        "{}",
        again.head
    );
    let runs = plane.scene.here.api::<AgentRun>();
    assert_eq!(
        runs.list(&kube::api::ListParams::default())
            .await?
            .items
            .len(),
        1
    );
    // Once the run is gone, so is what was known of the key.
    runs.delete(name, &DeleteParams::default()).await?;
    wait::until_gone(&runs, name, DEADLINE).await?;
    let anew = plane
        .ask_with(("POST", &path), Some(&token), Some(&given), key)
        .await;
    assert_eq!(anew.status, 201);
    assert_ne!(anew.body, first.body);
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_a_submission_is_told_all_at_once() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let path = submit(&plane);
    let wrong = json!({"spec": {"agentRef": {"name": "coder"}, "secrets": [" "],
        "runtime": {"type": "job", "config": {"backoffLimit": "x"}}, "implementation": {"inline": {"text": "x"}}}});
    let refused = plane
        .expect(("POST", &path), &token, Some(&wrong), 422)
        .await?;
    let fields: Vec<_> = refused["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| cause["field"].clone())
        .collect();
    assert_eq!(
        fields,
        ["spec.runtime.config.backoffLimit", "spec.secrets[0]"]
    );
    for (body, status) in [
        (json!([]), 400),
        (json!({"spec": {}, "x": 1}), 400),
        (json!({"spec": {}}), 422),
    ] {
        plane
            .expect(("POST", &path), &token, Some(&body), status)
            .await?;
    }
    // One that says beforehand that it is too large is not even read.
    let large = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\n{}Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n",
        bearer(Some(&token)),
    );
    let mut stream = client::connect(plane.address).await;
    client::send(&mut stream, large.as_bytes()).await;
    let answer = client::answer(&mut stream).await.context("an answer")?;
    assert_eq!(answer.status, 413);
    let named = submission(json!({"name": "mine"}));
    plane
        .expect(("POST", &path), &token, Some(&named), 201)
        .await?;
    let again = plane
        .expect(("POST", &path), &token, Some(&named), 409)
        .await?;
    assert_eq!(again["reason"], "AlreadyExists");
    Ok(())
}

#[tokio::test]
async fn only_so_many_wait_at_once_and_others_are_told_to_come_back() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[(variable::REQUESTS, "1")]).await?;
    let token = plane.person("boss", ALL).await?;
    plane.scene.run("one", json!({})).await?;
    let wait = |time: &str| format!("{}/wait?timeout={time}", plane.run("one"));
    let (long, short) = (wait("60s"), wait("1ms"));
    let refused = wait::retry("no room", DEADLINE, || async {
        let answer = plane.ask("GET", &short, Some(&token), None).await;
        anyhow::ensure!(answer.status == 429, "{}", answer.body);
        Ok(answer)
    });
    // Whichever comes first has the place; the long one comes back until it does.
    let held = async {
        loop {
            let answer = plane.ask("GET", &long, Some(&token), None).await;
            if answer.status != 429 {
                return answer;
            }
        }
    };
    let refused = tokio::select! {
        refused = refused => refused?,
        held = held => bail!("{}", held.body),
    };
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert!(refused.body.contains("TooManyRequests"), "{}", refused.body);
    // Who does not wait is let in all the same, and the place is free again once nobody does.
    plane
        .expect(("GET", &plane.run("one")), &token, None, 200)
        .await?;
    wait::retry("room again", DEADLINE, || async {
        plane.expect(("GET", &short), &token, None, 200).await
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_budget_that_is_used_up_lets_nothing_in() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    let budget: Budget = serde_json::from_value(json!({
        "apiVersion": "budgets.proompteng.ai/v1alpha1", "kind": "Budget", "metadata": {"name": "small"},
        "spec": {"limits": {"tokens": "10"}},
    }))?;
    let budgets = plane.scene.here.api::<Budget>();
    budgets
        .create(&kube::api::PostParams::default(), &budget)
        .await?;
    let held = submission(json!({"policy": {"budgetRef": {"name": "small"}}}));
    let made = plane
        .expect(("POST", &submit(&plane)), &token, Some(&held), 201)
        .await?;
    let run: AgentRun = plane
        .scene
        .here
        .api()
        .get(made["name"].as_str().unwrap_or_default())
        .await?;
    assert_eq!(
        run.annotations()
            .get(annotation::BUDGET)
            .map(String::as_str),
        Some("small")
    );
    let used = Patch::Merge(json!({"status": {"used": {"tokens": "11"}}}));
    budgets
        .patch_status("small", &PatchParams::default(), &used)
        .await?;
    let refused = plane
        .expect(("POST", &submit(&plane)), &token, Some(&held), 403)
        .await?;
    assert_eq!(refused["reason"], "BudgetExceeded");
    let none = submission(json!({"policy": {"budgetRef": {"name": "none"}}}));
    plane
        .expect(("POST", &submit(&plane)), &token, Some(&none), 404)
        .await?;
    Ok(())
}

#[tokio::test]
async fn runs_are_listed_page_by_page_and_by_label_and_field() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane
        .person("reader", &[("agents.proompteng.ai", "agentruns", "list")])
        .await?;
    for number in 0..7 {
        plane.scene.run(&format!("r{number}"), json!({})).await?;
    }
    let runs = plane.scene.here.api::<AgentRun>();
    let mark = Patch::Merge(json!({"metadata": {"labels": {"team": "a"}}}));
    runs.patch("r3", &PatchParams::default(), &mark).await?;
    let over = Patch::Merge(json!({"status": {"phase": "Running"}}));
    runs.patch_status("r5", &PatchParams::default(), &over)
        .await?;
    let list = async |query: &str| {
        let path = format!("{}{query}", submit(&plane));
        let page = plane.expect(("GET", &path), &token, None, 200).await?;
        let names = page["items"].as_array().into_iter().flatten();
        let names: Vec<_> = names
            .map(|run| run["name"].as_str().unwrap_or_default().to_owned())
            .collect();
        let next = page["continue"].as_str().map(str::to_owned);
        anyhow::Ok((names, next))
    };
    let mut found = Vec::new();
    let (names, mut next) = list("&limit=3").await?;
    found.extend(names);
    while let Some(token) = next {
        let token = token.replace('=', "%3D").replace('+', "%2B");
        let (names, more) = list(&format!("&limit=3&continue={token}")).await?;
        found.extend(names);
        next = more;
    }
    assert_eq!(
        found,
        (0..7)
            .map(|number| format!("r{number}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(list("&labelSelector=team%3Da").await?.0, ["r3"]);
    assert_eq!(
        list("&fieldSelector=status.phase%3DRunning&limit=2")
            .await?
            .0,
        ["r5"]
    );
    assert_eq!(
        list("&fieldSelector=metadata.name%3Dr1,spec.agentRef.name%3Dcoder")
            .await?
            .0,
        ["r1"]
    );
    assert_eq!(
        list("&fieldSelector=spec.agentRef.name!%3Dcoder").await?.0,
        Vec::<String>::new()
    );
    let wrong = format!("{}&fieldSelector=spec.x%3D1", submit(&plane));
    plane.expect(("GET", &wrong), &token, None, 400).await?;
    Ok(())
}

#[tokio::test]
async fn no_secret_leaves_with_an_object_and_a_log_that_is_gone_says_since_when() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[
        ("AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS", "3600"),
        ("AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS", "86400"),
    ])
    .await?;
    let token = plane.person("boss", ALL).await?;
    let parameters = json!({"parameters": {"API_TOKEN": "hunter2", "branch": "main"}});
    plane.scene.run("one", parameters).await?;
    let copy = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}});
    let runs = plane.scene.here.api::<AgentRun>();
    runs.patch("one", &PatchParams::default(), &Patch::Merge(copy))
        .await?;
    let run = plane
        .ask("GET", &plane.run("one"), Some(&token), None)
        .await;
    assert!(
        run.body.contains("\"main\"") && !run.body.contains("hunter2"),
        "{}",
        run.body
    );
    let logs = format!("{}/logs?tail=5", plane.run("one"));
    let early = plane.expect(("GET", &logs), &token, None, 409).await?;
    assert_eq!(early["reason"], "NotStarted");
    let over = json!({"status": {"phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z"}});
    runs.patch_status("one", &PatchParams::default(), &Patch::Merge(over))
        .await?;
    let gone = plane.expect(("GET", &logs), &token, None, 410).await?;
    let told = gone.to_string();
    for said in [
        "LogsGone",
        "2026-01-01T01:00:00Z",
        "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS",
    ] {
        assert!(told.contains(said), "{told}");
    }
    // What a run says itself goes before the operator's word, and a failed run has a setting of its own.
    let own = json!({"runtime": {"type": "job", "config": {"ttlSecondsAfterFinished": 7200}}});
    for (name, more, said) in [
        (
            "own",
            own,
            [
                "2026-01-01T02:00:00Z",
                "spec.runtime.config.ttlSecondsAfterFinished",
            ],
        ),
        (
            "failed",
            json!({}),
            [
                "2026-01-02T00:00:00Z",
                "AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS",
            ],
        ),
    ] {
        plane.scene.run(name, more).await?;
        let over = json!({"status": {"phase": "Failed", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z"}});
        runs.patch_status(name, &PatchParams::default(), &Patch::Merge(over))
            .await?;
        let logs = format!("{}/logs", plane.run(name));
        let gone = plane.expect(("GET", &logs), &token, None, 410).await?;
        let told = gone.to_string();
        for said in said {
            assert!(told.contains(said), "{told}");
        }
    }
    Ok(())
}
