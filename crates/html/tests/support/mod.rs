//! What the tests in a browser share: the browser, pages to open, and what must be seen on them.

pub(crate) mod chromium;
pub(crate) mod contrast;
pub(crate) mod pages;
pub(crate) mod tips;
pub(crate) mod webdriver;
