//! Debian's chromium without a window and without a network, driven by chromiumoxide: one browser with one page for each test, in
//! steps that wait until they are done. It collects what goes wrong on the page; what that means is said by the tests.
#![allow(dead_code, reason = "each test program uses a part of it")]

use chromiumoxide::browser::{Browser, BrowserConfig};
use chromiumoxide::cdp::IntoEventKind;
use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDeviceMetricsOverrideParams, SetFocusEmulationEnabledParams,
    SetTouchEmulationEnabledParams,
};
use chromiumoxide::cdp::browser_protocol::input::{GestureSourceType, SynthesizeTapGestureParams};
use chromiumoxide::cdp::browser_protocol::log::EventEntryAdded;
use chromiumoxide::cdp::browser_protocol::network::{
    EmulateNetworkConditionsByRuleParams, EventLoadingFailed, EventRequestWillBeSent, NetworkConditions,
};
use chromiumoxide::cdp::browser_protocol::page::{
    CaptureScreenshotFormat, EventJavascriptDialogOpening, PrintToPdfParams, Viewport,
};
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, EventConsoleApiCalled, EventExceptionThrown};
use chromiumoxide::error::CdpError;
use chromiumoxide::layout::Point;
use chromiumoxide::listeners::EventStream;
use chromiumoxide::page::{Page, ScreenshotParams};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Ends a browser that hangs; it answers within milliseconds.
const LIMIT: Duration = Duration::from_secs(120);
/// Browsers that are started before the machine is said to have none that works.
const ATTEMPTS: usize = 3;
/// What is waited for the end of a browser before it is killed.
const END: Duration = Duration::from_secs(10);

/// A browser with one page. It ends when this is dropped.
pub(crate) struct Chromium {
    /// One thread: what the browser told before it answers is there once the answer is.
    runtime: Runtime,
    tasks: LocalSet,
    browser: Browser,
    page: Page,
    events: Events,
    /// Its profile and its temporary files.
    _directory: TempDir,
}

/// What the page told without being asked.
struct Events {
    requests: EventStream<EventRequestWillBeSent>,
    failures: EventStream<EventLoadingFailed>,
    exceptions: EventStream<EventExceptionThrown>,
    console: EventStream<EventConsoleApiCalled>,
    log: EventStream<EventEntryAdded>,
    dialogs: EventStream<EventJavascriptDialogOpening>,
    /// Messages that chromiumoxide does not understand: a newer browser may say more than it knows.
    unread: Rc<RefCell<Vec<String>>>,
}

/// Everything that has arrived.
fn arrived<T: IntoEventKind + Unpin + Debug>(stream: &mut EventStream<T>) -> Vec<String> {
    std::iter::from_fn(|| stream.next().now_or_never().flatten()).map(|event| format!("{event:?}")).collect()
}

impl Events {
    async fn of(page: &Page, unread: Rc<RefCell<Vec<String>>>) -> Result<Self, CdpError> {
        Ok(Self {
            requests: page.event_listener().await?,
            failures: page.event_listener().await?,
            exceptions: page.event_listener().await?,
            console: page.event_listener().await?,
            log: page.event_listener().await?,
            dialogs: page.event_listener().await?,
            unread,
        })
    }

    fn complaints(&mut self) -> Vec<String> {
        let mut all = arrived(&mut self.failures);
        all.extend(arrived(&mut self.exceptions));
        all.extend(arrived(&mut self.console));
        all.extend(arrived(&mut self.log));
        all.extend(arrived(&mut self.dialogs));
        all.append(&mut self.unread.borrow_mut());
        all
    }
}

fn config(directory: &TempDir) -> BrowserConfig {
    let profile = directory.path().join("profile");
    let arguments = ["disable-gpu", "disable-component-update"];
    let config = BrowserConfig::builder()
        .chrome_executable("/usr/bin/chromium")
        // Root has no sandbox to use.
        .no_sandbox()
        .user_data_dir(profile)
        .env("TMPDIR", directory.path().display().to_string())
        .args(arguments)
        .arg(("host-resolver-rules", "MAP * ~NOTFOUND"))
        .viewport(None)
        .launch_timeout(LIMIT)
        .request_timeout(LIMIT)
        .surface_invalid_messages();
    config.build().expect("the program is named")
}

impl Chromium {
    /// Starts a browser, tells it that there is no network, and opens an empty page.
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

    fn started() -> Result<Self, CdpError> {
        let directory = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tasks = LocalSet::new();
        let unread = Rc::new(RefCell::new(Vec::new()));
        let config = config(&directory);
        let started = tasks.block_on(&runtime, async {
            let (browser, mut handler) = Browser::launch(config).await?;
            let kept = Rc::clone(&unread);
            tokio::task::spawn_local(async move {
                while let Some(message) = handler.next().await {
                    kept.borrow_mut().extend(message.err().map(|error| error.to_string()));
                }
            });
            let page = browser.new_page("about:blank").await?;
            let events = Events::of(&page, unread).await?;
            Ok::<_, CdpError>((browser, page, events))
        });
        let (browser, page, events) = started?;
        let mut chromium = Self { runtime, tasks, browser, page, events, _directory: directory };
        chromium.prepare()?;
        Ok(chromium)
    }

    fn prepare(&mut self) -> Result<(), CdpError> {
        let page = self.page.clone();
        self.wait(async {
            page.enable_log().await?;
            let everything = NetworkConditions::new("", 0.0, -1.0, -1.0);
            page.execute(EmulateNetworkConditionsByRuleParams::new(true, vec![everything])).await?;
            page.execute(SetFocusEmulationEnabledParams::new(true)).await?;
            Ok::<_, CdpError>(())
        })?;
        self.window(1100, 900, 1);
        self.system("light");
        Ok(())
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.tasks.block_on(&self.runtime, future)
    }

    /// The result of a step.
    ///
    /// # Panics
    /// When the browser refuses it, or does not answer in time.
    fn done<T>(&self, future: impl Future<Output = Result<T, CdpError>>) -> T {
        self.wait(future).unwrap_or_else(|error| panic!("chromium: {error}"))
    }

    /// Opens a page and waits until it is loaded; what an earlier page told is forgotten.
    pub(crate) fn open(&mut self, page: &Path) {
        self.complaints();
        self.requests();
        self.done(self.page.goto(format!("file://{}", page.display())));
        self.painted();
    }

    /// What the page asked for since it was opened, each with everything that is known of it.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        arrived(&mut self.events.requests)
    }

    /// Everything that went wrong on the page since it was opened or this was asked: errors, warnings, what its policy refused,
    /// and dialogs that nobody asked for.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.painted();
        self.events.complaints()
    }

    /// The value of a JavaScript expression; promises are awaited.
    ///
    /// # Panics
    /// When it throws.
    pub(crate) fn evaluate(&self, expression: &str) -> Value {
        let result = self.done(self.page.evaluate_expression(EvaluateParams::new(expression)));
        result.value().cloned().unwrap_or_default()
    }

    /// Waits until what was changed is on the screen.
    pub(crate) fn painted(&self) {
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))",
        );
    }

    /// The size of the window, in pixels of the page, and how many pixels of the screen make one of them. Narrow ones are phones.
    pub(crate) fn window(&self, width: u32, height: u32, scale: u32) {
        let is_phone = width < 500;
        let metrics = SetDeviceMetricsOverrideParams::new(
            i64::from(width),
            i64::from(height),
            f64::from(scale),
            is_phone,
        );
        self.done(self.page.execute(metrics));
        self.done(self.page.execute(SetTouchEmulationEnabledParams::new(is_phone)));
    }

    /// The theme of the system: `light` or `dark`.
    pub(crate) fn system(&self, theme: &str) {
        self.done(self.page.emulate_media_features(vec![MediaFeature::new("prefers-color-scheme", theme)]));
    }

    /// Moves the pointer to a place of the window.
    pub(crate) fn point_at(&self, (x, y): (f64, f64)) {
        self.done(self.page.move_mouse(Point::new(x, y)));
    }

    /// Presses and releases the left button there.
    pub(crate) fn click(&self, (x, y): (f64, f64)) {
        self.done(self.page.click(Point::new(x, y)));
    }

    /// Taps there with a finger.
    pub(crate) fn tap(&self, (x, y): (f64, f64)) {
        let gesture_source_type = Some(GestureSourceType::Touch);
        self.done(self.page.execute(SynthesizeTapGestureParams {
            gesture_source_type,
            ..SynthesizeTapGestureParams::new(x, y)
        }));
    }

    /// Presses and releases a key, by its name: `Tab`, `ArrowLeft`.
    pub(crate) fn press(&self, key: &str) {
        self.done(async { self.page.find_element("html").await?.press_key(key).await.map(|_| ()) });
    }

    /// The whole page as PNG, in a window of this width.
    pub(crate) fn screenshot(&self, width: u32) -> Vec<u8> {
        // The whole page, not what the window shows of it.
        let height = self.evaluate("document.documentElement.scrollHeight").as_f64().unwrap_or_default();
        let whole = Viewport { x: 0.0, y: 0.0, width: width.into(), height, scale: 1.0 };
        let params = ScreenshotParams::builder()
            .format(CaptureScreenshotFormat::Png)
            .capture_beyond_viewport(true)
            .clip(whole)
            .build();
        self.done(self.page.screenshot(params))
    }

    /// What the browser would print, as PDF.
    pub(crate) fn pdf(&self) -> Vec<u8> {
        let paper = PrintToPdfParams {
            print_background: Some(true),
            prefer_css_page_size: Some(true),
            ..Default::default()
        };
        self.done(self.page.pdf(paper))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let browser = &mut self.browser;
        self.tasks.block_on(&self.runtime, async {
            let close = async { browser.close().await.is_ok() && browser.wait().await.is_ok() };
            // A browser that is asked to end, ends; one that does not is killed.
            if !tokio::time::timeout(END, close).await.unwrap_or(false) {
                browser.kill().await;
            }
        });
    }
}
