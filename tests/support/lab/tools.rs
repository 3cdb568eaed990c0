//! The catalogue of Go programs the lab can build, each pinned by `tests/tools/<folder>/go.mod` and `go.sum`.
//!
//! Knows names, packages and flags only; [`build`] runs the compiler.

pub mod build;

use super::state::Tier;
use anyhow::{Result, bail};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

/// Kubernetes and its version as the programs themselves report it; without these flags they claim v0.0.0.
const KUBERNETES_FLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.35.4 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=35 \
    -X k8s.io/client-go/pkg/version.gitVersion=v1.35.4";
const CONTAINERD_FLAGS: &str =
    "-s -w -X github.com/containerd/containerd/v2/version.Version=v2.2.9";
/// Helm 3 takes the Kubernetes version it renders for from these; without them it is 1.20.
const HELM3_FLAGS: &str = "-s -w \
    -X helm.sh/helm/v3/internal/version.version=v3.22.0 \
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 \
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=35 \
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 \
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=35";
const PLAIN_FLAGS: &str = "-s -w";

/// Programs that are compiled together: one module, one set of flags.
#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Folder below `tests/tools`.
    pub folder: &'static str,
    /// Whether C is linked in.
    pub cgo: bool,
    /// Build tags.
    pub tags: &'static str,
    /// Linker flags.
    pub ldflags: &'static str,
    /// How long all of it takes on two cores with nothing cached.
    pub usual: Duration,
    /// What comes out.
    pub tools: &'static [Tool],
}

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name in the cache and in `lab build NAME`.
    pub name: &'static str,
    /// The Go package of its main function.
    pub package: &'static str,
}

const fn tool(name: &'static str, package: &'static str) -> Tool {
    Tool { name, package }
}

const fn recipe(folder: &'static str, usual_seconds: u64, tools: &'static [Tool]) -> Recipe {
    Recipe {
        folder,
        cgo: false,
        tags: "",
        ldflags: PLAIN_FLAGS,
        usual: Duration::from_secs(usual_seconds),
        tools,
    }
}

/// Everything that can be built.
pub static RECIPES: &[Recipe] = &[
    Recipe {
        ldflags: KUBERNETES_FLAGS,
        ..recipe(
            "kubernetes",
            420,
            &[
                tool("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
                tool(
                    "kube-controller-manager",
                    "k8s.io/kubernetes/cmd/kube-controller-manager",
                ),
                tool("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
                tool("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
                tool("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
                tool("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
            ],
        )
    },
    recipe("etcd", 40, &[tool("etcd", "go.etcd.io/etcd/server/v3")]),
    Recipe {
        ldflags: CONTAINERD_FLAGS,
        ..recipe(
            "node-runtime",
            90,
            &[
                tool(
                    "containerd",
                    "github.com/containerd/containerd/v2/cmd/containerd",
                ),
                tool(
                    "containerd-shim-runc-v2",
                    "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
                ),
                tool("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
                tool(
                    "bridge",
                    "github.com/containernetworking/plugins/plugins/main/bridge",
                ),
                tool(
                    "loopback",
                    "github.com/containernetworking/plugins/plugins/main/loopback",
                ),
                tool(
                    "host-local",
                    "github.com/containernetworking/plugins/plugins/ipam/host-local",
                ),
            ],
        )
    },
    Recipe {
        cgo: true,
        tags: "seccomp,netgo,osusergo",
        ldflags: "-s -w -extldflags -static",
        ..recipe(
            "node-runtime",
            20,
            &[tool("runc", "github.com/opencontainers/runc")],
        )
    },
    recipe("pause", 5, &[tool("pause", ".")]),
    recipe("coredns", 60, &[tool("coredns", ".")]),
    recipe("helm4", 120, &[tool("helm", "helm.sh/helm/v4/cmd/helm")]),
    Recipe {
        ldflags: HELM3_FLAGS,
        ..recipe("helm3", 120, &[tool("helm3", "helm.sh/helm/v3/cmd/helm")])
    },
    Recipe {
        // Drops the cloud vendors' service discovery and with it half of the compile time.
        tags: "remove_all_sd,enable_kubernetes_sd,enable_dns_sd",
        ..recipe(
            "prometheus",
            140,
            &[
                tool(
                    "prometheus",
                    "github.com/prometheus/prometheus/cmd/prometheus",
                ),
                tool("promtool", "github.com/prometheus/prometheus/cmd/promtool"),
            ],
        )
    },
    recipe(
        "kubeconform",
        20,
        &[tool(
            "kubeconform",
            "github.com/yannh/kubeconform/cmd/kubeconform",
        )],
    ),
    recipe(
        "argo-rollouts",
        150,
        &[
            tool(
                "rollouts-controller",
                "github.com/argoproj/argo-rollouts/cmd/rollouts-controller",
            ),
            tool(
                "kubectl-argo-rollouts",
                "github.com/argoproj/argo-rollouts/cmd/kubectl-argo-rollouts",
            ),
        ],
    ),
    recipe("cert-manager", 95, &[tool("cert-manager", ".")]),
    // Only files of its modules are read.
    recipe("monitoring", 0, &[]),
    recipe("go-otel", 60, &[tool("go-otel", ".")]),
    recipe("sarif", 15, &[tool("sarif", ".")]),
];

/// The programs of tier 1, and `kubectl`.
pub const CONTROL_PLANE: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "etcd",
];

/// What tier 2 needs besides.
pub const NODE: &[&str] = &[
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "bridge",
    "loopback",
    "host-local",
    "runc",
    "pause",
];

/// What reads the pages of the sidecar and what pushes to it, in tests.
pub const TELEMETRY: &[&str] = &["prometheus", "promtool", "go-otel"];

/// What renders the chart and holds it against schemas, and what a release works with in a cluster, in tests.
pub const CHART: &[&str] = &[
    "helm",
    "helm3",
    "kubeconform",
    "cert-manager",
    "rollouts-controller",
    "kubectl-argo-rollouts",
];

/// Folder of the packages for Python that push and read as well; [`build::python`] brings them.
pub const PYTHON: &str = "python-otel";

/// The same of what tries the API of the control plane by its description.
pub const SCHEMATHESIS: &str = "python-schemathesis";

/// What a tier is made of.
pub fn of_tier(tier: Tier) -> Vec<&'static str> {
    match tier {
        Tier::ControlPlane => CONTROL_PLANE.into(),
        Tier::Node => [CONTROL_PLANE, NODE].concat(),
    }
}

/// Replaces the names of groups (`control-plane`, `node`, `telemetry`, `chart`) by their members and refuses unknown names.
pub fn expand(wanted: &[String]) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for word in wanted {
        match word.as_str() {
            "control-plane" => names.extend(CONTROL_PLANE),
            "node" => names.extend(NODE),
            "telemetry" => names.extend(TELEMETRY),
            "chart" => names.extend(CHART),
            name => match all_tools().find(|known| known.name == name) {
                Some(known) => names.push(known.name),
                None => bail!(
                    "there is no tool `{name}`; known are the groups control-plane, node, telemetry and chart, and {}",
                    all_tools()
                        .map(|known| known.name)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            },
        }
    }
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(*name));
    Ok(names)
}

fn all_tools() -> impl Iterator<Item = &'static Tool> {
    RECIPES.iter().flat_map(|recipe| recipe.tools)
}

/// Where the asked-for programs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs(pub BTreeMap<&'static str, PathBuf>);

impl Programs {
    /// The file of one program.
    pub fn path(&self, name: &str) -> Result<&PathBuf> {
        match self.0.get(name) {
            Some(path) => Ok(path),
            None => bail!("`{name}` was not asked to be built"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    fn pins() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tools"))
    }

    #[test]
    fn every_recipe_has_its_pins_and_every_pin_its_recipe() {
        let folders = RECIPES.iter().map(|recipe| recipe.folder);
        let with_recipe: BTreeSet<String> = folders
            .chain([PYTHON, SCHEMATHESIS])
            .map(str::to_owned)
            .collect();
        let with_pins: BTreeSet<String> = fs::read_dir(pins())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(with_recipe, with_pins);
    }

    #[test]
    fn every_foreign_package_is_a_tool_of_its_module() {
        for recipe in RECIPES {
            let manifest = fs::read_to_string(pins().join(recipe.folder).join("go.mod")).unwrap();
            for tool in recipe.tools.iter().filter(|tool| tool.package != ".") {
                let declared = manifest
                    .lines()
                    .any(|line| line.trim().trim_start_matches("tool ") == tool.package);
                assert!(
                    declared,
                    "{}/go.mod lacks tool {}",
                    recipe.folder, tool.package
                );
            }
        }
    }

    /// The programs say these versions of themselves, whatever was compiled.
    #[test]
    fn versions_in_flags_are_those_of_the_pins() {
        let manifest = |folder| fs::read_to_string(pins().join(folder).join("go.mod")).unwrap();
        let kubernetes = manifest("kubernetes");
        for recipe in RECIPES {
            let pinned = manifest(recipe.folder);
            let flags = recipe.ldflags.split_whitespace();
            for (name, value) in flags.filter_map(|flag| flag.split_once('=')) {
                let is_pinned = match name.ends_with("Minor") {
                    true => kubernetes.contains(&format!("k8s.io/kubernetes v1.{value}.")),
                    false => value == "1" || pinned.split_whitespace().any(|word| word == value),
                };
                assert!(
                    is_pinned,
                    "{name}={value} is not in {}/go.mod",
                    recipe.folder
                );
            }
        }
    }

    #[test]
    fn names_are_unique_and_groups_name_known_tools() {
        let names: Vec<_> = all_tools().map(|tool| tool.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let groups = ["control-plane", "node", "telemetry", "chart"].map(str::to_owned);
        for name in expand(&groups).unwrap() {
            assert!(names.contains(&name), "{name}");
        }
    }

    /// All sources below a folder, one after the other, but for this file.
    fn sources(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap();
        let texts = entries.map(|entry| {
            let path = entry.unwrap().path();
            match path.extension().is_some_and(|end| end == "rs") {
                _ if path.is_dir() => sources(&path),
                true if !path.ends_with("support/lab/tools.rs") => {
                    fs::read_to_string(&path).unwrap()
                }
                _ => String::new(),
            }
        });
        texts.collect()
    }

    #[test]
    fn every_tool_is_part_of_a_cluster_or_asked_for_somewhere() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let asked: String = ["support", "integration", "lab"]
            .map(|folder| sources(&tests.join(folder)))
            .concat();
        let is_asked_for = |tool: &&Tool| asked.contains(&format!("\"{}\"", tool.name));
        let of_cluster = of_tier(Tier::Node);
        let unused = all_tools()
            .filter(|tool| !of_cluster.contains(&tool.name) && !is_asked_for(tool))
            .map(|tool| tool.name);
        assert_eq!(unused.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn a_tool_that_is_asked_for_twice_is_built_once() {
        let wanted = ["kubectl", "etcd", "kubectl", "control-plane"].map(str::to_owned);
        let expected = [
            "kubectl",
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
        ];
        assert_eq!(expand(&wanted).unwrap(), expected);
    }

    #[test]
    fn an_unknown_tool_is_refused_with_the_list_of_known_ones() {
        let error = expand(&["kubectll".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("`kubectll`") && error.contains("kubectl, "),
            "{error}"
        );
    }
}
