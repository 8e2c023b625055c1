//! Places of documents, what may be replaced there, and what appears there meanwhile.

use super::*;

/// Begins as each document of this kind does.
const OWN: &str = "{\"schema\":\"rdsk.record/1\"}";

fn sink(path: &Path) -> Result<Sink, Problem> {
    Sink::prepare(JSON, &JsonPlace::File(path.to_owned()), &[])
}

#[test]
fn a_new_file_is_made_only_when_it_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.json");
    let new = sink(&path).unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    new.write(OWN).unwrap();
    sink(&path).unwrap().write("{\"a\":1}").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

fn names(place: &Path) -> Vec<String> {
    let names = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_appears_during_a_run_stays_and_the_document_goes_beside_it() {
    for (at_start, appears) in [(None, "mine"), (Some(OWN), "mine"), (Some(OWN), "{}")] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        if let Some(text) = at_start {
            fs::write(&path, text).unwrap();
        }
        let sink = sink(&path).unwrap();
        fs::write(&path, appears).unwrap();
        let problem = sink.write("{\"a\":1}").unwrap_err();
        assert_eq!((problem.kind, problem.code.as_str()), (ProblemKind::Io, "json-beside"), "{appears:?}");
        let names = names(scratch.path());
        let [other, its] = &names[..] else { panic!("{names:?}") };
        assert_eq!(its, "a.json");
        let is_told = |name: &str| problem.message.contains(&shown(&scratch.path().join(name)));
        assert!(is_told(its) && is_told(other), "{}", problem.message);
        let text = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
        assert_eq!([text(its), text(other)], [appears, "{\"a\":1}\n"]);
    }
}

/// A directory, a link that leads nowhere, and one to a document: none is followed or replaced.
#[test]
fn what_is_no_file_stays_too() {
    for at_start in [None, Some(OWN)] {
        for kind in ["directory", "nowhere", "document"] {
            let scratch = tempfile::tempdir().unwrap();
            let path = scratch.path().join("a");
            if let Some(text) = at_start {
                fs::write(&path, text).unwrap();
            }
            let sink = sink(&path).unwrap();
            let _ = fs::remove_file(&path);
            fs::write(scratch.path().join("document"), OWN).unwrap();
            match kind {
                "directory" => fs::create_dir(&path).unwrap(),
                to => std::os::unix::fs::symlink(to, &path).unwrap(),
            }
            assert_eq!(sink.write("new").unwrap_err().code, "json-beside", "{kind}");
            let names = names(scratch.path());
            assert_eq!(names[1..], ["a", "document"], "{kind}");
            assert_eq!(fs::read_to_string(scratch.path().join(&names[0])).unwrap(), "new\n");
            assert_eq!(fs::read_to_string(scratch.path().join("document")).unwrap(), OWN);
        }
    }
}

#[test]
fn a_document_that_was_removed_meanwhile_is_written_anew() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.json");
    fs::write(&path, OWN).unwrap();
    let sink = sink(&path).unwrap();
    fs::remove_file(&path).unwrap();
    sink.write("new").unwrap();
    assert_eq!(names(scratch.path()), ["a.json"]);
}

#[test]
fn a_document_that_is_replaced_stays_its_owners() {
    if !rdsk_testkit::requires(&[rdsk_testkit::Need::Root]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.json");
    sink(&path).unwrap().write(OWN).unwrap();
    std::os::unix::fs::chown(&path, Some(65_534), Some(65_533)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    sink(&path).unwrap().write("{\"a\":1}").unwrap();
    let new = fs::metadata(&path).unwrap();
    assert_eq!((new.uid(), new.gid(), new.mode() & 0o777), (65_534, 65_533, 0o640));
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
}

#[test]
fn a_pipe_without_a_reader_is_an_error_and_no_hang() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(sink(&path).unwrap().write("{}").unwrap_err().kind, ProblemKind::Io);
    // With a reader a document larger than the pipe gets through.
    let reading = path.clone();
    let reader = std::thread::spawn(move || fs::read_to_string(reading).unwrap());
    let document = "x".repeat(1 << 20);
    while sink(&path).unwrap().write(&document).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(reader.join().unwrap().len(), document.len() + 1);
}

#[test]
fn only_json_is_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    for (content, replaceable) in [
        ("", true),
        ("{\n  \"schema\": \"rdsk.record/1\",", true),
        ("data", false),
        ("\0\0", false),
        ("[package]\nname = \"mine\"\n", false),
        ("{ \"name\": \"web\" }", false),
        (" ".repeat(300).as_str(), false),
    ] {
        let path = scratch.path().join("file");
        fs::write(&path, content).unwrap();
        assert_eq!(sink(&path).is_ok(), replaceable, "{content:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_symlink_stays_and_its_file_is_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, link) = (scratch.path().join("file"), scratch.path().join("link"));
    fs::write(&file, "{\"schema\":\"rdsk.record/1\"}").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    sink(&link).unwrap().write("[1]").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "[1]\n");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "what was private stays private");
    fs::remove_file(&file).unwrap();
    assert_eq!(sink(&link).unwrap_err().code, "json-refused");
}

#[test]
fn what_cannot_be_written_is_refused_before() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(sink(scratch.path()).unwrap_err().code, "json-refused");
    let missing = sink(&scratch.path().join("no/such/file")).unwrap_err();
    assert_eq!((missing.kind, missing.code.as_str()), (ProblemKind::Refused, "json-unwritable"));
    assert_eq!(sink(Path::new("/dev/zero")).unwrap_err().code, "json-refused", "a device");
    sink(Path::new("/dev/null")).unwrap().write("{}").unwrap();
}

#[test]
fn the_target_is_never_the_document() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("target");
    fs::write(&path, "{}").unwrap();
    let target = scratch.path().join("./target").to_string_lossy().into_owned();
    let problem = Sink::prepare(JSON, &JsonPlace::File(path), &[target]).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::Usage);
}

/// A Record of one cell with this result.
fn of_cell(result: &str) -> String {
    format!("{{\"schema\":\"rdsk.record/1\",\"cells\":[{{\"id\":\"c\",\"result\":{result}}}]}}\n")
}

#[test]
fn a_measured_run_is_replaced_only_by_another() {
    let ran = of_cell("{\"ops\":7,\"errors\":[]}");
    let copied = "{\"schema\":\"rdsk.record/1\",\"cells\":[],\"copies\":[{}]}\n".to_owned();
    let compared = "{\"schema\":\"rdsk.compare/1\",\"records\":[{}]}\n".to_owned();
    // It is unknown what is missing at the end.
    let cut = ran[..ran.len() - 5].to_owned();
    let never_ran = of_cell("{\"ops\":null,\"errors\":[]}");
    let poor = [OWN, "{\"schema\":\"rdsk.plan/1\",\"plan\":{\"cells\":[{}]}}", &never_ran];
    let rich = [of_cell("{\"ops\":9}"), of_cell("{\"ops\":0,\"errors\":[{}]}"), copied.clone()];
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.json");
    for old in [&ran, &copied, &compared, &cut, &never_ran] {
        fs::write(&path, old).unwrap();
        for new in poor {
            let problem = sink(&path).unwrap().write(new).unwrap_err();
            let (kind, code) = (problem.kind, problem.code.as_str());
            assert_eq!((kind, code), (ProblemKind::Refused, "json-refused"), "{old} {new}");
            assert!(problem.message.contains("measured run"), "{}", problem.message);
            assert_eq!(&fs::read_to_string(&path).unwrap(), old, "{new}");
        }
        for new in &rich {
            fs::write(&path, old).unwrap();
            sink(&path).unwrap().write(new).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap().trim_end(), new.trim_end(), "{old}");
        }
        assert_eq!(names(scratch.path()), ["a.json"]);
    }
    // What was not measured gives way to anything.
    for old in ["", OWN, "{\"schema\":\"rdsk.info/1\",\"targets\":[]}"] {
        fs::write(&path, old).unwrap();
        sink(&path).unwrap().write(OWN).unwrap();
    }
}
