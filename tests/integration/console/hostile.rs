//! What others wrote, and how pages look.

use agents::api::kinds::AgentRun;
use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use support::browser::Browser;

use super::scene::{ago, event, holds, sign_in, stand, until_listed};
use crate::serve::scene::{ALL, Plane};

/// Notes whatever runs that should not, and whatever the policy kept from it.
pub(super) const WITNESS: &str = "
    window.hits = [];
    window.alert = (text) => hits.push(`alert ${text}`);
    addEventListener('securitypolicyviolation', (event) => hits.push(`policy ${event.violatedDirective}`));
    addEventListener('error', (event) => hits.push(`error ${event.message}`));
    addEventListener('unhandledrejection', (event) => hits.push(`rejection ${event.reason}`));
";

pub(super) const MARKUP: &str = "<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>\"'><a href=javascript:alert(4)>${alert(5)}{{alert(6)}}</a>";

async fn tell(plane: &Plane) -> Result<()> {
    let scene = &plane.scene;
    scene
        .run("evil", json!({"agentRef": {"name": MARKUP}}))
        .await?;
    let long = "x".repeat(400);
    let run = stand(scene, "evil", json!({
        "phase": "Failed", "startedAt": ago(20), "finishedAt": ago(10),
        "conditions": [holds("Failed", "Failed", &format!("{MARKUP} {long}"), 10)],
        "jobRef": {"name": MARKUP, "missing": {"class": MARKUP, "actor": MARKUP, "recovered": MARKUP, "noticedAt": ago(11)}},
        "workflow": {"phase": "Failed", "steps": [{"name": MARKUP, "phase": "Failed", "message": MARKUP}]},
    }))
    .await?;
    let trace = json!({"metadata": {"annotations": {"agents.proompteng.ai/traceparent": format!("00-{MARKUP}-0-0")}}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch("evil", &PatchParams::default(), &Patch::Merge(trace))
        .await?;
    event(scene, ("evil", Some(&run)), "Failed", MARKUP).await?;
    event(
        scene,
        ("evil", Some(&run)),
        "InvalidSpec",
        &format!("2 faults: * spec.a: {MARKUP} * spec.b: {MARKUP}"),
    )
    .await
}

/// Elements that nobody but the page itself may bring.
pub(super) async fn is_clean(browser: &Browser) -> Result<()> {
    let foreign = "document.querySelectorAll('img, script:not([src=\"/console/main.js\"]), iframe, object, [onerror], [onload], a[href^=javascript], svg:not(.chart)').length";
    assert_eq!(browser.value(foreign).await?, 0);
    assert_eq!(browser.value("hits").await?, json!([]));
    Ok(())
}

/// Nothing is wider than the screen.
async fn fits(browser: &Browser, page: &str) -> Result<()> {
    let widths = "[document.documentElement.scrollWidth <= innerWidth, document.querySelector('main').scrollWidth <= innerWidth]";
    assert_eq!(browser.value(widths).await?, json!([true, true]), "{page}");
    Ok(())
}

/// Brightness of the ground and of the text, from 0 to 255.
async fn brightness(browser: &Browser) -> Result<(f64, f64)> {
    let of = |what: &str| {
        format!(
            "getComputedStyle(document.body).{what}.match(/\\d+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0) / 3"
        )
    };
    let both = format!("[{}, {}]", of("backgroundColor"), of("color"));
    let both = browser.value(&both).await?;
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    Ok((number(&both[0]), number(&both[1])))
}

#[tokio::test]
async fn nothing_that_others_wrote_runs_and_pages_fit_in_the_dark_and_on_a_phone() -> Result<()> {
    support::kinds!();
    let browser = support::browser!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("boss", ALL).await?;
    tell(&plane).await?;
    browser.before_each_page(WITNESS).await?;
    sign_in(&browser, plane.address, &token).await?;
    until_listed(&browser, "evil").await?;
    browser
        .until_shows(".body .why", "<script>alert(2)</script>")
        .await?;
    let (ground, text) = brightness(&browser).await?;
    assert!(ground > 200.0 && text < 80.0, "light: {ground} {text}");
    browser.prefer("dark").await?;
    let (ground, text) = brightness(&browser).await?;
    assert!(ground < 60.0 && text > 180.0, "dark: {ground} {text}");
    browser.resize(390, 800).await?;
    browser
        .until("getComputedStyle(document.querySelector('.head')).display === 'none'")
        .await?;
    let run = format!("/run/{}/evil", plane.namespace());
    for (page, element, text) in [
        ("/runs", ".body .why", "<img src=x onerror=alert(1)>"),
        ("/runs", ".body .agent", "<script>alert(2)</script>"),
        (run.as_str(), ".facts", "{{alert(6)}}"),
        (run.as_str(), ".timeline", "<svg onload=alert(3)>"),
        (run.as_str(), ".run .facts", "<script>alert(2)</script>"),
        (run.as_str(), "table", "javascript:alert(4)"),
        ("/refusals", ".refusals li li", "spec.b: <img src=x"),
        ("/jobs", ".jobs td", "<svg onload=alert(3)>"),
        ("/queue", ".problem", "Nobody says"),
        (
            "/run/<img src=x onerror=alert(1)>/%3Cscript%3E",
            ".problem",
            "no such run",
        ),
        ("/run/../whoami", ".problem", "no such run"),
        ("/run/%/..%2f..%2fwhoami", ".problem", "no such run"),
        ("/__proto__/constructor", ".body .name", "evil"),
    ] {
        browser
            .value(&format!("location.hash = {}", json!(format!("#{page}"))))
            .await?;
        browser.until_shows(element, text).await?;
        is_clean(&browser).await?;
        fits(&browser, page).await?;
    }
    // The policy holds for what is added by hand, too.
    browser.value("document.body.append(Object.assign(document.createElement('img'), { src: 'http://192.0.2.1/x' }))").await?;
    browser.until("hits.includes('policy img-src')").await?;
    let script = "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'ran'; } catch (error) { return error.name; } })()";
    assert_eq!(browser.value(script).await?, "TypeError");
    Ok(())
}
