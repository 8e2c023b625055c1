//! Who measures a run: a process that lives, or one that was killed. A process number alone would not tell, since the kernel
//! gives it to others later.

use std::fs;
use std::path::Path;

/// A process, by what no other process ever has: the boot, the namespace of its number, the number, and when it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    boot: String,
    namespace: String,
    pid: u32,
    /// Clock ticks after the boot (proc_pid_stat(5), `starttime`).
    start: u64,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Lives,
    Ended,
    /// It counts its processes in another namespace, so that nobody here can look.
    Unknown,
}

impl Holder {
    /// This process; `None` where `/proc` does not tell. `proc` is where that is mounted.
    pub fn this(proc: &Path) -> Option<Self> {
        Self::of(proc, std::process::id())
    }

    fn of(proc: &Path, pid: u32) -> Option<Self> {
        let (boot, namespace) = machine(proc)?;
        Some(Self { boot, namespace, pid, start: start(proc, pid)? })
    }

    /// As the database keeps it.
    pub(crate) fn text(&self) -> String {
        format!("{} {} {} {}", self.boot, self.namespace, self.pid, self.start)
    }

    /// The holder of such a text; `None` for a text that is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [boot, namespace, pid, start] = words[..] else { return None };
        Some(Self {
            boot: boot.into(),
            namespace: namespace.into(),
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        })
    }

    pub(crate) fn life(&self, proc: &Path) -> Life {
        let Some((boot, namespace)) = machine(proc) else { return Life::Unknown };
        if boot != self.boot {
            return Life::Ended;
        }
        if namespace != self.namespace {
            return Life::Unknown;
        }
        if start(proc, self.pid) == Some(self.start) { Life::Lives } else { Life::Ended }
    }
}

fn machine(proc: &Path) -> Option<(String, String)> {
    let boot = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).ok()?;
    let namespace = fs::read_link(proc.join("self/ns/pid")).ok()?;
    Some((boot.trim().to_owned(), namespace.to_string_lossy().into_owned()))
}

/// When a process started; `None` if there is none, or one that has ended and was not waited for yet.
fn start(proc: &Path, pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    // The second field is a name in brackets, which may hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let state = fields.first()?;
    if *state == "Z" || *state == "X" { None } else { fields.get(19)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends_and_another_with_its_number_is_another() {
        let proc = Path::new("/proc");
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let holder = Holder::of(proc, child.id()).unwrap();
        assert_eq!(Holder::parse(&holder.text()), Some(holder.clone()));
        assert_eq!(holder.life(proc), Life::Lives);
        assert_eq!(Holder { start: holder.start + 1, ..holder.clone() }.life(proc), Life::Ended);
        assert_eq!(Holder { boot: "another".into(), ..holder.clone() }.life(proc), Life::Ended);
        assert_eq!(Holder { namespace: "pid:[1]".into(), ..holder.clone() }.life(proc), Life::Unknown);
        child.kill().unwrap();
        // It stays as a zombie until it is waited for.
        assert!((0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            holder.life(proc) == Life::Ended
        }));
        child.wait().unwrap();
        assert_eq!(holder.life(proc), Life::Ended);
        assert_eq!(Holder::parse("nonsense"), None);
    }
}
