//! Debian's chromium without a window and without a network, driven by chromedriver: one browser with one page for each test, in
//! steps that wait until they are done. It collects what goes wrong on the page; what that means is said by the tests.

use super::webdriver::{LIMIT, WebDriver};
use base64::Engine as _;
use rdsk_testkit::Need;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// What a test with a browser needs.
pub(crate) const NEEDS: [Need; 2] = [Need::Tool("chromium"), Need::Tool("chromedriver")];
/// Browsers that are started before the machine is said to have none that works.
const ATTEMPTS: usize = 3;

/// A browser with one page. It ends when this is dropped.
pub(crate) struct Chromium {
    driver: WebDriver,
    requests: Vec<String>,
    complaints: Vec<String>,
    /// Its profile and its temporary files; goes after the browser.
    _directory: TempDir,
}

fn capabilities(directory: &Path) -> Value {
    let limit_ms = u64::try_from(LIMIT.as_millis()).expect("minutes fit");
    json!({
        "goog:chromeOptions": {
            "binary": "/usr/bin/chromium",
            "args": [
                "headless",
                "hide-scrollbars",
                // Root has no sandbox to use.
                "no-sandbox",
                "disable-gpu",
                "disable-component-update",
                "host-resolver-rules=MAP * ~NOTFOUND",
                format!("user-data-dir={}", directory.join("profile").display()),
            ],
        },
        // The performance log has the events of the network and of dialogs, the browser's log those of scripts and policies.
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        "timeouts": { "pageLoad": limit_ms, "script": limit_ms },
    })
}

impl Chromium {
    /// Starts a browser without a network, and opens an empty page.
    ///
    /// # Panics
    /// When none of several attempts gives one that answers.
    pub(crate) fn start() -> Self {
        let mut said = Vec::new();
        for _ in 0..ATTEMPTS {
            match Self::started() {
                Ok(browser) => return browser,
                Err(why) => said.push(why.to_string()),
            }
        }
        panic!("chromium does not answer: {said:#?}");
    }

    fn started() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let driver = WebDriver::start(directory.path(), &capabilities(directory.path()))?;
        let mut chromium =
            Self { driver, requests: Vec::new(), complaints: Vec::new(), _directory: directory };
        let everything =
            json!({ "urlPattern": "", "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        chromium.devtools(
            "Network.emulateNetworkConditionsByRule",
            json!({ "offline": true, "matchedNetworkConditions": [everything] }),
        )?;
        chromium.devtools("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }))?;
        chromium.window(1100, 900, 1);
        chromium.system("light");
        Ok(chromium)
    }

    /// The answer to a command of the DevTools protocol.
    #[expect(clippy::needless_pass_by_value, reason = "callers make it in place")]
    fn devtools(&mut self, command: &str, parameters: Value) -> io::Result<Value> {
        self.driver.command("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// The answer to a command of the DevTools protocol.
    ///
    /// # Panics
    /// When the browser refuses it, or does not answer in time.
    fn done(&mut self, command: &str, parameters: Value) -> Value {
        self.devtools(command, parameters).unwrap_or_else(|error| panic!("chromium: {command}: {error}"))
    }

    /// Opens a page and waits until it is loaded; what an earlier page said is forgotten.
    pub(crate) fn open(&mut self, page: &Path) {
        self.complaints();
        self.requests();
        let url = json!({ "url": format!("file://{}", page.display()) });
        self.driver.command("url", &url).unwrap_or_else(|error| panic!("chromium: {error}"));
        self.painted();
    }

    /// What the page asked for since it was opened, each with everything that is known of it.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        self.listen();
        std::mem::take(&mut self.requests)
    }

    /// Everything that went wrong on the page since it was opened or this was asked: errors, warnings, what its policy refused,
    /// and dialogs that were not requested.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.painted();
        self.listen();
        std::mem::take(&mut self.complaints)
    }

    /// Takes what the logs have, each entry once.
    fn listen(&mut self) {
        for event in self.log("performance") {
            let event: Value = serde_json::from_str(event["message"].as_str().unwrap_or_default())
                .unwrap_or_else(|error| panic!("chromium: {event}: {error}"));
            let event = &event["message"];
            match event["method"].as_str() {
                Some("Network.requestWillBeSent") => self.requests.push(event.to_string()),
                Some("Network.loadingFailed" | "Page.javascriptDialogOpening") => {
                    self.complaints.push(event.to_string());
                }
                _ => {}
            }
        }
        let said = self.log("browser");
        self.complaints.extend(said.iter().map(ToString::to_string));
    }

    fn log(&mut self, name: &str) -> Vec<Value> {
        let entries = self.driver.command("se/log", &json!({ "type": name }));
        match entries {
            Ok(Value::Array(entries)) => entries,
            other => panic!("chromium: the log {name}: {other:?}"),
        }
    }

    /// The value of a JavaScript expression; promises are awaited.
    ///
    /// # Panics
    /// When it throws.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.done("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "chromium: {answer}");
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
        self.done(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone }),
        );
        self.done("Emulation.setTouchEmulationEnabled", json!({ "enabled": is_phone }));
    }

    /// The theme of the system: `light` or `dark`.
    pub(crate) fn system(&mut self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.done("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Moves the pointer to a place of the window.
    pub(crate) fn point_at(&mut self, (x, y): (f64, f64)) {
        self.done("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Presses and releases the left button there.
    pub(crate) fn click(&mut self, (x, y): (f64, f64)) {
        self.point_at((x, y));
        for what in ["mousePressed", "mouseReleased"] {
            self.done(
                "Input.dispatchMouseEvent",
                json!({ "type": what, "x": x, "y": y, "button": "left", "clickCount": 1 }),
            );
        }
    }

    /// Taps there with a finger.
    pub(crate) fn tap(&mut self, (x, y): (f64, f64)) {
        self.done("Input.synthesizeTapGesture", json!({ "x": x, "y": y, "gestureSourceType": "touch" }));
    }

    /// Presses and releases a key, by its name: `Tab`, `ArrowLeft`.
    pub(crate) fn press(&mut self, key: &str) {
        for what in ["rawKeyDown", "keyUp"] {
            self.done("Input.dispatchKeyEvent", json!({ "type": what, "key": key, "code": key }));
        }
    }

    /// The whole page as PNG, in a window of this width.
    pub(crate) fn screenshot(&mut self, width: u32) -> Vec<u8> {
        // The whole page, not what the window shows of it.
        let height = self.evaluate("document.documentElement.scrollHeight");
        let whole = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let parameters = json!({ "format": "png", "captureBeyondViewport": true, "clip": whole });
        bytes(&self.done("Page.captureScreenshot", parameters))
    }

    /// What the window shows, as PNG.
    pub(crate) fn first_screen(&mut self) -> Vec<u8> {
        bytes(&self.done("Page.captureScreenshot", json!({ "format": "png" })))
    }

    /// What the browser would print, as PDF.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        let paper = json!({ "printBackground": true, "preferCSSPageSize": true });
        bytes(&self.done("Page.printToPDF", paper))
    }
}

/// The `data` of an answer.
fn bytes(answer: &Value) -> Vec<u8> {
    let text = answer["data"].as_str().expect("pictures and documents come as text");
    base64::prelude::BASE64_STANDARD.decode(text).expect("they come in base64")
}
