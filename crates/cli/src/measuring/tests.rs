//! Lines of commands that measure, flag by flag: what they are understood as, and what is refused.

use super::*;
use crate::cli_args::{ColorWhen, Form, JsonPlace, Verbosity};
use crate::history::Place;
use rdsk_experiment::{IN_RUN, PositionOrder, Positions};
use rdsk_model::{EngineKind, Op, Pattern, StreamRange};
use rdsk_report::{Charset, Compactness};
use rdsk_targets::Overwrite;
use std::collections::BTreeSet;

fn parsed(line: &[&str]) -> Result<Measurement, Problem> {
    let words: Vec<OsString> = std::iter::once("rdsk").chain(line.iter().copied()).map(Into::into).collect();
    match parse(&words)? {
        Parsed::Line(asked, _) => Ok(asked),
        Parsed::Text(text) => panic!("{line:?} prints {text}"),
    }
}

fn options(line: &str) -> PlanOptions {
    parsed(&line.split(' ').collect::<Vec<_>>()).unwrap().options
}

fn common(line: &str) -> Common {
    parsed(&line.split(' ').collect::<Vec<_>>()).unwrap().common
}

/// Asserts that each value of a flag is refused, naming the flag, in one line, with a hint.
fn refuses(command: &str, flag: &str, values: &[&str]) {
    for value in values {
        let problem = parsed(&[command, flag, value]).expect_err(&format!("{flag} {value:?} was accepted"));
        assert_eq!(problem.kind, rdsk_model::ProblemKind::Usage, "{flag} {value:?}");
        assert!(problem.message.contains(flag), "{flag} {value:?}: {}", problem.message);
        let hint = problem.hint.expect("every bad value has a hint");
        assert!(!hint.is_empty() && !hint.contains('\n') && !problem.message.contains('\n'), "{hint}");
    }
}

fn commands() -> Vec<clap::Command> {
    let whole = grammar::prepared(Measuring::augment_subcommands(clap::Command::new("rdsk")));
    whole.get_subcommands().cloned().collect()
}

fn flags(command: &clap::Command) -> impl Iterator<Item = &clap::Arg> {
    command.get_arguments().filter(|arg| arg.get_long().is_some_and(|long| long != "help"))
}

#[test]
fn every_flag_has_help_and_a_section() {
    let sections = [grammar::COMMON, grammar::WHAT, grammar::OUTPUT, grammar::EXPERT];
    for command in commands() {
        for arg in flags(&command) {
            let long = arg.get_long().unwrap();
            assert!(arg.get_help().is_some_and(|help| !help.to_string().is_empty()), "--{long}");
            assert!(sections.contains(&arg.get_help_heading().unwrap()), "--{long}");
        }
    }
}

#[test]
fn every_missing_value_is_one_line_and_a_hint() {
    for command in commands() {
        for arg in flags(&command).filter(|arg| arg.get_action().takes_values()) {
            let dashed = format!("--{}", arg.get_long().unwrap());
            let name = command.get_name();
            for line in [vec![name, &dashed], vec![name, &dashed, "--quiet"], vec![name, &dashed, ""]] {
                let problem = parsed(&line).expect_err(&format!("{line:?} was accepted"));
                assert!(problem.message.contains(&dashed), "{line:?}: {}", problem.message);
                assert!(problem.hint.is_some(), "{line:?}");
            }
        }
    }
}

/// What `rdsk compare` leaves out of a command line, and `--resume` takes from the new one.
#[test]
fn the_flags_of_output_are_known_as_such() {
    let commands = commands();
    let run = commands.iter().find(|command| command.get_name() == "run").unwrap();
    let of_output = |takes_value: bool| {
        let of_output = flags(run).filter(|arg| arg.get_help_heading() == Some(grammar::OUTPUT));
        let alike = of_output.filter(|arg| arg.get_action().takes_values() == takes_value);
        alike.filter_map(clap::Arg::get_long).collect::<BTreeSet<_>>()
    };
    assert_eq!(of_output(true), OUTPUT_FLAGS.iter().copied().collect());
    assert_eq!(of_output(false), OUTPUT_SWITCHES.iter().copied().collect());
    let short = flags(run).filter_map(clap::Arg::get_short);
    assert_eq!(short.collect::<String>(), "q", "the short name that output_flags knows");
}

const BAD_SIZES: &[&str] = &[
    "", "-4k", "0", "99999999T", "4x", "NaN", "nonsense", "4b", "1e3", "--json", "0.3",
    "18446744073709551616",
];
const BAD_COUNTS: &[&str] = &["", "0", "-1", "1.5", "4k", "99999999999999999999", "5000", "many", "--json"];
const BAD_TIMES: &[&str] =
    &["", "0", "-5s", "5x", "soon", "99999999999h", "1ns", "8000h", "1e3", "--json", "5 parsecs"];

#[test]
fn targets_are_kept_in_order() {
    assert_eq!(common("run b a -- -c").targets, ["b", "a", "-c"]);
    assert!(parsed(&["run", ""]).unwrap_err().message.contains("the name of a target is empty"));
}

#[test]
fn what_is_measured() {
    assert_eq!(parsed(&["run"]).unwrap().experiments, IN_RUN);
    let some = parsed(&["run", "--only", "align,paths", "--only", "paths"]).unwrap();
    assert_eq!(some.experiments, [Experiment::Align, Experiment::Paths]);
    refuses("run", "--only", &["", "stripe", "paths,", "-1", "PATHS", "0"]);
    assert_eq!(options("paths").ops, None);
    assert_eq!(options("paths --rw read,write").ops, Some(vec![Op::Read, Op::Write]));
    refuses("stream", "--rw", &["", "rw", "readwrite", "-read", "read,", "0"]);
    assert_eq!(options("stream --pattern random").pattern, Pattern::Random);
    refuses("stream", "--pattern", &["", "zipf", "-random", "0"]);
    assert!(!options("stream").end_fsync && options("stream --end-fsync").end_fsync);
    assert!(parsed(&["paths", "--end-fsync"]).unwrap_err().message.contains("--end-fsync"));
}

#[test]
fn sizes() {
    assert_eq!(options("align --bs 1,27,512 --bs 4k").block_bytes, Some(vec![1, 27, 512, 4096]));
    refuses("paths", "--bs", BAD_SIZES);
    refuses("paths", "--bs", &["4k,", "4k,-1", "2G", ","]);
    assert_eq!(options("paths --bytes 100M").pass_bytes, Some(100 << 20));
    refuses("paths", "--bytes", BAD_SIZES);
    assert_eq!(common("run --size 64M").size, Some(64 << 20));
    refuses("run", "--size", BAD_SIZES);
    assert_eq!(options("stream --offset 1M").offset_bytes, 1 << 20);
    assert_eq!(options("stream --offset 0").offset_bytes, 0);
    refuses("stream", "--offset", &["", "-1", "99999999T", "8192P", "x"]);
}

#[test]
fn positions() {
    assert_eq!(options("zones").positions, Positions::Default);
    assert_eq!(options("zones --points 50").positions, Positions::Count(50));
    assert_eq!(options("zones --full").positions, Positions::Full);
    assert!(parsed(&["zones", "--full", "--points", "5"]).is_err());
    refuses("zones", "--points", &["", "0", "-1", "x", "1e3", "99999999999"]);
    refuses("zones", "--runs", &["", "0", "-1", "ten"]);
    assert_eq!(options("zones --order ascending").position_order, Some(PositionOrder::Ascending));
    assert_eq!(options("zones --order shuffled").position_order, Some(PositionOrder::Shuffled));
    refuses("zones", "--order", &["", "random", "asc"]);
}

#[test]
fn how_io_is_issued() {
    assert_eq!(options("run --iodepth 128").queue_depth, Some(128));
    refuses("run", "--iodepth", BAD_COUNTS);
    assert_eq!(options("stream --streams 10").stream_counts, Some(vec![10]));
    refuses("stream", "--streams", BAD_COUNTS);
    for (word, engine) in [
        ("uring", EngineKind::Uring),
        ("io_uring", EngineKind::Uring),
        ("sync", EngineKind::Sync),
        ("aio", EngineKind::Aio),
        ("threads", EngineKind::Threads),
    ] {
        assert_eq!(options(&format!("align --engine {word}")).engine, Some(engine));
    }
    refuses("run", "--engine", &["", "sim", "libaio", "-1", "0"]);
    assert_eq!(options("stream --pin 0").pin_cpus, [0]);
    refuses("stream", "--pin", &["", "-1", "x", "3-1", "0,", "8000", "99999999999999999999"]);
    assert_eq!(options("run --seed 0").seed, Some(0));
    refuses("run", "--seed", &["", "-1", "x", "1.5", "99999999999999999999"]);
    let scale = options("scale --stagger 0s --shared-range --streams 1,4");
    assert_eq!((scale.stagger_ns, scale.range), (Some(0), StreamRange::Shared));
    assert_eq!(scale.stream_counts, Some(vec![1, 4]));
    refuses("scale", "--stagger", &["", "-1s", "soon", "5000h"]);
}

#[test]
fn when_to_stop() {
    assert_eq!(options("run").budget_ns, 60_000_000_000);
    assert_eq!(options("run --budget 20s").budget_ns, 20_000_000_000);
    refuses("run", "--budget", BAD_TIMES);
    assert_eq!(options("run --sustained").budget_ns, 600_000_000_000);
    assert_eq!(options("run --sustained --budget 20s").budget_ns, 20_000_000_000);
    assert_eq!(options("paths --runtime 500ms").runtime_ns, Some(500_000_000));
    refuses("paths", "--runtime", BAD_TIMES);
    assert!((options("run --precision 5%").precision - 0.05).abs() < 1e-12);
    refuses("run", "--precision", &["", "0", "2", "-2%", "100%", "NaN", "inf", "1e-2", "--json", "0%"]);
}

#[test]
fn permission() {
    let permission = common("run /dev/x --destroy WD-WCANK5").permission();
    assert_eq!(permission.destroy.as_deref(), Some("WD-WCANK5"));
    refuses("run", "--destroy", &["", " ", "--json"]);
    assert_eq!(common("run f").permission().overwrite, Overwrite::Refused);
    assert_eq!(common("run f --overwrite").permission().overwrite, Overwrite::Allowed);
    assert!(parsed(&["run", "--overwrite=yes"]).unwrap_err().message.contains("--overwrite"));
}

#[test]
fn places_of_documents() {
    assert_eq!(common("run --json -").output.json(), Some(&JsonPlace::Stdout));
    refuses("run", "--json", &["", "--label"]);
    assert_eq!(common("run --json - --json-compact").output.compactness(), Compactness::Compact);
    let file = |name: &str| JsonPlace::File(name.into());
    let forms = common("run --markdown a.md --csv -").forms();
    assert_eq!(forms, [(Form::Markdown, file("a.md")), (Form::Csv, JsonPlace::Stdout)]);
    assert_eq!(common("zones --openmetrics a.prom").forms(), [(Form::OpenMetrics, file("a.prom"))]);
    assert_eq!(common("zones --report z.html").forms(), [(Form::Page, file("z.html"))]);
    refuses("run", "--markdown", &["", "--label"]);
    refuses("run", "--report", &["", "-"]);
    for (line, message) in [
        ("run --markdown a --dry-run", "--dry-run"),
        ("run --dry-run --report z", "--dry-run"),
        ("run --csv a --json a", "the same file"),
        ("run --openmetrics - --json -", "standard output"),
    ] {
        let problem = parsed(&line.split(' ').collect::<Vec<_>>()).unwrap_err();
        assert!(problem.message.contains(message), "{line}: {problem}");
    }
}

#[test]
fn what_becomes_of_a_run() {
    assert_eq!(parsed(&["run"]).unwrap().detail, Detail::Short);
    assert_eq!(parsed(&["run", "--details"]).unwrap().detail, Detail::Full);
    assert!(parsed(&["paths", "--details"]).is_err());
    assert!(!common("run").run.dry_run && common("paths --dry-run").run.dry_run);
    let label = parsed(&["run", "--label", "-5 °C"]).unwrap().common.run.label;
    assert_eq!(label.as_deref(), Some("-5 °C"));
    refuses("run", "--label", &["", "   ", &"x".repeat(201)]);
    assert_eq!(common("run --resume last").run.resume.as_deref(), Some("last"));
    refuses("run", "--resume", &["", "--quiet"]);
    assert_eq!(common("run --history h.db").place(), Some(Place::File("h.db".into())));
    assert_eq!((common("run --no-history").place(), common("run").place()), (Some(Place::Off), None));
    refuses("run", "--history", &["", "--quiet"]);
    assert_eq!(common("run -q").verbosity(), Verbosity::Quiet);
    assert_eq!(common("run --color never --ascii").output.look(), (ColorWhen::Never, Charset::Ascii));
    refuses("run", "--color", &["", "sometimes", "-1", "0"]);
}

#[test]
fn conflicting_flags_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["paths", "--runtime", "1s", "--budget", "9s"], "--runtime conflicts with --budget"),
        (&["run", "--json-compact"], "--json-compact needs --json"),
        (&["run", "--history", "h", "--no-history"], "--history conflicts with --no-history"),
        (
            &["scale", "--stagger", "1h", "--streams", "2", "--budget", "3s"],
            "--stagger 1 h 00 min 00 s of 2 streams takes all of --budget 3.00 s",
        ),
        (
            &["scale", "--stagger", "1h", "--budget", "3s"],
            "--stagger 1 h 00 min 00 s of 10 streams takes all of --budget 3.00 s",
        ),
        (&["run", "--iodepth", "32", "--engine", "sync"], "--iodepth 32 conflicts with --engine sync"),
        (&["run", "x", "--destroy", "S", "--overwrite"], "--destroy conflicts with --overwrite"),
        (&["paths", "x", "--destroy", "S", "--rw", "read"], "--destroy conflicts with --rw read"),
        (&["run", "x", "--overwrite", "--rw", "read"], "--overwrite conflicts with --rw read"),
        (&["load", "x", "--rw", "randread", "--destroy", "S"], "--destroy conflicts with --rw randread"),
        (&["load", "x", "--overwrite"], "--overwrite conflicts with jobs that only read"),
        (&["check", "satellite", "x", "--overwrite"], "--overwrite conflicts with jobs that only read"),
        (&["stream", "--end-fsync", "--rw", "read"], "--end-fsync conflicts with --rw read"),
        (&["run", "--destroy", "S"], "--destroy needs a target"),
        (&["run", "--overwrite"], "--overwrite needs a target"),
        (
            &["paths", "--bs", "4k,1M", "--bytes", "64k"],
            "--bytes 64 KiB is less than one block of --bs 1 MiB",
        ),
        (&["paths", "--bytes", "1M", "--size", "512k"], "--bytes 1 MiB does not fit into --size 512 KiB"),
        (
            &["stream", "--bs", "1G", "--iodepth", "8"],
            "--bs times --iodepth times --streams is more than 4 GiB",
        ),
        (&["scale", "--bs", "1G"], "--bs times --iodepth times --streams is more than 4 GiB"),
    ];
    for (line, message) in cases {
        let problem = parsed(line).expect_err(&format!("{line:?} was accepted"));
        assert!(problem.message.contains(message), "{line:?}: {}", problem.message);
        assert!(problem.hint.is_some());
    }
}

#[test]
fn their_neighbours_are_fine() {
    for line in [
        &["paths", "--budget", "9s"][..],
        &["run", "--iodepth", "1", "--engine", "sync"],
        &["scale", "--stagger", "1s", "--streams", "2", "--budget", "3s"],
        &["scale", "--stagger", "1h", "--streams", "1", "--budget", "3s"],
        &["scale", "--stagger", "300ms", "--budget", "3s"],
        &["scale", "--bs", "1G", "--streams", "4"],
        &["run", "--iodepth", "32", "--engine", "uring"],
        &["paths", "x", "--destroy", "S", "--rw", "read,write"],
        &["paths", "--bs", "1M", "--bytes", "1M", "--size", "1M"],
    ] {
        assert!(parsed(line).is_ok(), "{line:?}");
    }
}
