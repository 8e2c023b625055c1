//! What the tests of this room on real devices and files share.

use rdsk_model::{IoPath, Sync};
use rdsk_targets::{
    Access, Claim, Examined, OpenMode, Overwrite, Permission, Refusal, Roots, TargetError, authorize, claim,
    examine,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) const MIB: u64 = 1 << 20;
/// How long is waited for what must come, on a machine that is busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A turn of the tests of one program that must not run at the same time, such as those that open exclusively what they have just
/// closed: a program that another test starts has our descriptors until it executes, which takes its time on a busy machine.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn look(path: &Path) -> Examined {
    examine(path.to_str().unwrap(), &Roots::default()).unwrap()
}

pub(crate) fn look_error(name: &str) -> TargetError {
    examine(name, &Roots::default()).unwrap_err()
}

pub(crate) fn destroy(word: &str) -> Permission {
    Permission { destroy: Some(word.to_owned()), overwrite: Overwrite::Refused, ..Permission::default() }
}

pub(crate) fn overwrite() -> Permission {
    Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() }
}

/// The refusal of a write, from the permission check and from the claim, which must agree.
pub(crate) fn refusal(path: &Path, permission: &Permission) -> Refusal {
    let examined = look(path);
    let authorized = authorize(&examined, Access::Write, permission).unwrap_err();
    match claim(examined, Access::Write, permission, &Roots::default()).unwrap_err() {
        TargetError::Refused(refusal) => assert_eq!(refusal.code, authorized.code),
        other => panic!("{other}"),
    }
    authorized
}

/// A claim that must succeed. A program that another test starts keeps our descriptors for a moment before it executes,
/// and so holds what we have just closed; "in use" is therefore retried for a while.
#[track_caller]
pub(crate) fn claimed(path: &Path, access: Access, permission: &Permission) -> Claim {
    for _ in 0..3000 {
        match claim(look(path), access, permission, &Roots::default()) {
            Err(TargetError::Refused(refusal)) if refusal.code == "in-use" => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other.unwrap(),
        }
    }
    panic!("{} stays in use", path.display());
}

pub(crate) fn write_mode() -> OpenMode {
    OpenMode { access: Access::Write, path: IoPath::Direct, sync: Sync::None }
}

/// A filesystem on another, unmounted in the end.
pub(crate) struct Mounted {
    pub(crate) point: PathBuf,
}

impl Mounted {
    /// A filesystem in memory.
    pub(crate) fn tmpfs(point: &Path) -> Self {
        run("mount", &["-t", "tmpfs", "-o", "size=64m", "none", point.to_str().unwrap()]);
        Self { point: point.to_owned() }
    }

    /// An overlay of `lower` and `upper` as `merged`, all of them in `directory`.
    pub(crate) fn overlay(directory: &Path, options: &str) -> Self {
        let at = |name: &str| directory.join(name).display().to_string();
        let layers =
            format!("lowerdir={},upperdir={},workdir={}{options}", at("lower"), at("upper"), at("work"));
        run("mount", &["-t", "overlay", "none", "-o", &layers, &at("merged")]);
        Self { point: directory.join("merged") }
    }

    /// The same, with names that lead nowhere for others, as in a container.
    pub(crate) fn overlay_from_elsewhere(directory: &Path) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "none", "-o", "lowerdir=lower,upperdir=upper,workdir=work", "merged"]);
        let output = mount.current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { point: directory.join("merged") }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).status();
    }
}

/// Makes the directories of an overlay.
pub(crate) fn layers(directory: &Path) {
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The label of an LVM physical volume, LVM2's lib/format_text/layout.h: in sector 1, with LVM's own CRC over the rest.
pub(crate) fn write_lvm_label(file: &Path) {
    let mut sector = [0u8; 512];
    sector[..8].copy_from_slice(b"LABELONE");
    sector[8..16].copy_from_slice(&1u64.to_le_bytes());
    sector[20..24].copy_from_slice(&32u32.to_le_bytes());
    sector[24..32].copy_from_slice(b"LVM2 001");
    sector[32..64].copy_from_slice(b"0123456789abcdefghijklmnopqrstuv");
    sector[64..72].copy_from_slice(&(16 * MIB).to_le_bytes());
    let mut crc = 0xf597_a6cf_u32;
    for &byte in &sector[20..] {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    sector[16..20].copy_from_slice(&crc.to_le_bytes());
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &sector, 512).unwrap();
    file.sync_all().unwrap();
}
