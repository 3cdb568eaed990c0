//! What operators can set about streams.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use agents::{
    api::contract::{port, queue},
    kit::{
        config::{self, Invalid, Reader, Setting, Value},
        egress::Target,
    },
};

use crate::args::variable;

/// Most streams of one sort.
const MOST: usize = 8;
/// Longest name of a source.
const LONGEST: usize = 40;

/// What operators can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Streams of the queue of controllers.
    pub queues: Sources,
    /// Streams of control planes that tell what happens to their objects.
    pub control_planes: Sources,
    /// The token that is shown to those.
    pub token: Option<PathBuf>,
    /// Certificates of further authorities, in PEM.
    pub authorities: Option<PathBuf>,
    /// How long a stream may say nothing.
    pub silence: Duration,
    /// How long what a source told holds without it.
    pub grace: Duration,
    /// Bytes of one event.
    pub event: usize,
    /// Runs of one control plane that are counted.
    pub runs: usize,
}

/// Streams by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(pub Vec<(String, Target)>);

impl Value for Sources {
    const EXPECTED: &'static str = "a list of at most 8 streams such as controller=http://127.0.0.1:8082/v1/queue/stream, each under a name of its own in \
         small letters, digits and dashes; [] for none";

    fn parse(text: &str) -> Option<Self> {
        let entries = Vec::<String>::parse(text)?;
        let mut sources: Vec<(String, Target)> = Vec::new();
        for entry in entries {
            let (name, url) = entry.split_once('=')?;
            let target = Target::parse(url).ok()?;
            if !is_name(name) || sources.iter().any(|(known, _)| known == name) {
                return None;
            }
            sources.push((name.to_owned(), target));
        }
        (sources.len() <= MOST).then_some(Self(sources))
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Whether nobody else can listen on the way there.
fn is_safe(target: &Target) -> bool {
    let host = target.host();
    let is_here = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    target.is_tls() || is_here || host == "localhost"
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Streams");
        let queues = reader.value(
            Setting::<Sources>::new(
                variable::QUEUE_STREAMS,
                "Streams on which controllers tell how their queue stands",
            )
            .or(format!(
                "controller=http://127.0.0.1:{}{}",
                port::QUEUE,
                queue::STREAM
            )),
        );
        let control_planes = reader.value(
            Setting::<Sources>::new(
                variable::CONTROL_PLANE_STREAMS,
                "Streams on which control planes tell what happens to their objects; their runs are counted",
            )
            .or("[]"),
        );
        let token = reader.optional(Setting::<PathBuf>::new(
            variable::CONTROL_PLANE_TOKEN_FILE,
            "File with the bearer token for the streams of control planes; read with every connection",
        ));
        let authorities = reader.optional(Setting::<PathBuf>::new(
            variable::STREAM_CA_FILE,
            "Certificates of authorities that are trusted besides those of the system, in PEM",
        ));
        let (silence, grace) = read_times(reader);
        let (event, runs) = read_limits(reader);
        let (queues, control_planes, token) = (queues?, control_planes?, token?);
        check(reader, &queues, &control_planes, token.is_some())?;
        Ok(Self {
            queues,
            control_planes,
            token,
            authorities: authorities?,
            silence: silence?,
            grace: grace?,
            event: event?,
            runs: runs?,
        })
    }
}

type Read<T> = Result<T, Invalid>;

fn read_times(reader: &mut Reader<'_>) -> (Read<Duration>, Read<Duration>) {
    let silence = reader.value(
        Setting::<Duration>::new(
            variable::STREAM_SILENCE,
            "How long a stream may say nothing, not even that it is alive, before it is opened anew",
        )
        .or("45s")
        .within("1s", "10m"),
    );
    let grace = reader.value(
        Setting::<Duration>::new(
            variable::STREAM_GRACE,
            "How long what a stream told is shown after it is gone",
        )
        // Less than a lease lasts, so that a queue is not shown by its old holder and its new one at the same time.
        .or("20s")
        .within("0s", "1h"),
    );
    (silence, grace)
}

fn read_limits(reader: &mut Reader<'_>) -> (Read<usize>, Read<usize>) {
    let event = reader.value(
        Setting::<usize>::new(
            variable::STREAM_EVENT_BYTES,
            "Bytes of one event of a stream; a larger one is left out and counted",
        )
        .or("1048576")
        .within("1024", "16777216"),
    );
    let runs = reader.value(
        Setting::<usize>::new(
            variable::CONTROL_PLANE_RUNS,
            "Runs of one control plane that are counted; more are left out and counted as such",
        )
        .or("10000")
        .within("1", "1000000"),
    );
    (event, runs)
}

/// Names tell sources apart on the page, and a token is for nobody else to see.
fn check(
    reader: &mut Reader<'_>,
    queues: &Sources,
    control_planes: &Sources,
    has_token: bool,
) -> Result<(), Invalid> {
    let is_queue = |name: &String| queues.0.iter().any(|(known, _)| known == name);
    for (name, target) in &control_planes.0 {
        if is_queue(name) {
            let complaint = format!(
                "`{name}` is already the name of a stream in {}",
                variable::QUEUE_STREAMS
            );
            return Err(reader.contradiction(variable::CONTROL_PLANE_STREAMS, &complaint));
        }
        if has_token && !is_safe(target) {
            let complaint = format!("the token would go to {target} in the clear; use https");
            return Err(reader.contradiction(variable::CONTROL_PLANE_TOKEN_FILE, &complaint));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_names_of_their_own_and_addresses() {
        let many = (0..9)
            .map(|number| format!("s{number}=http://h/"))
            .collect::<Vec<_>>()
            .join(",");
        for (text, expected) in [
            ("[]", Some(vec![])),
            (
                "a=http://127.0.0.1:8082/v1/queue/stream",
                Some(vec!["a http://127.0.0.1:8082/v1/queue/stream"]),
            ),
            (
                "a=http://h/x?namespace=agents, b-2=https://h/",
                Some(vec!["a http://h/x", "b-2 https://h/"]),
            ),
            ("http://h/", None),
            ("=http://h/", None),
            ("A=http://h/", None),
            ("a b=http://h/", None),
            ("a=ftp://h/", None),
            ("a=h/x", None),
            ("a=http://user@h/", None),
            ("a=http://h/,a=http://g/", None),
            (&many, None),
        ] {
            let sources = Sources::parse(text);
            let shown = sources.map(|Sources(sources)| {
                let each = sources.iter();
                each.map(|(name, target)| format!("{name} {target}"))
                    .collect::<Vec<_>>()
            });
            let expected =
                expected.map(|each| each.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn a_token_goes_only_where_nobody_listens() {
        for (url, expected) in [
            ("https://control.example/", true),
            ("http://127.0.0.1:1/", true),
            ("http://[::1]:1/", true),
            ("http://localhost/", true),
            ("http://control.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            let target = Target::parse(url).expect("a target");
            assert_eq!(is_safe(&target), expected, "{url}");
        }
    }
}
