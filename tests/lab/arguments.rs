//! The command line of the `lab` program.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use support::lab::state::{LabName, Tier};

/// A real Kubernetes on this machine, built from pinned sources.
#[derive(Debug, Parser)]
#[command(name = "lab", version, after_help = ENVIRONMENT)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const ENVIRONMENT: &str = "\
Environment:
  LAB_CACHE                   folder of built programs (default $XDG_CACHE_HOME/agents-lab or ~/.cache/agents-lab)
  LAB_STATE                   folder of running labs (default $XDG_RUNTIME_DIR/agents-lab or /tmp/agents-lab-<uid>)
  KUBEBUILDER_ASSETS          folder with kube-apiserver, kube-controller-manager, kubectl and etcd to use instead of
                              building them; what is not in it is built
  LAB_REUSE=NAME              tests use this running lab instead of starting one
  LAB_USE_EXISTING_CLUSTER=1  tests use the cluster of KUBECONFIG, in namespaces of their own; `up` starts nothing
  LAB_REQUIRE_TIER2=1         a test that needs pods fails where none can run, instead of being left out";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a lab and stay until Ctrl-C
    Up(Up),
    /// Start a lab with everything in it, say what to try, and stay until Ctrl-C
    Tour {
        /// Name of the lab
        #[arg(long, default_value = "tour")]
        name: LabName,
        /// 1: our programs as processes; 2: as pods, where that is possible
        #[arg(long, value_enum, default_value = "2")]
        tier: TierWord,
    },
    /// Stop a lab and remove every trace of it, also after a crash
    Down {
        #[command(flatten)]
        lab: Named,
        /// All labs of this user
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Show the labs of this user and their parts
    Status {
        /// As a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Show the log of a part; without PART, the names of all
    Logs {
        #[command(flatten)]
        lab: Named,
        /// etcd, kube-apiserver, kubelet, ...
        part: Option<String>,
        /// Stay and show what is added
        #[arg(short, long)]
        follow: bool,
    },
    /// Build programs into the cache; without TOOL, what tests need: the highest tier that this machine can run, telemetry, and the chart
    Build {
        /// Names of tools, or the groups `control-plane`, `node`, `telemetry` and `chart`
        tools: Vec<String>,
    },
    /// Make the images of a release, each beside a list of what it is made of; fails if one has not the size that it should have
    Images {
        /// Folder to put them into
        #[arg(long)]
        output: PathBuf,
    },
    /// Run kubectl against a lab
    Kubectl(Passed),
    /// Run a command in a lab's network, where pods and services can be reached
    Exec(Passed),
    /// Show which tests the last run left out; fails if one is not agreed in tests/left-out.txt
    LeftOut {
        /// Before a run: forget what earlier ones left out
        #[arg(long)]
        forget: bool,
        /// Note one that could not run here, and why
        #[arg(long, num_args = 2, value_names = ["TEST", "REASON"], conflicts_with = "forget")]
        note: Option<Vec<String>>,
    },
    #[command(subcommand, hide = true)]
    Stage(Stage),
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name of the lab
    #[arg(long, default_value = "default")]
    pub(crate) name: LabName,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) lab: Named,
    /// 1: control plane; 2: also a node that runs real pods (root on Linux; elsewhere tier 1 is started instead)
    #[arg(long, value_enum, default_value = "2")]
    pub(crate) tier: TierWord,
    /// Let pods resolve the names of services (tier 2)
    #[arg(long)]
    pub(crate) dns: bool,
    /// Build this workspace's programs and bring them in as images localhost/<program>:lab (tier 2)
    #[arg(long)]
    pub(crate) images: bool,
    /// Start the API server without an API, e.g. events.k8s.io/v1; may be given several times
    #[arg(long = "without-api", value_name = "GROUP/VERSION")]
    pub(crate) without: Vec<String>,
    /// Return when it is usable and leave it running
    #[arg(long)]
    pub(crate) detach: bool,
    /// Command to run once the lab is usable, with KUBECONFIG, LAB_NAME, LAB_TIER and kubectl in its PATH;
    /// the lab stops if it fails and stays otherwise
    #[arg(last = true, conflicts_with = "detach")]
    pub(crate) command: Vec<String>,
    /// Stop when standard input, a pipe, is closed
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
    /// Leave the terminal's session
    #[arg(long, hide = true)]
    pub(crate) own_session: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TierWord {
    #[value(name = "1")]
    One,
    #[value(name = "2")]
    Two,
}

impl From<TierWord> for Tier {
    fn from(word: TierWord) -> Self {
        match word {
            TierWord::One => Self::ControlPlane,
            TierWord::Two => Self::Node,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Passed {
    #[command(flatten)]
    pub(crate) lab: Named,
    /// The command's words
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) words: Vec<String>,
}

/// What the program does as its own child.
#[derive(Debug, Subcommand)]
pub(crate) enum Stage {
    /// Become a program that dies with its parent
    Part {
        #[arg(long)]
        parent: i32,
        #[arg(last = true, required = true)]
        words: Vec<String>,
    },
    /// Find out whether namespaces can be made
    Trial,
    /// Make the namespaces of a node and wait for its end
    Namespaces {
        #[arg(long)]
        folder: PathBuf,
    },
    /// Be process 1 of a node
    Node {
        #[arg(long)]
        folder: PathBuf,
    },
}
