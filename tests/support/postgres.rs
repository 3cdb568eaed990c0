//! A real PostgreSQL on the loopback, for one test: started in a folder of its own, never as root, stopped by its id.
//!
//! The programs are those of the Debian package `postgresql`. Where it is missing and the tests run as root, it is
//! installed, which is said; where that is impossible the test is left out.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User, chown};
use std::{
    fs::{self, File, Permissions},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{process::Command, sync::OnceCell, time::timeout};

use crate::{apt, left_out, pki::Authority, ports::free_addresses, wait};

/// Where the package puts its programs: one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// What keeps the package from starting a server of its own when it is installed.
const NO_SERVER: &str = "/etc/postgresql-common/createcluster.conf";
/// Nothing that is done here takes longer.
const DEADLINE: Duration = Duration::from_secs(300);
/// Who may do everything in the server, and how it signs in.
const OWNER: &str = "postgres";
const PASSWORD: &str = "of-the-owner";
/// Who signs in how. Passwords go in the clear only for `clear`.
const WAYS: &str = "\
host all clear 127.0.0.1/32 password
host all hashed 127.0.0.1/32 md5
host all all 127.0.0.1/32 scram-sha-256
";

/// A server that runs, until it is dropped.
pub struct Postgres {
    /// Where it listens.
    pub address: SocketAddr,
    programs: PathBuf,
    folder: TempDir,
    server: Child,
}

impl Postgres {
    /// A server for a test; none, noted as left out, where there can be none. Call it through [`crate::postgres!`], which
    /// knows the test's name.
    pub async fn of_test(test: &str) -> Result<Option<Self>> {
        static PROGRAMS: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();
        match PROGRAMS.get_or_init(programs).await {
            Ok(programs) => Ok(Some(Self::start(programs.clone()).await?)),
            Err(reason) => {
                left_out::note(&left_out::test_name(test), reason)?;
                Ok(None)
            }
        }
    }

    async fn start(programs: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [address] = free_addresses()?;
        prepare(&programs, &folder).await?;
        let log = File::create(folder.path().join("log"))?;
        let mut server = std::process::Command::new(programs.join("postgres"));
        server.arg("-D").arg(folder.path().join("data"));
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "allow_system_table_mods=on",
            "log_connections=on",
            "ssl=on",
            "ssl_cert_file=../certificate.pem",
            "ssl_key_file=../key.pem",
        ] {
            server.args(["-c", setting]);
        }
        server.args(["-p", &address.port().to_string()]);
        server.stdout(Stdio::null()).stderr(log);
        lower(&mut server)?;
        let running = Self {
            address,
            server: server.spawn().context("the PostgreSQL server")?,
            programs,
            folder,
        };
        let up = || async { running.run("SELECT 1").await };
        wait::retry("a PostgreSQL that answers", DEADLINE, up).await?;
        Ok(running)
    }

    /// Has its owner do something, one statement after the other.
    pub async fn run(&self, statements: &str) -> Result<()> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-p", &self.address.port().to_string()])
            .args(["-U", OWNER, "-d", OWNER, "-c", statements])
            .env("PGPASSWORD", PASSWORD);
        finish(psql).await.map(drop)
    }

    /// How often someone has signed in so far.
    pub fn visits_of(&self, user: &str) -> Result<usize> {
        let log = fs::read_to_string(self.folder.path().join("log"))?;
        let line = format!("connection authorized: user={user} ");
        Ok(log.matches(&line).count())
    }

    /// The file with the authority of its certificate, which is for 127.0.0.1.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once: nobody needs what is in it.
        if let Ok(id) = i32::try_from(self.server.id()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGQUIT);
        }
        drop(self.server.wait());
    }
}

/// A PostgreSQL for the calling test; the test returns, noted as left out, where there can be none.
#[macro_export]
macro_rules! postgres {
    () => {{
        fn here() {}
        let test = ::std::any::type_name_of_val(&here);
        match $crate::postgres::Postgres::of_test(test).await? {
            Some(server) => server,
            None => return Ok(()),
        }
    }};
}

/// Files of a new server, which belong to who runs it.
async fn prepare(programs: &Path, folder: &TempDir) -> Result<()> {
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::make()?;
    let pair = authority.issue(&["127.0.0.1"])?;
    fs::write(path("authority.pem"), authority.pem())?;
    fs::write(path("certificate.pem"), pair.certificate_pem)?;
    fs::write(path("key.pem"), pair.key_pem)?;
    fs::write(path("password"), PASSWORD)?;
    fs::set_permissions(path("key.pem"), Permissions::from_mode(0o600))?;
    if let Some((user, group)) = servant()? {
        for name in [
            "",
            "authority.pem",
            "certificate.pem",
            "key.pem",
            "password",
        ] {
            chown(&path(name), Some(user), Some(group))?;
        }
    }
    let mut make = std::process::Command::new(programs.join("initdb"));
    make.arg("-D").arg(path("data"));
    make.arg("--pwfile").arg(path("password"));
    make.args(["-U", OWNER, "--auth=scram-sha-256", "--no-sync"])
        .args(["--locale=C", "--encoding=UTF8"]);
    lower(&mut make)?;
    finish(make.into()).await?;
    fs::write(path("data/pg_hba.conf"), WAYS)?;
    Ok(())
}

/// Who runs the server where we are root, which a server refuses to be.
fn servant() -> Result<Option<(Uid, Gid)>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let nobody = User::from_name("nobody")?.context("there is no user nobody")?;
    Ok(Some((nobody.uid, nobody.gid)))
}

/// Has a program run without the rights of root, in a folder that it may enter.
fn lower(program: &mut std::process::Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    program.current_dir("/").env_clear();
    if let Some((user, group)) = servant()? {
        program.uid(user.as_raw()).gid(group.as_raw());
    }
    Ok(())
}

/// Waits for a program that must end well.
async fn finish(mut program: Command) -> Result<String> {
    program.kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(DEADLINE, program.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok(said)
}

/// Where the programs are, or why there are none.
async fn programs() -> Result<PathBuf, String> {
    if let Some(programs) = newest() {
        return Ok(programs);
    }
    let installed = install().await.err();
    newest().ok_or_else(|| match installed {
        Some(error) => format!("PostgreSQL is not installed and cannot be: {error:#}"),
        None => format!("there is no PostgreSQL in {VERSIONS}"),
    })
}

async fn install() -> Result<()> {
    if Uid::effective().is_root() && !Path::new(NO_SERVER).exists() {
        fs::create_dir_all("/etc/postgresql-common")?;
        fs::write(NO_SERVER, "create_main_cluster = false\n")?;
    }
    apt::install(&["postgresql"]).await
}

/// The programs of the newest version that is there.
fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.flatten();
    let versions = versions.map(|version| version.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(number)?;
    Some(newest.join("bin"))
}
