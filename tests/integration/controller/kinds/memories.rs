//! Memories: whether their store is there, asked of a real PostgreSQL on this machine.

use agents::api::kind::Kind;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::events::{self, Said};
use support::ports::free_addresses;
use support::postgres::Postgres;
use support::wait;

use crate::controller::scene::endpoint::LOOPBACK;
use crate::controller::scene::{DEADLINE, Scene};

const OFTEN: (&str, &str) = ("AGENTS_REACH_CHECK_SECONDS", "1");

/// What must be seen nowhere, as it is and as it is written in a connection string.
const PASSWORD: &str = "hunter/2";
const WRITTEN: &str = "hunter%2F2";

/// Users that sign in in different ways, and a database of theirs.
const USERS: &str = "
    CREATE ROLE proven LOGIN PASSWORD 'hunter/2';
    CREATE ROLE clear LOGIN PASSWORD 'hunter/2';
    SET password_encryption = 'md5';
    CREATE ROLE hashed LOGIN PASSWORD 'hunter/2';
";

async fn secret(scene: &Scene, name: &str, url: &str) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": name}, "stringData": {"url": url},
    }))?;
    let secrets = scene.here.api();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// A Memory and the Secret that it needs.
async fn memory(scene: &Scene, name: &str, url: &str, able: &[&str]) -> Result<DynamicObject> {
    secret(scene, name, url).await?;
    let spec = json!({"type": "postgres", "connection": {"secretRef": {"name": name}}, "capabilities": able});
    scene.make(Kind::Memory, name, spec).await
}

fn url(server: &Postgres, user: &str, rest: &str) -> String {
    format!("postgres://{user}:{WRITTEN}@{}/{rest}", server.address)
}

/// Status, reason and message of the conditions that say how a Memory stands.
fn stands(memory: &DynamicObject) -> Value {
    let conditions = memory.data["status"]["conditions"].as_array();
    let told = conditions.into_iter().flatten().filter(|entry| {
        ["Ready", "Unreachable", "Stalled"]
            .iter()
            .any(|type_| entry["type"] == *type_)
    });
    let told = told.map(|entry| {
        let word = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        (
            word("type"),
            json!([word("status"), word("reason"), word("message")]),
        )
    });
    told.collect::<serde_json::Map<_, _>>().into()
}

/// How a Memory stands whose store is of no use.
fn unusable(reason: &str, message: &str) -> Value {
    let all = json!(["True", reason, message]);
    json!({"Ready": ["False", reason, message], "Stalled": all, "Unreachable": all})
}

fn warning(reason: &str, note: &str) -> Said {
    Said {
        kind: "Warning".to_owned(),
        reason: reason.to_owned(),
        action: "Resolve".to_owned(),
        note: note.to_owned(),
        count: 1,
    }
}

#[tokio::test]
async fn a_store_is_visited_and_each_trouble_is_told_by_its_class() -> Result<()> {
    support::kinds!();
    let server = support::postgres!();
    server.run(USERS).await?;
    let scene = Scene::new(&[LOOPBACK, OFTEN]).await?;
    let controller = scene.controller().await?;
    let [nobody] = free_addresses()?;
    let good = |user: &str| url(&server, user, "postgres");
    for (name, url) in [
        ("proven", good("proven")),
        ("clear", good("clear")),
        ("hashed", good("hashed")),
        ("plain", format!("{}?sslmode=disable", good("proven"))),
    ] {
        memory(&scene, name, &url, &[]).await?;
    }
    let rows = [
        (
            "wrong",
            format!("postgres://proven:not-it@{}/postgres", server.address),
            "AuthFailed",
            "AuthFailed",
            "the store does not let the user in: it refuses the user or the password (code 28P01)",
        ),
        (
            "nameless",
            url(&server, "proven", "nothing"),
            "CapabilityMissing",
            "CapabilityMissing",
            "the store is not as it should be: it has no such database (code 3D000)",
        ),
        (
            "silent",
            format!("postgres://proven:{WRITTEN}@{nobody}/postgres"),
            "ConnectionFailed",
            "Unreachable",
            "the store cannot be reached: no connection to it: connection refused",
        ),
        (
            "garbled",
            format!("proven:{WRITTEN}"),
            "InvalidConnection",
            "InvalidConnection",
            "the connection string in Secret garbled cannot be used: write an address that begins with postgres:// and names user, host and database",
        ),
        (
            "strange",
            format!("{}?sslmode=require", good("proven")),
            "ConnectionFailed",
            "Unreachable",
            "the store cannot be reached: TLS with it failed: invalid peer certificate: UnknownIssuer",
        ),
    ];
    for (name, url, ..) in &rows {
        memory(&scene, name, url, &[]).await?;
    }
    for name in ["proven", "clear", "hashed", "plain"] {
        let ready = scene
            .until_ready(Kind::Memory, name, "True Connected")
            .await?;
        let well =
            json!({"Ready": ["True", "Connected", ""], "Stalled": ["False", "Connected", ""]});
        assert_eq!(stands(&ready), well, "{name}");
        assert_eq!(
            events::about(&scene.here.client, &ready).await?,
            [],
            "{name}"
        );
    }
    let mut shown = String::new();
    for (name, _, reason, event, message) in &rows {
        let expected = format!("False {reason}");
        let failed = scene.until_ready(Kind::Memory, name, &expected).await;
        let failed = failed.with_context(|| (*name).to_owned())?;
        assert_eq!(stands(&failed), unusable(reason, message), "{name}");
        let is_it = |said: &Said| said.reason == *event;
        let told = events::until(&scene.here.client, &failed, DEADLINE, is_it).await?;
        assert_eq!(told, warning(event, message), "{name}");
        shown += &format!("{} {told:?}", failed.data);
    }
    controller.signal(Signal::SIGTERM);
    shown += &controller.end().await.log.join("\n");
    for secret in [PASSWORD, WRITTEN, "not-it"] {
        ensure!(!shown.contains(secret), "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn a_store_that_is_mended_is_found_and_one_that_stays_well_costs_no_write() -> Result<()> {
    support::kinds!();
    let server = support::postgres!();
    server.run(USERS).await?;
    let scene = Scene::new(&[LOOPBACK, OFTEN]).await?;
    let _controller = scene.controller().await?;
    let good = url(&server, "proven", "postgres");
    memory(&scene, "x", &good, &["kv", "vector"]).await?;
    let lacks = scene
        .until_ready(Kind::Memory, "x", "False CapabilityMissing")
        .await?;
    let message = "the store is not as it should be: its database lacks the extension vector";
    assert_eq!(stands(&lacks), unusable("CapabilityMissing", message));
    // As if someone had installed it.
    server
        .run("INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) VALUES (99999, 'vector', 10, 11, false, '1')")
        .await?;
    let well = scene
        .until_ready(Kind::Memory, "x", "True Connected")
        .await?;
    let before = server.visits_of("proven")?;
    wait::retry("three more visits", DEADLINE, || async {
        let more = server.visits_of("proven")? - before;
        ensure!(more >= 3, "{more} so far");
        Ok(())
    })
    .await?;
    let same = scene.any(Kind::Memory).get("x").await?;
    assert_eq!(
        same.metadata.resource_version,
        well.metadata.resource_version
    );
    let wrong = url(&server, "nobody", "postgres");
    let patch = Patch::Merge(json!({"stringData": {"url": wrong}}));
    let secrets = scene.here.api::<Secret>();
    secrets.patch("x", &PatchParams::default(), &patch).await?;
    scene
        .until_ready(Kind::Memory, "x", "False AuthFailed")
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_database_of_the_installation_is_known_by_its_variables() -> Result<()> {
    support::kinds!();
    let server = support::postgres!();
    server.run(USERS).await?;
    let own = url(&server, "nobody", "other");
    let authority = server.authority();
    let authority = authority.to_str().context("UTF-8")?;
    let database = ("DATABASE_URL", &*own);
    let trusted = ("PGSSLROOTCERT", authority);
    let must = format!("{}?sslmode=require", url(&server, "proven", "postgres"));
    let [elsewhere] = free_addresses()?;
    let elsewhere = format!("postgres://u:{WRITTEN}@{elsewhere}/d");
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
    let rows: [Row<'_>; 5] = [
        (
            "nothing",
            &[LOOPBACK, trusted],
            &must,
            "True SecretResolved",
        ),
        (
            "its place",
            &[LOOPBACK, database, trusted],
            &must,
            "True Connected",
        ),
        (
            "another place",
            &[LOOPBACK, database],
            &elsewhere,
            "True SecretResolved",
        ),
        (
            "unknown authority",
            &[LOOPBACK, database],
            &must,
            "False ConnectionFailed",
        ),
        (
            "loopback",
            &[database, trusted],
            &must,
            "False EgressDenied",
        ),
    ];
    for (row, settings, url, expected) in rows {
        let scene = Scene::new(settings).await?;
        let _controller = scene.controller().await?;
        memory(&scene, "x", url, &[]).await?;
        let found = scene.until_ready(Kind::Memory, "x", expected).await;
        found.with_context(|| row.to_owned())?;
    }
    Ok(())
}
