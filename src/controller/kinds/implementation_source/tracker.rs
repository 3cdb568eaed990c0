//! The trackers: how each is asked for its issues, and what its answer means. Pure.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::kinds::ImplementationSource;
use crate::api::kinds::agents::implementation_source::{TrackerProvider, TrackerScope};
use crate::api::tracker::{GithubIssue, Issue, Label, names};
use crate::kit::egress::{Call, Credential, Refusal, Target};

/// Issues of one page, and most bytes of it: trackers cut the text of an issue at 64 KiB.
const PAGE: usize = 100;
const LIMIT: usize = 8 * 1024 * 1024;

const API_VERSION: HeaderName = HeaderName::from_static("x-github-api-version");

/// Issues with what is asked of Linear about each.
const QUERY: &str = "query($filter: IssueFilter, $after: String) { issues(first: 100, after: $after, filter: $filter, orderBy: updatedAt) \
    { pageInfo { hasNextPage endCursor } nodes { identifier title description url updatedAt labels { nodes { name } } } } }";

/// Where in the list of issues we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The number of a page, from 1.
    Page(usize),
    /// What the tracker gave us to go on with.
    After(String),
}

/// One page of issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) issues: Vec<Issue>,
    /// Where it goes on, if it does.
    pub(super) next: Option<Place>,
}

/// A tracker, as a source names it.
pub(super) struct Tracker<'a> {
    provider: TrackerProvider,
    scope: &'a TrackerScope,
    base: Target,
}

impl<'a> Tracker<'a> {
    pub(super) fn of(source: &'a ImplementationSource) -> Result<Self, Refusal> {
        const NOTHING: &TrackerScope = &TrackerScope {
            organization: None,
            repository: None,
            project: None,
            team: None,
            labels: None,
            query: None,
        };
        let spec = &source.spec;
        let named = spec
            .sync
            .as_ref()
            .and_then(|sync| sync.api_base_url.as_deref());
        let usual = match spec.provider {
            TrackerProvider::Github => "https://api.github.com",
            TrackerProvider::Linear => "https://api.linear.app",
        };
        Ok(Self {
            provider: spec.provider,
            scope: spec.scope.as_ref().unwrap_or(NOTHING),
            base: Target::parse(named.unwrap_or(usual))?,
        })
    }

    /// Where it is, for people.
    pub(super) fn base(&self) -> &Target {
        &self.base
    }

    /// What proves to it who asks: for its host alone. None if the text cannot be one.
    pub(super) fn credential(&self, token: &str) -> Option<Credential> {
        let is_key = token.starts_with("lin_api_");
        let value = match self.provider {
            TrackerProvider::Linear if is_key => token.to_owned(),
            TrackerProvider::Github | TrackerProvider::Linear => format!("Bearer {token}"),
        };
        Credential::new(self.base.host(), &value)
    }

    /// Asks for one page of issues. With the mark of an earlier answer, only if it has changed.
    pub(super) fn ask(&self, place: &Place, mark: Option<&str>) -> Call {
        let root = self.base.path().trim_end_matches('/');
        let json = HeaderValue::from_static("application/json");
        let mut headers = vec![(header::ACCEPT, json.clone())];
        let (method, path, body) = match (self.provider, place) {
            (TrackerProvider::Github, Place::Page(_) | Place::After(_)) => {
                let mark = mark.and_then(|mark| HeaderValue::from_str(mark).ok());
                headers.extend(mark.map(|mark| (header::IF_NONE_MATCH, mark)));
                headers.push((API_VERSION, HeaderValue::from_static("2022-11-28")));
                let path = format!("{root}{}", self.github_path(place));
                (Method::GET, path, Bytes::new())
            }
            (TrackerProvider::Linear, place) => {
                headers.push((header::CONTENT_TYPE, json));
                let after = match place {
                    Place::Page(_) => None,
                    Place::After(cursor) => Some(cursor),
                };
                let variables = json!({"filter": self.linear_filter(), "after": after});
                let body = json!({"query": QUERY, "variables": variables}).to_string();
                (Method::POST, format!("{root}/graphql"), Bytes::from(body))
            }
        };
        Call {
            method,
            target: self.base.at(&path),
            headers,
            credential: None,
            body,
            limit: LIMIT,
        }
    }

    /// Newest changes first, so that an unchanged first page means that nothing has changed.
    fn github_path(&self, place: &Place) -> String {
        let page = match place {
            Place::Page(page) => *page,
            Place::After(_) => 1,
        };
        let repository = self.repository().split('/').map(encoded);
        let repository = repository.collect::<Vec<_>>().join("/");
        let labels = self.labels().map(encoded).collect::<Vec<_>>().join(",");
        let labels = match labels.is_empty() {
            true => labels,
            false => format!("&labels={labels}"),
        };
        format!(
            "/repos/{repository}/issues?state=open&sort=updated&direction=desc&per_page={PAGE}&page={page}{labels}"
        )
    }

    fn repository(&self) -> &str {
        self.scope.repository.as_deref().unwrap_or_default().trim()
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.scope.labels.iter().flatten();
        labels
            .map(|label| label.trim())
            .filter(|label| !label.is_empty())
    }

    fn linear_filter(&self) -> Value {
        let filled = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let mut filter = json!({"state": {"type": {"nin": ["completed", "canceled"]}}});
        if let Some(team) = filled(&self.scope.team) {
            filter["team"] = json!({"key": {"eq": team}});
        }
        if let Some(project) = filled(&self.scope.project) {
            filter["project"] = json!({"name": {"eq": project}});
        }
        filter
    }

    /// What an answer means; a sentence if it cannot be understood.
    pub(super) fn read(&self, place: &Place, body: &[u8]) -> Result<Page, String> {
        let mut page = match self.provider {
            TrackerProvider::Github => self.read_github(place, body)?,
            TrackerProvider::Linear => read_linear(body)?,
        };
        let wanted: Vec<_> = self.labels().map(str::to_owned).collect();
        page.issues.retain(|issue| issue.has(&wanted));
        Ok(page)
    }

    fn read_github(&self, place: &Place, body: &[u8]) -> Result<Page, String> {
        let entries: Vec<GithubIssue> = serde_json::from_slice(body).map_err(misread)?;
        let next = match place {
            Place::Page(page) if entries.len() >= PAGE => Some(Place::Page(page + 1)),
            Place::Page(_) | Place::After(_) => None,
        };
        let repository = self.repository();
        let issues = entries
            .into_iter()
            .filter_map(|entry| entry.issue(repository));
        Ok(Page {
            issues: issues.collect(),
            next,
        })
    }
}

fn read_linear(body: &[u8]) -> Result<Page, String> {
    let answer: LinearAnswer = serde_json::from_slice(body).map_err(misread)?;
    let Some(data) = answer.data else {
        return Err("it answered with errors instead of issues".to_owned());
    };
    let LinearIssues { page_info, nodes } = data.issues;
    let cursor = page_info.end_cursor.filter(|_| page_info.has_next_page);
    let issues = nodes.into_iter().map(|entry| Issue {
        title: entry.title,
        body: entry.description.unwrap_or_default(),
        url: entry.url,
        version: entry.updated_at,
        labels: names(entry.labels.nodes),
        ..Issue::of_linear(entry.identifier)
    });
    Ok(Page {
        issues: issues.collect(),
        next: cursor.map(Place::After),
    })
}

/// Where, not what: the words of the error may repeat what a tracker said.
fn misread(error: serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("its answer cannot be understood (line {line}, column {column})")
}

/// A text made fit to stand in a path or a query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    // A path that climbs would leave the repository.
    if out == "." || out == ".." {
        return out.replace('.', "%2E");
    }
    out
}

#[derive(Deserialize)]
struct LinearAnswer {
    data: Option<LinearData>,
}

#[derive(Deserialize)]
struct LinearData {
    issues: LinearIssues,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinearIssues {
    page_info: LinearPage,
    nodes: Vec<LinearIssue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinearPage {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinearIssue {
    identifier: String,
    title: String,
    description: Option<String>,
    url: Option<String>,
    updated_at: String,
    labels: LinearLabels,
}

#[derive(Deserialize)]
struct LinearLabels {
    nodes: Vec<Label>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(provider: &str, scope: Value, base: Option<&str>) -> ImplementationSource {
        let source = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSource",
            "metadata": {"name": "s", "namespace": "a"},
            "spec": {"provider": provider, "auth": {"secretRef": {"name": "hook"}}, "scope": scope,
                "sync": {"enabled": true, "apiBaseUrl": base}},
        });
        serde_json::from_value(source).unwrap()
    }

    fn ids(page: &Page) -> Vec<&str> {
        page.issues.iter().map(|issue| issue.id.as_str()).collect()
    }

    #[test]
    fn github_is_asked_for_the_open_issues_of_the_repository() {
        let scope = json!({"repository": "o/r", "labels": ["agent", "to do"]});
        for (base, expected) in [
            (None, "https://api.github.com/repos/o/r/issues"),
            (
                Some("https://git.example/api/v3/"),
                "https://git.example/api/v3/repos/o/r/issues",
            ),
        ] {
            let source = source("github", scope.clone(), base);
            let tracker = Tracker::of(&source).unwrap();
            let call = tracker.ask(&Place::Page(2), Some("\"x\""));
            assert_eq!(call.target.to_string(), expected);
            let query =
                "?state=open&sort=updated&direction=desc&per_page=100&page=2&labels=agent,to%20do";
            assert!(call.target.url().ends_with(query), "{}", call.target.url());
            assert!(
                call.headers
                    .iter()
                    .any(|(name, value)| name == header::IF_NONE_MATCH && value == "\"x\"")
            );
        }
        let climbing = source("github", json!({"repository": "../x?y"}), None);
        let call = Tracker::of(&climbing).unwrap().ask(&Place::Page(1), None);
        assert_eq!(call.target.path(), "/repos/%2E%2E/x%3Fy/issues");
    }

    #[test]
    fn github_answers_with_issues_and_pull_requests() {
        let scope = json!({"repository": "o/r", "labels": ["agent"]});
        let source = source("github", scope, None);
        let tracker = Tracker::of(&source).unwrap();
        let entry = |number: usize, more: Value| {
            let mut entry = json!({"number": number, "title": "t", "updated_at": "2026-01-01T00:00:00Z", "labels": [{"name": "Agent"}]});
            entry
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            entry
        };
        let body = json!([
            entry(
                1,
                json!({"body": null, "html_url": "https://github.com/o/r/issues/1"})
            ),
            entry(2, json!({"pull_request": {}})),
            entry(3, json!({"labels": ["other"]})),
        ]);
        let page = tracker
            .read(&Place::Page(1), body.to_string().as_bytes())
            .unwrap();
        assert_eq!((ids(&page), &page.next), (vec!["o/r#1"], &None));
        assert_eq!(page.issues[0].name(), "o-r-1-impl");
        let full: Vec<_> = (0..PAGE).map(|number| entry(number, json!({}))).collect();
        let page = tracker
            .read(&Place::Page(1), json!(full).to_string().as_bytes())
            .unwrap();
        assert_eq!(page.next, Some(Place::Page(2)));
        assert!(tracker.read(&Place::Page(1), b"{}").is_err());
    }

    #[test]
    fn linear_is_asked_and_answers() {
        let scope = json!({"team": "ENG", "project": "p"});
        let source = source("linear", scope, Some("http://127.0.0.1:9"));
        let tracker = Tracker::of(&source).unwrap();
        let call = tracker.ask(&Place::After("c".to_owned()), None);
        assert_eq!(call.target.to_string(), "http://127.0.0.1:9/graphql");
        let asked: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(asked["variables"]["after"], "c");
        assert_eq!(
            asked["variables"]["filter"]["team"],
            json!({"key": {"eq": "ENG"}})
        );
        let body = json!({"data": {"issues": {"pageInfo": {"hasNextPage": true, "endCursor": "d"}, "nodes": [
            {"identifier": "ENG-1", "title": "t", "updatedAt": "v", "labels": {"nodes": [{"name": "x"}]}},
        ]}}});
        let page = tracker
            .read(&Place::Page(1), body.to_string().as_bytes())
            .unwrap();
        assert_eq!(
            (ids(&page), &page.next),
            (vec!["ENG-1"], &Some(Place::After("d".to_owned())))
        );
        assert_eq!(page.issues[0].name(), "linear-eng-1-impl");
        let wrong = tracker.read(&Place::Page(1), br#"{"errors": [{"message": "secret"}]}"#);
        assert!(!wrong.unwrap_err().contains("secret"));
    }
}
