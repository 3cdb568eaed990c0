//! What operators can set.

pub(super) mod groups;
pub mod variables;

use std::time::Duration;

use super::kinds::implementation_source;
use super::{agent_run, egress, lease, stream};
use crate::api::contract::{env, port};
use crate::cluster::policy;
use crate::events;
use crate::kit::args::{Common, Defaults};
use crate::kit::config::{Flags, Invalid, Reader, Setting, Settings};
use groups::Groups;

/// Flags of `agents controller`.
pub type Args = Flags<Config>;

/// Settings of the controllers.
#[derive(Debug)]
pub struct Config {
    pub(super) common: Common,
    pub(super) groups: Groups,
    pub(super) workers: usize,
    pub(super) sweep: Duration,
    pub(super) pod: OwnPod,
    pub(super) lease: lease::Settings,
    pub(super) runs: agent_run::Settings,
    pub(super) policy: policy::Settings,
    pub(super) events: events::Settings,
    pub(super) stream: stream::Settings,
    pub(super) egress: egress::Settings,
    pub(super) inbox: implementation_source::Settings,
}

/// The program's own pod, as the downward API tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnPod {
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Reconcilers");
        let groups = Groups::read(reader);
        let workers = reader.value(
            Setting::new(
                env::WORKERS,
                "Objects of one kind that are worked on at a time",
            )
            .or("16")
            .within("1", "256"),
        );
        let sweep = reader.value(
            Setting::<Duration>::new(
                env::SWEEP,
                "Time between two looks at every object, whether or not anything happened",
            )
            .or("60")
            .within("10ms", "1h"),
        );
        let pod = OwnPod::read(reader);
        let lease = lease::Settings::read(reader);
        let runs = agent_run::Settings::read(reader);
        let policy = policy::Settings::read_rules(reader);
        let events = events::Settings::read(reader);
        let stream = stream::Settings::read(reader);
        let egress = egress::Settings::read(reader);
        let inbox = implementation_source::Settings::read(reader);
        let defaults = Defaults {
            admin_port: port::AGENTS_ADMIN,
            linger: "0s",
        };
        let common = Common::read(reader, defaults);
        variables::check(reader)?;
        Ok(Self {
            common: common?,
            groups: groups?,
            workers: workers?,
            sweep: sweep?,
            pod: pod?,
            lease: lease?,
            runs: runs?,
            policy: policy?,
            events: events?,
            stream: stream?,
            egress: egress?,
            inbox: inbox?,
        })
    }
}

impl Settings for OwnPod {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Pod");
        let namespace = reader.optional(Setting::new(
            env::POD_NAMESPACE,
            "Namespace of the program's own pod; the lease is there unless set otherwise",
        ));
        let uid = reader.optional(Setting::new(
            env::POD_UID,
            "Uid of the program's own pod, to tell its lease from that of another",
        ));
        Ok(Self {
            namespace: namespace?,
            uid: uid?,
        })
    }
}
