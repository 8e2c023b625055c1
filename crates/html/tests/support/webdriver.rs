//! A client of WebDriver: it starts Debian's chromedriver, which listens on a free port of the loopback interface, asks it for one
//! browser, and ends both. Requests and answers are JSON over HTTP on one connection. It knows nothing of pages.

use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ends a browser that hangs; it answers within milliseconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// What is waited for the end of a browser before chromedriver is killed.
const END: Duration = Duration::from_secs(10);
/// Kills chromedriver, and the browsers that it has started, when our end of the shell's standard input is closed: however this
/// process ends. The shell's own end of standard output is closed, so that it ends with chromedriver.
const SCRIPT: &str = "chromedriver --port=0 & exec >&-; read -r _; kill -KILL 0";

/// A browser with one window, and the chromedriver that started it. Both end when this is dropped.
pub(crate) struct WebDriver {
    connection: BufReader<TcpStream>,
    /// `/session/ID`, once there is a browser.
    session: String,
    /// Goes after the browser was asked to end.
    _driver: Driver,
}

/// The shell of [`SCRIPT`], with a process group of its own.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl WebDriver {
    /// Starts a browser with these capabilities. Temporary files lie in `directory`.
    ///
    /// # Errors
    /// When chromedriver does not listen, or starts no browser.
    pub(crate) fn start(directory: &Path, capabilities: &Value) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).env("TMPDIR", directory).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = Driver(shell.spawn()?);
        let said = BufReader::new(driver.0.stdout.take().expect("it was asked to be a pipe"));
        // `ChromeDriver was started successfully on port 40123.` It writes nothing after that.
        let mut lines = said.lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.ok_or_else(|| io::Error::other("chromedriver listens on no port"))?;
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        connection.set_read_timeout(Some(LIMIT))?;
        let connection = BufReader::new(connection);
        let mut client = Self { connection, session: String::new(), _driver: driver };
        let wanted = json!({ "capabilities": { "alwaysMatch": capabilities } });
        let answer = client.exchange("POST", "/session", &wanted)?;
        let id = answer["sessionId"].as_str().ok_or_else(|| io::Error::other(answer.to_string()))?;
        client.session = format!("/session/{id}");
        Ok(client)
    }

    /// The answer to a command of the session, such as `url`.
    ///
    /// # Errors
    /// When the browser refuses it, or does not answer in time.
    pub(crate) fn command(&mut self, name: &str, parameters: &Value) -> io::Result<Value> {
        let path = format!("{}/{name}", self.session);
        self.exchange("POST", &path, parameters)
    }

    /// The `value` of the answer to one request.
    fn exchange(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Value> {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.connection.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length_bytes = 0;
        loop {
            let header = self.line()?;
            match header.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length_bytes = value.trim().parse().map_err(io::Error::other)?;
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length_bytes];
        self.connection.read_exact(&mut answer)?;
        let mut answer: Value = serde_json::from_slice(&answer)?;
        if status.split(' ').nth(1) != Some("200") {
            let said = &answer["value"];
            return Err(io::Error::other(format!("{path}: {}: {}", said["error"], said["message"])));
        }
        Ok(answer["value"].take())
    }

    /// The next line of an answer's head, without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for WebDriver {
    fn drop(&mut self) {
        let session = std::mem::take(&mut self.session);
        if !session.is_empty() {
            // A browser that does not end when it is asked to is killed with its driver.
            let _ = self.connection.get_ref().set_read_timeout(Some(END));
            let _ = self.exchange("DELETE", &session, &json!({}));
        }
    }
}
