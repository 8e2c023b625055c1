//! A headless chromium that opens pages from files, with the screens and themes that a page is looked at with. It writes nothing.

use headless_chrome::protocol::cdp::Page::CaptureScreenshotFormatOption::Png;
use headless_chrome::protocol::cdp::types::{Event, Method};
use headless_chrome::types::PrintToPdfOptions;
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Width and height of a window in pixels.
pub(crate) const DESK: (u32, u32) = (1100, 900);
pub(crate) const PHONE: (u32, u32) = (390, 844);

/// A page in a browser, and what it complained of.
pub(crate) struct Shown {
    /// Ends with the page.
    _browser: Browser,
    pub(crate) tab: Arc<Tab>,
    complaints: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SetDeviceMetricsOverride {
    width: u32,
    height: u32,
    device_scale_factor: f64,
    mobile: bool,
}

impl Method for SetDeviceMetricsOverride {
    const NAME: &'static str = "Emulation.setDeviceMetricsOverride";
    type ReturnObject = Value;
}

#[derive(Debug, Serialize)]
struct SetEmulatedMedia {
    features: Vec<Feature>,
}

#[derive(Debug, Serialize)]
struct Feature {
    name: &'static str,
    value: &'static str,
}

impl Method for SetEmulatedMedia {
    const NAME: &'static str = "Emulation.setEmulatedMedia";
    type ReturnObject = Value;
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EmulateNetworkConditions {
    offline: bool,
    latency: f64,
    download_throughput: f64,
    upload_throughput: f64,
}

impl Method for EmulateNetworkConditions {
    const NAME: &'static str = "Network.emulateNetworkConditions";
    type ReturnObject = Value;
}

impl Shown {
    /// Opens a page with the network off, on a desk in light colours.
    pub(crate) fn open(page: &Path) -> Shown {
        let arguments = ["--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"];
        let options = LaunchOptions::default_builder()
            // Tests may run as root, where chromium has no sandbox; the page is our own.
            .sandbox(false)
            .window_size(Some(DESK))
            .idle_browser_timeout(Duration::from_secs(300))
            .args(arguments.iter().map(OsStr::new).collect())
            .build()
            .unwrap();
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(120));
        let complaints: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&complaints);
        let listener = move |event: &Event| match event {
            Event::LogEntryAdded(entry) => {
                list.lock().unwrap().push(format!("{:?}", entry.params.entry.text))
            }
            Event::RuntimeExceptionThrown(thrown) => {
                list.lock().unwrap().push(format!("{:?}", thrown.params.exception_details));
            }
            _ => {}
        };
        tab.enable_log().unwrap().enable_runtime().unwrap();
        tab.add_event_listener(Arc::new(listener)).unwrap();
        let off = EmulateNetworkConditions {
            offline: true,
            latency: 0.0,
            download_throughput: -1.0,
            upload_throughput: -1.0,
        };
        tab.call_method(off).unwrap();
        let shown = Shown { _browser: browser, tab, complaints };
        shown.screen(DESK);
        shown.theme("light");
        shown.tab.navigate_to(&format!("file://{}", page.display())).unwrap();
        shown.tab.wait_until_navigated().unwrap();
        shown
    }

    /// Gives the window this size.
    pub(crate) fn screen(&self, (width, height): (u32, u32)) {
        let metrics =
            SetDeviceMetricsOverride { width, height, device_scale_factor: 1.0, mobile: width < 600 };
        self.tab.call_method(metrics).unwrap();
    }

    /// Makes the system prefer a theme: `light` or `dark`.
    pub(crate) fn theme(&self, value: &'static str) {
        let features = vec![Feature { name: "prefers-color-scheme", value }];
        self.tab.call_method(SetEmulatedMedia { features }).unwrap();
    }

    /// What an expression of the page's language is, as JSON.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let text = self.tab.evaluate(&format!("JSON.stringify({expression})"), false).unwrap().value;
        serde_json::from_str(text.as_ref().and_then(Value::as_str).unwrap_or("null")).unwrap()
    }

    /// Everything that the browser's log and the script complained of.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    /// The whole page as PNG.
    pub(crate) fn png(&self, width: u32) -> Vec<u8> {
        let height = self.value("document.documentElement.scrollHeight").as_u64().unwrap();
        self.screen((width, height.try_into().unwrap()));
        self.tab.capture_screenshot(Png, None, None, true).unwrap()
    }

    /// The page as it prints.
    pub(crate) fn pdf(&self) -> Vec<u8> {
        let options = PrintToPdfOptions { print_background: Some(true), ..PrintToPdfOptions::default() };
        self.tab.print_to_pdf(Some(options)).unwrap()
    }
}
