//! What becomes of objects, kind by kind and for all kinds alike. Runs are in `runs`, their Jobs in `custody`.
//!
//! | for every kind | shown by |
//! | --- | --- |
//! | from apply to settled, as `kubectl wait` and kstatus see it | `waited` |
//! | a spec that is wrong, the same | `waited`; that it can be mended, `standing` |
//! | what it needs comes late; eight kinds need nothing | `late` |
//! | deletion: at once, while it waits, when it is wrong, settled, at work; also while nobody is there | `deleted` |
//! | a hundred looks without a write: settled, at work, waiting, wrong | `idle`; runs that have ended, there as well |
//!
//! All of these take their objects from `every`, which leaves out no kind. The other modules show what is particular:
//!
//! | kind | module |
//! | --- | --- |
//! | Agent, AgentProvider, ImplementationSpec, Signal, SignalDelivery, ApprovalPolicy, Budget, SecretBinding, Artifact | `standing` |
//! | AgentRun | `controller::runs`, `controller::custody` |
//! | ImplementationSource | `sources` |
//! | VersionControlProvider | `vcs` |
//! | Memory | `memories` |
//! | Orchestration, OrchestrationRun | `orchestrations` |
//! | Tool, ToolRun | `tools` |
//! | Schedule | `schedules` |
//! | Workspace | `workspaces` |

mod deleted;
mod every;
mod idle;
mod late;
mod memories;
mod orchestrations;
mod schedules;
mod sources;
mod standing;
pub(super) mod tools;
mod vcs;
mod waited;
mod workspaces;
