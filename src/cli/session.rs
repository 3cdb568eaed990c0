//! How a command reaches its cluster: flags, client, and a deadline for every call.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;
use tokio::runtime;
use tokio::time::timeout;

use super::failure::Failure;
use crate::kit::exit::Exit;

/// Time for one call.
const CALL: Duration = Duration::from_secs(30);

/// Time to be connected.
const CONNECT: Duration = Duration::from_secs(10);

/// Objects that are read in one call.
const PAGE: u32 = 500;

/// Objects that a command reads at most.
const MOST: usize = 100_000;

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Cluster {
    /// File that says how to reach clusters; else $KUBECONFIG, ~/.kube/config, or the cluster that this runs in.
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of that file to use.
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

/// Which cluster, and which namespace of it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Access {
    #[command(flatten)]
    cluster: Cluster,
    /// Namespace to work in; that of the context if left out.
    #[arg(short, long, value_name = "NAME", global = true)]
    namespace: Option<String>,
}

/// A way to the cluster.
pub struct Session {
    /// The client.
    pub client: Client,
    /// The namespace to work in.
    pub namespace: String,
}

impl Session {
    /// The objects of one kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

impl Access {
    /// The namespace that the command line names.
    pub fn named_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// A client for the cluster that is meant; nothing has been asked yet.
    ///
    /// # Errors
    ///
    /// When nothing says how to reach it.
    pub async fn connect(&self) -> Result<Session, Failure> {
        let client = self.cluster.client().await?;
        let namespace = self.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        Ok(Session { client, namespace })
    }
}

impl Cluster {
    /// A client for it; nothing has been asked yet.
    ///
    /// # Errors
    ///
    /// When nothing says how to reach it.
    pub async fn client(&self) -> Result<Client, Failure> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT);
        Client::try_from(config).map_err(|error| {
            Failure::new("could not make a client for the cluster").because(&error)
        })
    }

    async fn config(&self) -> Result<Config, Failure> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        match (&self.kubeconfig, &self.context) {
            (Some(file), _) => {
                let read = Kubeconfig::read_from(file).map_err(|error| unread(file, &error))?;
                let config = Config::from_custom_kubeconfig(read, &options).await;
                config.map_err(|error| unread(file, &error))
            }
            (None, Some(context)) => {
                let config = Config::from_kubeconfig(&options).await;
                config.map_err(|error| {
                    Failure::misused(format!("could not use the context {context}"))
                        .because(&error)
                        .next("`kubectl config get-contexts` lists the ones there are")
                })
            }
            (None, None) => Config::infer().await.map_err(|error| {
                Failure::misused("nothing says which cluster is meant")
                    .because(&error)
                    .next("name a file with --kubeconfig, or set KUBECONFIG")
            }),
        }
    }
}

fn unread(file: &Path, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::misused(format!("could not use the kubeconfig {}", file.display())).because(error)
}

/// One call, within its time; `what` follows on "could not".
///
/// # Errors
///
/// What a person is told.
pub async fn ask<T>(what: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(CALL, call).await {
        Ok(answer) => answer.map_err(|error| Failure::call(what, &error)),
        Err(_) => Err(
            Failure::new(format!("could not {what} within {} s", CALL.as_secs()))
                .exit(Exit::Refused)
                .next("see that the cluster is up and not overloaded"),
        ),
    }
}

/// All objects, page by page.
///
/// # Errors
///
/// What a person is told, also where there are too many.
pub async fn list_all<K>(what: &str, api: &Api<K>, selected: &ListParams) -> Result<Vec<K>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = selected.clone().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = ask(what, api.list(&params)).await?;
        all.extend(page.items);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
        if all.len() >= MOST {
            return Err(Failure::new(format!("there are more than {MOST} of them"))
                .next("name a namespace or a label selector"));
        }
    }
}

/// Waits for work with a cluster.
///
/// # Errors
///
/// Those of the work, and where the system gives no runtime for it.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let failed = |error| Failure::new("the system gives no runtime").because(&error);
    runtime.map_err(failed)?.block_on(work)
}

/// Carries out a command that talks to a cluster, and tells how it went.
pub fn carry_out(work: impl Future<Output = Result<Exit, Failure>>) -> ExitCode {
    match block_on(work) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprint!("{}", failure.text());
            failure.code().into()
        }
    }
}
