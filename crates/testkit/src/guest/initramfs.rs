//! Builds the guest's initramfs: busybox, the named programs with their libraries, the modules and the scripts.
//! It reads the host's files and changes none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::Guest;
use super::cpio::Archive;
use super::disk;
use super::kernel::{Kernel, module_content};
use crate::tool::{find_tool, output_of};

/// The path of each script in the guest.
const SCRIPTS: &[(&str, &str)] = &[
    ("init", include_str!("init.sh")),
    ("guest/modules.sh", include_str!("modules.sh")),
    ("guest/scenario.sh", include_str!("scenario.sh")),
    ("guest/prelude.sh", include_str!("prelude.sh")),
    ("guest/clean.sh", include_str!("clean.sh")),
    ("etc/lvm/lvm.conf", include_str!("lvm.conf")),
    ("etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
    ("etc/group", "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n"),
];
/// Files of the host that programs in the guest read, if they exist.
const SETTINGS: &[&str] = &["/etc/mke2fs.conf", "/etc/protocols", "/etc/services"];
/// Loaded by `dlopen`, so ldd does not list them.
const HIDDEN_LIBRARIES: &[&str] = &["/lib/x86_64-linux-gnu/libgcc_s.so.1"];
/// With merged directories every path has one form.
const MERGED: &[&str] = &["bin", "sbin", "lib", "lib64"];

/// What was found out of files, each by its path, its size and the time of its last change. Guests of one program carry the same files.
type ByFile<T> = Mutex<BTreeMap<(PathBuf, u64, SystemTime), T>>;

/// The libraries of each program that was asked for.
static LIBRARIES: ByFile<Vec<PathBuf>> = Mutex::new(BTreeMap::new());
/// The content of each file that was asked for, without its debugging information.
static SLIM: ByFile<Arc<[u8]>> = Mutex::new(BTreeMap::new());

/// The archive.
///
/// # Errors
/// The name of a missing program, library or module.
pub(super) fn build(kernel: &Kernel, guest: &Guest) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for name in MERGED {
        archive.directory(&format!("usr/{name}"));
        archive.link(name, &format!("usr/{name}"));
    }
    archive.character_device("dev/console", 5, 1);
    archive.character_device("dev/null", 1, 3);
    for (path, text) in SCRIPTS {
        archive.file(path, text.as_bytes(), 0o755);
    }
    for path in SETTINGS {
        if let Ok(text) = fs::read(path) {
            archive.file(path, &text, 0o644);
        }
    }
    add_programs(&mut archive, guest)?;
    add_modules(&mut archive, kernel, guest)?;
    archive.file("guest/disks.sh", disk::variables(&guest.disks).as_bytes(), 0o644);
    archive.file("guest/limit", guest.life.as_secs().to_string().as_bytes(), 0o644);
    Ok(archive.finish())
}

fn add_programs(archive: &mut Archive, guest: &Guest) -> io::Result<()> {
    let busybox = find_tool("busybox").ok_or_else(|| io::Error::other("busybox is not installed"))?;
    archive.file("usr/bin/busybox", &fs::read(&busybox)?, 0o755);
    archive.link("usr/bin/sh", "busybox");
    let applets = output_of(Command::new(&busybox).arg("--list"))?;
    let applets: BTreeSet<&str> = applets.lines().collect();
    let mut functions = String::new();
    let mut libraries: BTreeSet<PathBuf> = needed_libraries(&busybox)?.into_iter().collect();
    for name in &guest.programs {
        let path = find_tool(name)
            .ok_or_else(|| io::Error::other(format!("the guest's program {name} is not installed")))?;
        let place = format!("/usr/sbin/{name}");
        // Some programs, such as `lvm`, have many names; the archive holds them once.
        let real = fs::canonicalize(&path)?;
        let real_name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        libraries.extend(needed_libraries(&real)?);
        archive.file(&format!("usr/sbin/{real_name}"), &fs::read(&real)?, 0o755);
        archive.link(&place, &real_name);
        // busybox's shell prefers its own applets to programs.
        if applets.contains(name.as_str()) {
            functions.push_str(&format!("{name}() {{ {place} \"$@\"; }}\n"));
        }
    }
    for (path, place) in &guest.files {
        libraries.extend(needed_libraries(path)?);
        archive.file(&merged(place), &slim(path)?, 0o755);
    }
    libraries.extend(HIDDEN_LIBRARIES.iter().map(PathBuf::from).filter(|path| path.is_file()));
    for library in libraries {
        archive.file(&merged(&library.to_string_lossy()), &fs::read(&library)?, 0o755);
    }
    archive.file("guest/programs.sh", functions.as_bytes(), 0o644);
    Ok(())
}

fn add_modules(archive: &mut Archive, kernel: &Kernel, guest: &Guest) -> io::Result<()> {
    archive.directory("guest/modules");
    let loaded = guest.loaded();
    let names: BTreeSet<&str> =
        loaded.iter().map(|(module, _)| module).chain(&guest.carried).map(String::as_str).collect();
    let mut files = BTreeMap::new();
    for name in names {
        let mut paths = Vec::new();
        for file in kernel.module_files(name)? {
            let (path, content) = module_content(&file)?;
            // In the guest every kernel is an installed one.
            let path = match Path::new(&path).strip_prefix(&kernel.root) {
                Ok(rest) => format!("/{}", rest.display()),
                Err(_) => path,
            };
            archive.file(&merged(&path), &content, 0o644);
            paths.push(path);
        }
        let list: String = paths.iter().flat_map(|path| [path.as_str(), "\n"]).collect();
        archive.file(&format!("guest/modules/{name}"), list.as_bytes(), 0o644);
        files.insert(name, paths);
    }
    archive.file("guest/load", load_script(&loaded, &files).as_bytes(), 0o644);
    Ok(())
}

/// Lines of shell that load each file once, in the order in which they need each other: `load PATH PARAMETER…` for a module that was
/// named, and `part PATH` for one that another needs. `files` are those of each module.
fn load_script(loaded: &[(String, String)], files: &BTreeMap<&str, Vec<String>>) -> String {
    // The parameters of a module that was named.
    let mut order: Vec<(&str, Option<&str>)> = Vec::new();
    for (module, parameters) in loaded {
        for path in files.get(module.as_str()).into_iter().flatten() {
            let named = is_file_of(path, module).then_some(parameters.as_str());
            match order.iter_mut().find(|(listed, _)| listed == path) {
                Some((_, words)) if named.is_some() && words.is_none_or(str::is_empty) => *words = named,
                Some(_) => {}
                None => order.push((path.as_str(), named)),
            }
        }
    }
    let mut text = String::new();
    for (path, named) in order {
        let line = named.map_or_else(|| format!("part {path}"), |words| format!("load {path} {words}"));
        writeln!(text, "{}", line.trim_end()).expect("a String takes everything");
    }
    text
}

/// Whether a file is this module itself. Names of files and of modules differ in their dashes.
fn is_file_of(path: &str, module: &str) -> bool {
    let name = path.rsplit('/').next().and_then(|name| name.strip_suffix(".ko"));
    name.is_some_and(|name| name.replace('-', "_") == module.replace('-', "_"))
}

/// The form of a path in a system with merged directories, without the leading slash.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) { format!("usr/{path}") } else { path.to_owned() }
}

/// The libraries of a program; none for a script or a program without any.
fn needed_libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    remembered(&LIBRARIES, program, || ask_for_libraries(program))
}

fn ask_for_libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    libraries_in(&text).map_err(|missing| {
        io::Error::other(format!("{} needs {missing}, which is not there", program.display()))
    })
}

fn libraries_in(ldd: &str) -> Result<Vec<PathBuf>, String> {
    let mut libraries = Vec::new();
    for line in ldd.lines() {
        if let Some((name, _)) = line.split_once("=> not found") {
            return Err(name.trim().to_owned());
        }
        libraries.extend(line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from));
    }
    Ok(libraries)
}

/// A file's content, without its debugging information if `strip` can remove it: a smaller archive boots faster.
fn slim(path: &Path) -> io::Result<Arc<[u8]>> {
    remembered(&SLIM, path, || stripped(path).map(Arc::from))
}

/// What is known of a file; the first that asks finds it out, and the others wait.
fn remembered<T: Clone>(
    answers: &ByFile<T>,
    path: &Path,
    find_out: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let about = fs::metadata(path)?;
    let version = (path.to_owned(), about.len(), about.modified()?);
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = answers.get(&version) {
        return Ok(answer.clone());
    }
    let answer = find_out()?;
    answers.insert(version, answer.clone());
    Ok(answer)
}

fn stripped(path: &Path) -> io::Result<Vec<u8>> {
    let content = fs::read(path)?;
    if !content.starts_with(b"\x7fELF") {
        return Ok(content);
    }
    let stripped = tempfile::NamedTempFile::new()?;
    let done = Command::new("strip").arg("-o").arg(stripped.path()).arg(path).output();
    match done {
        Ok(output) if output.status.success() => fs::read(stripped.path()),
        _ => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let found = libraries_in(text).unwrap();
        assert_eq!(found, ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from));
        assert!(libraries_in("\tstatically linked\n").unwrap().is_empty());
        assert_eq!(libraries_in("\tlibz.so.1 => not found\n").unwrap_err(), "libz.so.1");
    }

    #[test]
    fn paths_have_one_form() {
        assert_eq!(merged("/lib/modules/x.ko"), "usr/lib/modules/x.ko");
        assert_eq!(merged("/usr/lib/x.so"), "usr/lib/x.so");
        assert_eq!(merged("guest/x"), "guest/x");
    }

    #[test]
    fn a_script_has_no_libraries_and_stays_as_it_is() {
        let script = tempfile::NamedTempFile::new().unwrap();
        fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(needed_libraries(script.path()).unwrap().is_empty());
        assert_eq!(&slim(script.path()).unwrap()[..], b"#!/bin/sh\n");
    }

    #[test]
    fn what_is_known_of_a_file_holds_until_it_changes() {
        let known = Mutex::new(BTreeMap::new());
        let file = tempfile::NamedTempFile::new().unwrap();
        let ask = |answer: u8| remembered(&known, file.path(), || Ok(answer)).unwrap();
        assert_eq!((ask(1), ask(2)), (1, 1));
        fs::write(file.path(), "longer").unwrap();
        assert_eq!((ask(3), ask(4)), (3, 3));
        remembered(&known, Path::new("/nonexistent/file"), || Ok(5)).unwrap_err();
    }

    #[test]
    fn each_module_is_loaded_once_and_after_what_it_needs() {
        let paths = |names: &[&str]| names.iter().map(|name| format!("/m/{name}.ko")).collect();
        let files: BTreeMap<&str, Vec<String>> = [
            ("dm_mod", paths(&["dax", "dm-mod"])),
            ("dm_crypt", paths(&["dax", "dm-mod", "dm-crypt"])),
            ("scsi_debug", paths(&["scsi_mod", "scsi_debug"])),
            ("ext4", Vec::new()),
        ]
        .into();
        let named = |name: &str, parameters: &str| (name.to_owned(), parameters.to_owned());
        let loaded = [
            named("dm_crypt", ""),
            named("dm_mod", "a=1 b=2"),
            named("ext4", ""),
            named("scsi_debug", "dev_size_mb=64"),
            named("dm_mod", ""),
        ];
        let expected = "part /m/dax.ko\nload /m/dm-mod.ko a=1 b=2\nload /m/dm-crypt.ko\npart /m/scsi_mod.ko\n\
                        load /m/scsi_debug.ko dev_size_mb=64\n";
        assert_eq!(load_script(&loaded, &files), expected);
    }
}
