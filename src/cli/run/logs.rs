//! `agents run logs`: what the pods of a run wrote, through the API server, one pod after the other.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write};
use std::pin::pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::ResourceExt;
use kube::api::{ListParams, LogParams};
use tokio::time::sleep;

use super::gone::no_pods;
use super::{read, view};
use crate::api::contract::{container, label};
use crate::api::custody::{PodState, pod_state_of};
use crate::api::kinds::AgentRun;
use crate::cli::failure::Failure;
use crate::cli::session::{Session, ask, list_all};
use crate::cli::shown::plain;
use crate::kit::exit::Exit;

/// Time between two looks for the next pod of a run that goes on.
const LOOK: Duration = Duration::from_secs(1);

/// What is printed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the run.
    name: String,
    /// Go on until the run has ended.
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines of each pod.
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only this step of a workflow.
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Begin each line with its time.
    #[arg(long)]
    timestamps: bool,
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Exit, Failure> {
    let run = read(session, &args.name).await?;
    let mut done = BTreeSet::new();
    let mut cut = false;
    loop {
        // Asked for before the pods: what it had made by its end is then among them.
        let is_over = view::ended(&read(session, &args.name).await?).is_some();
        let pods = pods_of(session, &run, args).await?;
        let several = pods.len() > 1;
        let next = pods.iter().find(|pod| {
            !done.contains(&pod.name_any()) && (!args.follow || not_begun(pod).is_none())
        });
        match next {
            Some(pod) => {
                let ending = print_pod(session, pod, args, several, cut).await?;
                match ending {
                    Ending::ReaderLeft => return Ok(Exit::Done),
                    Ending::Whole => {
                        cut = args.follow && still_works(session, pod).await?;
                        if !cut {
                            done.insert(pod.name_any());
                        }
                    }
                    Ending::NotBegun(why) => {
                        eprintln!(
                            "{} has written nothing yet: {}",
                            pod.name_any(),
                            plain(&why)
                        );
                        done.insert(pod.name_any());
                    }
                }
            }
            None if args.follow && !is_over => sleep(LOOK).await,
            None if done.is_empty() => return Err(nothing(session, &run, args).await?),
            None => return Ok(Exit::Done),
        }
    }
}

/// Why nothing was printed.
async fn nothing(session: &Session, run: &AgentRun, args: &Args) -> Result<Failure, Failure> {
    if let Some(step) = &args.step {
        return Ok(
            Failure::new(format!("{} has no pod of a step {step}", args.name)).next(format!(
                "`agents run get {} -o yaml` shows its steps under status.workflow",
                args.name
            )),
        );
    }
    let uid = run.uid().unwrap_or_default();
    let its = ListParams::default().labels(&format!("{}={uid}", label::RUN_UID));
    let jobs = list_all("list the Jobs of the run", &session.api::<Job>(), &its).await?;
    let run = read(session, &args.name).await?;
    Ok(Failure::new(no_pods(
        &run,
        !jobs.is_empty(),
        Timestamp::now(),
    )))
}

/// The pods of the run, the oldest first.
async fn pods_of(session: &Session, run: &AgentRun, args: &Args) -> Result<Vec<Pod>, Failure> {
    let uid = run.uid().unwrap_or_default();
    let its = ListParams::default().labels(&format!("{}={uid}", label::RUN_UID));
    let mut pods = list_all("list the pods of the run", &session.api::<Pod>(), &its).await?;
    if let Some(step) = &args.step {
        pods.retain(|pod| pod.labels().get(label::STEP) == Some(step));
    }
    pods.sort_by_key(|pod| (pod.creation_timestamp().map(|made| made.0), pod.name_any()));
    Ok(pods)
}

/// How the log of a pod came to its end.
enum Ending {
    /// All of it was printed.
    Whole,
    /// Its container has not begun; why.
    NotBegun(String),
    /// Nobody reads on.
    ReaderLeft,
}

async fn print_pod(
    session: &Session,
    pod: &Pod,
    args: &Args,
    several: bool,
    cut: bool,
) -> Result<Ending, Failure> {
    let name = pod.name_any();
    // The API server gives an empty log of a pod without a node, which would look like one that had nothing to say.
    if let Some(why) = not_begun(pod) {
        return Ok(Ending::NotBegun(why));
    }
    // A stream that was cut goes on at its end: a line twice is worse than a word about it.
    let tail = match cut {
        true => Some(0),
        false => args.tail.map(i64::from),
    };
    let params = LogParams {
        container: Some(container::AGENT_RUNNER.to_owned()),
        follow: args.follow,
        tail_lines: tail,
        timestamps: args.timestamps,
        ..LogParams::default()
    };
    if cut {
        eprintln!("The stream of {name} was cut; it goes on from here.");
    }
    let pods = session.api::<Pod>();
    let stream = match pods.log_stream(&name, &params).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) if status.code == 400 => {
            return Ok(Ending::NotBegun(status.message.clone()));
        }
        Err(error) => return Err(Failure::call(&format!("read the log of {name}"), &error)),
    };
    let prefix = several.then(|| format!("[{name}] "));
    copy(stream, &mut io::stdout().lock(), prefix.as_deref()).await
}

/// Copies as it comes, each line behind the prefix; never holds more than one chunk.
async fn copy(
    stream: impl AsyncBufRead,
    out: &mut impl Write,
    prefix: Option<&str>,
) -> Result<Ending, Failure> {
    let mut stream = pin!(stream);
    let mut at_start = true;
    loop {
        let chunk = stream.fill_buf().await;
        let chunk = chunk.map_err(|error| {
            Failure::new("the log could not be read to its end").because(&error)
        })?;
        if chunk.is_empty() {
            return Ok(Ending::Whole);
        }
        let written = write(chunk, out, prefix, &mut at_start);
        let length = chunk.len();
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ending::ReaderLeft),
            other => other.map_err(|error| Failure::new("could not print").because(&error))?,
        }
        stream.consume_unpin(length);
    }
}

fn write(
    chunk: &[u8],
    out: &mut impl Write,
    prefix: Option<&str>,
    at_start: &mut bool,
) -> io::Result<()> {
    let Some(prefix) = prefix else {
        out.write_all(chunk)?;
        return out.flush();
    };
    for line in chunk.split_inclusive(|byte| *byte == b'\n') {
        if *at_start {
            out.write_all(prefix.as_bytes())?;
        }
        out.write_all(line)?;
        *at_start = line.ends_with(b"\n");
    }
    out.flush()
}

/// Why the container has written nothing; none if it may have.
fn not_begun(pod: &Pod) -> Option<String> {
    if pod_state_of(pod) != PodState::Active {
        return None;
    }
    let Some(state) = runner(pod) else {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let mut conditions = conditions.unwrap_or_default().iter();
        let unplaced = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False");
        let why = unplaced.and_then(|one| one.message.clone());
        return Some(why.unwrap_or_else(|| "its container has not begun".to_owned()));
    };
    let waiting = state.waiting.as_ref()?;
    let why = waiting.message.clone().or_else(|| waiting.reason.clone());
    Some(why.unwrap_or_else(|| "its container waits".to_owned()))
}

/// The state of the container that does the work.
fn runner(pod: &Pod) -> Option<&ContainerState> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let own = statuses
        .iter()
        .find(|status| status.name == container::AGENT_RUNNER)?;
    own.state.as_ref()
}

/// Whether the container goes on although its log came to an end.
async fn still_works(session: &Session, pod: &Pod) -> Result<bool, Failure> {
    let pods = session.api::<Pod>();
    let now = ask("read the pod", pods.get_opt(&pod.name_any())).await?;
    let state = now.as_ref().and_then(runner);
    Ok(state.is_some_and(|state| state.running.is_some()))
}

#[cfg(test)]
mod tests {
    use futures::io::Cursor;

    use super::*;

    #[tokio::test]
    async fn lines_are_copied_as_they_are_and_behind_their_prefix() {
        for (text, prefix, expected) in [
            ("a\nb", None, "a\nb"),
            ("a\nb", Some("[p] "), "[p] a\n[p] b"),
            ("", Some("[p] "), ""),
            ("\n\n", Some("[p] "), "[p] \n[p] \n"),
        ] {
            let mut out = Vec::new();
            let ending = copy(Cursor::new(text), &mut out, prefix).await;
            assert!(matches!(ending, Ok(Ending::Whole)));
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_pod_that_has_not_begun_says_why() {
        let said = |status: serde_json::Value| {
            let pod = serde_json::from_value(
                serde_json::json!({"metadata": {"name": "p"}, "status": status}),
            );
            not_begun(&pod.unwrap())
        };
        let container = |state: serde_json::Value| {
            serde_json::json!({"phase": "Pending", "containerStatuses": [
                {"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
            ]})
        };
        let json = |text: &str| serde_json::from_str(text).unwrap();
        assert_eq!(
            said(json("null")).as_deref(),
            Some("its container has not begun")
        );
        let unplaced = json(
            r#"{"conditions": [{"type": "PodScheduled", "status": "False", "message": "no node fits"}]}"#,
        );
        assert_eq!(said(unplaced).as_deref(), Some("no node fits"));
        let pulling = container(json(r#"{"waiting": {"reason": "ContainerCreating"}}"#));
        assert_eq!(said(pulling).as_deref(), Some("ContainerCreating"));
        assert_eq!(said(container(json(r#"{"running": {}}"#))), None);
        assert_eq!(said(json(r#"{"phase": "Succeeded"}"#)), None);
    }

    #[test]
    fn a_line_that_comes_in_two_chunks_has_one_prefix() {
        let (mut out, mut at_start) = (Vec::new(), true);
        for chunk in ["on", "e\ntw", "o\n"] {
            write(chunk.as_bytes(), &mut out, Some("> "), &mut at_start).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "> one\n> two\n");
    }

    #[tokio::test]
    async fn a_reader_that_left_is_no_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let copied = copy(Cursor::new("a"), &mut Closed, None).await;
        assert!(matches!(copied, Ok(Ending::ReaderLeft)));
    }
}
