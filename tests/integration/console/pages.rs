//! Each page, gone through by keyboard and by mouse.

use std::{env, fs};

use agents::admission::decision::note;
use agents::api::kinds::AgentRun;
use agents::api::object::cause::{Cause, Path, Reason};
use agents::api::text::sanitise::{NOTE_LIMIT, Secrets, sanitise};
use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use support::browser::{Browser, key};
use support::fixtures::repository;

use super::scene::{LIVE, ago, event, holds, stand, until_listed};
use crate::controller::scene::Scene;
use crate::serve::scene::{ALL, Plane};

/// A run that is there, its agent, and how it stands.
type Story = (&'static str, &'static str, Value);

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Runs as a team has them. When they were made cannot be chosen, so the one that is looked at has all its times after that.
fn stories() -> Vec<Story> {
    let done = |from: i64, to: i64| {
        json!({"phase": "Succeeded", "startedAt": ago(from), "finishedAt": ago(to),
        "conditions": [holds("Succeeded", "Succeeded", "The Job completed", to)]})
    };
    let works = |from: i64| json!({"phase": "Running", "startedAt": ago(from)});
    let waits = |reason: &str, message: &str, since: i64| json!({"phase": "Pending", "conditions": [holds("Blocked", reason, message, since)]});
    let limit = "2 runs of agent coder are under way, which is the limit";
    vec![
        ("audit-licences", "auditor", done(5400, 3800)),
        (
            "bump-dependencies",
            "coder",
            json!({"phase": "Cancelled", "startedAt": ago(900), "finishedAt": ago(700),
            "conditions": [holds("Cancelled", "Cancelled", "Its end was asked for", 700)]}),
        ),
        (
            "fix-login",
            "coder",
            json!({"phase": "Failed", "startedAt": ago(-2), "finishedAt": ago(-42),
            "jobRef": {"name": "fix-login-job", "uid": "0", "missing": {"class": "JobDeletedByActor", "certainty": "certain",
                "recovered": "fromPod", "actor": "jane@example.com", "noticedAt": ago(-41)}},
            "conditions": [holds("Accepted", "Submitted", "Job fix-login-job was made", -1),
                holds("Failed", "Failed", "Container agent-runner exited with 3", -42)]}),
        ),
        (
            "migrate-schema",
            "coder",
            waits("ConcurrencyLimit", limit, 130),
        ),
        ("nightly-summary", "writer", done(7200, 6900)),
        ("refactor-auth", "coder", works(415)),
        ("review-pull-request", "reviewer", done(640, 515)),
        ("translate-manual", "writer", works(77)),
        (
            "triage-inbox",
            "coder",
            waits("ConcurrencyLimit", limit, 45),
        ),
        (
            "upgrade-toolchain",
            "builder",
            waits("ReferenceMissing", "There is no Agent builder yet", 300),
        ),
    ]
}

async fn tell(scene: &Scene) -> Result<()> {
    for (name, agent, status) in stories() {
        scene
            .run(name, json!({"agentRef": {"name": agent}}))
            .await?;
        stand(scene, name, status).await?;
    }
    let trace = json!({"metadata": {"annotations": {"agents.proompteng.ai/traceparent": format!("00-{TRACE}-b7ad6b7169203331-01")}}});
    let runs = scene.here.api::<AgentRun>();
    let failed = runs
        .patch("fix-login", &PatchParams::default(), &Patch::Merge(trace))
        .await?;
    let lost = "The Job was deleted by jane@example.com before its outcome was stored";
    event(
        scene,
        ("fix-login", Some(&failed)),
        "JobDeletedByActor",
        lost,
    )
    .await?;
    let spec = Path::root("spec");
    let causes = [
        Cause::new(
            &spec.field("agentRef"),
            Reason::Required,
            "is missing; name an Agent",
        ),
        Cause::new(
            &spec.field("timeout"),
            Reason::OutOfRange,
            "must be * at least 1; it is 0",
        ),
    ];
    // As the webhook writes it.
    let refused = sanitise(&note(causes.iter()), &Secrets::NONE, NOTE_LIMIT);
    event(scene, ("broken", None), "InvalidSpec", &refused).await
}

/// Keeps what can be seen for the documents, if asked to.
async fn picture(browser: &Browser, name: &str) -> Result<()> {
    if env::var_os("GENERATE").is_some() {
        let folder = repository().join("docs/pictures");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), browser.picture().await?)?;
    }
    Ok(())
}

#[tokio::test]
async fn every_page_is_reached_by_keyboard_and_by_mouse() -> Result<()> {
    support::kinds!();
    let browser = support::browser!();
    browser.resize(1180, 560).await?;
    let scene = Scene::at(support::namespace("team").await?, &[]);
    tell(&scene).await?;
    let plane = Plane::beside(scene, &[]).await?;
    let token = plane.person("boss", ALL).await?;
    sign_in_by_keyboard(&browser, &plane, &token).await?;
    filter_and_open(&browser).await?;
    read_a_run(&browser, &plane).await?;
    cancel_by_mouse(&browser, &plane).await?;
    other_pages(&browser, &plane).await?;
    sign_out(&browser).await
}

async fn sign_in_by_keyboard(browser: &Browser, plane: &Plane, token: &str) -> Result<()> {
    browser.open(&format!("http://{}/", plane.address)).await?;
    browser.until("location.pathname === '/console/'").await?;
    browser
        .until("document.querySelector('#top').hidden && document.activeElement.id === 'token'")
        .await?;
    browser
        .press(&format!("nonsense{}{}", key::TAB, key::ENTER))
        .await?;
    browser.until_shows(".problem", "token").await?;
    browser.write("#token", token).await?;
    browser
        .press(&format!("{}{}", key::TAB, key::ENTER))
        .await?;
    browser.until(LIVE).await?;
    until_listed(browser, "fix-login").await?;
    browser.until_shows(".note", "10 of 10 runs").await?;
    // It is in this tab and nowhere else.
    let kept = "[Object.values(sessionStorage).join(), localStorage.length, document.cookie]";
    assert_eq!(browser.value(kept).await?, json!([token, 0, ""]));
    browser
        .until_shows("[data-phase=Failed].chip", "Failed 1")
        .await?;
    browser
        .until_shows(".body .row", "ConcurrencyLimit: 2 runs of agent coder")
        .await?;
    picture(browser, "console-runs.png").await
}

/// Keys alone: the filter, the row, the run.
async fn filter_and_open(browser: &Browser) -> Result<()> {
    browser.press("/coder fail").await?;
    browser.until_shows(".note", "1 of 10 runs").await?;
    browser.press(key::ENTER).await?;
    browser.press(key::DOWN).await?;
    browser
        .until("document.querySelector('[aria-selected=true]')")
        .await?;
    browser.press(key::ENTER).await?;
    browser.until("location.hash.endsWith('/fix-login')").await
}

async fn read_a_run(browser: &Browser, plane: &Plane) -> Result<()> {
    for (element, text) in [
        ("h1", "Failed fix-login"),
        (".why", "Failed: Container agent-runner exited with 3"),
        (".facts", TRACE),
        (".facts", plane.namespace()),
        ("table", "Container agent-runner exited with 3"),
        (".timeline", "Made"),
        (
            ".timeline li",
            "Accepted Submitted: Job fix-login-job was made",
        ),
        (".timeline", "Job fix-login-job"),
        (".timeline", "Job missing"),
        (".timeline", "deleted by jane@example.com"),
        (".facts", "jane@example.com"),
        (".run", "the log is gone"),
    ] {
        browser.until_shows(element, text).await?;
    }
    assert_eq!(browser.value("document.title").await?, "fix-login · agents");
    picture(browser, "console-run.png").await?;
    // Why one waits is in its timeline, at the time when it began to wait.
    let blocked = format!("#/run/{}/upgrade-toolchain", plane.namespace());
    browser
        .value(&format!("location.hash = '{blocked}'"))
        .await?;
    let text = "Blocked ReferenceMissing: There is no Agent builder yet";
    browser.until_shows(".timeline li.bad", text).await?;
    let stored = plane.scene.here.api::<AgentRun>();
    let stored = stored.get("upgrade-toolchain").await?;
    let stored = stored.status.and_then(|status| status.conditions);
    let since = stored.and_then(|all| all.first()?.last_transition_time);
    let shown = browser
        .value("document.querySelector('.timeline li.bad time').dateTime")
        .await?;
    assert_eq!(shown, json!(since));
    browser.press(key::ESCAPE).await?;
    browser
        .until("location.hash === '#/runs' && document.querySelector('.body .row')")
        .await
}

async fn cancel_by_mouse(browser: &Browser, plane: &Plane) -> Result<()> {
    browser.click("[data-phase=Running].chip").await?;
    browser.until_shows(".note", "2 of 10 runs").await?;
    browser
        .click(".row:has([href$='/refactor-auth']) .agent")
        .await?;
    browser.until_shows("h1", "Running refactor-auth").await?;
    browser.click("button.danger").await?;
    browser.accept().await?;
    browser.until_shows(".why", "is being cancelled").await?;
    let cancelled = |run: &AgentRun| run.spec.cancel == Some(true);
    plane.scene.until("refactor-auth", cancelled).await?;
    // What becomes of it is shown without a hand.
    let ended = json!({"phase": "Cancelled", "finishedAt": ago(0), "conditions": [holds("Cancelled", "Cancelled", "Its end was asked for", 0)]});
    stand(&plane.scene, "refactor-auth", ended).await?;
    browser.until_shows("h1", "Cancelled refactor-auth").await?;
    browser.click("#nav a[href='#/runs']").await?;
    browser.until("location.hash === '#/runs'").await
}

async fn other_pages(browser: &Browser, plane: &Plane) -> Result<()> {
    browser.press("3").await?;
    browser
        .until_shows(".refusals", "AgentRun broken InvalidSpec")
        .await?;
    let causes = "[...document.querySelectorAll('.refusals li li')].map((one) => one.innerText)";
    assert_eq!(
        browser.value(causes).await?,
        json!([
            "spec.agentRef: is missing; name an Agent",
            "spec.timeout: must be * at least 1; it is 0"
        ])
    );
    browser.press("4").await?;
    browser.until_shows(".jobs td", "JobDeletedByActor").await?;
    browser
        .until_shows(".problem", "nobody holds the lease")
        .await?;
    browser.press("2").await?;
    browser
        .until_shows(".problem", "Nobody says how the queue stands")
        .await?;
    browser.press("?").await?;
    browser
        .until("document.querySelector('dialog').open")
        .await?;
    browser.press(key::ESCAPE).await?;
    browser
        .until("!document.querySelector('dialog').open && location.hash === '#/queue'")
        .await?;
    browser.press("1").await?;
    until_listed(browser, "fix-login").await?;
    // Another namespace is refused in words, and back it goes.
    browser
        .value("document.querySelector('#namespace').value = ''")
        .await?;
    browser
        .write("#namespace", &format!("elsewhere{}", key::ENTER))
        .await?;
    browser.until_shows("#link", "not live").await?;
    browser
        .value("document.querySelector('#namespace').value = ''")
        .await?;
    browser
        .write(
            "#namespace",
            &format!("{}{}", plane.namespace(), key::ENTER),
        )
        .await?;
    browser.until(LIVE).await?;
    until_listed(browser, "fix-login").await
}

async fn sign_out(browser: &Browser) -> Result<()> {
    browser.reload().await?;
    browser.until(LIVE).await?;
    browser.click("#leave").await?;
    browser
        .until("document.querySelector('#top').hidden && sessionStorage.length === 0")
        .await?;
    browser.reload().await?;
    browser.until("document.activeElement.id === 'token'").await
}
