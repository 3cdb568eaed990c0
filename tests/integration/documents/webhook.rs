//! The parts of `docs/webhook.md` that are made from the sources.

use agents::api::contract::label;
use agents::api::registration::Check;
use agents::api::registration::rung::{Rung, Territory};

use super::{bind_parts, metrics::table};

#[tokio::test]
async fn the_webhook_document_shows_the_ladder_every_check_and_every_metric() -> anyhow::Result<()>
{
    support::kinds!();
    let parts = [
        ("metrics", table("agents-webhook", "agents_webhook_").await),
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
        "\nThe chart calls `{}` by the name `{}`; programs and commands take both.\n",
        Rung::Deny,
        Rung::DENY_IN_CHART
    );
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
