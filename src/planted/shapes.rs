//! Error texts as programs, clients and shells write them, each with secrets in it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

/// A text, and what must not be seen of it.
pub(super) struct Text {
    pub(super) secrets: Vec<String>,
    pub(super) words: String,
}

/// A secret as it is shown where someone was careless; what is shown may hold several.
type Planted = (Vec<String>, String);

const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// What people choose as passwords, with signs that separate values elsewhere.
const SIGNS: &str = "!$%*+-_.~^,;&()";

/// How credentials of well-known issuers begin, and how long they go on.
const ISSUERS: [(&str, usize); 20] = [
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 82),
    ("glpat-", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ya29.", 64),
    ("sk-ant-api03-", 95),
    ("sk-proj-", 48),
    ("sk_live_", 24),
    ("whsec_", 32),
    ("lin_api_", 40),
    ("xoxb-", 48),
    ("hf_", 34),
    ("npm_", 36),
    ("dckr_pat_", 27),
    ("hvs.", 24),
    ("SG.", 66),
];

/// Variables whose value nobody should see.
const VARIABLES: [&str; 12] = [
    "DB_PASSWORD",
    "PGPASSWORD",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "OPENAI_API_KEY",
    "CLIENT_SECRET",
    "SLACK_BOT_TOKEN",
    "JWT_SIGNING_KEY",
    "REDIS_PASS",
    "NPM_AUTH_TOKEN",
    "SENTRY_DSN",
    "SECRET_KEY_BASE",
];

/// Names of fields whose value nobody should see.
const FIELDS: [&str; 9] = [
    "password",
    "apiKey",
    "api_key",
    "client_secret",
    "access_token",
    "refreshToken",
    "privateKey",
    "token",
    "auth",
];

pub(super) fn text(rng: &mut fastrand::Rng) -> Text {
    let mut secrets = Vec::new();
    let mut words = String::new();
    for _ in 0..rng.usize(1..4) {
        let (planted, shown) = plant(rng);
        secrets.extend(planted);
        words += &prose(rng);
        words += &wrapped(rng, &shown);
        words += pick(rng, &[" ", "\n", ". ", ", ", "; ", ") "]);
    }
    words += &prose(rng);
    Text { secrets, words }
}

fn plant(rng: &mut fastrand::Rng) -> Planted {
    let shapes: [fn(&mut fastrand::Rng) -> Planted; 13] = [
        issued,
        web_token,
        address,
        query,
        header,
        header_in_json,
        environment,
        container_environment,
        debug,
        field,
        key,
        flag,
        chance,
    ];
    shapes[rng.usize(..shapes.len())](rng)
}

fn one(secret: String, shown: impl FnOnce(&str) -> String) -> Planted {
    let shown = shown(&secret);
    (vec![secret], shown)
}

fn issued(rng: &mut fastrand::Rng) -> Planted {
    let (issuer, length) = ISSUERS[rng.usize(..ISSUERS.len())];
    let alphabet = match issuer {
        "AKIA" | "ASIA" => [CAPITALS, "234567"].concat(),
        _ => [SMALL, CAPITALS, DIGITS].concat(),
    };
    one(of(rng, &alphabet, length), |secret| {
        format!("{issuer}{secret}")
    })
}

fn web_token(rng: &mut fastrand::Rng) -> Planted {
    let claims = URL_SAFE_NO_PAD.encode(format!("{{\"sub\":\"{}\"}}", of(rng, DIGITS, 9)));
    let signature = URL_SAFE_NO_PAD.encode(bytes(rng, 32));
    let shown = format!("eyJhbGciOiJIUzI1NiJ9.{claims}.{signature}");
    (vec![claims, signature], shown)
}

fn address(rng: &mut fastrand::Rng) -> Planted {
    let scheme = pick(rng, &["https", "postgres", "amqp", "mongodb+srv", "redis"]);
    let user = pick(rng, &["bob", "x-access-token", "app%40corp", ""]);
    one(password(rng), |secret| {
        format!("{scheme}://{user}:{secret}@host.example:5432/runs")
    })
}

fn query(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(rng, &["X-Amz-Signature", "sig", "access_token", "code"]);
    one(word(rng), |secret| {
        format!("\"https://store.example/o/a.tar?expires=60&{name}={secret}\"")
    })
}

fn header(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(
        rng,
        &[
            "Authorization: Bearer ",
            "authorization: token ",
            "Proxy-Authorization: Basic ",
            "X-Api-Key: ",
            "Private-Token: ",
            "X-Vault-Token: ",
            "Cookie: a=b; session=",
            "bearer ",
        ],
    );
    one(word(rng), |secret| {
        format!("> GET /v1\n> {name}{secret}\n> Accept: */*")
    })
}

fn header_in_json(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(rng, &["Authorization", "X-Api-Key", "Set-Cookie"]);
    one(word(rng), |secret| {
        json!({ "method": "GET", "headers": { name: format!("Bearer {secret}"), "Accept": "*/*" } })
            .to_string()
    })
}

fn environment(rng: &mut fastrand::Rng) -> Planted {
    let separator = pick(rng, &["\n", " ", "\r\n"]);
    let mut secrets = Vec::new();
    let mut lines = vec!["HOME=/root".to_owned()];
    for _ in 0..rng.usize(1..4) {
        let (name, secret) = (pick(rng, &VARIABLES), password(rng));
        let quote = pick(rng, &["", "\"", "'"]);
        lines.push(format!("{name}={quote}{secret}{quote}"));
        secrets.push(secret);
    }
    lines.push("PATH=/usr/bin:/bin".to_owned());
    (secrets, lines.join(separator))
}

fn container_environment(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(rng, &VARIABLES);
    one(password(rng), |secret| {
        json!([{ "name": "HOME", "value": "/root" }, { "name": name, "value": secret }]).to_string()
    })
}

/// As the types of the client print themselves.
fn debug(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(rng, &VARIABLES);
    one(password(rng), |secret| {
        format!("EnvVar {{ name: {name:?}, value: Some({secret:?}), value_from: None }}")
    })
}

fn field(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(rng, &FIELDS);
    one(password(rng), |secret| match name.len() % 2 {
        0 => json!({ "id": 7, name: secret, "ok": false }).to_string(),
        _ => json!({ "config": { "nested": [{ name: secret }] } }).to_string(),
    })
}

fn key(rng: &mut fastrand::Rng) -> Planted {
    let sort = pick(
        rng,
        &["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"],
    );
    let count = rng.usize(1..6);
    let lines: Vec<String> = (0..count)
        .map(|_| STANDARD.encode(bytes(rng, 48)))
        .collect();
    let end = match rng.u8(..4) {
        0 => String::new(),
        _ => format!("\n-----END {sort}-----"),
    };
    let shown = format!("-----BEGIN {sort}-----\n{}{end}", lines.join("\n"));
    (lines, shown)
}

fn flag(rng: &mut fastrand::Rng) -> Planted {
    let name = pick(
        rng,
        &["--password ", "--token=", "--api-key ", "--client-secret="],
    );
    one(word(rng), |secret| {
        format!("ran: tool {name}{secret} --depth 1")
    })
}

/// Nothing but its disorder tells that it is a secret.
fn chance(rng: &mut fastrand::Rng) -> Planted {
    let drawn = bytes(rng, 33);
    let secret = match rng.u8(..3) {
        0 => STANDARD.encode(drawn),
        1 => URL_SAFE_NO_PAD.encode(drawn),
        _ => drawn.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    one(secret, |secret| format!("got {secret} instead"))
}

/// As it is, or inside of text that was quoted once or twice.
fn wrapped(rng: &mut fastrand::Rng, shown: &str) -> String {
    let quoted = |text: &str| json!(text).to_string();
    match rng.u8(..8) {
        0 => quoted(shown),
        1 => format!("{{\"message\":{}}}", quoted(shown)),
        2 => quoted(&quoted(shown)),
        3 => format!("{shown:?}"),
        4 => format!("({shown} )"),
        _ => shown.to_owned(),
    }
}

fn prose(rng: &mut fastrand::Rng) -> String {
    let pieces = [
        "admission webhook denied the request: ",
        "dial tcp 10.0.0.7:5432: connect: connection refused ",
        "Secret \"db-credentials\" has no key \"token\"; ",
        "jobs.batch \"demo-job\" is forbidden ",
        "at 2026-02-06T12:00:00.000000Z\n",
        "Ünïcödé 漢字 ",
        "exit status 128\n",
    ];
    let count = rng.usize(..3);
    (0..count).map(|_| pick(rng, &pieces)).collect()
}

/// A password of a person or of a generator.
fn password(rng: &mut fastrand::Rng) -> String {
    let inner = of(rng, &[SMALL, CAPITALS, DIGITS, SIGNS].concat(), 10);
    let (first, last) = (word(rng), of(rng, SMALL, 3));
    match rng.u8(..3) {
        0 => format!("{}{inner}{last}", &first[..2]),
        _ => first,
    }
}

/// Letters and digits that no rule could tell from a name.
fn word(rng: &mut fastrand::Rng) -> String {
    let length = rng.usize(8..24);
    of(rng, &[SMALL, DIGITS].concat(), length)
}

fn of(rng: &mut fastrand::Rng, alphabet: &str, length: usize) -> String {
    let letters = alphabet.as_bytes();
    (0..length)
        .map(|_| char::from(letters[rng.usize(..letters.len())]))
        .collect()
}

fn bytes(rng: &mut fastrand::Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| rng.u8(..)).collect()
}

fn pick<'a>(rng: &mut fastrand::Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.usize(..choices.len())]
}
