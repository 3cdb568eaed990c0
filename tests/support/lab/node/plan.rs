//! What a node does inside its namespaces, decided outside and handed over as a file.
//!
//! Pure: from programs and names to files and steps.

use super::files::{self, CONTAINERD_SOCKET, NODE_ADDRESS, NODE_NAME};
use crate::lab::{
    control_plane::{self, Layout},
    pki::{Authority, Subject},
    process::{Part, Readiness, Step},
};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What the node's first process is told.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Folders that stay visible below those that are hidden.
    pub(super) visible: Vec<PathBuf>,
    /// Words for the `ip` command.
    pub(super) network: Vec<String>,
    /// What to start, in order.
    pub(super) steps: Vec<Step>,
}

impl Plan {
    fn path(folder: &Path) -> PathBuf {
        folder.join("plan.json")
    }

    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = Self::path(folder);
        let bytes =
            fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        Ok(fs::write(
            Self::path(folder),
            serde_json::to_vec_pretty(self)?,
        )?)
    }
}

/// What a node needs to know.
pub(super) struct Node<'a> {
    pub(super) layout: &'a Layout<'a>,
    /// Name of its control group.
    pub(super) cgroup: &'a str,
    /// Archive of the pause image.
    pub(super) pause: &'a Path,
    pub(super) dns: bool,
}

impl Node<'_> {
    fn folder(&self) -> &Path {
        self.layout.folder
    }

    /// Certificates and kubeconfigs of the node's components.
    pub(super) fn write_credentials(&self, authority: &Authority) -> Result<()> {
        let kubelet = format!("system:node:{NODE_NAME}");
        let users = [
            (
                "apiserver-kubelet-client",
                "kube-apiserver-kubelet-client",
                "system:masters",
            ),
            ("scheduler", "system:kube-scheduler", ""),
            ("kube-proxy", "system:kube-proxy", ""),
            ("coredns", "system:coredns", ""),
            ("kubelet", kubelet.as_str(), "system:nodes"),
        ];
        for (file, name, group) in users {
            let hosts: &[&str] = if file == "kubelet" {
                &[NODE_NAME, NODE_ADDRESS, "127.0.0.1"]
            } else {
                &[]
            };
            authority.issue(file, Subject { name, group, hosts })?;
            authority.kubeconfig(&self.layout.kubeconfig(file), file, &self.layout.server())?;
        }
        authority.kubeconfig(&self.admin(), "admin", &self.layout.server())
    }

    /// The administrator's kubeconfig as used inside.
    fn admin(&self) -> PathBuf {
        self.layout.kubeconfig("admin")
    }

    /// Configuration files.
    pub(super) fn write_files(&self) -> Result<()> {
        let folder = self.folder();
        let write_json = |name: &str, value| fs::write(folder.join(name), format!("{value:#}\n"));
        for needed in ["containerd", "cni", "kubelet", "pod-logs"] {
            fs::create_dir_all(folder.join(needed))?;
        }
        fs::write(
            folder.join("containerd.toml"),
            files::containerd(folder, self.layout.programs)?,
        )?;
        fs::write(
            folder.join("Corefile"),
            files::dns(&self.layout.kubeconfig("coredns")),
        )?;
        write_json("cni/10-lab.conflist", files::network(folder))?;
        write_json("kubelet.json", files::kubelet(folder, self.cgroup))?;
        write_json(
            "kube-proxy.json",
            files::kube_proxy(&self.layout.kubeconfig("kube-proxy")),
        )?;
        write_json("objects.json", files::objects())?;
        Ok(())
    }

    /// The whole plan.
    pub(super) fn plan(&self) -> Result<Plan> {
        let programs = self.layout.programs.0.values();
        let mut visible: Vec<PathBuf> = programs
            .filter_map(|path| path.parent())
            .map(PathBuf::from)
            .collect();
        visible.push(self.folder().to_owned());
        visible.sort();
        visible.dedup();
        Ok(Plan {
            visible,
            network: [
                "link set lo up".to_owned(),
                "link add node0 type bridge".to_owned(),
                format!("address add {NODE_ADDRESS}/24 dev node0"),
                "link set node0 up".to_owned(),
                // Services are reached by rewriting a packet that has a route already.
                "route add default dev node0".to_owned(),
            ]
            .into(),
            steps: self.steps()?,
        })
    }

    /// Containerd and the API server start together, since each takes seconds by itself.
    fn steps(&self) -> Result<Vec<Step>> {
        let mut steps = vec![
            Step::Start(self.containerd()?),
            Step::Start(control_plane::etcd(self.layout)?),
            Step::Start(self.api_server()?),
            Step::Await(Readiness::Socket(CONTAINERD_SOCKET.into())),
            Step::Run(self.import_pause()?),
            Step::Start(self.kubelet()?),
            Step::Await(Readiness::ApiServer(self.admin())),
            Step::Start(self.controller_manager()?),
            Step::Start(self.scheduler()?),
            Step::Start(self.kube_proxy()?),
            Step::Run(self.apply_objects()?),
        ];
        if self.dns {
            steps.push(Step::Start(self.coredns()?));
        }
        Ok(steps)
    }

    fn containerd(&self) -> Result<Part> {
        Ok(self
            .layout
            .part("containerd")?
            .file("config", self.folder().join("containerd.toml")))
    }

    fn api_server(&self) -> Result<Part> {
        let pki = |file: &str| self.layout.pki(file);
        Ok(control_plane::api_server(self.layout)?
            .flag("bind-address", "0.0.0.0")
            .flag("advertise-address", NODE_ADDRESS)
            .file(
                "kubelet-client-certificate",
                pki("apiserver-kubelet-client.crt"),
            )
            .file("kubelet-client-key", pki("apiserver-kubelet-client.key"))
            .file("kubelet-certificate-authority", pki("ca.crt"))
            .flag("kubelet-preferred-address-types", "InternalIP")
            .flag("enable-admission-plugins", "NodeRestriction"))
    }

    fn controller_manager(&self) -> Result<Part> {
        Ok(control_plane::controller_manager(self.layout)?
            .flag("enable-hostpath-provisioner", true))
    }

    fn scheduler(&self) -> Result<Part> {
        Ok(self
            .layout
            .part("kube-scheduler")?
            .file("kubeconfig", self.layout.kubeconfig("scheduler"))
            .flag("bind-address", "127.0.0.1")
            .flag("leader-elect", false)
            .flag("profiling", false))
    }

    fn kubelet(&self) -> Result<Part> {
        Ok(self
            .layout
            .part("kubelet")?
            .file("config", self.folder().join("kubelet.json"))
            .file("kubeconfig", self.layout.kubeconfig("kubelet"))
            .file("root-dir", self.folder().join("kubelet"))
            .file("cert-dir", self.folder().join("kubelet/pki"))
            .flag("hostname-override", NODE_NAME)
            .flag("node-ip", NODE_ADDRESS))
    }

    fn kube_proxy(&self) -> Result<Part> {
        Ok(self
            .layout
            .part("kube-proxy")?
            .file("config", self.folder().join("kube-proxy.json")))
    }

    fn coredns(&self) -> Result<Part> {
        let file = self.folder().join("Corefile").display().to_string();
        Ok(self
            .layout
            .part("coredns")?
            .words(["-conf".to_owned(), file]))
    }

    fn import_pause(&self) -> Result<Part> {
        let ctr = self.layout.programs.path("ctr")?;
        let words = super::import_words(Path::new(CONTAINERD_SOCKET), self.pause);
        Ok(Part::new("import-pause", ctr).words(words))
    }

    fn apply_objects(&self) -> Result<Part> {
        let kubectl = self.layout.programs.path("kubectl")?;
        Ok(Part::new("apply-objects", kubectl)
            // Validation would first fetch the description of the whole API.
            .words(["create", "--validate=false"])
            .file("filename", self.folder().join("objects.json"))
            .file("kubeconfig", self.admin()))
    }
}
