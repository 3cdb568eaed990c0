//! The parts of `docs/webhook.md` that are made from the sources.

use agents::api::contract::label;
use agents::api::registration::Check;
use agents::api::rung::{Rung, Territory};

use super::{bind_parts, metrics::families};

#[tokio::test]
async fn the_webhook_document_shows_the_ladder_every_check_and_every_metric() -> anyhow::Result<()>
{
    support::kinds!();
    let parts = [
        ("metrics", metrics().await),
        ("ladder", ladder()),
        ("checks", checks()),
    ];
    bind_parts("docs/webhook.md", &parts);
    Ok(())
}

/// What each rung means, and what must be good before the next.
fn ladder() -> String {
    let mut text = "| Rung | Refuses | Warns | While the webhook does not answer | Meaning |\n|---|---|---|---|---|\n".to_owned();
    for rung in Rung::ALL {
        text += &format!(
            "| `{rung}` | {} | {} | {} | {} |\n",
            yes(rung.refuses()),
            yes(rung.warns()),
            policies(rung),
            rung.meaning()
        );
    }
    text += &format!(
        "\nA namespace is labelled with `{}: {}`.\n",
        label::ADMISSION,
        label::ADMISSION_FAIL
    );
    for rung in Rung::ALL {
        text += &match rung.next() {
            Some(next) => format!("\nFrom `{rung}` to `{next}`, when these are good:\n\n"),
            None => format!("\nOn `{rung}`, keep an eye on:\n\n"),
        };
        for gate in rung.gates() {
            text += &format!("- `{}`: {}\n", gate.metric, gate.wanted);
        }
    }
    text
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn policies(rung: Rung) -> String {
    let [plain, labelled] = [Territory::Plain, Territory::Labelled]
        .map(|territory| rung.failure_policy(territory).as_str());
    match plain == labelled {
        true => format!("`{plain}`"),
        false => format!("`{labelled}` in labelled namespaces, else `{plain}`"),
    }
}

fn checks() -> String {
    let mut text = "| Check | A finding means |\n|---|---|\n".to_owned();
    for check in Check::ALL {
        text += &format!("| `{check}` | {} |\n", check.meaning());
    }
    text + "| `unseen` | The configurations are not there or cannot be read, so nothing is known. |\n"
}

/// What a running webhook shows about itself.
async fn metrics() -> String {
    let mut text = "| Metric | Type | Labels | What it says |\n|---|---|---|---|\n".to_owned();
    for family in families("agents-webhook").await {
        if family.name.starts_with("agents_webhook_") {
            let labels: Vec<_> = family
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            text += &format!(
                "| `{}` | {} | {} | {} |\n",
                family.name,
                family.kind,
                labels.join(", "),
                family.help.replace('|', "\\|")
            );
        }
    }
    text
}
