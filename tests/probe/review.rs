//! What the probe answers to an admission review.

use anyhow::Result;
use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use kube::{
    ResourceExt,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
    },
};

/// Marks every object with data, denies those with the label `deny`.
pub(crate) fn answer(body: &[u8]) -> Result<Vec<u8>> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body)?;
    let request: AdmissionRequest<DynamicObject> = review.try_into()?;
    let response = AdmissionResponse::from(&request);
    let object = request.object.as_ref();
    let denied = object.is_some_and(|object| object.labels().contains_key("deny"));
    let response = if denied {
        response.deny("the probe denies objects with the label `deny`")
    } else {
        response.with_patch(Patch(vec![PatchOperation::Add(AddOperation {
            path: PointerBuf::from_tokens(["data", "marked"]),
            value: "by-the-probe".into(),
        })]))?
    };
    Ok(serde_json::to_vec(&response.into_review())?)
}
