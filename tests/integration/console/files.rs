//! The files of the console, as whoever asks gets them.

use anyhow::Result;

use crate::serve::scene::Plane;

#[tokio::test]
async fn files_are_open_to_anyone_strict_and_sent_once_and_nothing_else_is() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let home = plane.ask("GET", "/", None, None).await;
    assert_eq!(home.status, 307, "{}", home.head);
    assert!(
        home.head.contains("location: /console/\r\n"),
        "{}",
        home.head
    );
    let page = plane.ask("GET", "/console/", None, None).await;
    assert_eq!(page.status, 200, "{}", page.head);
    for expected in [
        "content-type: text/html; charset=utf-8",
        "default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: private, no-cache",
    ] {
        assert!(page.head.contains(expected), "{expected}: {}", page.head);
    }
    assert!(!page.head.contains("set-cookie"), "{}", page.head);
    let edition = page
        .head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "));
    let known = format!("If-None-Match: {}\r\n", edition.unwrap_or_default());
    let again = plane
        .ask_with(("GET", "/console/"), None, None, &known)
        .await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    for (method, path, status) in [
        ("POST", "/console/", 405),
        ("GET", "/console/none.js", 401),
        ("GET", "/console/%2e%2e/openapi.json", 401),
    ] {
        let refused = plane.ask(method, path, None, None).await;
        assert_eq!(refused.status, status, "{method} {path}: {}", refused.body);
    }
    Ok(())
}
