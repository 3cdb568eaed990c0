//! The settings of containerd, CNI, kubelet, kube-proxy and CoreDNS.
//!
//! Pure text. Each setting that looks odd is needed for a node inside namespaces without all capabilities.

use crate::lab::tools::Programs;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Address of the node.
pub(super) const NODE_ADDRESS: &str = "10.77.0.2";
/// Name of the node.
pub(super) const NODE_NAME: &str = "node1";
/// Addresses of pods.
const PODS: &str = "10.88.0.0/24";
/// containerd's socket, as seen inside.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// Name of the image that holds a pod's namespaces open.
pub(super) const PAUSE_IMAGE: &str = "localhost/pause:1";

/// containerd's configuration.
pub(super) fn containerd(folder: &Path, programs: &Programs) -> Result<String> {
    // Debug formatting of a string quotes it as TOML does.
    let quoted = |path: &Path| format!("{:?}", path.display().to_string());
    let mut plugins = Vec::new();
    for name in ["bridge", "loopback", "host-local"] {
        let folder = programs.path(name)?.parent();
        plugins.push(quoted(folder.context("a program has no folder")?));
    }
    plugins.dedup();
    Ok(include_str!("containerd.toml")
        .replace("@root@", &quoted(&folder.join("containerd")))
        .replace("@socket@", &quoted(Path::new(CONTAINERD_SOCKET)))
        .replace("@pause@", &quoted(Path::new(PAUSE_IMAGE)))
        .replace("@plugins@", &plugins.join(", "))
        .replace("@networks@", &quoted(&folder.join("cni")))
        .replace("@shim@", &quoted(programs.path("containerd-shim-runc-v2")?))
        .replace("@runc@", &quoted(programs.path("runc")?)))
}

/// The pods' network: one bridge, addresses handed out from a file.
pub(super) fn network(folder: &Path) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "ipMasq": false,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": folder.join("addresses"),
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
}

/// The kubelet's configuration; `cgroup` is the lab's own group.
pub(super) fn kubelet(folder: &Path, cgroup: &str) -> Value {
    let pki = folder.join("pki");
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "failSwapOn": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "oomScoreAdj": 0,
        "address": "0.0.0.0",
        "port": 10250,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.join("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.join("kubelet.crt"),
        "tlsPrivateKeyFile": pki.join("kubelet.key"),
        "podLogsDir": folder.join("pod-logs"),
        "volumePluginDir": folder.join("kubelet/plugins-exec"),
        "resolvConf": "",
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        // Images are brought in once and cannot be pulled again; a full disk is the developer's to notice.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "registerNode": true,
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "registryPullQPS": 0,
        "shutdownGracePeriod": "0s",
        "logging": {"verbosity": 2},
    })
}

/// kube-proxy's configuration. It must not touch the limits of connection tracking, which a namespace cannot set.
pub(super) fn kube_proxy(kubeconfig: &Path) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE_NAME,
        "clusterCIDR": PODS,
        "clientConnection": {"kubeconfig": kubeconfig},
        "oomScoreAdj": 0,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "nftables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
    })
}

/// CoreDNS: the cluster's names, and a quick no to all others.
pub(super) fn dns(kubeconfig: &Path) -> String {
    format!(
        r".:53 {{
    bind {NODE_ADDRESS}
    errors
    cache 5
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {}
        pods insecure
        ttl 5
    }}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
",
        kubeconfig.display()
    )
}

/// Objects every node needs: rights of CoreDNS, and volumes on demand.
pub(super) fn objects() -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:coredns"},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["endpoints", "services", "pods", "namespaces"],
                    "verbs": ["list", "watch"],
                },
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}],
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "hostpath",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kubernetes.io/host-path",
            "reclaimPolicy": "Delete",
        },
    ]})
}
