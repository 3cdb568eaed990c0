//! The programs as processes of this machine, where no pod can run.

use super::{
    Console, Held, Programs, Up,
    admission::{RUNG, Webhook},
};
use agents::{
    api::{
        contract::{env, path, queue as queue_path},
        registration::Reach,
    },
    kit::args::variable as common,
    serve::variable as serve,
};
use agents_sidecar::args::variable as sidecar;
use agents_webhook::args::variable;
use anyhow::{Context, Result, anyhow, bail};
use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::Stdio,
    time::Duration,
};
use support::{
    http,
    image::OwnPrograms,
    lab::{
        Lab,
        pki::{Authority, Subject},
        process::supervisor,
    },
    ports::free_addresses,
    wait,
};
use tokio::process::{Child, Command};

/// Where a program pushes its metrics.
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
/// How often, in milliseconds; people who look around do not wait for the usual time.
const METRICS_INTERVAL: (&str, &str) = ("OTEL_METRIC_EXPORT_INTERVAL", "2000");

const DEADLINE: Duration = Duration::from_secs(20);

/// Starts the programs and waits until each says that it is ready.
pub(super) async fn start(lab: &Lab, own: &OwnPrograms) -> Result<Programs> {
    let folder = lab.kubeconfig().parent().context("the lab has no folder")?;
    let authority = Authority::make(&folder.join("webhook"))?;
    let subject = Subject {
        name: "agents-webhook",
        group: "",
        hosts: &["127.0.0.1", "localhost"],
    };
    authority.issue("tls", subject)?;
    let [admission, grpc, otlp, queue, console, admins @ ..] = free_addresses::<9>()?;
    let webhook = [
        (variable::LISTEN, admission.to_string()),
        (variable::RUNG, RUNG.to_string()),
        (env::POLICY_JOB_DELETE, "warn".to_owned()),
        (
            common::TLS_CERTIFICATE_FILE,
            text(folder, "webhook/tls.crt")?,
        ),
        (common::TLS_KEY_FILE, text(folder, "webhook/tls.key")?),
    ];
    let controller = [
        (env::QUEUE_LISTEN, queue.to_string()),
        (METRICS_ENDPOINT, format!("http://{grpc}")),
        (METRICS_INTERVAL.0, METRICS_INTERVAL.1.to_owned()),
    ];
    let sidecar = [
        (sidecar::OTLP_GRPC_LISTEN, grpc.to_string()),
        (sidecar::OTLP_HTTP_LISTEN, otlp.to_string()),
        (
            sidecar::QUEUE_STREAMS,
            format!("controller=http://{queue}{}", queue_path::STREAM),
        ),
    ];
    let control_plane = [(serve::LISTEN, console.to_string())];
    let mut up = Vec::new();
    let programs = [
        ("agents", &["controller"][..], &controller[..]),
        ("agents-sidecar", &[], &sidecar),
        ("agents-webhook", &[], &webhook),
        ("agents serve", &["serve"], &control_plane),
    ];
    for ((name, arguments, settings), admin) in programs.into_iter().zip(admins) {
        let program = name.split(' ').next().unwrap_or(name);
        let mut command = Command::from(supervisor::bound(&own.path(program)?, arguments));
        command
            .envs(lab.environment())
            .envs(settings.iter().map(|(name, value)| (*name, value)))
            .env(common::ADMIN_LISTEN, admin.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(supervisor::log(folder, name))?)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        // The log goes with the lab, so what it says is told here.
        ready(name, admin, &mut child).await.map_err(|error| {
            let said = supervisor::last_words(folder, name);
            anyhow!("{error:#}; its log ends with:\n{said}")
        })?;
        up.push(Up {
            name,
            admin,
            _held: Held::Process(child),
        });
    }
    let webhook = Webhook {
        reach: Reach::Url(format!("https://{admission}")),
        ca: fs::read(authority.certificate())?,
    };
    let console = Console {
        address: console,
        _held: None,
    };
    Ok(Programs {
        up,
        webhook,
        console,
    })
}

/// Waits until the program says that it is ready; one that has ended will never say so.
async fn ready(name: &str, admin: SocketAddr, child: &mut Child) -> Result<()> {
    let admin = admin.to_string();
    let answer = wait::retry(name, DEADLINE, || http::get(&admin, path::READYZ));
    tokio::select! {
        answer = answer => answer.map(drop),
        status = child.wait() => bail!("{name} ended with {}", status?),
    }
}

fn text(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file).into_os_string().into_string();
    path.ok().context("the lab's folder is not UTF-8")
}
