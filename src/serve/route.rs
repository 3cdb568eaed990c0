//! From the line of a request to an operation and its values. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::fault::{Fault, Reason};
use super::operation::{ALL, Operation, Sort};
use crate::api::object::cause::{did_you_mean, listed};
use crate::api::text::names::Form;
use crate::kit::config::Value;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) operation: &'static Operation,
    /// From the path.
    pub(super) namespace: Option<String>,
    /// From the path.
    pub(super) name: Option<String>,
    query: BTreeMap<&'static str, String>,
}

/// Finds the operation of a request, and its values if they are right.
pub(super) fn route(method: &Method, path: &str, query: &str) -> Result<Route, Fault> {
    let mut others = Vec::new();
    for operation in ALL {
        let Some(values) = matched(operation.path, path) else {
            continue;
        };
        // Whoever may read something may ask for its head alone.
        let reads = *method == Method::HEAD && operation.method.is(&Method::GET);
        if !(operation.method.is(method) || reads) {
            others.push(operation.method.word().to_uppercase());
            continue;
        }
        return read(operation, values, query);
    }
    match others.is_empty() {
        true => Err(Fault::new(
            StatusCode::NOT_FOUND,
            Reason::NoSuchPath,
            "there is no such path",
        )
        .next("GET /openapi.json lists every path")),
        false => Err(Fault::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Reason::MethodNotAllowed,
            format!("this path takes {}", others.join(" and ")),
        )
        .allowing(others.join(", "))),
    }
}

/// Whether a path fits a pattern; with the values of its parts in braces, in order.
fn matched<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(values),
            (Some(wanted), Some(given)) if wanted.starts_with('{') => values.push(given),
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

fn read(operation: &'static Operation, values: Vec<&str>, query: &str) -> Result<Route, Fault> {
    let mut values = values.into_iter();
    let namespace = values
        .next()
        .map(|given| named(given, Form::DnsLabel, "namespace"));
    let name = values
        .next()
        .map(|given| named(given, Form::DnsSubdomain, "name"));
    Ok(Route {
        operation,
        namespace: namespace.transpose()?,
        name: name.transpose()?,
        query: pairs(operation, query)?,
    })
}

fn named(given: &str, form: Form, what: &str) -> Result<String, Fault> {
    let text = decoded(given)?;
    match form.fits(&text) {
        true => Ok(text),
        false => {
            Err(Fault::bad_request(format!("the {what} in the path is none")).next(form.rule()))
        }
    }
}

fn decoded(text: &str) -> Result<String, Fault> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| Fault::bad_request("the address is not UTF-8"))
}

/// The values of a query; each must be known, and be there once.
fn pairs(
    operation: &'static Operation,
    query: &str,
) -> Result<BTreeMap<&'static str, String>, Fault> {
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(&name.replace('+', " "))?;
        let value = decoded(&value.replace('+', " "))?;
        let known = operation.query.iter().find(|known| known.name == name);
        let Some(known) = known else {
            return Err(unknown(operation, &name));
        };
        check(known.name, known.sort, &value)?;
        if found.insert(known.name, value).is_some() {
            return Err(Fault::bad_request(format!("{name} is there twice")));
        }
    }
    Ok(found)
}

fn unknown(operation: &Operation, given: &str) -> Fault {
    let known: Vec<_> = operation.query.iter().map(|known| known.name).collect();
    let fault = Fault::bad_request("the query has a value that this path does not know");
    match (did_you_mean(given, &known), known.is_empty()) {
        (Some(meant), _) => fault.next(format!("did you mean {meant}?")),
        (None, true) => fault.next("leave the query out"),
        (None, false) => fault.next(format!("use {}", listed(&known))),
    }
}

fn check(name: &str, sort: Sort, value: &str) -> Result<(), Fault> {
    let wanted = match sort {
        Sort::Text => return Ok(()),
        Sort::Namespace { or_all } => {
            if Form::DnsLabel.fits(value) || value.is_empty() || (or_all && value == "*") {
                return Ok(());
            }
            let or_all = if or_all { ", or * for all" } else { "" };
            format!("the name of a namespace{or_all}")
        }
        Sort::Number(most) => match value.parse::<u32>() {
            Ok(number) if (1..=most).contains(&number) => return Ok(()),
            _ => format!("a whole number from 1 to {most}"),
        },
        Sort::Switch if ["true", "false", ""].contains(&value) => return Ok(()),
        Sort::Switch => "true or false".to_owned(),
        Sort::Time(most) => match time(value) {
            Some(given) if given <= Duration::from_secs(most.into()) => return Ok(()),
            _ => format!("a time such as 30s, up to {most}s"),
        },
    };
    Err(Fault::bad_request(format!("{name} must be {wanted}")))
}

fn time(text: &str) -> Option<Duration> {
    Value::parse(text)
}

impl Route {
    /// A text of the query that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// A number of the query, which was found to be one.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok()
    }

    /// A time of the query, which was found to be one.
    pub(super) fn time(&self, name: &str) -> Option<Duration> {
        time(self.text(name)?)
    }

    /// Whether a switch of the query is on; a bare one is.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.query.get(name).map(|text| text != "false")
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::Id;
    use super::*;

    fn at(method: &str, path: &str, query: &str) -> Result<Route, (u16, Reason)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        route(&method, path, query).map_err(|fault| (fault.status.as_u16(), fault.reason()))
    }

    #[test]
    fn a_path_leads_to_its_operation_with_its_values() {
        for (method, path, id, values) in [
            ("GET", "/v1/agent-runs", Id::ListRuns, (None, None)),
            ("POST", "/v1/agent-runs", Id::SubmitRun, (None, None)),
            (
                "GET",
                "/v1/agent-runs/a/b.c",
                Id::GetRun,
                (Some("a"), Some("b.c")),
            ),
            (
                "HEAD",
                "/v1/agent-runs/a/b",
                Id::GetRun,
                (Some("a"), Some("b")),
            ),
            (
                "POST",
                "/v1/agent-runs/a/b/cancel",
                Id::CancelRun,
                (Some("a"), Some("b")),
            ),
            ("GET", "/v1/queue/stream", Id::QueueStream, (None, None)),
        ] {
            let route = at(method, path, "").unwrap();
            let found = (route.namespace.as_deref(), route.name.as_deref());
            assert_eq!((route.operation.id, found), (id, values), "{path}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_told_so() {
        for (method, path, query, expected) in [
            ("GET", "/", "", (404, Reason::NoSuchPath)),
            ("GET", "/v1/agent-runs/", "", (404, Reason::NoSuchPath)),
            ("GET", "/v1/agent-runs/a", "", (404, Reason::NoSuchPath)),
            (
                "DELETE",
                "/v1/agent-runs/a/b",
                "",
                (405, Reason::MethodNotAllowed),
            ),
            (
                "GET",
                "/v1/agent-runs/a/b/cancel",
                "",
                (405, Reason::MethodNotAllowed),
            ),
            ("GET", "/v1/agent-runs/A/b", "", (400, Reason::BadRequest)),
            ("GET", "/v1/agent-runs/a/..", "", (400, Reason::BadRequest)),
            (
                "GET",
                "/v1/agent-runs/a/%2e%2e",
                "",
                (400, Reason::BadRequest),
            ),
            ("GET", "/v1/agent-runs/a/%ff", "", (400, Reason::BadRequest)),
            (
                "GET",
                "/v1/agent-runs",
                "limit=0",
                (400, Reason::BadRequest),
            ),
            (
                "GET",
                "/v1/agent-runs",
                "limit=501",
                (400, Reason::BadRequest),
            ),
            ("GET", "/v1/agent-runs", "limt=5", (400, Reason::BadRequest)),
            (
                "GET",
                "/v1/agent-runs",
                "limit=5&limit=6",
                (400, Reason::BadRequest),
            ),
            (
                "GET",
                "/v1/agent-runs/a/b/wait",
                "timeout=1y",
                (400, Reason::BadRequest),
            ),
            (
                "GET",
                "/v1/agent-runs/a/b/logs",
                "follow=maybe",
                (400, Reason::BadRequest),
            ),
        ] {
            assert_eq!(
                at(method, path, query).unwrap_err(),
                expected,
                "{path}?{query}"
            );
        }
    }

    #[test]
    fn values_of_the_query_are_read() {
        let route = at(
            "GET",
            "/v1/agent-runs",
            "labelSelector=a%3Db,c&limit=7&continue=",
        )
        .unwrap();
        assert_eq!(route.text("labelSelector"), Some("a=b,c"));
        assert_eq!(
            (route.number("limit"), route.text("continue")),
            (Some(7), None)
        );
        let route = at("GET", "/v1/agent-runs/a/b/logs", "follow&tail=5").unwrap();
        assert_eq!(
            (route.switch("follow"), route.number("tail")),
            (Some(true), Some(5))
        );
        let route = at("GET", "/v1/agent-runs/a/b/wait", "timeout=2m").unwrap();
        assert_eq!(route.time("timeout"), Some(Duration::from_secs(120)));
        let route = at("GET", "/v1/agent-runs/a/b/wait", "timeout=5").unwrap();
        assert_eq!(route.time("timeout"), Some(Duration::from_secs(5)));
    }
}
