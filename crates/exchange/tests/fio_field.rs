//! Documents of fio as they come from the field: other versions, several hosts, options that are missing. Each figure is fio's, and
//! what it does not show is null.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_exchange::{csv, import, openmetrics};
use rdsk_model::{CellRecord, IoPath, Latency, Pattern, Record, TargetKind, Untold};
use serde_json::{Value, json};

macro_rules! field {
    ($($name:literal),+ $(,)?) => {
        const FIELD: &[(&str, &str)] = &[$(($name, include_str!(concat!("fixtures/fio/field/", $name)))),+];
    };
}
field!(
    "client-2-hosts.json", "client-stonewall.json", "etcd-fdatasync.json", "fio2.18.json",
    "group-of-4-fio3.1.json", "no-options.json", "status-interval.json",
);

const MIB: f64 = 1_048_576.0;

fn text(name: &str) -> &'static str {
    FIELD.iter().find(|(field, _)| *field == name).unwrap().1
}

fn document(name: &str) -> Value {
    serde_json::from_str(text(name)).unwrap()
}

fn record(text: impl AsRef<[u8]>) -> Record {
    let mut records = import(&text).unwrap();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn changed(name: &str, change: impl FnOnce(&mut Value)) -> Record {
    let mut document = document(name);
    change(&mut document);
    record(document.to_string())
}

fn cell<'a>(record: &'a Record, id: &str) -> &'a CellRecord {
    let ids = || record.cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>();
    record.cells.iter().find(|cell| cell.id == id).unwrap_or_else(|| panic!("{id}: {:?}", ids()))
}

fn mib_per_s(cell: &CellRecord) -> f64 {
    (cell.result.bytes_per_s.unwrap().mean / MIB * 10.0).round() / 10.0
}

fn notes(record: &Record, text: &str) -> usize {
    record.notes.iter().filter(|note| note.contains(text)).count()
}

#[test]
fn the_flushes_of_etcd_have_their_own_latencies() {
    let record = record(text("etcd-fdatasync.json"));
    let [cell] = &record.cells[..] else { panic!("one cell") };
    let syncs = cell.result.sync_latency_ns.as_ref().unwrap();
    assert_eq!(
        (syncs.count, syncs.p50, syncs.p99, syncs.max),
        (911, Some(3_686_400), Some(7_962_624), Some(7_995_996))
    );
    // Less than one of them took longer than p99.9.
    assert_eq!((syncs.p90, syncs.p999, syncs.p9999), (Some(4_145_152), None, None));
    assert_eq!(cell.result.latency_ns.as_ref().unwrap().p50, Some(21_376), "the write alone");
    assert_eq!(
        notes(&record, "fdatasync=1 takes time that is in the rate and not in the latencies of the writes"),
        1
    );
    assert_eq!(notes(&record, "only 9 of 911 syncs took longer than p99"), 1);
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!(json["cells"][0]["result"]["sync_latency_ns"]["p99"], 7_962_624);

    // Of a job that only reads they stand with the reads, and of one without either in a note.
    let reads = changed("etcd-fdatasync.json", |document| {
        let job = document["jobs"][0].as_object_mut().unwrap();
        let direction = job.remove("write").unwrap();
        job.insert("read".into(), direction);
        job["job options"]["rw"] = "read".into();
    });
    assert!(reads.cells[0].result.sync_latency_ns.is_some());
    let alone = changed("etcd-fdatasync.json", |document| {
        let job = document["jobs"][0].as_object_mut().unwrap();
        job.remove("write");
        job["job options"]["rw"] = "trim".into();
    });
    assert!(alone.cells.is_empty());
    assert_eq!(notes(&alone, "911 syncs, 3.07 ms on average, have no test"), 1, "{:?}", alone.notes);
    // Without any there is nothing to say.
    let none =
        changed("etcd-fdatasync.json", |document| document["jobs"][0]["sync"]["lat_ns"]["N"] = 0.into());
    assert_eq!(none.cells[0].result.sync_latency_ns, None);
}

#[test]
fn samples_of_a_group_are_of_single_jobs_before_3_14() {
    let samples = |record: &Record| record.cells[0].result.samples;
    for version in ["fio-2.21", "fio-3.0", "fio-3.1", "fio-3.13", "fio-3.13-dirty"] {
        let record = changed("group-of-4-fio3.1.json", |document| document["fio version"] = version.into());
        let samples = samples(&record).unwrap();
        let (bandwidth, ios) = (samples.bytes_per_s.unwrap(), samples.ops_per_s.unwrap());
        assert_eq!((bandwidth.jobs, ios.jobs, record.cells[0].workload.streams), (4, 4, 4), "{version}");
        let of_all = bandwidth.mean * f64::from(bandwidth.jobs);
        let rate = record.cells[0].result.bytes_per_s.unwrap().mean;
        assert!((of_all / rate - 1.0).abs() < 0.005, "{of_all} {rate}");
        assert_eq!(mib_per_s(&record.cells[0]), 69.6);
        assert_eq!(notes(&record, "4 × 17.4 = 69.7 MiB/s"), 1, "{:?}", record.notes);
    }
    for version in ["fio-3.14", "fio-3.33", "fio-3.42-17-gabc", "fio-4.1", "fio-git"] {
        let record = changed("group-of-4-fio3.1.json", |document| document["fio version"] = version.into());
        assert_eq!(samples(&record).unwrap().bytes_per_s.unwrap().jobs, 1, "{version}");
        assert_eq!(notes(&record, "samples each job"), 0);
    }
    // Of how many jobs they are is not known, unless they are the whole rate.
    let without = |mean: Option<f64>| {
        changed("group-of-4-fio3.1.json", |document| {
            let job = document["jobs"][0].as_object_mut().unwrap();
            job.remove("job options");
            if let Some(mean) = mean {
                (job["read"]["bw_mean"], job["read"]["iops_mean"]) = (mean.into(), (mean / 4.0).into());
            }
        })
    };
    assert_eq!((samples(&without(None)), notes(&without(None), "its samples are left out")), (None, 1));
    assert_eq!(samples(&without(Some(71_000.0))).unwrap().bytes_per_s.unwrap().jobs, 1);
}

#[test]
fn samples_of_single_ios_are_no_rate() {
    let given = record(text("no-options.json"));
    assert_eq!(given.cells[0].result.samples, None);
    assert_eq!(notes(&given, "fio's samples of bandwidth are those of single I/Os"), 1, "{:?}", given.notes);
    assert_eq!(notes(&given, "fio's samples of IOPS are those of single I/Os"), 1);
    // By its options, too, whatever their number.
    let logged = |options: Value| {
        changed("etcd-fdatasync.json", |document| {
            let to = document["jobs"][0]["job options"].as_object_mut().unwrap();
            to.extend(options.as_object().unwrap().clone());
        })
    };
    let samples = |record: Record| record.cells[0].result.samples.unwrap();
    let bandwidth = samples(logged(json!({ "write_bw_log": "x" })));
    assert!(bandwidth.bytes_per_s.is_none() && bandwidth.ops_per_s.is_some());
    let averaged = samples(logged(json!({ "write_bw_log": "x", "log_avg_msec": "500" })));
    assert!(averaged.bytes_per_s.is_some() && averaged.ops_per_s.is_some());
    // A slow device has as many I/Os as samples.
    let slow = changed("etcd-fdatasync.json", |document| {
        let write = &mut document["jobs"][0]["write"];
        (write["total_ios"], write["io_bytes"], write["iops"], write["bw"]) =
            (5.into(), 11_500.into(), 1.77.into(), 3.into());
        (write["iops_min"], write["iops_max"]) = (1.into(), 2.into());
    });
    assert!(slow.cells[0].result.samples.unwrap().bytes_per_s.is_some());
}

#[test]
fn a_job_that_was_busy_all_the_time_was_the_limit() {
    let busy = |change: &dyn Fn(&mut Value)| {
        changed("group-of-4-fio3.1.json", |document| {
            let job = &mut document["jobs"][0];
            (job["usr_cpu"], job["sys_cpu"]) = (39.5.into(), 59.9.into());
            change(job);
        })
    };
    let says = |record: &Record| {
        let verdict = record.cells[0].verdict.as_ref().unwrap().text.contains("fio itself was the limit");
        assert_eq!(
            usize::from(verdict),
            notes(record, "fio was the limit, not the storage"),
            "{:?}",
            record.notes
        );
        verdict
    };
    let record = busy(&|_| {});
    assert!(says(&record));
    assert_eq!(
        notes(&record, "it used 99.4% of a processor (usr 39.5%, sys 59.9%)"),
        1,
        "{:?}",
        record.notes
    );
    assert!(!says(&busy(&|job| job["sys_cpu"] = 30.into())));
    assert!(!says(&busy(&|job| job["sys_cpu"] = Value::Null)));
    assert!(!says(&busy(&|job| job["job options"]["hipri"] = "1".into())), "it polls");
    assert!(says(&busy(&|job| drop(job.as_object_mut().unwrap().remove("job options")))));
    let engine = busy(&|job| job["job options"]["ioengine"] = "rbd".into());
    assert!(says(&engine));
    assert_eq!(notes(&engine, "unless its engine polls"), 1);
}

#[test]
fn what_no_option_says_is_unknown() {
    let record = record(text("no-options.json"));
    let [cell] = &record.cells[..] else { panic!("one cell") };
    assert_eq!(cell.workload.untold, Untold::ALL);
    assert_eq!((cell.workload.queue_depth, cell.workload.streams), (0, 0));
    let json = serde_json::to_value(&record).unwrap();
    for key in ["pattern", "path", "sync", "engine", "queue_depth", "streams", "offset_bytes", "span_bytes"] {
        assert!(json["cells"][0]["workload"][key].is_null(), "{key}");
    }
    assert!(
        json["cells"][0]["result"]["engine"].is_null()
            && json["cells"][0]["result"]["in_flight_mean"].is_null()
    );
    assert_eq!(
        (record.targets.len(), cell.result.ops, cell.result.bytes),
        (0, Some(134_533), Some(551_112_704))
    );
    assert_eq!(cell.result.latency_ns.as_ref().unwrap().p99, Some(700_416));
    assert!(cell.verdict.as_ref().unwrap().text.contains("whether the job was direct is not known"));
    assert_eq!(notes(&record, "the document does not repeat its options"), 1);
    assert_eq!(notes(&record, "the sum of a group"), 0);
    let table = csv([&record]);
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, fields) = (lines.next().unwrap(), lines.next().unwrap());
    for name in ["pattern", "path", "sync", "queue_depth", "streams", "engine"] {
        assert_eq!(fields[names.iter().position(|one| *one == name).unwrap()], "", "{name}");
    }
    let metrics = openmetrics(&[&record]);
    assert!(!metrics.contains("sequential") && !metrics.contains("buffered"), "{metrics}");
    assert_eq!(serde_json::from_value::<Record>(json).unwrap(), record);
    // The options of all jobs are enough, as fio repeats those of each section where they stand.
    let global = changed("no-options.json", |document| {
        document["global options"] = json!({ "rw": "randwrite", "direct": "1", "bs": "4k" });
    });
    let workload = &global.cells[0].workload;
    assert_eq!((workload.pattern, workload.path, workload.queue_depth), (Pattern::Random, IoPath::Direct, 1));
    assert!(workload.untold.is_empty());
    // A name is none.
    let named = changed("no-options.json", |document| {
        document["jobs"][0]["job options"] = json!({ "name": "bwlog" });
    });
    assert_eq!(named.cells[0].workload.untold, Untold::ALL);
}

#[test]
fn a_job_called_like_a_device_has_that_device() {
    let named = |job: &str, options: Value| {
        let record = changed("etcd-fdatasync.json", |document| {
            document["jobs"][0]["jobname"] = job.into();
            document["jobs"][0]["job options"] = options;
        });
        let target = record.targets[0].clone();
        (target.name, target.kind)
    };
    let options = json!({ "rw": "write", "bs": "2300" });
    assert_eq!(named("/dev/nvme0n1", options.clone()), ("/dev/nvme0n1".into(), TargetKind::Block));
    assert_eq!(named("/dev/nvme0n1", json!({})), ("/dev/nvme0n1".into(), TargetKind::Block));
    assert_eq!(named("sdb", options).0, "sdb.*");
    assert_eq!(named("/dev/sdb", json!({ "filename": "/data/x" })).0, "/data/x");
}

#[test]
fn several_jobs_of_one_name_have_a_sum() {
    let several = |change: &dyn Fn(&mut Value)| {
        changed("etcd-fdatasync.json", |document| {
            let mut second = document["jobs"][0].clone();
            second["write"]["runtime"] = 2000.into();
            second["write"]["bw"] = 1023.into();
            second["write"]["iops"] = 455.5.into();
            second["write"]["lat_ns"]["min"] = 1111.into();
            change(&mut second);
            document["jobs"].as_array_mut().unwrap().push(second);
        })
    };
    let ids = |record: &Record| record.cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>();
    let record = several(&|_| {});
    assert_eq!(ids(&record), ["fio/etcd/write", "fio/etcd#2/write", "fio/etcd#sum/write"]);
    let sum = cell(&record, "fio/etcd#sum/write");
    assert_eq!(
        (sum.result.bytes, sum.result.ops, sum.result.elapsed_ns),
        (Some(2 * 2_095_300), Some(2 * 911), Some(2_822_000_000))
    );
    assert_eq!((sum.workload.streams, sum.workload.block_bytes, &sum.workload.targets), (2, 2300, &vec![0]));
    let latency = sum.result.latency_ns.as_ref().unwrap();
    assert_eq!(
        (latency.count, latency.min, latency.p50),
        (1822, Some(1111), None),
        "percentiles do not add up"
    );
    assert_eq!(sum.result.sync_latency_ns.as_ref().map(|syncs| (syncs.count, syncs.p99)), Some((1822, None)));
    assert_eq!((sum.result.samples, sum.result.in_flight_mean), (None, None));
    assert_eq!(notes(&record, "etcd#sum: the sum of jobs that ran side by side"), 1, "{:?}", record.notes);
    assert_eq!(notes(&record, "etcd#sum"), 1, "what is said of its jobs is said once");
    // Jobs one after the other have none.
    let later = several(&|job| job["groupid"] = 1.into());
    assert_eq!(later.cells.len(), 2);
    let started = |second: u64| {
        changed("etcd-fdatasync.json", |document| {
            document["jobs"][0]["job_start"] = 1000.into();
            let mut job = document["jobs"][0].clone();
            job["job_start"] = second.into();
            document["jobs"].as_array_mut().unwrap().push(job);
        })
    };
    assert_eq!((started(1500).cells.len(), started(4000).cells.len()), (3, 2));
    // Of unlike ones only what they share is shown.
    let unlike = several(&|job| job["job options"]["direct"] = "1".into());
    let workload = &cell(&unlike, "fio/etcd#sum/write").workload;
    assert!(!workload.tells(Untold::Path) && workload.tells(Untold::Pattern), "{workload:?}");
    // One that read and one that wrote are no sum.
    let other = several(&|job| {
        let direction = job.as_object_mut().unwrap().remove("write").unwrap();
        job["read"] = direction;
    });
    assert_eq!(ids(&other), ["fio/etcd/write", "fio/etcd/read"]);
    // Bins add up, so that all of them have percentiles.
    let binned = changed("etcd-fdatasync.json", |document| {
        let job = &mut document["jobs"][0];
        for latencies in ["clat_ns", "lat_ns"] {
            job["write"][latencies]["bins"] = json!({ "1000": 811, "9000": 100 });
        }
        let again = job.clone();
        document["jobs"].as_array_mut().unwrap().push(again);
    });
    let latency = cell(&binned, "fio/etcd#sum/write").result.latency_ns.as_ref().unwrap();
    let about = |ns: Option<u64>, expected: u64| ns.is_some_and(|ns| ns.abs_diff(expected) * 50 <= expected);
    assert!(about(latency.p50, 1000) && about(latency.p99, 9000), "{latency:?}");
}

#[test]
fn each_host_has_a_cell_and_all_of_them_a_total() {
    let record = record(text("client-2-hosts.json"));
    let [one, other, total] =
        ["fio/192.0.2.1:18766/seqw/write", "fio/192.0.2.1:18765/seqw/write", "fio/All clients/write"]
            .map(|id| cell(&record, id));
    assert_eq!(record.cells.len(), 3);
    assert_eq!([one, other, total].map(mib_per_s), [666.7, 888.9, 1333.3]);
    assert_eq!([one, other, total].map(|cell| cell.result.bytes), [8 << 20, 8 << 20, 16 << 20].map(Some));
    assert_eq!([one, other, total].map(|cell| cell.workload.streams), [1, 1, 2]);
    assert_eq!([one, other, total].map(|cell| cell.workload.queue_depth), [2, 2, 2]);
    assert_eq!(total.workload.path, IoPath::Direct);
    let p50 = |cell: &CellRecord| cell.result.latency_ns.as_ref().and_then(|latency| latency.p50);
    assert_eq!([one, other, total].map(p50), [Some(134_144), Some(91_648), None]);
    let latency = total.result.latency_ns.as_ref().unwrap();
    assert_eq!((latency.count, latency.min, latency.max), (256, Some(68_811), Some(1_163_308)));
    let names: Vec<&str> = record.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["192.0.2.1:18766:/data/seqw.*", "192.0.2.1:18765:/data/seqw.*"]);
    assert_eq!((&total.workload.targets, record.elapsed_ns), (&vec![0, 1], 12_000_000));
    // Where each host has a name of its own, that is enough; before 3.3 none has one.
    let named =
        changed("client-2-hosts.json", |document| document["client_stats"][1]["hostname"] = "b".into());
    assert!(
        named
            .cells
            .iter()
            .map(|cell| cell.id.as_str())
            .eq(["fio/192.0.2.1/seqw/write", "fio/b/seqw/write", "fio/All clients/write"])
    );
    let unnamed = changed("client-2-hosts.json", |document| {
        for job in document["client_stats"].as_array_mut().unwrap() {
            job.as_object_mut().unwrap().remove("hostname");
        }
    });
    let ids: Vec<&str> = unnamed.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["fio/seqw/write", "fio/seqw#2/write", "fio/seqw#sum/write", "fio/All clients/write"]);
    let sum = cell(&unnamed, "fio/seqw#sum/write");
    let ours = |cell: &CellRecord| {
        (cell.result.bytes, cell.result.ops, cell.result.bytes_per_s, cell.result.elapsed_ns)
    };
    assert_eq!(ours(sum), ours(cell(&unnamed, "fio/All clients/write")), "our sum is fio's");
    // One host is all of them.
    let single = changed("client-2-hosts.json", |document| {
        drop(document["client_stats"].as_array_mut().unwrap().remove(0));
    });
    assert_eq!(single.cells.len(), 1);
}

/// fio adds up whatever it has, and divides by the longest time.
#[test]
fn a_total_of_jobs_one_after_the_other_is_none() {
    let record = record(text("client-stonewall.json"));
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    let expected = [
        "node1/seqw/write", "node1/seqw#2/write", "node1/rr/read", "node2/seqw/write", "node2/seqw#2/write",
        "node2/rr/read", "node1/seqw#sum/write", "node2/seqw#sum/write",
    ];
    assert_eq!(ids, expected.map(|id| format!("fio/{id}")));
    assert_eq!(
        notes(&record, "All clients: fio's sum is of jobs that ran one after the other"),
        1,
        "{:?}",
        record.notes
    );
    assert_eq!(cell(&record, "fio/node1/rr/read").workload.pattern, Pattern::Random);
    assert_eq!(cell(&record, "fio/node1/seqw#sum/write").workload.streams, 2);
    // The server drops the options of further jobs of a group.
    let dropped = changed("client-stonewall.json", |document| {
        document["client_stats"][2].as_object_mut().unwrap().remove("job options");
    });
    let workload = &cell(&dropped, "fio/node1/rr/read").workload;
    assert!(!workload.tells(Untold::Pattern) && workload.tells(Untold::Path), "{workload:?}");
    assert_eq!((workload.block_bytes, workload.queue_depth), (65_536, 2));
}

#[test]
fn fio_2_is_read_in_its_units() {
    let record = record(text("fio2.18.json"));
    let [cell] = &record.cells[..] else { panic!("one cell") };
    assert_eq!(
        (cell.result.bytes, cell.result.ops, mib_per_s(cell)),
        (Some(528_646 * 4096), Some(528_646), 206.4)
    );
    let latency = cell.result.latency_ns.as_ref().unwrap();
    let Latency { p50, p99, min, max, .. } = *latency;
    assert_eq!((p50, p99, min, max), (Some(1_160_000), Some(2_832_000), Some(60_000), Some(7_783_000)));
    assert!((latency.mean.unwrap() - 1_194_983.664).abs() < 1e-6);
    assert_eq!((cell.workload.block_bytes, cell.workload.queue_depth, cell.workload.streams), (4096, 1, 64));
    assert_eq!(notes(&record, "fio 2 counts whole microseconds and KiB"), 1);
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut document = document("fio2.18.json");
        change(&mut document);
        import(&document.to_string()).unwrap_err().to_string()
    };
    let odd = refused(&|document| document["jobs"][0]["read"]["io_bytes"] = 77_777.into());
    assert!(odd.starts_with("it is of fio-2.18-59-g618e, "), "{odd}");
}

#[test]
fn reports_of_one_run_are_one_run() {
    let whole = record(text("status-interval.json"));
    assert_eq!((whole.cells[0].result.ops, whole.elapsed_ns), (Some(6000), 4_000_000_000));
    assert_eq!(notes(&whole, "fio: the last of 4 reports (--status-interval)"), 1);
    // In an array as well, and followed by another run.
    let mut documents: Vec<Value> = serde_json::Deserializer::from_str(text("status-interval.json"))
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(record(Value::from(documents.clone()).to_string()), whole);
    documents.push(document("etcd-fdatasync.json"));
    let both = import(&Value::from(documents).to_string()).unwrap();
    assert_eq!((both.len(), &both[0]), (2, &whole));
}

/// Numbers that fio does not have are not known, and figures that contradict each other are none.
#[test]
fn numbers_that_are_none_are_null() {
    let plain = record(text("etcd-fdatasync.json"));
    let broken = text("etcd-fdatasync.json")
        .replace("\"bw_dev\": 59.859836", "\"bw_dev\" : -nan")
        .replace("\"iops_stddev\": 26.495283", "\"iops_stddev\" : inf")
        .replace("\"mean\": 22946.895719", "\"mean\" : NaN");
    let read = record(&broken);
    assert_eq!(read.cells[0].result.samples, None);
    assert_eq!(
        (read.cells[0].result.latency_ns.as_ref(), read.cells[0].result.in_flight_mean),
        (plain.cells[0].result.latency_ns.as_ref(), None)
    );
    let change = |key: &str, value: Value| {
        changed("etcd-fdatasync.json", |document| {
            let at = document.pointer_mut(&format!("/jobs/0/{key}")).unwrap_or_else(|| panic!("{key}"));
            *at = value;
        })
    };
    let result = |record: Record| record.cells[0].result.clone();
    assert_eq!(
        result(change("write/clat_ns/percentile", json!({ "50.000000": null }))).latency_ns.unwrap().p50,
        None
    );
    assert_eq!(result(change("write/clat_ns/percentile", Value::Null)).latency_ns.unwrap().p50, None);
    assert_eq!(result(change("write/clat_ns/min", json!(-1))).latency_ns.unwrap().min, None);
    assert_eq!(result(change("write/clat_ns/min", json!(u64::MAX))).latency_ns.unwrap().min, None);
    assert_eq!(
        result(change("write/clat_ns/min", json!(u32::MAX))).latency_ns.unwrap().min,
        None,
        "more than the largest"
    );
    assert_eq!(result(change("write/clat_ns/mean", json!(-2.5))).latency_ns.unwrap().mean, None);
    assert_eq!(result(change("sync/lat_ns/percentile", Value::Null)).sync_latency_ns.unwrap().p99, None);
    // A counter of 32 bits that went round.
    let overflown = change("write/io_bytes", json!(4_294_967_295_u64));
    assert_eq!(notes(&overflown, "the figures contradict each other"), 1, "{:?}", overflown.notes);
    let overflown = result(overflown);
    assert_eq!((overflown.bytes_per_s, overflown.ops_per_s.is_some()), (None, true));
    assert_eq!(result(change("write/total_ios", json!(77))).ops_per_s, None);
}

#[test]
fn later_versions_may_say_more() {
    let later = changed("etcd-fdatasync.json", |document| {
        document["fio version"] = "fio-3.42".into();
        let job = &mut document["jobs"][0];
        (job["job_start"], job["steadystate"]) = (1_795_810_657_123_u64.into(), json!({ "ss": "iops:1%" }));
        job["write"]["clat_ns"]["prios"] = json!([{ "prioclass": "NONE" }]);
    });
    assert_eq!(later.cells, record(text("etcd-fdatasync.json")).cells);
    assert_eq!(later.started_at, "2026-11-27T20:17:37.123Z");
    let lines = "{\"fio version\": \"fio-3.42\", \"jobs\": []}";
    assert_eq!(import(lines).unwrap_err().to_string(), "it has no jobs");
}
