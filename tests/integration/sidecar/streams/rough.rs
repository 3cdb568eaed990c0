//! Servers that do what no server should.

use std::time::Duration;

use agents_sidecar::args::variable;
use anyhow::Result;
use support::{memory::peak, metrics::Page};

use super::server::{Does, Server, stream};
use super::{Sidecar, by, of};

/// Everything that a controller can tell.
pub(super) const EVENT: &str = "id: 4f-7\nevent: snapshot\ndata: {\"at\": \"2026-11-17T01:00:00Z\", \"leader\": true, \
     \"queue\": {\"cluster\": {\"waiting\": 5, \"running\": 1}}, \"oldestWaitingSeconds\": 3}\n\n";

/// What the server of these tests does.
fn does(path: &str, before: usize) -> Does {
    let answer = |text: &str| Does::Answers(text.to_owned());
    match path {
        "/silent" => Does::Holds(stream("")),
        "/endless" => {
            let last = format!("\n\n{EVENT}");
            Does::Repeats(stream("data:"), vec![b'x'; 64 * 1024], 1024, last)
        }
        "/hasty" => Does::Answers(stream("retry:0\n\n")),
        "/busy" => answer(
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n",
        ),
        "/gone" => answer("HTTP/1.1 204 No Content\r\n\r\n"),
        "/loop" => answer(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /loop\r\ncontent-length: 0\r\n\r\n",
        ),
        "/page" => answer("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html></html>"),
        "/moved" => answer("HTTP/1.1 302 Found\r\nlocation: /torn\r\ncontent-length: 0\r\n\r\n"),
        // Torn in the middle of an event, then whole.
        "/torn" if before == 0 => Does::Answers(stream(&format!("{EVENT}id: 4f-8\ndata: half"))),
        "/torn" => Does::Holds(stream("")),
        _ => answer("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    }
}

fn ended(page: &Page, source: &str, cause: &str) -> f64 {
    let ended = by(page, source, "source_disconnects_total", ("cause", cause));
    ended.unwrap_or(-1.0)
}

#[tokio::test]
async fn a_server_that_misbehaves_harms_nobody_and_is_told_by_its_cause() -> Result<()> {
    let server = Server::start(does).await?;
    let paths = [
        "silent", "endless", "hasty", "busy", "gone", "loop", "page", "moved",
    ];
    let sources = paths.map(|path| format!("{path}=http://{}/{path}", server.address));
    let settings = [
        (variable::QUEUE_STREAMS, &*sources.join(",")),
        (variable::STREAM_SILENCE, "2s"),
    ];
    let sidecar = Sidecar::start(&settings).await;
    let all = |page: &Page| {
        [
            ("silent", "silent"),
            ("hasty", "ended"),
            ("busy", "busy"),
            ("loop", "redirected"),
            ("page", "not_a_stream"),
        ]
        .iter()
        .all(|(source, cause)| ended(page, source, cause) >= 2.0)
            && ended(page, "gone", "stopped") == 1.0
            && of(page, "endless", "queue_depth") == Some(5.0)
            && of(page, "moved", "source_connections_total") >= Some(2.0)
    };
    let page = sidecar.until("every end", all).await?;
    assert_eq!(of(&page, "gone", "source_stopped"), Some(1.0));
    assert_eq!(of(&page, "hasty", "source_stopped"), Some(0.0));
    assert_eq!(of(&page, "gone", "source_up"), Some(0.0));
    let too_long = ("cause", "line_too_long");
    let too_long = by(&page, "endless", "source_parse_errors_total", too_long);
    assert!(too_long >= Some(1.0), "{too_long:?}"); // once with every connection
    // 64 MiB of one line have come, and nothing of it was kept.
    assert!(of(&page, "endless", "source_bytes_total") > Some(64.0 * 1024.0 * 1024.0));
    let peak = peak(sidecar.process.id())?;
    assert!(peak < 48 << 20, "{peak} bytes");
    // What was told before the stream was torn is shown, what was not told whole is not, and the stream goes on from there.
    assert_eq!(of(&page, "moved", "queue_depth"), Some(5.0));
    let torn = server.asked("/torn");
    assert!(!torn[0].head.contains("last-event-id"), "{}", torn[0].head);
    assert!(
        torn[1].head.contains("\r\nlast-event-id: 4f-7\r\n"),
        "{}",
        torn[1].head
    );
    assert!(
        torn[0].head.contains("\r\naccept: text/event-stream\r\n"),
        "{}",
        torn[0].head
    );
    // Nobody is asked again without a pause, however much it wants that; who asks for a longer one gets it.
    for (path, pause) in [("/hasty", 500), ("/busy", 2000)] {
        let asked = server.asked(path);
        for two in asked.windows(2) {
            let waited = two[1].at - two[0].at;
            assert!(waited >= Duration::from_millis(pause), "{path}: {waited:?}");
        }
    }
    assert_eq!(server.asked("/gone").len(), 1, "never again");
    let tries = ended(&page, "loop", "redirected");
    assert!(server.asked("/loop").len() as f64 <= (tries + 1.0) * 4.0);
    Ok(())
}
