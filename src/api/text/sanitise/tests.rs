use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

fn clean(text: &str) -> String {
    sanitise(text, &Secrets::NONE, NOTE_LIMIT)
}

#[test]
fn secrets_are_masked_and_the_rest_can_still_be_read() {
    let table = [
        (
            "a password in a URL",
            "cannot connect to postgres://app:s3cr3t@db:5432/runs: refused",
            "cannot connect to postgres://[redacted]@db:5432/runs: refused",
        ),
        (
            "a password with a slash in a URL",
            "postgres://app:pa/ss@db:5432/runs",
            "postgres://[redacted]@db:5432/runs",
        ),
        (
            "the query of a URL",
            r#"Get "https://store.example/o?sig=abc&X-Amz-Credential=x": 403"#,
            r#"Get "https://store.example/o?[redacted]": 403"#,
        ),
        (
            "the fragment of a URL",
            "sent to https://app.example/cb#access_token=abc",
            "sent to https://app.example/cb#[redacted]",
        ),
        (
            "a data source name",
            "dial app:hunter2@tcp(db:3306)/runs failed",
            "dial [redacted]@tcp(db:3306)/runs failed",
        ),
        (
            "an authorization header",
            "request had\nAuthorization: Basic dXNlcjpwYXNz\nAccept: */*",
            "request had Authorization: [redacted] Accept: */*",
        ),
        (
            "a header in JSON",
            r#"{"Authorization":"Bearer abc","Accept":"x"}"#,
            r#"{"Authorization":"[redacted]","Accept":"x"}"#,
        ),
        (
            "a bearer token in a sentence",
            "used bearer hunterhunter, refused",
            "used bearer [redacted], refused",
        ),
        (
            "an assignment",
            "env DB_PASSWORD=hunter2 LOG=info",
            "env DB_PASSWORD=[redacted] LOG=info",
        ),
        (
            "a quoted assignment with blanks",
            r#"password="correct horse" user="bob""#,
            r#"password="[redacted]" user="bob""#,
        ),
        (
            "JSON inside JSON",
            r#"body: {\"apiKey\":\"abc def\",\"id\":7}"#,
            r#"body: {\"apiKey\":\"[redacted]\",\"id\":7}"#,
        ),
        (
            "YAML of an environment",
            "GITHUB_TOKEN: abc\nHOME: /root",
            "GITHUB_TOKEN: [redacted] HOME: /root",
        ),
        (
            "an entry of a container's environment",
            r#"{"name":"DB_PASSWORD","value":"hunter2"},{"name":"A","value":"b"}"#,
            r#"{"name":"DB_PASSWORD","value":"[redacted]"},{"name":"A","value":"b"}"#,
        ),
        (
            "a flag",
            "ran: git-sync --token abc --depth 1",
            "ran: git-sync --token [redacted] --depth 1",
        ),
        (
            "a private key",
            "bad key -----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY----- in secret",
            "bad key [redacted] in secret",
        ),
        (
            "a private key without its end",
            "bad key -----BEGIN EC PRIVATE KEY-----\nMHcC",
            "bad key [redacted]",
        ),
        (
            "a token of a forge",
            "remote: ghp_0123456789abcdefABCDEF0123456789abcd is revoked.",
            "remote: [redacted] is revoked.",
        ),
        (
            "an access key",
            "The key AKIAIOSFODNN7EXAMPLE is unknown",
            "The key [redacted] is unknown",
        ),
        (
            "a JSON web token",
            "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl expired",
            "jwt [redacted] expired",
        ),
        (
            "a long word of chance",
            "refused wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAMPLEKEY here",
            "refused [redacted] here",
        ),
        (
            "a hexadecimal word",
            "refused 0f1e2d3c4b5a69788796a5b4c3d2e1f0 here",
            "refused [redacted] here",
        ),
        (
            "a password with signs that separate values elsewhere",
            "DB_PASSWORD=hun,ter;2&x next, password=a,b, and user=b&password=a;c&id=7",
            "DB_PASSWORD=[redacted] next, password=[redacted], and user=b&password=[redacted]&id=7",
        ),
        (
            "a value as Rust prints it",
            r#"EnvVar { name: "PGPASSWORD", value: Some("hunter2"), value_from: None }"#,
            r#"EnvVar { name: "PGPASSWORD", value: Some("[redacted]"), value_from: None }"#,
        ),
        (
            "an entry of an environment that was quoted twice",
            r#"{\\\"name\\\":\\\"DB_PASSWORD\\\",\\\"value\\\":\\\"hunter2\\\"}"#,
            r#"{\\\"name\\\":\\\"DB_PASSWORD\\\",\\\"value\\\":\\\"[redacted]\\\"}"#,
        ),
        (
            "a header that is not known by name",
            "Private-Token: abc\nx-vault-token: abc",
            "Private-Token: [redacted] x-vault-token: [redacted]",
        ),
        (
            "two secrets that touch",
            "x password=a,token=b",
            "x password=[redacted],token=[redacted]",
        ),
    ];
    for (what, text, expected) in table {
        assert_eq!(clean(text), expected, "{what}");
    }
}

#[test]
fn ordinary_messages_stay_as_they_are() {
    let table = [
        "",
        "AgentRun agents/nightly-7d9f8b6c5d-x2x7k waits for Agent \"reviewer\"",
        "spec.runtime.type: \"jobs\" is not one of job, workflow, custom; did you mean \"job\"?",
        "Secret: not found; secretRef.name is db-credentials, key is password",
        "MissingSecret: Secret \"db-credentials\" has no key \"token\"",
        "Job run-nightly-0f1e2d3c4b5a6978 (uid 3f2b8c1a-7f0e-4c55-9d0c-1f2e3d4c5b6a) was deleted by system:serviceaccount:ci:deployer",
        "image registry.example/lab/jangar:5b72ee1e@sha256:e24ef112b615401150220dc303553f47a3cefe793c0c6c28781e9575b98ab9ae is not allowed",
        "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN must be between 1 and 600",
        "jobs.batch is forbidden: User \"system:serviceaccount:agents:controller\" cannot create resource \"jobs\"",
        "basic authentication is off; the bearer token is missing",
        "see https://docs.example.com/agents/events and mail ops@example.com",
        "clone git@forge.example:team/repo.git failed at 2026-02-06T12:00:00.000000Z",
        "WorkflowStepRetriesExhausted after 3 attempts in /var/run/secrets/kubernetes.io/serviceaccount",
        "Ünïcödé ist erlaubt 漢字も",
    ];
    for text in table {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn a_known_value_is_found_in_every_form() {
    let value = "pä\"ss/wörd one";
    let known = Secrets::new([format!("{value}\n")]);
    let table = [
        ("as it is", value.to_owned()),
        ("escaped as JSON", "pä\\\"ss/wörd one".to_owned()),
        (
            "percent-encoded",
            "p%C3%A4%22ss%2Fw%C3%B6rd%20one".to_owned(),
        ),
        ("in base64", STANDARD.encode(value)),
        (
            "in base64 with its newline",
            STANDARD.encode(format!("{value}\n")),
        ),
        ("in base64 for URLs", URL_SAFE_NO_PAD.encode(value)),
        (
            "in base64 behind a user",
            STANDARD.encode(format!("u:{value}")),
        ),
        (
            "in base64 behind a longer user",
            STANDARD.encode(format!("us:{value}")),
        ),
    ];
    for (how, text) in table {
        let note = sanitise(&format!("<{text}>"), &known, NOTE_LIMIT);
        assert_eq!(note, format!("<{MASK}>"), "{how}");
    }
}

#[test]
fn each_line_of_a_known_value_is_a_secret() {
    let known = Secrets::new(["{\n  first-line-of-it\n  second-line-of-it\n}"]);
    assert_eq!(
        sanitise("at second-line-of-it {", &known, NOTE_LIMIT),
        "at [redacted] {"
    );
}

#[test]
fn a_known_value_of_three_letters_is_no_secret() {
    let known = Secrets::new(["run", ""]);
    assert_eq!(sanitise("run it", &known, NOTE_LIMIT), "run it");
}

#[test]
fn known_values_do_not_show_in_debug_output() {
    let shown = format!("{:?}", Secrets::new(["hunter2hunter2"]));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn control_and_invisible_characters_become_one_space() {
    assert_eq!(
        clean(" a\r\n\tb\u{0}c\u{202e}d\u{200b}\u{feff}e\u{1b}[31m "),
        "a b c d e [31m"
    );
}

#[test]
fn a_cut_falls_between_characters_and_words() {
    let table = [
        (
            "two-byte letters",
            "ä".repeat(513),
            1024,
            format!("{}…", "ä".repeat(510)),
        ),
        ("fits exactly", "ä".repeat(512), 1024, "ä".repeat(512)),
        (
            "a word is not halved",
            "one two three".to_owned(),
            10,
            "one two…".to_owned(),
        ),
        (
            "nor is a mask",
            "go password=hunter2 x".to_owned(),
            16,
            "go password=…".to_owned(),
        ),
        (
            "room for the ellipsis only",
            "one two".to_owned(),
            3,
            "…".to_owned(),
        ),
        ("no room at all", "one two".to_owned(), 0, String::new()),
    ];
    for (what, text, limit, expected) in table {
        assert_eq!(sanitise(&text, &Secrets::NONE, limit), expected, "{what}");
    }
}

#[test]
fn a_secret_across_the_end_of_the_window_does_not_survive_in_part() {
    let secret = "correct-horse-battery-staple";
    let known = Secrets::new([secret]);
    // Everything before it is masked away, so that the end of the window comes into the note.
    let filler = format!(
        "-----BEGIN X-----{}-----END X-----",
        "x".repeat(MAX_INPUT - 80)
    );
    for shift in 0..80 {
        let text = format!("{filler}{} {secret} {}", ".".repeat(shift), "y".repeat(100));
        let note = sanitise(&text, &known, NOTE_LIMIT);
        assert!(!note.contains("correct"), "shift {shift}: {note}");
    }
}

#[test]
fn hostile_texts_take_time_in_proportion() {
    let patterns = [
        "://",
        "a:b://",
        "://a:x/",
        "cookie=",
        "bearer ",
        "basic",
        "password=",
        "password='",
        "sk-",
        "eyJ",
        "a:",
        "@",
        "a:b@",
        "?",
        "-----BEGIN",
        "-----END",
        "--token ",
        "--",
        "-- ",
        "value=",
        "\"",
        "\\",
        "A1b",
        "…",
        MASK,
        "ä",
    ];
    let known = Secrets::new(["aaaa", "AAAAAAAA", "x=x=x=x="]);
    for pattern in patterns {
        let text = pattern.repeat(2 * MAX_INPUT / pattern.len());
        let note = sanitise(&text, &known, NOTE_LIMIT);
        assert!(note.len() <= NOTE_LIMIT, "{pattern}");
    }
}

/// Text as errors have it: words, punctuation, and what the rules look for.
fn prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ a-zA-Z0-9_./:=,;@?&\"'<>\\[\\]{}()#%+\\\\\n\t…-]{0,12}",
        1 => "\\PC{0,6}",
        1 => prop::sample::select(vec![
            "password", "token:", "Authorization: ", "https://", "Bearer ", "-----BEGIN ", "-----END ", "sk-", "eyJ", "sha256:", MASK,
            "value\":", "--secret ", "Cookie", "\u{200b}", "@sha256:",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Many cases, since they are cheap. `PROPTEST_CASES` overrides the number.
fn thorough() -> ProptestConfig {
    ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn random_bytes(least: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), least..2 * least)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret, and the text in which an error would show it.
fn planted() -> impl Strategy<Value = (String, String)> {
    let word = "[A-Za-z0-9]{6,24}";
    prop_oneof![
        (
            "[A-Za-z0-9]{36}",
            prop::sample::select(vec![
                "ghp_", "ghs_", "glpat-", "sk-ant-", "xoxb-", "lin_api_", "hvs.", "npm_"
            ])
        )
            .prop_map(|(s, p)| (s.clone(), format!("{p}{s}"))),
        "[A-Z2-7]{16}".prop_map(|s| (s.clone(), format!("AKIA{s}"))),
        "[A-Za-z0-9_-]{12,40}".prop_map(|s| (s.clone(), format!("eyJhbGciOiJ9.{s}.{s}"))),
        word.prop_map(|s| (s.clone(), format!("https://bob:{s}@git.example/x.git"))),
        word.prop_map(|s| (s.clone(), format!("bob:{s}@tcp(db:3306)/x"))),
        word.prop_map(|s| (
            s.clone(),
            format!("https://s3.example/o?X-Amz-Signature={s}")
        )),
        word.prop_map(|s| (s.clone(), format!("Authorization: Digest {s}"))),
        word.prop_map(|s| (s.clone(), format!("Bearer {s}"))),
        word.prop_map(|s| (s.clone(), format!("PGPASSWORD={s}"))),
        word.prop_map(|s| (s.clone(), format!("\"client_secret\": \"{s}\""))),
        word.prop_map(|s| (s.clone(), format!("password: {s}"))),
        word.prop_map(|s| (s.clone(), format!("--api-key {s}"))),
        random_bytes(30).prop_map(|b| (STANDARD.encode(&b), STANDARD.encode(&b))),
        random_bytes(30).prop_map(|b| (URL_SAFE_NO_PAD.encode(&b), URL_SAFE_NO_PAD.encode(&b))),
        random_bytes(16).prop_map(|b| (hex(&b), hex(&b))),
        "[A-Za-z0-9+/\n]{20,200}".prop_map(|s| (
            s.clone(),
            format!("-----BEGIN PRIVATE KEY-----\n{s}\n-----END PRIVATE KEY-----")
        )),
    ]
}

#[test]
fn what_a_cut_makes_look_like_a_secret_is_masked_as_well() {
    let once = sanitise("password--secret &\tA}}a", &Secrets::NONE, 21);
    assert_eq!(once, "password--secret…");
    assert_eq!(sanitise(&once, &Secrets::NONE, 21), once);
}

proptest! {
    #![proptest_config(thorough())]

    #[test]
    fn no_planted_secret_survives((secret, shown) in planted(), before in "[a-z ]{0,20}", after in "[a-z ]{0,20}") {
        let note = clean(&format!("{before} {shown} {after}"));
        prop_assert!(!note.contains(&secret), "{note}");
    }

    #[test]
    fn any_text_becomes_one_line_within_the_limit_and_stays_as_it_is(text in prose(), limit in 0..200usize) {
        let once = sanitise(&text, &Secrets::NONE, limit);
        prop_assert!(once.len() <= limit);
        prop_assert!(!once.contains(char::is_control));
        prop_assert_eq!(sanitise(&once, &Secrets::NONE, limit), once);
    }

    #[test]
    fn no_known_secret_survives(
        secret in "[!-Z^-~ä漢]{5,40}".prop_filter("is not part of the mask", |s| !MASK.contains(s.as_str())),
        before in prose(), after in prose(), user in "[a-z]{0,3}", limit in 0..2000usize,
    ) {
        let known = Secrets::new([&secret]);
        let basic = STANDARD.encode(format!("{user}{secret}"));
        let text = format!("{before}{secret}{after} {basic}");
        let note = sanitise(&text, &known, limit);
        prop_assert!(!note.contains(&secret), "{}", note);
        let encoded = STANDARD.encode(&secret);
        prop_assert!(!note.contains(&encoded), "{}", note);
        prop_assert_eq!(sanitise(&note, &known, limit), note);
    }
}
