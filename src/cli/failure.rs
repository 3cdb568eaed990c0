//! What a command tells a person when it could not do its work: what it tried, why that failed, and what to do next.

use std::error::Error as StdError;

use super::shown::plain;
use crate::kit::exit::Exit;

/// Causes beyond which nobody reads on.
const MOST_CAUSES: usize = 5;

/// What API servers say about a kind that they do not have.
const UNKNOWN: [&str; 2] = [
    "could not find the requested resource",
    "404 page not found",
];

/// A command that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    what: String,
    causes: Vec<String>,
    next: Option<String>,
    exit: Exit,
}

impl Failure {
    /// The command could not do it.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            causes: Vec::new(),
            next: None,
            exit: Exit::Failed,
        }
    }

    /// The command was asked in a way that cannot be meant.
    pub fn misused(what: impl Into<String>) -> Self {
        Self::new(what).exit(Exit::Misused)
    }

    /// The same, and the shell is told so.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The same, with an error behind it and all that is behind that.
    pub fn because(mut self, error: &(dyn StdError + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors say again what is behind them; once is enough.
            let is_new = !self.causes.iter().any(|said| said.contains(&text));
            if is_new && self.causes.len() < MOST_CAUSES {
                self.causes.push(text);
            }
            cause = error.source();
        }
        self
    }

    /// The same, with what to do about it.
    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    /// A call to the API server that failed; `what` follows on "could not".
    pub fn call(what: &str, error: &kube::Error) -> Self {
        let failed = Self::new(format!("could not {what}")).exit(Exit::Refused);
        let kube::Error::Api(status) = error else {
            let next =
                "see that the cluster is up and that --kubeconfig and --context name the right one";
            return failed.because(error).next(next);
        };
        let said = Self {
            causes: vec![status.message.clone()],
            ..failed
        };
        match status.code {
            401 => said.next("sign in to the cluster again; it does not accept these credentials"),
            403 => {
                said.next("ask for this right; `kubectl auth can-i --list` shows the ones you have")
            }
            404 if UNKNOWN.iter().any(|words| status.message.contains(words)) => {
                said.next("the cluster does not have our kinds: `agents crds apply` installs them")
            }
            _ => said,
        }
    }

    /// What the shell is told.
    pub fn code(&self) -> Exit {
        self.exit
    }

    /// What the person is told.
    pub fn text(&self) -> String {
        self.told("error")
    }

    /// The same, where the rest of the work goes on.
    pub fn warning(&self) -> String {
        self.told("warning")
    }

    fn told(&self, how: &str) -> String {
        let Self {
            what,
            causes,
            next,
            exit: _,
        } = self;
        let mut text = format!("{how}: {what}\n");
        for cause in causes {
            text += &format!("  because: {}\n", plain(cause));
        }
        if let Some(next) = next {
            text += &format!("  next: {next}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn api(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        }))
    }

    #[test]
    fn a_failure_says_what_why_and_what_next() {
        let error = std::io::Error::other("no route");
        let failure = Failure::new("could not look").because(&error).next("wait");
        let expected = "error: could not look\n  because: no route\n  next: wait\n";
        assert_eq!(
            (failure.text().as_str(), failure.code()),
            (expected, Exit::Failed)
        );
    }

    #[test]
    fn each_answer_of_the_api_server_has_its_next_step() {
        for (code, message, next) in [
            (401, "Unauthorized", "sign in"),
            (403, "forbidden", "ask for this right"),
            (
                404,
                "the server could not find the requested resource",
                "agents crds apply",
            ),
        ] {
            let failure = Failure::call("list runs", &api(code, message));
            assert_eq!(failure.code(), Exit::Refused);
            assert!(failure.text().contains(next), "{}", failure.text());
            assert!(failure.text().contains(message), "{}", failure.text());
        }
        let gone = Failure::call("get the run", &api(404, "agentruns \"x\" not found"));
        assert!(!gone.text().contains("next"), "{}", gone.text());
    }
}
