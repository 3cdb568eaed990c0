//! One run of a lab, from the claim on its folder to the removal of every trace.

use super::Options;
use crate::{
    image::{self, Image},
    lab::{
        control_plane::{self, Layout},
        down, node,
        process::{
            Identity, Part, Step,
            supervisor::{self, Supervisor},
        },
        relay::Relay,
        report::{Report, spoken},
        state::{Claim, Phase, Record, Tier},
        tools::{self, Programs, build},
    },
    ports::free_addresses,
};
use anyhow::{Error, Result};
use std::{env, fs, path::PathBuf};

/// How often a start is tried again when another program took a port that was free a moment before.
const ATTEMPTS: usize = 3;

/// A lab that is being started, runs, or is being stopped.
pub(super) struct Session {
    claim: Claim,
    record: Record,
    supervisor: Supervisor,
    /// Brings the API server of a node to this machine's loopback.
    relay: Option<Relay>,
    kubectl: PathBuf,
    report: Report,
}

impl Session {
    pub(super) fn begin(claim: Claim, options: &Options, report: Report) -> Result<Self> {
        claim.empty()?;
        let record = Record {
            name: options.name.clone(),
            tier: options.tier,
            note: None,
            phase: Phase::Building,
            owner: Identity::of_this_process()?,
            parts: Vec::new(),
            node: None,
            cgroup: None,
            server: None,
        };
        claim.write(&record)?;
        let supervisor = Supervisor::new(claim.folder())?;
        Ok(Self {
            claim,
            record,
            supervisor,
            relay: None,
            kubectl: PathBuf::new(),
            report,
        })
    }

    /// Builds what is missing and starts everything; returns when the cluster is usable.
    pub(super) async fn start(&mut self, options: &Options) -> Result<()> {
        if options.tier == Tier::Node
            && let Some(reason) = node::obstacle(self.report).await?
        {
            self.report.line(format!(
                "tier 2 is not possible here: {reason}; starting tier 1 instead"
            ));
            self.record.tier = Tier::ControlPlane;
            self.record.note = Some(reason);
        }
        let wanted = self.wanted(options);
        let (programs, images) = tokio::try_join!(
            build::programs(&wanted, self.report),
            self.product_images(options)
        )?;
        self.kubectl = programs.path("kubectl")?.clone();
        let clock = Report::start();
        match self.record.tier {
            Tier::ControlPlane => self.start_control_plane(&programs, options).await?,
            Tier::Node => self.start_node(&programs, options).await?,
        }
        self.import(&images, &programs).await?;
        self.enter(Phase::Ready)?;
        self.announce(options, clock);
        Ok(())
    }

    fn wanted(&self, options: &Options) -> Vec<&'static str> {
        let mut wanted = tools::of_tier(self.record.tier);
        if options.dns && self.record.tier == Tier::Node {
            wanted.push("coredns");
        }
        wanted
    }

    /// Go and Rust build side by side.
    async fn product_images(&self, options: &Options) -> Result<Vec<Image>> {
        if options.images && self.record.tier == Tier::Node {
            image::build_static(self.report).await?.product_images()
        } else {
            Ok(Vec::new())
        }
    }

    async fn import(&mut self, images: &[Image], programs: &Programs) -> Result<()> {
        let Some(first) = self.record.node.clone() else {
            return Ok(());
        };
        for image in images {
            let archive = tempfile::NamedTempFile::new_in(self.claim.folder())?;
            image.write(archive.path())?;
            let words = node::import_words(&node::containerd_socket(&first), archive.path());
            let part = Part::new("import", programs.path("ctr")?).words(words);
            self.supervisor
                .execute(&[Step::Run(part)], self.report)
                .await?;
            self.report.line(format!("image {} is there", image.name()));
        }
        Ok(())
    }

    async fn start_control_plane(&mut self, programs: &Programs, options: &Options) -> Result<()> {
        let folder = self.folder();
        let mut attempt = 1;
        loop {
            let [etcd_port, api_port] = free_addresses()?.map(|address| address.port());
            let layout = Layout {
                folder: &folder,
                programs,
                etcd_port,
                api_port,
                without: &options.without,
            };
            match self.try_control_plane(&layout).await {
                Err(error) if attempt < ATTEMPTS && took_port(&error) => {
                    self.report
                        .line("another program took a port; trying again");
                    self.supervisor.stop().await?;
                    self.claim.empty()?;
                    self.supervisor = Supervisor::new(&folder)?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    async fn try_control_plane(&mut self, layout: &Layout<'_>) -> Result<()> {
        control_plane::write_files(layout, None)?;
        self.record.server = Some(layout.server());
        self.enter(Phase::Starting)?;
        self.supervisor
            .execute(&control_plane::steps(layout)?, self.report)
            .await
    }

    async fn start_node(&mut self, programs: &Programs, options: &Options) -> Result<()> {
        let folder = self.folder();
        let layout = Layout {
            folder: &folder,
            programs,
            etcd_port: node::ETCD_PORT,
            api_port: node::API_PORT,
            without: &options.without,
        };
        // The process number keeps labs of the same name but of different state folders apart.
        let cgroup = format!("agents-lab-{}-{}", self.record.name, self.record.owner.pid);
        self.record.cgroup = Some(cgroup.clone());
        self.enter(Phase::Starting)?; // written down before it is made, so that it is removed in any case
        node::make_cgroup(&cgroup)?;
        let (part, authority) = node::prepare(&layout, &cgroup, options.dns)?;
        self.supervisor.start(&part)?;
        self.enter(Phase::Starting)?;
        let first = tokio::select! {
            first = node::first_process(&folder) => first?,
            error = self.breaks() => return Err(error),
        };
        self.record.node = Some(first.clone());
        let relay = node::relay_api_server(&first)?;
        let server = format!("https://{}", relay.address());
        authority.kubeconfig(&layout.admin(), "admin", &server)?;
        self.record.server = Some(server);
        self.relay = Some(relay);
        self.enter(Phase::Starting)?;
        self.supervisor
            .execute(&node::steps(&layout), self.report)
            .await
    }

    fn folder(&self) -> PathBuf {
        self.claim.folder().to_owned()
    }

    fn announce(&self, options: &Options, clock: Report) {
        let Record {
            name, tier, server, ..
        } = &self.record;
        let server = server.as_deref().unwrap_or_default();
        let kubeconfig = control_plane::admin_kubeconfig(self.claim.folder());
        self.report.line(format!(
            "lab `{name}`, {tier}, usable after {}",
            spoken(clock.elapsed())
        ));
        println!("KUBECONFIG={}", kubeconfig.display());
        println!("API server  {server}");
        println!("logs        {}/logs", self.claim.folder().display());
        if !options.until_stdin_closes {
            println!("stop        Ctrl-C, or `lab down --name {name}`");
        }
    }

    /// Writes down how far it is and what runs.
    fn enter(&mut self, phase: Phase) -> Result<()> {
        self.record.phase = phase;
        self.record.parts = self.supervisor.parts();
        self.claim.write(&self.record)
    }

    /// Runs the person's command, if there is one, and then waits for something to break.
    pub(super) async fn stay(&mut self, options: &Options) -> Error {
        if let Some((program, arguments)) = options.command.split_first() {
            let part = Part::new("command", program).words(arguments);
            let part = self.environment(part);
            if let Err(error) = self.supervisor.run_for_person(&part).await {
                return error;
            }
        }
        self.breaks().await
    }

    /// Tells a command which lab it is for; `kubectl` comes first in its path.
    fn environment(&self, part: Part) -> Part {
        let folder = self.claim.folder();
        let tools = self.kubectl.parent().unwrap_or(folder).display();
        let path = env::var("PATH").unwrap_or_default();
        part.variable("PATH", format!("{tools}:{path}"))
            .variable(
                "KUBECONFIG",
                control_plane::admin_kubeconfig(folder)
                    .display()
                    .to_string(),
            )
            .variable("KUBECACHEDIR", folder.join("kubectl").display().to_string())
            .variable("NO_PROXY", "127.0.0.1,localhost")
            .variable("LAB_NAME", self.record.name.to_string())
            .variable("LAB_TIER", self.record.tier.number())
    }

    /// Waits for a part that ends although nobody asked it to.
    pub(super) async fn breaks(&mut self) -> Error {
        match self.supervisor.exited().await {
            Ok(exit) => self.supervisor.complaint(&exit),
            Err(error) => error,
        }
    }

    /// Ends all processes after a failed start but keeps the logs.
    pub(super) async fn fail(mut self, error: &Error) -> Result<()> {
        if self.record.phase == Phase::Building {
            return self.end().await; // nothing was started, so there is nothing to look into
        }
        self.stop().await?;
        self.enter(Phase::Failed)?;
        let folder = self.claim.folder();
        fs::write(supervisor::log(folder, "lab"), format!("{error:#}\n"))?;
        let logs = folder.join("logs");
        self.report.line(format!(
            "the start failed; logs are kept in {}",
            logs.display()
        ));
        Ok(())
    }

    /// Ends everything and removes every trace.
    pub(super) async fn end(mut self) -> Result<()> {
        self.stop().await?;
        self.claim.remove()
    }

    async fn stop(&mut self) -> Result<()> {
        drop(self.relay.take());
        self.supervisor.stop().await?;
        down::end(&self.record).await
    }
}

/// Whether a start failed because a port was in use.
fn took_port(error: &Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
