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
    net::SocketAddr,
    path::Path,
    process::{self, Stdio},
    time::Duration,
};
use support::{
    http,
    image::OwnPrograms,
    lab::{
        Lab,
        pki::{Authority, Subject},
    },
    ports::free_addresses,
    wait,
};
use tokio::process::{Child, Command};

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
    let [admission, admins @ ..] = free_addresses::<4>()?;
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
    let programs = [
        ("agents", &["controller"][..], &[][..]),
        ("agents-sidecar", &[], &[]),
        ("agents-webhook", &[], &webhook),
    ];
    for ((name, arguments, settings), admin) in programs.into_iter().zip(admins) {
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

/// Waits until the program says that it is ready; one that has ended will never say so.
async fn ready(name: &str, admin: SocketAddr, child: &mut Child) -> Result<()> {
    let admin = admin.to_string();
    let answer = wait::retry(name, DEADLINE, || http::get(&admin, "/readyz"));
    tokio::select! {
        answer = answer => answer.map(drop),
        status = child.wait() => bail!("{name} ended with {}; see `lab logs {name}`", status?),
    }
}

fn path(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file).into_os_string().into_string();
    path.ok().context("the lab's folder is not UTF-8")
}
