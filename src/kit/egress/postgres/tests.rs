//! Visits to servers on this machine that answer as a test wants. A real PostgreSQL is visited by the integration tests.

use std::net::IpAddr;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::kit::egress::tests::{guard_with, settings};
use crate::kit::egress::{Refusal, Settings};

/// A server that sends the same to everyone, whatever it is asked. It offers no TLS.
async fn server(says: Vec<u8>) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 8];
            drop(stream.read_exact(&mut asked).await);
            drop(stream.write_all(b"N").await);
            drop(stream.write_all(&says).await);
            // Hold the line until the caller has enough.
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest).await);
        }
    });
    (port, serving)
}

fn said(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[letter], &length.to_be_bytes()[..], body].concat()
}

/// A server that lets everyone in and answers with a row.
fn well() -> Vec<u8> {
    let parts = [
        said(b'S', b"server_version\x0016\x00"),
        said(b'R', &[0, 0, 0, 0]),
        said(b'K', &[0; 8]),
        said(b'Z', b"I"),
        said(b'T', &[0, 0]),
        said(b'D', &[0, 0]),
        said(b'C', b"SELECT 1\x00"),
        said(b'Z', b"I"),
    ];
    parts.concat()
}

async fn visited(settings: Settings, says: Vec<u8>, query: &str) -> Result<(), Trouble> {
    let (port, _serving) = server(says).await;
    let store = format!("postgres://user:secret@127.0.0.1:{port}/name{query}");
    let store = Store::parse(&store).unwrap();
    guard_with(settings, &[], Vec::new())
        .visit(&store, None)
        .await
}

#[tokio::test]
async fn each_answer_has_its_class_and_none_is_repeated() {
    let unreachable = |why: &str| Err(Failure::Unreachable(why.to_owned()).into());
    let sign_in = |why: &str| Err(Trouble::SignIn(why.to_owned()));
    let fails = |code: &str| said(b'E', format!("SFATAL\0C{code}\0Mno secret!\0\0").as_bytes());
    let mut bare = said(b'R', &[0, 0, 0, 0]);
    bare.extend([said(b'Z', b"I"), said(b'C', b"x\0"), said(b'Z', b"I")].concat());
    let notices: Vec<u8> = said(b'N', b"\0").repeat(300);
    for (row, says, expected) in [
        ("well", well(), Ok(())),
        (
            "a wrong password",
            fails("28P01"),
            sign_in("it refuses the user or the password (code 28P01)"),
        ),
        (
            "no right to connect",
            fails("42501"),
            sign_in("the user may not do what is asked (code 42501)"),
        ),
        (
            "no database",
            fails("3D000"),
            Err(Trouble::Lacks(
                "it has no such database (code 3D000)".to_owned(),
            )),
        ),
        (
            "no room",
            fails("53300"),
            unreachable("it answers with an error (code 53300)"),
        ),
        (
            "a code that is none",
            fails("secret"),
            unreachable("it answers with an error (code none)"),
        ),
        (
            "an unknown way to sign in",
            said(b'R', &[0, 0, 0, 7]),
            sign_in("it asks for a way to sign in that is not built"),
        ),
        (
            "no way that is safe to use",
            said(b'R', b"\0\0\0\x0aSCRAM-SHA-1\0\0"),
            sign_in("it asks for a way to sign in that is not built"),
        ),
        (
            "let in without a proof",
            [said(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), well()].concat(),
            sign_in("it does not prove that it knows the password"),
        ),
        (
            "no rows",
            bare,
            unreachable("its answer is not that of a PostgreSQL"),
        ),
        (
            "something else",
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            Err(Failure::TooLarge(16 * 1024).into()),
        ),
        (
            "a message without an end",
            vec![b'R', 0xff, 0xff, 0xff, 0xff],
            Err(Failure::TooLarge(16 * 1024).into()),
        ),
        (
            "a message shorter than its length",
            vec![b'R', 0, 0, 0, 3],
            unreachable("its answer is not that of a PostgreSQL"),
        ),
        (
            "messages without an end",
            notices,
            unreachable("its answer is not that of a PostgreSQL"),
        ),
    ] {
        assert_eq!(visited(settings(), says, "").await, expected, "{row}");
    }
}

#[tokio::test]
async fn a_password_goes_in_the_clear_only_inside_tls() {
    let store = Store::parse("postgres://user:secret@h/name").unwrap();
    let bare = Store::parse("postgres://user@h/name").unwrap();
    let refused = Err(Trouble::Failed(Failure::Refused(Refusal::Credential)));
    let clear = [0, 0, 0, 3];
    let hash = [0, 0, 0, 5, 1, 2, 3, 4];
    for asked in [&clear[..], &hash[..]] {
        assert_eq!(Door::new(&store, false).answer(asked), refused);
        let sent = Door::new(&store, true).answer(asked).unwrap().unwrap();
        let is_clear = sent.windows(6).any(|part| part == b"secret");
        assert_eq!(is_clear, asked == clear);
        let none = Door::new(&bare, true).answer(asked);
        assert!(matches!(none, Err(Trouble::SignIn(_))), "{none:?}");
    }
    let proof = Door::new(&store, false).answer(b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    assert!(
        proof.unwrap().is_some(),
        "a proof tells nobody the password"
    );
}

#[tokio::test]
async fn a_store_that_offers_no_tls_is_left_where_tls_is_a_must() {
    let why = "it offers no TLS".to_owned();
    assert_eq!(
        visited(settings(), well(), "?sslmode=require").await,
        Err(Failure::Unreachable(why).into())
    );
}

#[tokio::test]
async fn a_store_is_judged_like_every_other_address() {
    let settings = Settings {
        loopback: false,
        ..settings()
    };
    assert_eq!(
        visited(settings, well(), "").await,
        Err(Failure::Refused(Refusal::Loopback).into())
    );
}

/// The name is asked for, and judged; nobody is called.
#[tokio::test]
async fn the_database_of_the_installation_need_not_be_listed() {
    let private: IpAddr = "10.0.0.9".parse().unwrap();
    let own = Store::parse("postgres://a:b@db.test:5433/own").unwrap();
    for (row, database, place, expected) in [
        (
            "without one",
            None,
            5433,
            Err(Failure::Refused(Refusal::Private)),
        ),
        ("its place", Some(own.clone()), 5433, Ok(1)),
        (
            "another port of its host",
            Some(own),
            5432,
            Err(Failure::Refused(Refusal::Private)),
        ),
    ] {
        let settings = Settings {
            database,
            ..settings()
        };
        let guard = guard_with(settings, &[private], Vec::new());
        let judged = judged(&guard.inner, "db.test", place).await;
        assert_eq!(judged.map(|found| found.len()), expected, "{row}");
    }
}

#[tokio::test]
async fn the_next_host_is_tried_where_nobody_answers() {
    let (port, _serving) = server(well()).await;
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = free.local_addr().unwrap().port();
    drop(free);
    let store = format!("postgres://user@127.0.0.1:{silent},127.0.0.1:{port}/name");
    let store = Store::parse(&store).unwrap();
    let guard = guard_with(settings(), &[], Vec::new());
    assert_eq!(guard.visit(&store, None).await, Ok(()));
}
