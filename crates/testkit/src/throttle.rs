//! Devices of a known rate: a cgroup v1 blkio group with throttles, removed on drop. It never touches a group that it did
//! not create.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::tool::wait_until;

/// The usual mount point of cgroup v1's blkio controller.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// What the group may do with the device, per second. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes read per second.
    pub read_bps: Option<u64>,
    /// Bytes written per second.
    pub write_bps: Option<u64>,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
}

/// The files of the limits, in their order.
const FILES: [&str; 4] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

impl Limits {
    fn values(self) -> [Option<u64>; 4] {
        [self.read_bps, self.write_bps, self.read_iops, self.write_iops]
    }
}

/// A blkio group that limits devices for its processes. On drop it is removed, once its last process has left.
///
/// The kernel charges a bio to the group of the thread that submits it. So direct I/O and reads are limited; buffered
/// writes are not, because the kernel's own threads write them later.
#[derive(Debug)]
pub struct BlkioThrottle {
    group: PathBuf,
}

impl BlkioThrottle {
    /// Makes a group with these limits on the device numbered `major_minor` ("7:9").
    ///
    /// # Errors
    /// Those of making the group; `ENODEV` for a number without a whole disk behind it.
    pub fn new(major_minor: &str, limits: Limits) -> io::Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let name = format!("rdsk-test-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let group = Path::new(BLKIO).join(name);
        fs::create_dir(&group)?;
        let throttle = Self { group };
        throttle.also(major_minor, limits)?;
        Ok(throttle)
    }

    /// Limits one more device, or the same one anew. What is not limited here keeps its limit.
    ///
    /// # Errors
    /// `ENODEV` for a number without a whole disk behind it.
    pub fn also(&self, major_minor: &str, limits: Limits) -> io::Result<()> {
        for (file, limit) in FILES.into_iter().zip(limits.values()) {
            if let Some(limit) = limit {
                fs::write(self.group.join(file), format!("{major_minor} {limit}\n"))?;
            }
        }
        Ok(())
    }

    /// Takes every limit off a device. What waits for one goes on at once.
    ///
    /// # Errors
    /// `ENODEV` for a number without a whole disk behind it.
    pub fn lift(&self, major_minor: &str) -> io::Result<()> {
        FILES.iter().try_for_each(|file| fs::write(self.group.join(file), format!("{major_minor} 0\n")))
    }

    /// The group's directory.
    pub fn path(&self) -> &Path {
        &self.group
    }

    /// A command that runs `inner` inside the group from its first instruction on: program, arguments, environment and
    /// directory are kept; standard streams must be set on what is returned.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "the command is used up: what counts is the one returned"
    )]
    pub fn command(&self, inner: Command) -> Command {
        command_in(&self.group, &inner)
    }

    /// Puts the calling thread into the group until the returned value is dropped. Threads that it starts meanwhile
    /// begin, and stay, inside.
    ///
    /// # Errors
    /// Those of finding the thread's group and of entering this one.
    pub fn enter_current_thread(&self) -> io::Result<Entered<'_>> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let groups = fs::read_to_string(format!("/proc/self/task/{thread}/cgroup"))?;
        let home = blkio_group(&groups)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the thread is in no blkio group"))?;
        fs::write(self.group.join("tasks"), thread.to_string())?;
        Ok(Entered {
            thread,
            home_tasks: Path::new(BLKIO).join(home.trim_start_matches('/')).join("tasks"),
            throttle: self,
        })
    }
}

impl Drop for BlkioThrottle {
    fn drop(&mut self) {
        remove(&self.group);
    }
}

/// A command that runs `inner` inside a control group from its first instruction on.
pub(crate) fn command_in(group: &Path, inner: &Command) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"echo $$ > "$1" || exit 126; shift; exec "$@""#, "sh"])
        .arg(group.join("cgroup.procs"))
        .arg(inner.get_program())
        .args(inner.get_args());
    for (key, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// Removes a group. It is busy until its last process is reaped, which may be a moment after the test has seen its end.
pub(crate) fn remove(group: &Path) {
    if !wait_until(Duration::from_secs(60), || fs::remove_dir(group).is_ok()) {
        eprintln!("cannot remove {}: is something still running in it?", group.display());
    }
}

/// The calling thread inside a group. On drop the thread returns to its previous group.
#[derive(Debug)]
pub struct Entered<'throttle> {
    thread: i32,
    home_tasks: PathBuf,
    #[allow(dead_code, reason = "keeps the group alive while a thread is inside")]
    throttle: &'throttle BlkioThrottle,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.home_tasks, self.thread.to_string()) {
            eprintln!("thread {} cannot return to {}: {error}", self.thread, self.home_tasks.display());
        }
    }
}

/// Whether throttled groups can be made here: makes an empty one and removes it.
pub(crate) fn probe() -> io::Result<()> {
    let throttle = BlkioThrottle::new("0:0", Limits::default())?;
    let file = throttle.group.join("blkio.throttle.read_iops_device");
    if file.exists() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no {}", file.display())))
    }
}

/// The path of the blkio group in the text of `/proc/PID/cgroup`.
fn blkio_group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|name| name == "blkio").then(|| fields.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Ended, run};
    use crate::loopdev::{DirectIo, LoopDevice};
    use crate::requires::{Need, requires};

    const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::BlkioThrottle];
    const LONG: Duration = Duration::from_secs(300);
    const MIB: u64 = 1 << 20;

    fn reader(device: &LoopDevice, count: u32) -> Command {
        let mut command = Command::new("dd");
        command
            .arg(format!("if={}", device.path().display()))
            .args(["of=/dev/null", "bs=4k", "iflag=direct", "status=none"])
            .arg(format!("count={count}"));
        command
    }

    fn iops(read_iops: u64) -> Limits {
        Limits { read_iops: Some(read_iops), ..Limits::default() }
    }

    /// No machine, however busy, makes a throttle quicker. How close the times come is in tests/timing.rs.
    #[test]
    fn reads_take_as_long_as_the_limit_says() {
        if !requires(&NEEDS) {
            return;
        }
        let device = LoopDevice::builder().direct_io(DirectIo::On).create().unwrap();
        let throttle = BlkioThrottle::new(device.major_minor(), iops(128)).unwrap();
        let seconds = |command| {
            let run = run(command, LONG);
            assert_eq!(run.ended, Ended::Exited(0), "{}", run.stderr);
            run.elapsed.as_secs_f64()
        };
        let throttled = seconds(throttle.command(reader(&device, 256)));
        // The throttle lets one slice of 100 ms through at once, so the shortest time is a little under the nominal.
        assert!(throttled >= 1.8, "256 reads at 128 per second took {throttled} s");
        // What would take an hour is done at once without the limit.
        throttle.also(device.major_minor(), iops(1)).unwrap();
        throttle.lift(device.major_minor()).unwrap();
        seconds(throttle.command(reader(&device, 4096)));
    }

    #[test]
    fn a_thread_can_enter_and_leave() {
        if !requires(&NEEDS) {
            return;
        }
        let device = LoopDevice::builder().direct_io(DirectIo::On).create().unwrap();
        let throttle = BlkioThrottle::new(device.major_minor(), iops(64)).unwrap();
        let own_group = || {
            let groups = fs::read_to_string("/proc/thread-self/cgroup").unwrap();
            blkio_group(&groups).unwrap().to_owned()
        };
        let home = own_group();
        let seconds_of = |count| {
            // content_hash() reads with O_DIRECT in this very thread, 1 MiB at a time.
            let start = std::time::Instant::now();
            for _ in 0..count {
                device.content_hash().unwrap();
            }
            start.elapsed().as_secs_f64()
        };
        let entered = throttle.enter_current_thread().unwrap();
        assert!(throttle.path().ends_with(own_group().trim_start_matches('/')));
        let throttled = seconds_of(1);
        // 64 MiB are at least 64 requests.
        assert!(throttled > 0.8, "{throttled} s inside");
        // Inside, 64 reads would take at least two minutes now.
        throttle.also(device.major_minor(), Limits { read_bps: Some(MIB / 2), ..iops(64) }).unwrap();
        drop(entered);
        assert_eq!(own_group(), home);
        let free = seconds_of(1);
        assert!(free < 120.0, "{free} s outside");
        let group = throttle.path().to_owned();
        drop(throttle);
        assert!(!group.exists());
    }

    #[test]
    fn program_arguments_environment_and_directory_are_kept() {
        if !requires(&NEEDS) {
            return;
        }
        let throttle = BlkioThrottle::new("7:0", Limits::default()).unwrap();
        let mut inner = Command::new("sh");
        inner.args([
            "-c",
            r#"echo "$0|$1|$COLOUR|$PWD"; grep -o 'rdsk-test-.*' /proc/self/cgroup"#,
            "a b",
            "$c",
        ]);
        inner.env("COLOUR", "dark red").current_dir("/usr");
        let run = run(throttle.command(inner), LONG);
        let name = throttle.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(run.stdout, format!("a b|$c|dark red|/usr\n{name}\n"));
        drop(throttle);
        assert!(!Path::new(BLKIO).join(name).exists());
    }

    #[test]
    fn a_number_without_a_disk_is_an_error_and_leaves_no_group() {
        if !requires(&NEEDS) {
            return;
        }
        assert!(BlkioThrottle::new("4095:77", iops(1)).is_err());
        let group = |name: &str| name.starts_with(&format!("rdsk-test-{}-", std::process::id()));
        let limited_to_nothing = fs::read_dir(BLKIO).unwrap().flatten().filter(|entry| {
            group(&entry.file_name().to_string_lossy())
                && fs::read_to_string(entry.path().join("blkio.throttle.read_iops_device"))
                    .is_ok_and(|rules| rules.contains("4095:77"))
        });
        assert_eq!(limited_to_nothing.count(), 0);
    }

    #[test]
    fn group_is_found_among_the_controllers() {
        let text = "12:pids:/a\n7:cpu,blkio:/x/y:z\n0::/unified\n";
        assert_eq!(blkio_group(text), Some("/x/y:z"));
        assert_eq!(blkio_group("0::/unified\n"), None);
    }
}
