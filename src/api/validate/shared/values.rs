//! Checks of values: ranges, parameters, environment, addresses, paths, amounts.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::names::check_unique;
use super::quantity::Quantity;
use crate::api::kinds::shared::EnvVar;
use crate::api::object::cause::{Causes, Path, Reason, listed, quoted};
use crate::api::text::names::Form;

/// Most tries after the first. A failing agent that is tried for ever spends for ever.
const MOST_RETRIES: i64 = 1000;
/// Longest pause between tries: a week.
const LONGEST_BACKOFF: i64 = 604_800;
/// Most parameters.
const MOST_PARAMETERS: usize = 100;
/// Longest value of a parameter, in bytes.
const LONGEST_PARAMETER: usize = 2048;

/// A number that may be left out, but not lie outside its range.
pub(in crate::api::validate) fn check_range<T: PartialOrd + Display + Copy>(
    causes: &mut Causes,
    at: &Path<'_>,
    value: Option<T>,
    (least, most): (T, T),
) {
    if let Some(value) = value.filter(|value| *value < least || *value > most) {
        let message = format!("{value} is out of range; use {least} to {most}");
        causes.add(at, Reason::OutOfRange, message);
    }
}

/// A duration or count that may be left out, but not be below zero, nor more than Kubernetes counts.
pub(in crate::api::validate) fn check_not_negative(
    causes: &mut Causes,
    at: &Path<'_>,
    value: Option<i64>,
) {
    check_range(causes, at, value, (0, i64::from(i32::MAX)));
}

/// How often something is tried again.
pub(in crate::api::validate) fn check_retries(
    causes: &mut Causes,
    at: &Path<'_>,
    retries: Option<i64>,
) {
    check_range(causes, at, retries, (0, MOST_RETRIES));
}

/// How often, how soon and how long a step is tried.
pub(in crate::api::validate) fn check_tries(
    causes: &mut Causes,
    at: &Path<'_>,
    retries: Option<i64>,
    backoff: Option<i64>,
    timeout: Option<i64>,
) {
    check_retries(causes, &at.field("retries"), retries);
    check_range(
        causes,
        &at.field("retryBackoffSeconds"),
        backoff,
        (0, LONGEST_BACKOFF),
    );
    check_not_negative(causes, &at.field("timeoutSeconds"), timeout);
}

/// Parameters: not too many, keys that a template can name, values that fit. Values are never repeated in a message.
pub(in crate::api::validate) fn check_parameters(
    causes: &mut Causes,
    at: &Path<'_>,
    parameters: Option<&BTreeMap<String, String>>,
) {
    let Some(parameters) = parameters else {
        return;
    };
    if parameters.len() > MOST_PARAMETERS {
        let message = format!(
            "has {} entries; use at most {MOST_PARAMETERS}",
            parameters.len()
        );
        causes.add(at, Reason::ParametersTooLarge, message);
    }
    for (key, value) in parameters {
        if !Form::ParameterKey.fits(key) {
            let message = format!(
                "{} cannot be a parameter; {}",
                quoted(key),
                Form::ParameterKey.rule()
            );
            causes.add(&at.key(key), Reason::ParameterKeyInvalid, message);
        }
        if value.len() > LONGEST_PARAMETER {
            let message = format!(
                "has {} bytes; use at most {LONGEST_PARAMETER}, and hand longer text over by its address or path",
                value.len()
            );
            causes.add(&at.key(key), Reason::ParameterValueTooLarge, message);
        }
    }
}

/// Environment variables: names that can be one, each once.
pub(in crate::api::validate) fn check_env(
    causes: &mut Causes,
    at: &Path<'_>,
    env: Option<&Vec<EnvVar>>,
) {
    let env = env.map(Vec::as_slice).unwrap_or_default();
    for (index, variable) in env.iter().enumerate() {
        check_env_name(causes, &at.index(index).field("name"), &variable.name);
    }
    check_unique(
        causes,
        at,
        "name",
        env.iter().map(|variable| variable.name.as_str()),
    );
}

/// The name of an environment variable.
pub(in crate::api::validate) fn check_env_name(causes: &mut Causes, at: &Path<'_>, name: &str) {
    if !Form::EnvName.fits(name) {
        let message = format!(
            "{} cannot be an environment variable; {}",
            quoted(name),
            Form::EnvName.rule()
        );
        causes.add(at, Reason::InvalidEnvName, message);
    }
}

/// An address with one of these schemes, a host and no password.
pub(in crate::api::validate) fn check_url(
    causes: &mut Causes,
    at: &Path<'_>,
    url: &str,
    schemes: &[&str],
) {
    if let Err(problem) = url_problem(url.trim(), schemes) {
        let example = schemes.first().copied().unwrap_or("https");
        causes.add(
            at,
            Reason::InvalidUrl,
            format!("{problem}; write an address like {example}://host.example/path"),
        );
    }
}

fn url_problem(url: &str, schemes: &[&str]) -> Result<(), String> {
    let uri: http::Uri = url.parse().map_err(|_| "is not a URL".to_owned())?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if !schemes.contains(&scheme) {
        let has = match scheme {
            "" => "has no scheme".to_owned(),
            scheme => format!("has the scheme {}", quoted(scheme)),
        };
        return Err(format!("{has}, allowed: {}", listed(schemes)));
    }
    let authority = uri
        .authority()
        .map(http::uri::Authority::as_str)
        .unwrap_or_default();
    if authority
        .rsplit_once('@')
        .is_some_and(|(user, _)| user.contains(':'))
    {
        return Err("holds a password, which belongs into a Secret".to_owned());
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("has no host".to_owned());
    }
    Ok(())
}

/// An absolute path inside a container.
pub(in crate::api::validate) fn check_path(causes: &mut Causes, at: &Path<'_>, path: &str) {
    let inside =
        path.starts_with('/') && !path.contains(':') && path.split('/').all(|part| part != "..");
    if !inside {
        let message = format!(
            "{} cannot be a path here; start with '/' and use neither '..' nor ':'",
            quoted(path)
        );
        causes.add(at, Reason::InvalidPath, message);
    }
}

/// An amount that is not below zero.
pub(in crate::api::validate) fn check_quantity(
    causes: &mut Causes,
    at: &Path<'_>,
    text: &str,
) -> Option<Quantity> {
    match text.trim().parse::<Quantity>() {
        Ok(amount) if amount < Quantity::ZERO => {
            causes.add(
                at,
                Reason::OutOfRange,
                format!("{} is below zero; use 0 or more", quoted(text)),
            );
            None
        }
        Ok(amount) => Some(amount),
        Err(error) => {
            causes.add(
                at,
                Reason::InvalidQuantity,
                format!("{} {error}", quoted(text)),
            );
            None
        }
    }
}
