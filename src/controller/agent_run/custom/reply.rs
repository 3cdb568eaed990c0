//! What an endpoint said, made fit to be stored. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::api::custody::Outcome;
use crate::api::text::sanitise::{MASK, Secrets, sanitise};
use crate::kit::egress::{self, Failure, Target};

/// Most bytes of an answer that are read, and that are kept.
pub(super) const LIMIT: usize = 256 * 1024;
const KEPT: usize = 4 * 1024;
/// How much of an answer is kept: levels, entries of a level, bytes of a text.
const LEVELS: usize = 4;
const ENTRIES: usize = 32;
const TEXT: usize = 256;
/// Longest sentence of an endpoint that is repeated.
const SENTENCE: usize = 512;

/// An answer, or why there is none, as it is kept until the status says so.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller::agent_run) struct Reply {
    pub(super) question: Question,
    pub(super) at: Timestamp,
    pub(super) said: Said,
    /// Questions in a row without an answer.
    pub(super) failures: u32,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// To take the run, with the number of the try.
    Submit(i64),
    /// How it stands.
    Ask,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// The endpoint answered that it is well.
    Taken(Answer),
    /// Another try may help, not before this time.
    Busy {
        why: String,
        after: Option<Duration>,
    },
    /// No try helps.
    Refused { why: String },
    /// The endpoint may not be called.
    Denied { why: String },
}

/// What is in an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::controller::agent_run) struct Answer {
    /// The answer, cut and without secrets.
    pub(super) response: Option<Value>,
    /// Where to ask, on the same server.
    pub(super) status_url: Option<String>,
    /// Why there is nowhere to ask, although the endpoint named a place.
    pub(in crate::controller::agent_run) not_asked: Option<&'static str>,
    /// How long to wait before asking.
    pub(super) poll: Option<Duration>,
    /// How the run ended, if it has.
    pub(super) end: Option<End>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller::agent_run) struct End {
    pub(in crate::controller::agent_run) outcome: Outcome,
    /// What the endpoint says about it.
    pub(in crate::controller::agent_run) message: Option<String>,
}

/// What an answer means. The target is the one that was called.
pub(super) fn read(target: &Target, answer: Result<egress::Answer, Failure>) -> Said {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Failure::Refused(refusal)) => {
            let why = format!("{target} may not be called: {}", refusal.sentence());
            return Said::Denied { why };
        }
        Err(failure @ (Failure::Unreachable(_) | Failure::TimedOut(_))) => {
            return Said::Busy {
                why: format!("{target} cannot be reached: {failure}"),
                after: None,
            };
        }
        Err(failure @ Failure::TooLarge(_)) => {
            let why = format!("{target} cannot be understood: {failure}");
            return Said::Refused { why };
        }
    };
    let status = answer.status.as_u16();
    let why = format!("{target} answered {status}");
    if answer.may_pass() {
        let after = answer.retry_after();
        return Said::Busy { why, after };
    }
    if !answer.status.is_success() {
        return Said::Refused { why };
    }
    let poll = answer.retry_after();
    let body = serde_json::from_slice(&answer.body);
    let body: Map<String, Value> = body.unwrap_or_default();
    Said::Taken(Answer {
        poll,
        ..understand(target, body)
    })
}

fn understand(target: &Target, body: Map<String, Value>) -> Answer {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let given = text("statusUrl").map(str::trim);
    let given = given.filter(|url| !url.is_empty());
    let (status_url, not_asked) = match given.map(|url| place(target, url)) {
        None => (None, None),
        Some(Ok(url)) => (Some(url), None),
        Some(Err(why)) => (None, Some(why)),
    };
    let end = text("status").and_then(outcome);
    let end = end.or_else(|| text("phase").and_then(outcome));
    let message = text("message").filter(|text| !text.trim().is_empty());
    let end = end.map(|outcome| End {
        outcome,
        message: message.map(|text| sanitise(text, &Secrets::NONE, SENTENCE)),
    });
    Answer {
        response: kept(body),
        status_url,
        not_asked,
        poll: None,
        end,
    }
}

fn outcome(word: &str) -> Option<Outcome> {
    match word.trim().to_ascii_lowercase().as_str() {
        "succeeded" => Some(Outcome::Succeeded),
        "failed" => Some(Outcome::Failed),
        _ => None,
    }
}

/// Where to ask: on the same server, and without anything that not everyone may see who may see the run.
fn place(target: &Target, url: &str) -> Result<String, &'static str> {
    let place = target.follow(url);
    let place = place.map_err(|_| "the status address is not on the same server")?;
    let url = place.url();
    match !url.contains('?') && sanitise(&url, &Secrets::NONE, usize::MAX) == url {
        true => Ok(url),
        false => Err("the status address has a query or holds a secret"),
    }
}

/// As much of an answer as a status should hold; nothing of it if that is still too much.
fn kept(body: Map<String, Value>) -> Option<Value> {
    let kept = trim(Value::Object(body), "", LEVELS);
    (kept.to_string().len() <= KEPT).then_some(kept)
}

fn trim(value: Value, name: &str, levels: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
        // The name beside it can give a secret away that looks like nothing.
        Value::String(text) => {
            let named = format!("{name}={text}");
            match sanitise(&named, &Secrets::NONE, usize::MAX) == named {
                true => Value::String(sanitise(&text, &Secrets::NONE, TEXT)),
                false if sanitise(&text, &Secrets::NONE, usize::MAX) == text => MASK.into(),
                false => Value::String(sanitise(&text, &Secrets::NONE, TEXT)),
            }
        }
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::Null,
        Value::Array(list) => {
            let list = list.into_iter().take(ENTRIES);
            list.map(|value| trim(value, name, levels - 1)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().take(ENTRIES);
            let fields = fields.map(|(name, value)| {
                let value = trim(value, &name, levels - 1);
                (sanitise(&name, &Secrets::NONE, TEXT), value)
            });
            Value::Object(fields.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    use super::*;
    use crate::kit::egress::Refusal;

    fn target() -> Target {
        Target::parse("https://a.example/runs?token=x").expect("a target")
    }

    fn answered(status: u16, body: &str) -> Said {
        let answer = egress::Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: HeaderMap::new(),
            body: body.to_owned().into(),
        };
        read(&target(), Ok(answer))
    }

    fn taken(body: Value) -> Answer {
        let Said::Taken(answer) = answered(200, &body.to_string()) else {
            panic!("not taken: {body}");
        };
        answer
    }

    #[test]
    fn what_helps_follows_from_the_answer() {
        let word = |said: &Said| match said {
            Said::Taken(_) => "taken",
            Said::Busy { .. } => "busy",
            Said::Refused { .. } => "refused",
            Said::Denied { .. } => "denied",
        };
        for (status, expected) in [
            (200, "taken"),
            (202, "taken"),
            (204, "taken"),
            (304, "refused"),
            (400, "refused"),
            (401, "refused"),
            (404, "refused"),
            (408, "busy"),
            (429, "busy"),
            (500, "busy"),
            (503, "busy"),
        ] {
            assert_eq!(word(&answered(status, "{}")), expected, "{status}");
        }
        for (failure, expected) in [
            (Failure::Refused(Refusal::Loopback), "denied"),
            (Failure::Unreachable("x".to_owned()), "busy"),
            (Failure::TimedOut(Duration::ZERO), "busy"),
            (Failure::TooLarge(1), "refused"),
        ] {
            let said = read(&target(), Err(failure));
            assert_eq!(word(&said), expected);
            assert!(!format!("{said:?}").contains("token"), "{said:?}");
        }
    }

    #[test]
    fn an_answer_says_how_the_run_ended_and_where_to_ask() {
        for (body, expected) in [
            (json!({"status": "succeeded"}), Some(Outcome::Succeeded)),
            (json!({"phase": "Failed"}), Some(Outcome::Failed)),
            (
                json!({"status": "running", "phase": "SUCCEEDED"}),
                Some(Outcome::Succeeded),
            ),
            (json!({"status": "running"}), None),
            (json!({"status": 1}), None),
            (json!({}), None),
        ] {
            assert_eq!(
                taken(body.clone()).end.map(|end| end.outcome),
                expected,
                "{body}"
            );
        }
        for (url, expected) in [
            ("/runs/1", Some("https://a.example/runs/1")),
            ("/runs/1?x=2", None),
            ("https://a.example/runs/1", Some("https://a.example/runs/1")),
            ("https://b.example/runs/1", None),
            ("http://a.example/runs/1", None),
            ("/runs/ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789", None),
        ] {
            let answer = taken(json!({"statusUrl": url}));
            assert_eq!(answer.status_url.as_deref(), expected, "{url}");
            assert_eq!(answer.not_asked.is_some(), expected.is_none(), "{url}");
        }
        assert_eq!(
            answered(200, "not JSON"),
            Said::Taken(Answer {
                response: Some(json!({})),
                ..Answer::default()
            })
        );
    }

    #[test]
    fn what_is_kept_is_small_and_holds_no_secret() {
        let body = json!({
            "id": "run-1", "password": "hunter2", "nested": {"apiToken": "abc-def"},
            "url": "https://me:hunter2@host.example/", "deep": {"a": {"b": {"c": {"d": 1}}}},
            "long": "word ".repeat(1000), "many": (0..100).collect::<Vec<_>>(),
        });
        let kept = taken(body).response.expect("kept");
        let text = kept.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("abc-def"),
            "{text}"
        );
        assert!(text.len() <= KEPT, "{} bytes", text.len());
        assert_eq!(kept["id"], "run-1");
        assert_eq!(kept["many"].as_array().map(Vec::len), Some(ENTRIES));
        assert_eq!(kept["deep"]["a"]["b"]["c"], Value::Null);
        let wide: Map<_, _> = (0..32)
            .map(|n| (format!("k{n}"), json!("word ".repeat(50))))
            .collect();
        assert_eq!(
            taken(Value::Object(wide)).response,
            None,
            "too much is not kept at all"
        );
    }
}
