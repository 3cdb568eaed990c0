//! Tier 1: etcd, kube-apiserver and kube-controller-manager, and the settings both tiers share.
//!
//! Describes processes and writes their files; starts nothing.

use super::{
    pki::{Authority, Subject},
    process::{Part, Readiness, Step},
    tools::Programs,
};
use anyhow::Result;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Group whose members may do everything.
const MASTERS: &str = "system:masters";
/// Addresses of Services.
pub(super) const SERVICES: &str = "10.96.0.0/16";
/// Address under which pods find the API server.
const API_SERVICE: &str = "10.96.0.1";

/// Where things are and how they are reached; the same for both tiers.
pub struct Layout<'a> {
    /// The lab's folder.
    pub folder: &'a Path,
    /// The built programs.
    pub programs: &'a Programs,
    /// Port of etcd for the API server.
    pub etcd_port: u16,
    /// Port of the API server.
    pub api_port: u16,
    /// APIs that it shall not have, as group and version.
    pub without: &'a [String],
}

impl Layout<'_> {
    /// The lab administrator's kubeconfig.
    pub fn admin(&self) -> PathBuf {
        admin_kubeconfig(self.folder)
    }

    pub(super) fn pki(&self, file: &str) -> PathBuf {
        self.folder.join("pki").join(file)
    }

    /// The kubeconfig of a component.
    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.kubeconfig"))
    }

    /// Address of the API server as the components see it.
    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port)
    }

    pub(super) fn part(&self, name: &str) -> Result<Part> {
        Ok(Part::new(name, self.programs.path(name)?))
    }
}

/// What the API server keeps in its audit log: who wrote what, what admission said about it, and all that pods ask for.
const AUDIT_RULES: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete], resources: [{group: agents.proompteng.ai}, {group: batch}]}
- {level: None, userGroups: ['system:serviceaccounts:kube-system']}
- {level: Metadata, userGroups: ['system:serviceaccounts']}
- {level: None}
";
const AUDIT_POLICY: &str = "audit-policy.yaml";

/// The audit log in a lab's folder.
pub fn audit_log(folder: &Path) -> PathBuf {
    folder.join("audit.log")
}

/// The administrator's kubeconfig in a lab's folder.
pub fn admin_kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Writes keys, certificates and kubeconfigs of the control plane; `node_address` is one more name of the API server.
pub fn write_files(layout: &Layout<'_>, node_address: Option<&str>) -> Result<Authority> {
    fs::write(layout.folder.join(AUDIT_POLICY), AUDIT_RULES)?;
    let authority = Authority::make(&layout.folder.join("pki"))?;
    let mut hosts = vec![
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        API_SERVICE,
    ];
    hosts.extend(node_address);
    let client = |name, group| Subject {
        name,
        group,
        hosts: &[],
    };
    let server = Subject {
        name: "kube-apiserver",
        group: "",
        hosts: &hosts,
    };
    authority.issue("apiserver", server)?;
    authority.issue("admin", client("admin", MASTERS))?;
    authority.issue(
        "controller-manager",
        client("system:kube-controller-manager", ""),
    )?;
    authority.signing_pair("service-account")?;
    let server = layout.server();
    authority.kubeconfig(&layout.admin(), "admin", &server)?;
    let controller_manager = layout.kubeconfig("controller-manager");
    authority.kubeconfig(&controller_manager, "controller-manager", &server)?;
    Ok(authority)
}

/// The start of tier 1.
pub fn steps(layout: &Layout<'_>) -> Result<Vec<Step>> {
    Ok(vec![
        Step::Start(etcd(layout)?),
        Step::Start(
            api_server(layout)?
                .flag("bind-address", "127.0.0.1")
                .flag("endpoint-reconciler-type", "none"),
        ),
        // Ends itself when the API server is not there within ten seconds, which a busy machine may not manage.
        Step::Await(Readiness::ApiServer(layout.admin())),
        Step::Start(controller_manager(layout)?),
        Step::Await(Readiness::Usable(layout.admin())),
    ])
}

pub(super) fn etcd(layout: &Layout<'_>) -> Result<Part> {
    let clients = format!("http://127.0.0.1:{}", layout.etcd_port);
    // Nobody ever dials a single member's peer address, so the kernel may choose the real port.
    let peers = "http://127.0.0.1:0";
    Ok(layout
        .part("etcd")?
        .flag("name", "lab")
        .file("data-dir", layout.folder.join("etcd"))
        .flag("listen-client-urls", &clients)
        .flag("advertise-client-urls", &clients)
        .flag("listen-peer-urls", peers)
        .flag("initial-advertise-peer-urls", peers)
        .flag("initial-cluster", format!("lab={peers}"))
        .flag("unsafe-no-fsync", true)
        .flag("log-level", "warn"))
}

pub(super) fn api_server(layout: &Layout<'_>) -> Result<Part> {
    let server = layout
        .part("kube-apiserver")?
        .flag(
            "etcd-servers",
            format!("http://127.0.0.1:{}", layout.etcd_port),
        )
        .flag("secure-port", layout.api_port)
        .file("tls-cert-file", layout.pki("apiserver.crt"))
        .file("tls-private-key-file", layout.pki("apiserver.key"))
        .file("client-ca-file", layout.pki("ca.crt"))
        .flag("authorization-mode", "Node,RBAC")
        .flag("service-account-issuer", "https://kubernetes.default.svc")
        .file(
            "service-account-key-file",
            layout.pki("service-account.pub"),
        )
        .file(
            "service-account-signing-key-file",
            layout.pki("service-account.key"),
        )
        .flag("service-cluster-ip-range", SERVICES)
        .flag("allow-privileged", true)
        .flag("enable-priority-and-fairness", false)
        .file("audit-policy-file", layout.folder.join(AUDIT_POLICY))
        .file("audit-log-path", audit_log(layout.folder))
        // A test run writes tens of thousands of objects, and nobody looks far back.
        .flag("audit-log-maxsize", 20)
        .flag("audit-log-maxbackup", 1)
        .flag("profiling", false);
    let off = layout.without.iter().map(|api| format!("{api}=false"));
    Ok(match layout.without {
        [] => server,
        _ => server.flag("runtime-config", off.collect::<Vec<_>>().join(",")),
    })
}

pub(super) fn controller_manager(layout: &Layout<'_>) -> Result<Part> {
    Ok(layout
        .part("kube-controller-manager")?
        .file("kubeconfig", layout.kubeconfig("controller-manager"))
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", 0)
        .flag("leader-elect", false)
        // Audit and admission then see which controller acts.
        .flag("use-service-account-credentials", true)
        .file(
            "service-account-private-key-file",
            layout.pki("service-account.key"),
        )
        .file("root-ca-file", layout.pki("ca.crt"))
        // With the default limits the first service account takes twice as long.
        .flag("kube-api-qps", 1000)
        .flag("kube-api-burst", 1000)
        .flag("profiling", false))
}
