//! What a call of a tracker says. Pure; who reads it has checked before that the tracker signed it.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Issue;
use crate::api::kinds::agents::implementation_source::{TrackerProvider, TrackerScope};

/// Longest title, in characters, longest text, in bytes, and most labels: more is cut when an ImplementationSpec is made.
const TITLE: usize = 256;
const TEXT: usize = 128 * 1024;
const LABELS: usize = 50;
/// Longest of the short texts, in bytes. None that a tracker sends comes near it.
const SHORT: usize = 1024;

/// How old a call of Linear may be; its clock and ours may differ by as much.
const LINEAR: Duration = Duration::from_secs(60);
/// How old the news of a call of GitHub may be: it repeats calls of the last three days where someone asks for it.
const GITHUB: Duration = Duration::from_secs(3 * 24 * 3600);

/// What is wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// It is not JSON, or lacks something.
    Malformed,
    /// It is too old, or from the future.
    Stale,
}

/// A call about an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    issue: Issue,
    /// Its repository and its number there, where the tracker has some.
    repository: Option<(String, u64)>,
    team: Option<String>,
    project: Option<String>,
}

impl Payload {
    /// The issue that a call is about; none if it is about something else. `event` is what the tracker calls the sort of it.
    pub fn read(
        provider: TrackerProvider,
        event: Option<&str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Self>, Misread> {
        let wanted = match provider {
            TrackerProvider::Github => "issues",
            TrackerProvider::Linear => "issue",
        };
        if event.is_some_and(|event| !event.eq_ignore_ascii_case(wanted)) {
            return Ok(None);
        }
        let read = match provider {
            TrackerProvider::Github => read_github(body, now)?,
            TrackerProvider::Linear => read_linear(body, now)?,
        };
        Ok(read.map(Self::cut))
    }

    /// Whether a source is about the issue.
    pub fn is_in(&self, scope: Option<&TrackerScope>) -> bool {
        let nothing = TrackerScope::default();
        let scope = scope.unwrap_or(&nothing);
        let asked = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim).unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let same = |wanted: Option<String>, given: &Option<String>| {
            let given = given.as_deref().unwrap_or_default();
            wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(given))
        };
        // A repository that a source does not name is none of its own.
        let is_own = self.repository.as_ref().is_none_or(|(own, _)| {
            asked(&scope.repository).is_some_and(|asked| asked.eq_ignore_ascii_case(own))
        });
        is_own
            && same(asked(&scope.team), &self.team)
            && same(asked(&scope.project), &self.project)
            && self.issue.has(scope.labels.as_deref().unwrap_or_default())
    }

    /// The issue for a source: its repository is spelled as there, so that who reads the tracker calls it the same.
    pub fn issue(&self, scope: Option<&TrackerScope>) -> Issue {
        let issue = self.issue.clone();
        let repository = scope.and_then(|scope| scope.repository.as_deref());
        match (repository, &self.repository) {
            (Some(repository), Some((_, number))) => {
                let Issue { id, base, .. } = Issue::of_github(repository.trim(), *number);
                Issue { id, base, ..issue }
            }
            _ => issue,
        }
    }

    fn cut(mut self) -> Self {
        let issue = &mut self.issue;
        issue.title = issue.title.chars().take(TITLE).collect();
        for (text, most) in [
            (&mut issue.body, TEXT),
            (&mut issue.id, SHORT),
            (&mut issue.base, SHORT),
            (&mut issue.version, SHORT),
        ] {
            let mut end = most.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        issue.url = issue.url.take().filter(|url| url.len() <= SHORT);
        issue.labels.retain(|label| label.len() <= SHORT);
        issue.labels.truncate(LABELS);
        self
    }
}

fn read_github(body: &[u8], now: Timestamp) -> Result<Option<Payload>, Misread> {
    let call: Github = serde_json::from_slice(body).map_err(|_| Misread::Malformed)?;
    let entry = call.issue;
    if entry.pull_request.is_some() {
        return Ok(None);
    }
    let told: Timestamp = entry.updated_at.parse().map_err(|_| Misread::Malformed)?;
    is_fresh(told, GITHUB, now)?;
    let repository = call.repository.full_name;
    Ok(Some(Payload {
        issue: Issue {
            title: entry.title,
            body: entry.body.unwrap_or_default(),
            url: entry.html_url,
            version: entry.updated_at,
            labels: names(entry.labels),
            ..Issue::of_github(&repository, entry.number)
        },
        repository: Some((repository, entry.number)),
        team: None,
        project: None,
    }))
}

fn read_linear(body: &[u8], now: Timestamp) -> Result<Option<Payload>, Misread> {
    let call: Linear = serde_json::from_slice(body).map_err(|_| Misread::Malformed)?;
    if let Some(sent) = call.webhook_timestamp {
        let sent = Timestamp::from_millisecond(sent).map_err(|_| Misread::Malformed)?;
        is_fresh(sent, LINEAR, now)?;
    }
    let is_issue = |sort: &String| sort.eq_ignore_ascii_case("issue");
    if !call.sort.as_ref().is_none_or(is_issue) {
        return Ok(None);
    }
    let entry: LinearIssue = serde_json::from_value(call.data).map_err(|_| Misread::Malformed)?;
    Ok(Some(Payload {
        issue: Issue {
            title: entry.title,
            body: entry.description.unwrap_or_default(),
            url: entry.url.or(call.url),
            version: entry.updated_at.unwrap_or_default(),
            labels: names(entry.labels),
            ..Issue::of_linear(entry.identifier)
        },
        repository: None,
        team: entry.team.and_then(|team| team.key),
        project: entry.project.and_then(|project| project.name),
    }))
}

/// Refuses what was sent too long ago, or too far ahead of our clock.
fn is_fresh(sent: Timestamp, most: Duration, now: Timestamp) -> Result<(), Misread> {
    let ago = now.duration_since(sent).unsigned_abs();
    let most = if sent > now { LINEAR.min(most) } else { most };
    match ago <= most {
        true => Ok(()),
        false => Err(Misread::Stale),
    }
}

fn names(labels: Vec<Named>) -> Vec<String> {
    labels.into_iter().filter_map(|label| label.name).collect()
}

#[derive(Deserialize)]
struct Github {
    repository: Repository,
    issue: GithubIssue,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct GithubIssue {
    number: u64,
    title: String,
    body: Option<String>,
    html_url: Option<String>,
    updated_at: String,
    #[serde(default)]
    labels: Vec<Named>,
    pull_request: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Linear {
    #[serde(rename = "type")]
    sort: Option<String>,
    webhook_timestamp: Option<i64>,
    url: Option<String>,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinearIssue {
    identifier: String,
    title: String,
    description: Option<String>,
    url: Option<String>,
    updated_at: Option<String>,
    #[serde(default)]
    labels: Vec<Named>,
    team: Option<Keyed>,
    project: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Keyed {
    key: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: &str = "2026-01-04T12:00:00Z";

    fn read(
        provider: TrackerProvider,
        event: &str,
        body: &Value,
    ) -> Result<Option<Payload>, Misread> {
        Payload::read(provider, Some(event), body.to_string().as_bytes(), now())
    }

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn github(changes: &Value) -> Value {
        let mut issue = json!({"number": 7, "title": "t", "body": "b", "updated_at": NOW, "labels": [{"name": "agent"}]});
        let changes = changes.as_object().unwrap().clone();
        issue.as_object_mut().unwrap().extend(changes);
        json!({"action": "opened", "repository": {"full_name": "o/r"}, "issue": issue})
    }

    fn linear(more: &Value) -> Value {
        let mut call = json!({"type": "Issue", "url": "https://linear.app/1", "data": {"identifier": "ENG-1", "title": "t",
            "updatedAt": NOW, "labels": [{"name": "agent"}], "team": {"key": "ENG"}, "project": {"name": "P"}}});
        let more = more.as_object().unwrap().clone();
        call.as_object_mut().unwrap().extend(more);
        call
    }

    #[test]
    fn a_call_of_github_is_about_an_issue_or_nothing() {
        use TrackerProvider::Github;
        let id = |body: &Value| {
            let read = read(Github, "issues", body);
            read.map(|read| read.map(|read| read.issue.id))
        };
        let some = || Ok(Some("o/r#7".to_owned()));
        for (row, body, expected) in [
            ("whole", github(&json!({})), some()),
            (
                "a pull request",
                github(&json!({"pull_request": {}})),
                Ok(None),
            ),
            (
                "three days old",
                github(&json!({"updated_at": "2026-01-01T12:00:00Z"})),
                some(),
            ),
            (
                "older",
                github(&json!({"updated_at": "2026-01-01T11:59:59Z"})),
                Err(Misread::Stale),
            ),
            (
                "of tomorrow",
                github(&json!({"updated_at": "2026-01-05T12:00:00Z"})),
                Err(Misread::Stale),
            ),
            (
                "no time",
                github(&json!({"updated_at": "x"})),
                Err(Misread::Malformed),
            ),
            (
                "no issue",
                json!({"repository": {"full_name": "o/r"}}),
                Err(Misread::Malformed),
            ),
            ("no object", json!([]), Err(Misread::Malformed)),
        ] {
            assert_eq!(id(&body), expected, "{row}");
        }
        assert_eq!(read(Github, "ping", &json!({})), Ok(None));
        let long = github(
            &json!({"title": "ä".repeat(300), "body": "ä".repeat(TEXT), "labels": [{"name": "x".repeat(SHORT + 1)}]}),
        );
        let cut = read(Github, "issues", &long).unwrap().unwrap().issue;
        let lengths = (cut.title.chars().count(), cut.body.len(), cut.labels.len());
        assert_eq!(lengths, (TITLE, TEXT, 0));
    }

    #[test]
    fn a_call_of_linear_is_as_young_as_it_says() {
        use TrackerProvider::Linear;
        let sent = |ago: i64| {
            let now: Timestamp = NOW.parse().unwrap();
            json!({"webhookTimestamp": now.as_millisecond() - ago * 1000})
        };
        for (row, more, expected) in [
            ("no time", json!({}), Ok(true)),
            ("young", sent(60), Ok(true)),
            ("old", sent(61), Err(Misread::Stale)),
            ("ahead", sent(-61), Err(Misread::Stale)),
            (
                "a comment",
                json!({"type": "Comment", "data": {}}),
                Ok(false),
            ),
            (
                "no identifier",
                json!({"data": {"title": "t"}}),
                Err(Misread::Malformed),
            ),
        ] {
            let found = read(Linear, "Issue", &linear(&more));
            assert_eq!(found.map(|found| found.is_some()), expected, "{row}");
        }
    }

    #[test]
    fn a_source_is_about_what_its_scope_names() {
        let github = read(TrackerProvider::Github, "issues", &github(&json!({})));
        let linear = read(TrackerProvider::Linear, "Issue", &linear(&json!({})));
        let (github, linear) = (github.unwrap().unwrap(), linear.unwrap().unwrap());
        for (payload, scope, expected) in [
            (&github, json!({"repository": "O/R"}), true),
            (&github, json!({"repository": "o/other"}), false),
            (&github, json!({}), false),
            (
                &github,
                json!({"repository": "o/r", "labels": ["Agent"]}),
                true,
            ),
            (
                &github,
                json!({"repository": "o/r", "labels": ["agent", "urgent"]}),
                false,
            ),
            (&linear, json!({}), true),
            (&linear, json!({"team": "ENG", "project": "P"}), true),
            (&linear, json!({"team": "OPS"}), false),
            (&linear, json!({"project": "Q"}), false),
        ] {
            let scope: TrackerScope = serde_json::from_value(scope).unwrap();
            assert_eq!(payload.is_in(Some(&scope)), expected, "{scope:?}");
        }
        assert!(!github.is_in(None));
        let scope: TrackerScope = serde_json::from_value(json!({"repository": "O/R"})).unwrap();
        assert_eq!(github.issue(Some(&scope)).id, "O/R#7");
        assert_eq!(linear.issue(None).id, "ENG-1");
    }
}
