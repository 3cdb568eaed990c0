use agents::api::registration::rung::Rung;
use serde_json::{Value, json};

use crate::fixtures::{PERSON, ask_of, faults, job, review, tool_job, webhook};
use crate::subject::Door;

fn delete(mode: &str, job: &Value, user: &str) -> Value {
    let admission = webhook(Rung::Fail, json!({"jobDelete": mode}));
    let mut review = review("DELETE", None, Some(job));
    review["request"]["userInfo"]["username"] = json!(user);
    ask_of(&admission, Door::ValidateDelete, &review)
}

#[test]
fn a_job_whose_outcome_is_not_stored_stays() {
    assert_eq!(delete("enforce", &tool_job(), PERSON)["allowed"], false);
    let response = delete("enforce", &job(), PERSON);
    assert_eq!(response["allowed"], false);
    let field = "metadata.annotations[agents.proompteng.ai/outcome-recorded]";
    let fault = (field.to_owned(), "OutcomeNotRecorded".to_owned());
    assert_eq!(faults(&response), [fault]);
    assert_eq!(response["auditAnnotations"]["rule"], "JobDelete");
}

#[test]
fn it_may_go_once_the_outcome_is_stored_or_if_it_is_not_ours() {
    let mut recorded = job();
    recorded["metadata"]["annotations"] = json!({"agents.proompteng.ai/outcome-recorded": "x"});
    let mut foreign = job();
    foreign["metadata"]["labels"] = json!({"app": "x"});
    let mut bare = job();
    bare["metadata"] = json!({"name": "demo-1", "namespace": "team"});
    for job in [recorded, foreign, bare] {
        assert_eq!(delete("enforce", &job, PERSON)["allowed"], true, "{job}");
    }
}

#[test]
fn the_cluster_itself_is_never_held_up() {
    for user in [
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:kube-controller-manager",
    ] {
        assert_eq!(delete("enforce", &job(), user)["allowed"], true, "{user}");
    }
    let ttl = "system:serviceaccount:kube-system:ttl-after-finished-controller";
    assert_eq!(delete("enforce", &job(), ttl)["allowed"], false);
}

#[test]
fn the_mode_decides_between_a_refusal_a_warning_and_a_record() {
    for (mode, warnings) in [("warn", 1), ("audit", 0)] {
        let response = delete(mode, &job(), PERSON);
        assert_eq!(response["allowed"], true);
        let told = response["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(told, warnings);
        assert_eq!(response["auditAnnotations"]["rule"], "JobDelete");
        assert_eq!(response["auditAnnotations"]["mode"], mode);
    }
}
