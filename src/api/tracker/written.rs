//! Issues and labels as trackers write them, in their lists and in their calls alike. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::Issue;

/// An issue of GitHub.
#[derive(Debug, Deserialize)]
pub struct GithubIssue {
    /// Its number in its repository.
    pub number: u64,
    title: String,
    body: Option<String>,
    html_url: Option<String>,
    updated_at: String,
    #[serde(default)]
    labels: Vec<Label>,
    pull_request: Option<Value>,
}

impl GithubIssue {
    /// The issue, in its repository; none for a pull request, which GitHub calls an issue as well.
    pub fn issue(self, repository: &str) -> Option<Issue> {
        if self.pull_request.is_some() {
            return None;
        }
        Some(Issue {
            title: self.title,
            body: self.body.unwrap_or_default(),
            url: self.html_url,
            version: self.updated_at,
            labels: names(self.labels),
            ..Issue::of_github(repository, self.number)
        })
    }
}

/// A label, as a word or as an object with a name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// The name alone.
    Word(String),
    /// An object that has it.
    Named {
        /// The name, which may be left out.
        name: Option<String>,
    },
}

/// The names of labels that have one.
pub fn names(labels: Vec<Label>) -> Vec<String> {
    let names = labels.into_iter().filter_map(|label| match label {
        Label::Word(name) => Some(name),
        Label::Named { name } => name,
    });
    names.collect()
}
