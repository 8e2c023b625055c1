//! Chromium without a window, driven through the DevTools protocol: JSON over two pipes (`--remote-debugging-pipe`), so that there
//! is no port that somebody else could take or use. It opens pages, moves the pointer, presses keys and collects what the browser
//! tells of them; what that means is said by the tests.
//!
//! Why no crate: headless_chrome 1.0.22 brings a TLS stack into the build (ring, rustls and webpki-roots, whose licence deny.toml does
//! not allow) for a download that the tests never make, and chromiumoxide and fantoccini bring an asynchronous runtime. What is needed
//! of the protocol are a dozen calls.
#![allow(dead_code, reason = "each test program uses a part of it")]

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ends a browser that hangs; it answers within milliseconds.
const LIMIT: Duration = Duration::from_secs(120);
/// Browsers that are started before the machine is said to have none that works.
const ATTEMPTS: usize = 3;
/// The browser reads commands from descriptor 3 and writes answers to 4; a shell gives them to it without `unsafe`.
const START: &str = "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

/// A browser with one page. It ends when this is dropped.
pub(crate) struct Chromium {
    child: Child,
    commands: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    session: Option<String>,
    /// What the page told without being asked, oldest first.
    events: Vec<Value>,
    /// Its profile and its log.
    directory: TempDir,
}

impl Chromium {
    /// Starts a browser, tells it that there is no network, and opens an empty page.
    ///
    /// # Panics
    /// When none of several attempts gives one that answers.
    pub(crate) fn start() -> Self {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let mut browser = Self::spawned();
            match browser.answer("Browser.getVersion", &json!({})) {
                Ok(_) => {
                    browser.prepare();
                    return browser;
                }
                Err(why) => said = format!("{why}\n{}", browser.log()),
            }
        }
        panic!("chromium does not answer: {said}");
    }

    fn spawned() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the profile");
        let log = File::create(directory.path().join("log")).expect("a log");
        let mut child = Command::new("sh")
            .args(["-c", START, "chromium", "--headless", "--remote-debugging-pipe"])
            // Root has no sandbox to use, and containers little shared memory.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
            ])
            .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
            .env("TMPDIR", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        let commands = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().expect("it was asked to be a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            // Each message ends with a NUL.
            while answers.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
                let text = message.strip_suffix(&[0]).unwrap_or(&message);
                let is_taken = serde_json::from_slice(text).is_ok_and(|value| sender.send(value).is_ok());
                message.clear();
                if !is_taken {
                    return;
                }
            }
        });
        Self { child, commands, messages, last_id: 0, session: None, events: Vec::new(), directory }
    }

    fn prepare(&mut self) {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached =
            self.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
        let offline =
            json!({ "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", &offline);
        self.call("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
        self.window(1100, 900, 1);
        self.system("light");
    }

    /// What the browser wrote to its standard error.
    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Calls a method of the page, or of the browser before there is one.
    ///
    /// # Panics
    /// When it is refused, or not answered in time.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        match self.answer(method, params) {
            Ok(result) => result,
            Err(why) => panic!("{method}: {why}\n{}", self.log()),
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut text = command.to_string().into_bytes();
        text.push(0);
        let commands = self.commands.as_mut().expect("the pipe is open until the end");
        commands.write_all(&text).map_err(|error| format!("it takes no command: {error}"))?;
        let end = Instant::now() + LIMIT;
        loop {
            let mut message = self.next_before(end)?;
            if message["id"] != json!(self.last_id) {
                self.events.push(message);
            } else if message["error"].is_null() {
                return Ok(message["result"].take());
            } else {
                return Err(message["error"].to_string());
            }
        }
    }

    fn next_before(&self, end: Instant) -> Result<Value, String> {
        self.messages.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error
        {
            RecvTimeoutError::Timeout => "no answer".into(),
            RecvTimeoutError::Disconnected => "it has ended".into(),
        })
    }

    /// Opens a page and waits until it is loaded; what an earlier page told is forgotten.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub(crate) fn open(&mut self, page: &Path) {
        self.events.clear();
        let answer = self.call("Page.navigate", &json!({ "url": format!("file://{}", page.display()) }));
        assert!(answer["errorText"].is_null(), "{}: {answer}", page.display());
        let end = Instant::now() + LIMIT;
        while self.events_of("Page.loadEventFired").is_empty() {
            match self.next_before(end) {
                Ok(event) => self.events.push(event),
                Err(why) => panic!("{} is not loaded: {why}", page.display()),
            }
        }
        self.painted();
    }

    /// What the page told by events of this name.
    pub(crate) fn events_of(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }

    /// Everything that went wrong on the page: errors, warnings, what its policy refused, and dialogs that nobody asked for.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let names = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
            "Network.loadingFailed",
        ];
        names.iter().flat_map(|name| self.events_of(name)).map(Value::to_string).collect()
    }

    /// The value of a JavaScript expression; promises are awaited.
    ///
    /// # Panics
    /// When it throws.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until what was changed is on the screen.
    pub(crate) fn painted(&mut self) {
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))",
        );
    }

    /// The size of the window, in pixels of the page, and how many pixels of the screen make one of them. Narrow ones are phones.
    pub(crate) fn window(&mut self, width: u32, height: u32, scale: u32) {
        let is_phone = width < 500;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        self.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": is_phone }));
    }

    /// The theme of the system: `light` or `dark`.
    pub(crate) fn system(&mut self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Moves the pointer to a place of the window.
    pub(crate) fn point_at(&mut self, (x, y): (f64, f64)) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Presses and releases the left button there.
    pub(crate) fn click(&mut self, (x, y): (f64, f64)) {
        self.point_at((x, y));
        for what in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": what, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Taps there with a finger.
    pub(crate) fn tap(&mut self, (x, y): (f64, f64)) {
        for (what, points) in [("touchStart", json!([{ "x": x, "y": y }])), ("touchEnd", json!([]))] {
            self.call("Input.dispatchTouchEvent", &json!({ "type": what, "touchPoints": points }));
        }
    }

    /// Presses and releases one of the keys that have no text.
    ///
    /// # Panics
    /// For a key that is not known here.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            unknown => panic!("no code is known for {unknown}"),
        };
        for what in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": what, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // A browser whose commands end, ends; one that does not is killed.
        self.session = None;
        if !std::thread::panicking() {
            let _ = self.answer("Browser.close", &json!({}));
        }
        self.commands = None;
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
