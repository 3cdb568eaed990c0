//! What the values of the chart say, as far as the doctor needs it. Pure: texts in, an answer out.

use serde_json::Value;

use crate::api::registration::rung::Rung;

/// What is wanted, by the values or by what the chart does without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    /// Whether values were given at all.
    pub(crate) given: bool,
    /// Whether there is a webhook.
    pub(crate) webhook: bool,
    /// The rung of the webhook, if the values name it.
    pub(crate) rung: Option<Rung>,
    /// Whether cert-manager makes the certificate.
    pub(crate) cert_manager: bool,
    /// Whether Rollouts are used.
    pub(crate) rollouts: bool,
    /// Whether a ServiceMonitor is asked for in any case.
    pub(crate) monitor: bool,
    /// Whether there is a control plane.
    pub(crate) control_plane: bool,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            given: false,
            webhook: true,
            rung: None,
            cert_manager: true,
            rollouts: false,
            monitor: false,
            control_plane: true,
        }
    }
}

impl Values {
    /// What several files say together; a later one wins, as with Helm.
    ///
    /// # Errors
    ///
    /// What is wrong, in a sentence.
    pub(crate) fn read(texts: &[String]) -> Result<Self, String> {
        if texts.is_empty() {
            return Ok(Self::default());
        }
        let mut all = Value::Object(serde_json::Map::new());
        for text in texts {
            let read: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
            merge(&mut all, read);
        }
        Self::of(&all)
    }

    fn of(all: &Value) -> Result<Self, String> {
        let switch = |path: &str| all.pointer(path).and_then(Value::as_bool);
        let word = |path: &str| all.pointer(path).and_then(Value::as_str);
        let rung = match word("/webhook/rung") {
            None | Some("deny-ignore") => Rung::Deny,
            Some(word) => word
                .parse()
                .map_err(|error| format!("webhook.rung: {error}"))?,
        };
        let webhook = switch("/webhook/enabled").unwrap_or(true);
        let all_rollouts = switch("/progressiveDelivery/enabled").unwrap_or(false);
        let parts = ["controllers", "controlPlane"].map(|part| {
            switch(&format!("/progressiveDelivery/{part}/enabled")).unwrap_or(all_rollouts)
        });
        let never = |path: &str| word(path) == Some("never");
        let is_plain = never("/progressiveDelivery/renderMode")
            || word("/progressiveDelivery/mode") == Some("deployment");
        let by_hand = word("/webhook/tls/source").is_some_and(|source| source != "cert-manager");
        let monitor = switch("/metrics/serviceMonitor/enabled") == Some(true)
            || matches!(
                word("/metrics/serviceMonitor/renderMode"),
                Some("always" | "require")
            );
        Ok(Self {
            given: true,
            webhook,
            rung: Some(rung),
            cert_manager: webhook && !by_hand && !never("/webhook/certManager/renderMode"),
            rollouts: parts.contains(&true) && !is_plain,
            monitor,
            control_plane: switch("/controlPlane/enabled").unwrap_or(true),
        })
    }
}

fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                merge(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_chart_reads_them() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            Values::read(&texts)
        };
        assert_eq!(read(&[]), Ok(Values::default()));
        let given = Values {
            given: true,
            rung: Some(Rung::Deny),
            ..Values::default()
        };
        assert_eq!(read(&["{}"]), Ok(given.clone()));
        let later = read(&["webhook: {rung: fail}", "webhook: {rung: warn}"]);
        assert_eq!(later.unwrap().rung, Some(Rung::Warn));
        let off = read(&["webhook: {enabled: false}\ncontrolPlane: {enabled: false}"]).unwrap();
        assert!(!off.webhook && !off.cert_manager && !off.control_plane);
        let own = read(&["webhook: {tls: {source: secret}}"]).unwrap();
        assert!(own.webhook && !own.cert_manager);
        let rollouts = |text: &str| read(&[text]).unwrap().rollouts;
        assert!(rollouts("progressiveDelivery: {enabled: true}"));
        assert!(rollouts(
            "progressiveDelivery: {controllers: {enabled: true}}"
        ));
        assert!(!rollouts(
            "progressiveDelivery: {enabled: true, mode: deployment}"
        ));
        assert!(!rollouts(
            "progressiveDelivery: {enabled: true, renderMode: never}"
        ));
        assert!(
            read(&["metrics: {serviceMonitor: {enabled: true}}"])
                .unwrap()
                .monitor
        );
        let wrong = read(&["webhook: {rung: enforce}"]).unwrap_err();
        assert!(
            wrong.starts_with("webhook.rung: `enforce` is not"),
            "{wrong}"
        );
        assert!(read(&["a: [b"]).is_err());
    }
}
