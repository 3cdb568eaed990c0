//! A real browser for one test: Chromium without a window, driven by chromedriver over plain HTTP, as WebDriver says.
//!
//! The programs are those of the Debian packages `chromium` and `chromium-driver`. Where they are missing and the tests run
//! as root, they are installed, which is said; where that is impossible the test is left out.

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{apt, http, left_out, ports::free_addresses, wait};

const DRIVER: &str = "/usr/bin/chromedriver";
const BROWSER: &str = "/usr/bin/chromium";

/// Nothing that a page does takes longer, also where everything else is busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// What an element is called in the answers of a driver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are no letters, as WebDriver writes them.
pub mod key {
    /// Goes to the next field.
    pub const TAB: &str = "\u{e004}";
    /// Takes what is chosen.
    pub const ENTER: &str = "\u{e007}";
    /// Goes back.
    pub const ESCAPE: &str = "\u{e00c}";
    /// Goes to the end.
    pub const END: &str = "\u{e010}";
    /// Goes to the start.
    pub const HOME: &str = "\u{e011}";
    /// One up.
    pub const UP: &str = "\u{e013}";
    /// One down.
    pub const DOWN: &str = "\u{e015}";
}

/// A browser that runs, until it is dropped.
pub struct Browser {
    authority: String,
    session: String,
    driver: Child,
    /// The browser itself, which a killed driver leaves behind.
    program: Option<Pid>,
    folder: TempDir,
}

impl Browser {
    /// A browser for a test; none, noted as left out, where there can be none. Call it through [`crate::browser!`], which
    /// knows the test's name.
    pub async fn of_test(test: &str) -> Result<Option<Self>> {
        static PROGRAMS: OnceCell<Result<(), String>> = OnceCell::const_new();
        match PROGRAMS.get_or_init(programs).await {
            Ok(()) => Ok(Some(Self::start().await?)),
            Err(reason) => {
                left_out::note(&left_out::test_name(test), reason)?;
                Ok(None)
            }
        }
    }

    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [address] = free_addresses()?;
        let log = File::create(folder.path().join("log"))?;
        let driver = Command::new(DRIVER)
            .arg(format!("--port={}", address.port()))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context(DRIVER)?;
        let mut browser = Self {
            authority: address.to_string(),
            session: String::new(),
            driver,
            program: None,
            folder,
        };
        let up = || async { browser.ask("/status").await };
        wait::retry("a driver that answers", DEADLINE, up).await?;
        browser.open_session().await?;
        Ok(browser)
    }

    async fn open_session(&mut self) -> Result<()> {
        let profile = self.folder.path().join("profile");
        let wanted = json!({
            "goog:chromeOptions": {"binary": BROWSER, "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--no-proxy-server", "--disable-background-networking", "--disable-extensions", "--window-size=1200,760",
                format!("--user-data-dir={}", profile.display()),
            ]},
            "unhandledPromptBehavior": "ignore",
        });
        let wanted = json!({"capabilities": {"alwaysMatch": wanted}});
        let opened = self.send("/session", &wanted).await?;
        let id = opened["sessionId"].as_str().context("a session")?;
        self.session = format!("/session/{id}");
        let program = opened["capabilities"]["goog:processID"].as_i64();
        self.program = program.and_then(|id| Some(Pid::from_raw(id.try_into().ok()?)));
        Ok(())
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        told(&http::get(&self.authority, path).await?)
    }

    async fn send(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string().into_bytes();
        let answer = http::post_within(DEADLINE, &self.authority, path, "application/json", body);
        told(&answer.await?)
    }

    /// Something that the session does.
    async fn tell(&self, what: &str, body: &Value) -> Result<Value> {
        self.send(&format!("{}/{what}", self.session), body).await
    }

    /// Goes to an address.
    pub async fn open(&self, address: &str) -> Result<()> {
        self.tell("url", &json!({"url": address})).await.map(drop)
    }

    /// Loads the page anew.
    pub async fn reload(&self) -> Result<()> {
        self.tell("refresh", &json!({})).await.map(drop)
    }

    /// What an expression is in the page.
    pub async fn value(&self, expression: &str) -> Result<Value> {
        let script = json!({"script": format!("return ({expression});"), "args": []});
        self.tell("execute/sync", &script).await
    }

    /// Waits until an expression holds in the page.
    pub async fn until(&self, expression: &str) -> Result<()> {
        let holds = || async {
            let value = self.value(&format!("Boolean({expression})")).await?;
            if value == true {
                return Ok(());
            }
            let seen = self.value("document.body.innerText").await?;
            anyhow::bail!("{}", seen.as_str().unwrap_or_default())
        };
        wait::retry(expression, DEADLINE, holds).await
    }

    /// Waits until an element shows a text.
    pub async fn until_shows(&self, element: &str, text: &str) -> Result<()> {
        let (element, text) = (json!(element), json!(text));
        let found = format!("[...document.querySelectorAll({element})]");
        let shows = format!("{found}.some((one) => one.innerText.includes({text}))");
        self.until(&shows).await
    }

    /// Presses the mouse on an element, which may be drawn anew meanwhile.
    pub async fn click(&self, element: &str) -> Result<()> {
        wait::retry(element, DEADLINE, || async {
            let id = self.find(element).await?;
            let path = format!("element/{id}/click");
            self.tell(&path, &json!({})).await.map(drop)
        })
        .await
    }

    /// Writes into a field.
    pub async fn write(&self, element: &str, text: &str) -> Result<()> {
        let id = self.find(element).await?;
        let path = format!("element/{id}/value");
        self.tell(&path, &json!({"text": text})).await.map(drop)
    }

    async fn find(&self, element: &str) -> Result<String> {
        let wanted = json!({"using": "css selector", "value": element});
        let found = self.tell("element", &wanted).await?;
        let id = found[ELEMENT].as_str().context("an element")?;
        Ok(id.to_owned())
    }

    /// Presses keys one after the other, wherever the focus is.
    pub async fn press(&self, keys: &str) -> Result<()> {
        let strokes = keys.chars().flat_map(|key| {
            let stroke = |what: &str| json!({"type": what, "value": key.to_string()});
            [stroke("keyDown"), stroke("keyUp")]
        });
        let strokes: Vec<_> = strokes.collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        self.tell("actions", &json!({"actions": [keyboard]}))
            .await
            .map(drop)
    }

    /// Says yes to a question of the page.
    pub async fn accept(&self) -> Result<()> {
        wait::retry("a question", DEADLINE, || async {
            self.tell("alert/accept", &json!({})).await.map(drop)
        })
        .await
    }

    /// Has every page from now on run this before anything else, whatever its policy is.
    pub async fn before_each_page(&self, script: &str) -> Result<()> {
        let source = json!({"source": script});
        self.command("Page.addScriptToEvaluateOnNewDocument", &source)
            .await
    }

    /// Prefers `dark` or `light`.
    pub async fn prefer(&self, scheme: &str) -> Result<()> {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        let media = json!({"features": [feature]});
        self.command("Emulation.setEmulatedMedia", &media).await
    }

    /// Is as large as this, in points.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.command("Emulation.setDeviceMetricsOverride", &size)
            .await
    }

    async fn command(&self, name: &str, arguments: &Value) -> Result<()> {
        let command = json!({"cmd": name, "params": arguments});
        self.tell("goog/cdp/execute", &command).await.map(drop)
    }

    /// What can be seen, as PNG.
    pub async fn picture(&self) -> Result<Vec<u8>> {
        let picture = self.ask(&format!("{}/screenshot", self.session)).await?;
        // Bytes of Kubernetes are written in the same way.
        let ByteString(bytes) = serde_json::from_value(picture)?;
        ensure!(bytes.starts_with(b"\x89PNG"), "no picture");
        Ok(bytes)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // At once: nobody needs what they hold.
        for id in self.program.into_iter().chain(pid(&self.driver)) {
            let _ = kill(id, Signal::SIGKILL);
        }
        drop(self.driver.wait());
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().map(Pid::from_raw)
}

/// A browser for the calling test; the test returns, noted as left out, where there can be none.
#[macro_export]
macro_rules! browser {
    () => {{
        fn here() {}
        let test = ::std::any::type_name_of_val(&here);
        match $crate::browser::Browser::of_test(test).await? {
            Some(browser) => browser,
            None => return Ok(()),
        }
    }};
}

/// What a driver answers, in its envelope.
fn told(answer: &str) -> Result<Value> {
    let mut answer: Value = serde_json::from_str(answer)?;
    Ok(answer["value"].take())
}

/// Whether the programs are there, or why not.
async fn programs() -> Result<(), String> {
    let are_there = || {
        [DRIVER, BROWSER]
            .iter()
            .all(|file| Path::new(file).exists())
    };
    if are_there() {
        return Ok(());
    }
    let installed = apt::install(&["chromium", "chromium-driver"]).await;
    match (are_there(), installed) {
        (true, _) => Ok(()),
        (false, Ok(())) => Err(format!("there is no {DRIVER} or no {BROWSER}")),
        (false, Err(error)) => Err(format!("{error:#}")),
    }
}
