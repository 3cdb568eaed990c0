//! Random histories of writers, ours and foreign ones, against the contract as an invariant.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What one writer does to the status.
#[derive(Clone, Debug)]
enum Write {
    /// Our reconciler wants a phase; `stale` says it planned from the status before the last one.
    Reconcile {
        phase: Phase,
        blocked: bool,
        stale: bool,
    },
    /// Someone takes a field away.
    Drop(&'static str),
    /// Someone sets a phase.
    SetPhase(&'static str),
    /// Someone sets a time.
    SetTime(&'static str, i64),
    /// Someone claims to have seen a generation.
    SetGeneration(i64),
    /// Someone sets a condition, with or without a time.
    SetCondition(&'static str, &'static str, Option<i64>),
    /// Someone adds a condition without looking whether there is one.
    AddCondition(&'static str),
    /// Someone takes the whole status away.
    Clear,
}

fn any_write() -> impl Strategy<Value = Write> {
    let field = || {
        prop::sample::select(vec![
            "phase",
            "startedAt",
            "finishedAt",
            "updatedAt",
            "observedGeneration",
            "conditions",
        ])
    };
    let type_ =
        || prop::sample::select(vec!["Succeeded", "Failed", "Cancelled", "Ready", "Foreign"]);
    let phase = prop::sample::select(vec![
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Cancelled",
        "Odd",
    ]);
    let status = prop::sample::select(vec!["True", "False", "Unknown"]);
    prop_oneof![
        6 => (prop::sample::select(Phase::ALL), any::<bool>(), any::<bool>())
            .prop_map(|(phase, blocked, stale)| Write::Reconcile { phase, blocked, stale }),
        2 => field().prop_map(Write::Drop),
        2 => phase.prop_map(Write::SetPhase),
        2 => (prop::sample::select(vec!["startedAt", "finishedAt", "updatedAt"]), 0..900i64)
            .prop_map(|(name, second)| Write::SetTime(name, second)),
        1 => (0..6i64).prop_map(Write::SetGeneration),
        3 => (type_(), status, prop::option::of(0..200i64))
            .prop_map(|(type_, status, second)| Write::SetCondition(type_, status, second)),
        1 => type_().prop_map(Write::AddCondition),
        1 => Just(Write::Clear),
    ]
}

/// The status that the writer sends, from the one it read.
fn sent(
    kind: Kind,
    write: &Write,
    read: Option<&Value>,
    before: Option<&Value>,
    at: Moment,
) -> Option<Value> {
    let mut status = read.cloned().unwrap_or_else(|| json!({}));
    match write {
        Write::Reconcile {
            phase,
            blocked,
            stale,
        } => {
            let stored = if *stale { before } else { read };
            return reconciled(kind, *phase, *blocked, stored, at).or_else(|| read.cloned());
        }
        Write::Drop(name) => {
            status.as_object_mut()?.remove(*name);
        }
        Write::SetPhase(phase) => status["phase"] = json!(phase),
        Write::SetTime(name, second) => status[*name] = json!(text(*second)),
        Write::SetGeneration(generation) => status["observedGeneration"] = json!(generation),
        Write::SetCondition(type_, value, second) => {
            let list = conditions_of(&mut status);
            let found = list.iter().position(|entry| entry["type"] == *type_);
            let position = found.unwrap_or_else(|| {
                list.push(json!({"type": type_}));
                list.len() - 1
            });
            list[position]["status"] = json!(value);
            if let Some(second) = second {
                list[position]["lastTransitionTime"] = json!(text(*second));
            }
        }
        Write::AddCondition(type_) => {
            conditions_of(&mut status).push(json!({"type": type_, "status": "True"}));
        }
        Write::Clear => return None,
    }
    Some(status)
}

fn conditions_of(status: &mut Value) -> &mut Vec<Value> {
    if status.get("conditions").is_none() {
        status["conditions"] = json!([]);
    }
    status["conditions"].as_array_mut().unwrap()
}

fn reconciled(
    kind: Kind,
    phase: Phase,
    blocked: bool,
    stored: Option<&Value>,
    at: Moment,
) -> Option<Value> {
    let mut status = stored.cloned().unwrap_or_else(|| json!({}));
    status["phase"] = json!(phase.as_str());
    let held = ConditionStatus::ALL[usize::from(!blocked)];
    let observed = [Observation::new(
        ConditionType::Blocked,
        held,
        Lifecycle::QueueLimit,
        "",
    )];
    let wanted = Wanted {
        status: &status,
        observed: &observed,
        reason: Lifecycle::Reconciled.into(),
        message: "",
    };
    match advance(kind, stored, &wanted, at).unwrap() {
        Advance::Write(status) => Some(status),
        Advance::Unchanged => None,
    }
}

/// S1 to S7 between two statuses that were stored one after the other.
fn contract(
    kind: Kind,
    old: Option<&Value>,
    new: Option<&Value>,
    at: Moment,
) -> Result<(), TestCaseError> {
    let (old, new) = (Fields::from(old), Fields::from(new));
    let generation = |status: &Fields| status.number(OBSERVED_GENERATION);
    prop_assert!(generation(&new) <= Some(at.generation), "S1 ahead");
    prop_assert!(generation(&new) >= generation(&old), "S1 back");
    if old.same_but_for_updated_at(&new) {
        prop_assert_eq!(&old, &new, "S2 a write that changes nothing else");
    } else {
        prop_assert!(new.time(UPDATED_AT) > old.time(UPDATED_AT), "S2 not later");
    }
    let (earlier, listed) = (old.conditions(), new.conditions());
    for (index, (_, entry)) in listed.iter().enumerate() {
        let same_type = |(_, other): &(usize, Condition)| other.type_ == entry.type_;
        prop_assert_eq!(listed.iter().position(same_type), Some(index), "S6 twice");
        let seen = entry.observed_generation;
        prop_assert!(seen.is_some(), "S6 no generation on {}", entry.type_);
        prop_assert!(seen <= Some(at.generation), "S6 ahead");
        if let Some((_, before)) = earlier.iter().find(|other| same_type(other)) {
            let flipped = before.status != entry.status;
            let moved = before.last_transition_time != entry.last_transition_time;
            prop_assert_eq!(flipped, moved, "S6 time and flip of {}", entry.type_);
        }
    }
    if phase::is_run(kind) {
        run_contract(&old, &new)
    } else {
        Ok(())
    }
}

fn run_contract(old: &Fields, new: &Fields) -> Result<(), TestCaseError> {
    for name in [STARTED_AT, FINISHED_AT] {
        if let Some(value) = old.get(name) {
            prop_assert_eq!(Some(value), new.get(name), "S3, S4, S7 {} changed", name);
        }
    }
    let ended = |status: &Fields| status.phase().filter(|phase| phase.is_terminal());
    if let Some(phase) = ended(old) {
        prop_assert_eq!(new.phase(), Some(phase), "S5 left");
    }
    if new.phase() == Some(Phase::Running) {
        prop_assert!(new.get(STARTED_AT).is_some(), "S3 running without a start");
    }
    if let Some(end) = new.time(FINISHED_AT) {
        prop_assert!(
            new.time(STARTED_AT).is_none_or(|start| start <= end),
            "S4 backwards"
        );
    }
    if let Some(phase) = ended(new) {
        prop_assert!(new.get(FINISHED_AT).is_some(), "S4 no end");
        let holding: Vec<String> = new
            .conditions()
            .into_iter()
            .filter(|(_, entry)| {
                entry.status == "True" && Phase::parse(&entry.type_).is_some_and(Phase::is_terminal)
            })
            .map(|(_, entry)| entry.type_)
            .collect();
        prop_assert_eq!(
            holding,
            vec![phase.as_str().to_owned()],
            "S6 terminal condition"
        );
    }
    Ok(())
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => prop::sample::select(vec![Kind::AgentRun, Kind::ToolRun, Kind::OrchestrationRun]),
        1 => prop::sample::select(Kind::ALL.to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_history_of_writers_breaks_the_contract(
        kind in any_kind(),
        writes in prop::collection::vec((any_write(), 0..4i64, any::<bool>()), 1..25),
    ) {
        let (mut stored, mut before): (Option<Value>, Option<Value>) = (None, None);
        let (mut second, mut generation) = (100, 1);
        for (write, pause, edited) in writes {
            second += pause;
            generation += i64::from(edited);
            let at = at(second, generation);
            let new = sent(kind, &write, stored.as_ref(), before.as_ref(), at);
            let mended = repair(kind, stored.as_ref(), new.as_ref(), at);
            let later = Moment { now: at.now + jiff::SignedDuration::from_secs(3), ..at };
            prop_assert_eq!(
                &repair(kind, stored.as_ref(), mended.as_ref(), later), &mended, "repair twice: {:?}", write
            );
            if check(kind, stored.as_ref(), mended.as_ref(), at).is_empty() {
                contract(kind, stored.as_ref(), mended.as_ref(), at)
                    .map_err(|error| TestCaseError::fail(format!("{error} after {write:?}")))?;
                before = std::mem::replace(&mut stored, mended);
            }
        }
    }

    #[test]
    fn what_our_reconcilers_write_needs_no_repair_and_passes(
        kind in any_kind(),
        writes in prop::collection::vec((prop::sample::select(Phase::ALL), any::<bool>(), 0..4i64), 1..20),
    ) {
        let mut stored: Option<Value> = None;
        let mut second = 100;
        for (phase, blocked, pause) in writes {
            second += pause;
            let at = at(second, 1);
            let Some(new) = reconciled(kind, phase, blocked, stored.as_ref(), at) else { continue };
            prop_assert_eq!(repair(kind, stored.as_ref(), Some(&new), at), Some(new.clone()));
            prop_assert_eq!(check(kind, stored.as_ref(), Some(&new), at), []);
            prop_assert_eq!(reconciled(kind, phase, blocked, Some(&new), self::at(second + 9, 1)), None);
            stored = Some(new);
        }
    }

    #[test]
    fn a_writer_that_only_leaves_things_out_is_never_refused(
        kind in any_kind(),
        phases in prop::collection::vec(prop::sample::select(Phase::ALL), 1..4),
        dropped in prop::collection::vec(
            prop::sample::select(vec!["phase", "startedAt", "finishedAt", "updatedAt", "observedGeneration"]), 0..5
        ),
    ) {
        let mut stored: Option<Value> = None;
        for (pass, phase) in phases.into_iter().enumerate() {
            let at = at(100 + i64::try_from(pass).unwrap(), 1);
            stored = reconciled(kind, phase, false, stored.as_ref(), at).or(stored);
        }
        let Some(mut status) = stored.clone() else { return Ok(()) };
        // A run that has not ended may lose its phase; it is then pending, which contradicts nothing.
        for name in dropped {
            status.as_object_mut().unwrap().remove(name);
        }
        let at = at(200, 1);
        let mended = repair(kind, stored.as_ref(), Some(&status), at);
        prop_assert_eq!(check(kind, stored.as_ref(), mended.as_ref(), at), []);
    }
}
