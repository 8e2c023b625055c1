//! Who measures a run: a process that lives, or one that was killed. A process number alone would not say, since the kernel
//! gives it to others later.

use std::fs;
use std::path::Path;

/// Where the machine has its id (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

/// A process, by what no other process ever has: the machine, the boot, the namespace of its number, the number, and when it
/// started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    place: Place,
    pid: u32,
    /// Clock ticks after the boot (proc_pid_stat(5), `starttime`).
    start: u64,
}

/// Where a process has its number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot: String,
    namespace: String,
    /// `None` where the machine has no id, as in some containers, and of a holder that an older rdsk wrote.
    machine: Option<String>,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Lives,
    Ended,
    /// It counts its processes in another namespace or on another machine, so that no process here can look.
    Unknown,
}

impl Holder {
    /// This process; `None` where `/proc` does not say. `proc` is where that is mounted.
    pub fn this(proc: &Path) -> Option<Self> {
        Self::find(proc, std::process::id())
    }

    fn find(proc: &Path, pid: u32) -> Option<Self> {
        Some(Self { place: Place::here(proc)?, pid, start: start(proc, pid)? })
    }

    /// As the database keeps it. The machine stands behind the namespace: an rdsk that knows no machines takes that for another
    /// namespace, whose processes it cannot see.
    pub(crate) fn text(&self) -> String {
        let Place { boot, namespace, machine } = &self.place;
        let machine = machine.as_ref().map(|machine| format!("@{machine}")).unwrap_or_default();
        format!("{boot} {namespace}{machine} {} {}", self.pid, self.start)
    }

    /// The holder of such a text; `None` for a text that is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [boot, namespace, pid, start] = words[..] else { return None };
        let (namespace, machine) = match namespace.split_once('@') {
            Some((namespace, machine)) => (namespace, Some(machine.to_owned())),
            None => (namespace, None),
        };
        Some(Self {
            place: Place { boot: boot.into(), namespace: namespace.into(), machine },
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        })
    }

    pub(crate) fn life(&self, proc: &Path) -> Life {
        match Place::here(proc) {
            Some(here) => self.seen_from(&here, proc),
            None => Life::Unknown,
        }
    }

    fn seen_from(&self, here: &Place, proc: &Path) -> Life {
        let Place { boot, namespace, machine } = &self.place;
        if here.boot != *boot {
            // Either this machine has started again since, or it is another one that uses the same file.
            let is_known = machine.is_none() || here.machine == *machine;
            return if is_known { Life::Ended } else { Life::Unknown };
        }
        if here.namespace != *namespace {
            return Life::Unknown;
        }
        if start(proc, self.pid) == Some(self.start) { Life::Lives } else { Life::Ended }
    }
}

impl Place {
    fn here(proc: &Path) -> Option<Self> {
        let boot = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).ok()?;
        let namespace = fs::read_link(proc.join("self/ns/pid")).ok()?;
        let machine = fs::read_to_string(MACHINE_ID).ok();
        Some(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.to_string_lossy().into_owned(),
            machine: machine.as_deref().and_then(machine_id).map(str::to_owned),
        })
    }
}

/// The id in such a file, which is empty, or says `uninitialized`, before the first boot has ended.
fn machine_id(text: &str) -> Option<&str> {
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
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
        let holder = Holder::find(proc, child.id()).unwrap();
        assert_eq!(Holder::parse(&holder.text()), Some(holder.clone()));
        assert_eq!(holder.life(proc), Life::Lives);
        assert_eq!(Holder { start: holder.start + 1, ..holder.clone() }.life(proc), Life::Ended);
        let elsewhere = |change: fn(&mut Place)| {
            let mut place = holder.place.clone();
            change(&mut place);
            Holder { place, ..holder.clone() }.life(proc)
        };
        assert_eq!(elsewhere(|place| place.boot = "another".into()), Life::Ended);
        assert_eq!(elsewhere(|place| place.namespace = "pid:[1]".into()), Life::Unknown);
        child.kill().unwrap();
        // It stays as a zombie until it is waited for.
        assert!((0..20_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            holder.life(proc) == Life::Ended
        }));
        child.wait().unwrap();
        assert_eq!(holder.life(proc), Life::Ended);
        assert_eq!(Holder::parse("nonsense"), None);
    }

    /// A home on NFS has one history for all machines, each with boots of its own.
    #[test]
    fn nobody_sees_the_processes_of_another_machine() {
        let proc = Path::new("/proc");
        let place = |boot: &str, machine: Option<&str>| Place {
            boot: boot.into(),
            namespace: "pid:[1]".into(),
            machine: machine.map(str::to_owned),
        };
        let holder = |place: Place| Holder { place, pid: u32::MAX, start: 1 };
        let life = |of: Place, here: Place| holder(of).seen_from(&here, proc);
        assert_eq!(life(place("b", Some("m")), place("a", Some("m"))), Life::Ended, "it has started again");
        assert_eq!(life(place("b", Some("n")), place("a", Some("m"))), Life::Unknown);
        assert_eq!(life(place("b", Some("n")), place("a", None)), Life::Unknown);
        assert_eq!(life(place("b", None), place("a", Some("m"))), Life::Ended, "an older rdsk wrote it");
        assert_eq!(life(place("a", Some("n")), place("a", None)), Life::Ended, "one boot is of one machine");
        for machine in [None, Some("0123456789abcdef0123456789abcdef")] {
            let one = holder(place("b", machine));
            assert_eq!(Holder::parse(&one.text()), Some(one));
        }
        assert_eq!(
            machine_id("0123456789abcdef0123456789abcdef\n"),
            Some("0123456789abcdef0123456789abcdef")
        );
        assert_eq!((machine_id("uninitialized\n"), machine_id("")), (None, None));
    }
}
