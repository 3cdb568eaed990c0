//! The programs as processes of this machine, where no pod can run.

use super::{
    Held, Programs, Up,
    admission::{RUNG, Webhook},
};
use agents::api::registration::Reach;
use anyhow::{Context, Result, bail};
use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{self, Stdio},
    time::Duration,
};
use support::{
    http,
    image::StaticPrograms,
    lab::{
        Lab,
        pki::{Authority, Subject},
    },
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

const DEADLINE: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_millis(50);

/// Starts the programs and waits until each says that it is ready.
pub(super) async fn start(lab: &Lab, own: &StaticPrograms) -> Result<Programs> {
    let folder = lab.kubeconfig().parent().context("the lab has no folder")?;
    let authority = Authority::make(&folder.join("webhook"))?;
    let subject = Subject {
        name: "agents-webhook",
        group: "",
        hosts: &["127.0.0.1", "localhost"],
    };
    authority.issue("tls", subject)?;
    let admission = free_address()?;
    let webhook = [
        ("AGENTS_WEBHOOK_LISTEN", admission.to_string()),
        ("AGENTS_WEBHOOK_RUNG", RUNG.to_string()),
        (
            "AGENTS_TLS_CERTIFICATE_FILE",
            path(folder, "webhook/tls.crt")?,
        ),
        ("AGENTS_TLS_KEY_FILE", path(folder, "webhook/tls.key")?),
    ];
    let mut up = Vec::new();
    for (name, arguments, settings) in [
        ("agents", &["controller"][..], &[][..]),
        ("agents-sidecar", &[], &[]),
        ("agents-webhook", &[], &webhook),
    ] {
        let admin = free_address()?;
        let mut command = bound_to_this_process(&own.path(name)?)?;
        command
            .args(arguments)
            .envs(lab.environment())
            .envs(settings.iter().map(|(name, value)| (*name, value)))
            .env("AGENTS_ADMIN_LISTEN", admin.to_string())
            .stderr(File::create(
                folder.join("logs").join(format!("{name}.log")),
            )?);
        let mut child = command.spawn()?;
        ready(name, admin, &mut child).await?;
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
    Ok(Programs { up, webhook })
}

/// A command whose process the kernel ends when this one is gone, however it goes.
fn bound_to_this_process(program: &Path) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args([
            "stage",
            "part",
            "--parent",
            &process::id().to_string(),
            "--",
        ])
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    Ok(command)
}

async fn ready(name: &str, admin: SocketAddr, child: &mut Child) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("{name} ended with {status}; see `lab logs {name}`");
        }
        match http::get(&admin.to_string(), "/readyz").await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= end => {
                return Err(error.context(format!("{name} is not ready after {DEADLINE:?}")));
            }
            Err(_) => sleep(PERIOD).await,
        }
    }
}

/// An address that nobody uses now; whoever takes it first has it.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn path(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file).into_os_string().into_string();
    path.ok().context("the lab's folder is not UTF-8")
}
