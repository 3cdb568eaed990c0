//! An eye on every Job: what goes before its outcome is stored is counted and told, with the controller there or away.

mod beside;
mod eye;

use agents::api::kind::Kind;
use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{events, events::Said, lab, metrics::Page, wait};
use tokio::sync::watch;

use eye::{Eye, change, delete, is_complete, reasons, strip, told};

use crate::controller::scene::{ALONE, DEADLINE, Scene, condition};
use crate::events::within_the_hour;
use crate::kit::process::{Process, product};
use crate::way::Way;

/// A Job that has ended, with a time to live, and nobody who stores how it ended.
pub(crate) async fn with_a_time_to_live() -> Result<Scene> {
    let scene = Scene::left_alone(&["ended"]).await?;
    let hour = json!({"spec": {"ttlSecondsAfterFinished": 3600}});
    change(&scene, "ended", hour).await?;
    scene.end_pod("ended", 0).await?;
    scene.until_job("ended", is_complete).await?;
    Ok(scene)
}

#[tokio::test]
async fn a_job_that_is_deleted_while_it_runs_is_told_while_the_controller_is_away() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::left_alone(&["cut", "lost"]).await?;
        let eye = Eye::at(&scene, "sidecar-0").await?;
        delete(&scene, "cut", &DeleteParams::background()).await?;
        ensure!(told(&scene, "cut", "JobDeletedWhileRunning").await? == [1]);
        eye.until_premature("JobDeletedWhileRunning", "asked")
            .await?;
        strip(&scene, "lost").await?;
        ensure!(told(&scene, "lost", "JobFinalizerRemoved").await? == [1]);
        delete(&scene, "lost", &DeleteParams::background()).await?;
        ensure!(told(&scene, "lost", "JobDeletedWhileRunning").await? == [1]);
        eye.until_premature("JobDeletedWhileRunning", "gone")
            .await?;
        // The controller says the same when it is back, and adds nothing.
        let _controller = scene.controller().await?;
        scene
            .until("cut", |run| condition(run, "JobMissing").is_some())
            .await?;
        scene.end_pod("cut", 0).await?;
        scene.until_phase("cut", "Succeeded").await?;
        scene.until_free("cut").await?;
        let told = reasons(&scene, "cut").await?;
        let same = told.iter().filter(|said| *said == "JobDeletedWhileRunning");
        ensure!(same.count() == 1, "{told:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_time_to_live_that_is_shorter_than_storing_takes_is_told_before_and_after() -> Result<()>
{
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::left_alone(&["ttl"]).await?;
        let eye = Eye::at(&scene, "sidecar-0").await?;
        change(
            &scene,
            "ttl",
            json!({"spec": {"ttlSecondsAfterFinished": 0}}),
        )
        .await?;
        ensure!(told(&scene, "ttl", "JobTtlInjected").await? == [1]);
        scene.end_pod("ttl", 0).await?;
        eye.until_premature("JobTtlExpired", "asked").await?;
        let overrun = [("hazard", "ttl_overrun")];
        eye.until("job_hazards_total", &overrun, 1.0).await?;
        eye.until("job_unrecorded", &[], 1.0).await?;
        let headroom = eye.value("job_ttl_headroom_seconds", &[]).await?;
        ensure!(headroom <= 0.0, "{headroom}");
        let told_so_far = reasons(&scene, "ttl").await?;
        ensure!(
            !told_so_far.contains(&"JobTtlExpired".to_owned()),
            "it is held: {told_so_far:?}"
        );
        strip(&scene, "ttl").await?;
        ensure!(told(&scene, "ttl", "JobTtlExpired").await? == [1]);
        eye.until_premature("JobTtlExpired", "gone").await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pods_that_were_left_to_themselves_are_counted_and_their_job_is_told() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::left_alone(&["left"]).await?;
        let eye = Eye::at(&scene, "sidecar-0").await?;
        scene.end_pod("left", 0).await?;
        scene.until_job("left", is_complete).await?;
        // Without a policy the API server leaves pods to themselves.
        delete(&scene, "left", &DeleteParams::default()).await?;
        eye.until_premature("JobDeletedOrphaned", "asked").await?;
        eye.until("job_orphaned_pods", &[], 1.0).await?;
        strip(&scene, "left").await?;
        ensure!(told(&scene, "left", "JobDeletedOrphaned").await? == [1]);
        let orphaned = [("hazard", "pod_orphaned")];
        eye.until("job_hazards_total", &orphaned, 1.0).await
    })
    .await
}

/// Calls of tools have Jobs as well, and a step of a workflow is told by one word for all classes.
#[tokio::test]
async fn the_jobs_of_calls_and_steps_are_watched_as_well() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::with_agent(&[ALONE]).await?;
        let controller = scene.controller().await?;
        let tool = json!({"image": "registry.example.com/lint:1", "command": ["/lint"]});
        scene.make(Kind::Tool, "lint", tool).await?;
        let call = json!({"toolRef": {"name": "lint"}});
        let call = scene.make(Kind::ToolRun, "call", call).await?;
        let steps = json!([{"name": "one"}]);
        let workflow = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}});
        let steps = scene.run("steps", workflow).await?;
        scene.until_phase("steps", "Running").await?;
        scene
            .until_any(Kind::ToolRun, "call", |call| {
                call.data["status"]["phase"] == "Running"
            })
            .await?;
        controller.signal(Signal::SIGKILL);
        controller.end().await;
        let _eye = Eye::at(&scene, "sidecar-0").await?;
        let jobs = scene.here.api::<Job>();
        for job in jobs.list(&ListParams::default()).await? {
            jobs.delete(&job.name_any(), &DeleteParams::background())
                .await?;
        }
        let client = &scene.here.client;
        let is_call = |said: &Said| said.reason == "JobDeletedWhileRunning";
        events::until(client, &call, DEADLINE, is_call).await?;
        let is_step = |said: &Said| said.reason == "WorkflowJobMissing";
        let said = events::until(client, &steps, DEADLINE, is_step).await?;
        ensure!(said.note.contains("JobDeletedWhileRunning"), "{said:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_the_controller_tells_as_well_is_one_event() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::with_agent(&[ALONE]).await?;
        let _controller = scene.controller().await?;
        let eyes = [
            Eye::at(&scene, "sidecar-0").await?,
            Eye::at(&scene, "sidecar-1").await?,
        ];
        scene.begin(&["cut", "lost", "ttl"]).await?;
        delete(&scene, "cut", &DeleteParams::background()).await?;
        strip(&scene, "lost").await?;
        delete(&scene, "lost", &DeleteParams::background()).await?;
        let ttl = json!({"spec": {"ttlSecondsAfterFinished": 0}});
        change(&scene, "ttl", ttl).await?;
        told(&scene, "ttl", "JobTtlInjected").await?;
        scene.end_pod("ttl", 0).await?;
        scene.until_phase("ttl", "Succeeded").await?;
        scene.until_phase("lost", "Failed").await?;
        for eye in &eyes {
            eye.until_premature("JobDeletedWhileRunning", "asked")
                .await?;
            eye.until_premature("JobDeletedWhileRunning", "gone")
                .await?;
        }
        for (run, reason) in [
            ("cut", "JobDeletedWhileRunning"),
            ("lost", "JobDeletedWhileRunning"),
            ("ttl", "JobTtlInjected"),
        ] {
            let all = told(&scene, run, reason).await?;
            ensure!(all.len() == 1, "{run}: {all:?}");
        }
        let ttl = reasons(&scene, "ttl").await?;
        ensure!(
            !ttl.contains(&"JobTtlExpired".to_owned()),
            "its outcome was stored: {ttl:?}"
        );
        scene.end_pod("cut", 0).await?;
        scene.until_phase("cut", "Succeeded").await?;
        scene.until_free("cut").await
    })
    .await
}

#[tokio::test]
async fn a_run_that_ends_as_it_should_is_counted_and_nothing_is_told() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let eye = Eye::at(&scene, "sidecar-0").await?;
    scene.begin(&["well"]).await?;
    scene.end_pod("well", 0).await?;
    scene.until_phase("well", "Succeeded").await?;
    for state in ["created", "running", "succeeded", "recorded"] {
        eye.until("job_lifecycle_total", &[("state", state)], 1.0)
            .await?;
    }
    let counted = [
        ("job_run_seconds_count", &[("outcome", "succeeded")][..]),
        ("job_record_seconds_count", &[]),
    ];
    for (name, labels) in counted {
        eye.until(name, labels, 1.0).await?;
    }
    let page = Page::scrape(&eye.admin).await?;
    for name in ["job_premature_deletions_total", "job_hazards_total"] {
        let name = format!("agents_sidecar_{name}");
        let wrong: Vec<_> = page.series(&name).into_iter().collect();
        assert!(!wrong.is_empty() && wrong.iter().all(|(_, value)| *value == 0.0));
    }
    Ok(())
}

/// Two replicas, each with its sidecar: the Job goes while nobody holds the lease.
#[tokio::test]
async fn a_job_that_goes_during_a_fail_over_is_told_once() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let lease = [
            ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "12"),
            ("JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS", "10"),
            ("JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS", "1"),
        ];
        let leading = |line: &Value| line["message"] == "Leading";
        let scene = Scene::with_agent(&lease).await?;
        let mut first = scene.controller().await?;
        first.line("leading", leading).await;
        let mut second = scene.controller().await?;
        second.address("admin").await;
        let eyes = [
            Eye::at(&scene, "sidecar-0").await?,
            Eye::at(&scene, "sidecar-1").await?,
        ];
        scene.begin(&["gap"]).await?;
        first.signal(Signal::SIGKILL);
        first.end().await;
        strip(&scene, "gap").await?;
        delete(&scene, "gap", &DeleteParams::background()).await?;
        for eye in &eyes {
            eye.until_premature("JobDeletedWhileRunning", "gone")
                .await?;
        }
        ensure!(told(&scene, "gap", "JobDeletedWhileRunning").await? == [1]);
        second.line("leading", leading).await;
        let failed = scene.until_phase("gap", "Failed").await?;
        ensure!(condition(&failed, "JobMissing").is_some());
        let all = told(&scene, "gap", "JobDeletedWhileRunning").await?;
        ensure!(all.len() == 1, "{all:?}");
        Ok(())
    })
    .await
}

/// A Job goes and another one takes its name while the way is cut: the watch goes on from where it was, or lists anew.
#[tokio::test]
async fn what_goes_while_the_api_server_is_away_is_noticed_afterwards() -> Result<()> {
    support::kinds!();
    let scene = Scene::left_alone(&["swap"]).await?;
    let way = Way::new().await?;
    let (switch, open) = watch::channel(false);
    let story = async {
        let eye = Eye::of(Eye::open(&scene, way.kubeconfig(), "sidecar-0")?).await;
        ensure!(eye.is_ready().await?, "it is ready without an API server");
        ensure!(eye.value("job_watch_up", &[("resource", "jobs")]).await? == 0.0);
        switch.send_replace(true);
        eye.until_mode("on").await?;
        eye.until_up().await?;
        switch.send_replace(false);
        let jobs = scene.here.api::<Job>();
        strip(&scene, "swap").await?;
        delete(&scene, "swap", &DeleteParams::background()).await?;
        wait::until_gone(&jobs, "swap-job", DEADLINE).await?;
        let other: Job = serde_json::from_value(json!({
            "metadata": {"name": "swap-job"},
            "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}},
        }))?;
        jobs.create(&PostParams::default(), &other).await?;
        ensure!(eye.is_ready().await?, "it is ready all the same");
        switch.send_replace(true);
        ensure!(told(&scene, "swap", "JobReplaced").await? == [1]);
        eye.until_premature("JobReplaced", "gone").await?;
        eye.until_up().await
    };
    tokio::select! {
        told = story => told,
        ended = way.serve(open) => ended,
    }
}

#[tokio::test]
async fn without_rights_the_rest_works_and_rights_that_come_later_are_used() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let user = format!("sidecar-of-{}", scene.here.name);
    let lab = lab::shared().await?;
    let kubeconfig = std::fs::read_to_string(lab.kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig)?;
    kubeconfig["users"][0]["user"]["as"] = json!(user);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    let mut eye = Eye::of(Eye::open(&scene, &file, "sidecar-0")?).await;
    eye.until_mode("unfit").await?;
    assert!(eye.is_ready().await?);
    let refused = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Jobs are not watched")
    };
    let line = eye.process.line("missing rights", refused).await;
    let error = line["error"].as_str().unwrap_or_default();
    for said in ["jobs.batch", "pods", "agentruns", "toolruns"] {
        assert!(error.contains(said), "nothing about {said}: {error}");
    }
    grant(&scene, &user).await?;
    eye.until_mode("on").await?;
    eye.until_up().await?;
    eye.process.signal(Signal::SIGTERM);
    let ended = eye.process.end().await;
    assert_eq!(ended.code, Some(0));
    let lines = ended.log.iter();
    let lines = lines.filter(|line| line.contains("Jobs are not watched"));
    assert_eq!(lines.count(), 1, "{:?}", ended.log);
    Ok(())
}

/// Just what the sidecar needs.
async fn grant(scene: &Scene, user: &str) -> Result<()> {
    let role: Role = serde_json::from_value(json!({
        "metadata": {"name": "sidecar"},
        "rules": [
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["agents.proompteng.ai"], "resources": ["agentruns"], "verbs": ["get"]},
            {"apiGroups": ["tools.proompteng.ai"], "resources": ["toolruns"], "verbs": ["get"]},
        ],
    }))?;
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "sidecar"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sidecar"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))?;
    let params = PostParams::default();
    scene.here.api().create(&params, &role).await?;
    scene.here.api().create(&params, &binding).await?;
    Ok(())
}

#[tokio::test]
async fn a_sidecar_without_a_cluster_says_so_and_is_ready() -> Result<()> {
    let environment = [("AGENTS_ADMIN_LISTEN", "127.0.0.1:0")];
    let process = Process::start(&product("agents-sidecar"), &[], &environment);
    let eye = Eye::of(process).await;
    eye.until_mode("off").await?;
    assert!(eye.is_ready().await?);
    Ok(())
}
