//! What operators can set.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::api::contract::{env, port};
use crate::api::text::names::Form;
use crate::cluster::{Namespaces, Rights};
use crate::controller::Keep;
use crate::kit::args::{Common, Defaults, any_address};
use crate::kit::config::{Flags, Invalid, Reader, Setting, Settings};

/// The variables that only this program reads.
pub mod variable {
    /// Where the API answers.
    pub const LISTEN: &str = "AGENTS_SERVE_LISTEN";
    /// Where who names no namespace is.
    pub const NAMESPACE: &str = "AGENTS_SERVE_NAMESPACE";
    /// Connections that may be open.
    pub const CONNECTIONS: &str = "AGENTS_SERVE_CONNECTIONS";
    /// Requests that may be in flight.
    pub const REQUESTS: &str = "AGENTS_SERVE_REQUESTS";
    /// Readers of a stream.
    pub const READERS: &str = "AGENTS_SERVE_READERS";
    /// Port of the queue of the controllers.
    pub const QUEUE_TARGET: &str = "AGENTS_SERVE_QUEUE_TARGET";
    /// Port of the page of the sidecar beside the controllers.
    pub const SIDECAR_TARGET: &str = "AGENTS_SERVE_SIDECAR_TARGET";
    /// Whether calls of trackers are taken.
    pub const DELIVERIES: &str = "AGENTS_SERVE_DELIVERIES";
    /// For whom tokens must be made.
    pub const AUDIENCES: &str = "AGENTS_SERVE_TOKEN_AUDIENCES";
    /// How long answers about who may do what are kept.
    pub const REVIEWS_KEPT: &str = "AGENTS_SERVE_REVIEWS_KEPT";
}

/// Flags of `agents serve`.
pub type Args = Flags<Config>;

/// Settings of the control plane.
#[derive(Debug)]
pub struct Config {
    pub(super) common: Common,
    pub(super) listen: SocketAddr,
    /// Where the API answers over gRPC, if it does.
    pub(super) grpc: Option<SocketAddr>,
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) namespaces: Namespaces,
    pub(super) default_namespace: Option<String>,
    pub(super) audiences: Vec<String>,
    pub(super) reviews_kept: Duration,
    pub(super) keep: Keep,
    pub(super) readers: usize,
    pub(super) controllers: Controllers,
    /// How many deliveries of trackers may wait; none if none are taken.
    pub(super) deliveries: Option<usize>,
}

/// Where the controllers are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Controllers {
    /// Name of their lease.
    pub(super) lease: String,
    /// Its namespace, if it is not that of the pod.
    pub(super) namespace: Option<String>,
    /// The namespace of their pods, which is that of the program's own pod.
    pub(super) pods: Option<String>,
    /// Port at which they tell how their queue stands.
    pub(super) port: u16,
    /// Port at which the sidecar beside them has its page.
    pub(super) sidecar: u16,
}

/// How many there may be at once of what takes room.
fn amount(name: &'static str, about: &'static str, or: &'static str) -> Setting<usize> {
    Setting::new(name, about).or(or).within("1", "100000")
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("API");
        let listen = reader.value(
            Setting::new(variable::LISTEN, "Where the API answers").or(any_address(port::SERVE)),
        );
        let grpc = read_grpc(reader);
        let connections = reader.value(amount(
            variable::CONNECTIONS,
            "Connections that may be open at once",
            "4096",
        ));
        let requests = reader.value(amount(
            variable::REQUESTS,
            "Requests that may be in flight at once; more are turned away at once",
            "256",
        ));
        let readers = reader.value(amount(
            variable::READERS,
            "Readers that a stream of events may have at once",
            "2048",
        ));
        let namespaces = read_namespaces(reader);
        let default_namespace = read_default(reader);
        let reviews = read_reviews(reader);
        let deliveries = read_deliveries(reader);
        reader.heading("Logs of runs");
        let keep = Keep::read(reader);
        let controllers = Controllers::read(reader);
        let defaults = Defaults {
            admin_port: port::AGENTS_ADMIN,
            linger: "5s",
        };
        let common = Common::read(reader, defaults);
        let (audiences, reviews_kept) = reviews?;
        Ok(Self {
            common: common?,
            listen: listen?,
            grpc: grpc?,
            connections: connections?,
            requests: requests?,
            namespaces: namespaces?,
            default_namespace: default_namespace?,
            audiences,
            reviews_kept,
            keep: keep?,
            readers: readers?,
            controllers: controllers?,
            deliveries: deliveries?,
        })
    }
}

/// For whom tokens must be, and how long is known what their owners may do.
fn read_reviews(reader: &mut Reader<'_>) -> Result<(Vec<String>, Duration), Invalid> {
    let audiences = reader.value(
        Setting::<Vec<String>>::new(
            variable::AUDIENCES,
            "Audiences of which a token must have one; those of the API server if empty",
        )
        .or("[]"),
    );
    let kept = reader.value(
        Setting::<Duration>::new(
            variable::REVIEWS_KEPT,
            "How long is known who someone is and what they may do; a refusal is known for 2s at most",
        )
        .or("10s")
        .within("0s", "5m"),
    );
    Ok((audiences?, kept?))
}

fn read_namespaces(reader: &mut Reader<'_>) -> Result<Namespaces, Invalid> {
    let (namespaces, rights) = Rights::read(
        reader,
        "Namespaces whose objects are served; * for all needs JANGAR_RBAC_CLUSTER_SCOPED and a ClusterRole",
    )?;
    rights.suffice(env::NAMESPACES, &namespaces, reader)?;
    Ok(namespaces)
}

fn read_grpc(reader: &mut Reader<'_>) -> Result<Option<SocketAddr>, Invalid> {
    let is_on = reader.value(
        Setting::<bool>::new(
            env::GRPC_ENABLED,
            "Whether the API answers over gRPC as well",
        )
        .or("false"),
    );
    let host = reader.value(
        Setting::<String>::new(env::GRPC_HOST, "The address at which it does").or("0.0.0.0"),
    );
    let port = reader.value(
        Setting::<usize>::new(env::GRPC_PORT, "The port at which it does; 0 for any")
            .or(port::GRPC.to_string())
            .within("0", "65535"),
    );
    let (is_on, host, port) = (is_on?, host?, port?);
    let Ok(host) = host.trim().parse::<IpAddr>() else {
        let complaint = "must be an address such as 0.0.0.0 or ::";
        return Err(reader.contradiction(env::GRPC_HOST, complaint));
    };
    let port = u16::try_from(port).unwrap_or(port::GRPC);
    Ok(is_on.then_some((host, port).into()))
}

fn read_deliveries(reader: &mut Reader<'_>) -> Result<Option<usize>, Invalid> {
    reader.heading("Deliveries of trackers");
    let is_on = reader.value(
        Setting::<bool>::new(
            variable::DELIVERIES,
            "Whether signed calls of trackers are taken for ImplementationSources; the program then reads their Secrets",
        )
        .or("false"),
    );
    let most = reader.value(
        Setting::<usize>::new(
            env::DELIVERIES_MAX,
            "Deliveries that may wait for the controllers; more are refused with 503",
        )
        .or("1000")
        .within("1", "100000"),
    );
    let (is_on, most) = (is_on?, most?);
    Ok(is_on.then_some(most))
}

fn read_default(reader: &mut Reader<'_>) -> Result<Option<String>, Invalid> {
    let given = reader.optional(Setting::<String>::new(
        variable::NAMESPACE,
        "Namespace of requests that name none; the first of those that are served if not set, `agents` if all are",
    ))?;
    match given {
        Some(name) if !Form::DnsLabel.fits(&name) => {
            Err(reader.contradiction(variable::NAMESPACE, Form::DnsLabel.rule()))
        }
        given => Ok(given),
    }
}

impl Settings for Controllers {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Controllers");
        let lease = reader.value(
            Setting::<String>::new(
                env::LEADER_ELECTION_LEASE_NAME,
                "Name of the lease of the controllers",
            )
            .or("jangar-controller-leader"),
        );
        let own = reader.optional(Setting::<String>::new(
            env::POD_NAMESPACE,
            "Namespace of the program's own pod; the pods of the controllers are sought there, and their lease unless set otherwise",
        ));
        let namespace = reader.optional(Setting::<String>::new(
            env::LEADER_ELECTION_LEASE_NAMESPACE,
            "Namespace of the lease of the controllers; also of their pods where that of the own pod is not known",
        ));
        let port = reader.value(
            Setting::<usize>::new(
                variable::QUEUE_TARGET,
                "Port at which the controllers tell a control plane how their queue stands; the API server must reach it, so their AGENTS_QUEUE_RELAY_LISTEN must not be on loopback",
            )
            .or(port::QUEUE_RELAY.to_string())
            .within("1", "65535"),
        );
        let sidecar = reader.value(
            Setting::<usize>::new(
                variable::SIDECAR_TARGET,
                "Port at which the sidecar beside the controllers has its page; the API server must reach it",
            )
            .or(port::SIDECAR_ADMIN.to_string())
            .within("1", "65535"),
        );
        let (namespace, own) = (namespace?, own?);
        Ok(Self {
            lease: lease?,
            pods: own.clone().or_else(|| namespace.clone()),
            namespace: namespace.or(own),
            port: u16::try_from(port?).unwrap_or(port::QUEUE_RELAY),
            sidecar: u16::try_from(sidecar?).unwrap_or(port::SIDECAR_ADMIN),
        })
    }
}
