//! A run of several ranks from start to end: what all have in common, this rank's share of it, its part as it goes, and on rank 0 the
//! result of all.

use super::hosts::Hosts;
use super::own_part::OwnPart;
use super::parts::Parts;
use super::share::{check, check_sizes, share};
use super::shared_file::LaidOut;
use super::{device, shared_file};
use crate::cli_args::JsonPlace;
use crate::exchange::Outputs;
use crate::history::{self, Keeper, Place};
use crate::interrupt::Guard;
use crate::json_file::{JSON, Sink};
use crate::measuring::Measurement;
use crate::progress::Progress;
use crate::{exit, measure, out, panic_hook, record_file};
use rdsk_engine::MonotonicClock;
use rdsk_experiment::{Request, execute_with, failed_record};
use rdsk_model::{Event, Experiment, Peers as _, Problem, ProblemKind, RankRun, Record, StopFlag, Watch};
use rdsk_ranks::{Lockstep, Merge, Mpi, Myself, Ranks as _, RanksError, broadcast, from_all, send_document};
use std::path::PathBuf;
use std::sync::Arc;

/// Measures and gives the exit code; `None` for a process alone.
///
/// # Errors
/// MPI cannot be started.
pub(super) fn measure(asked: &Measurement, command: &[String]) -> Result<Option<u8>, Problem> {
    let stop = StopFlag::new();
    let no_mpi = |what: &str| {
        let hint = "start rdsk-mpi by the mpirun of the MPI that it is built with";
        Problem::new(ProblemKind::Refused, "no-mpi", what, hint)
    };
    let file_guard = shared_file::Guard::for_missing(asked)?;
    let Some((universe, mpi)) = Mpi::start(stop.clone()) else { return Err(no_mpi("MPI does not start")) };
    if mpi.size() < 2 {
        return Err(no_mpi("mpirun started several processes, and MPI sees this one alone"));
    }
    let problem = match as_rank(asked, command, (&mpi, file_guard), &stop) {
        Ok(Ended::Together(code)) => return Ok(Some(code)),
        Ok(Ended::Refused(problem)) => problem,
        Ok(Ended::Lost(problem)) => {
            // MPI ends with all ranks or not at all.
            std::mem::forget(universe);
            problem
        }
        Err(error) => {
            std::mem::forget(universe);
            error.problem()
        }
    };
    // All ranks end alike, and one of them says so.
    Ok(Some(if mpi.rank() == 0 { out::failure(&problem) } else { exit::code_of(problem.kind) }))
}

/// How a rank ended.
enum Ended {
    /// With all others, and the exit code of all.
    Together(u8),
    /// Before anything was said to others.
    Refused(Problem),
    /// A rank was lost, or a signal came; its part is kept.
    Lost(Problem),
}

fn as_rank(
    asked: &Measurement,
    command: &[String],
    (mpi, file_guard): (&Mpi, Option<shared_file::Guard>),
    stop: &StopFlag,
) -> Result<Ended, RanksError> {
    let mut asked = asked.clone();
    let json = asked.common.as_rank(mpi.rank());
    if let Err(problem) = check(&asked) {
        return Ok(Ended::Refused(problem));
    }
    // A file that is laid out must not stay when a signal comes.
    let guard = Guard::new(stop.clone(), Box::new(|| ()));
    let guard = guard.map_err(|error| measure::cannot_start("watch for signals", &error));
    let mut request = measure::request(&asked, command.to_vec(), stop);
    let seed = request.options.seed.or_else(|| measure::seed(&request)).unwrap_or(0);
    let (run, seed) = broadcast(mpi, (rdsk_targets::new_id().to_string(), seed))?;
    let history = match asked.common.place() {
        Some(Place::File(path)) => Some(path),
        Some(Place::Off | Place::Unknown) => None,
        None => history::file(),
    };
    let directory: Option<PathBuf> = match &json {
        Some(JsonPlace::File(path)) => Some(path.clone()),
        _ => history.and_then(|file| Some(file.parent()?.join("ranks").join(&run))),
    };
    match asked.common.place() {
        _ if mpi.rank() > 0 => history::choose(Place::Off),
        Some(place) => history::choose(place),
        None => {}
    }
    let myself = Myself::new(RankRun {
        rank: mpi.rank(),
        ranks: mpi.size(),
        run,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        boot: boot(),
        ..RankRun::default()
    });
    // Others need not know who is on which host, and of many ranks that is much to say.
    let is_asked = asked.common.may_destroy() || asked.experiments.contains(&Experiment::Scale);
    let hosts = if is_asked { Hosts::of(mpi, &boot())? } else { Hosts::single(mpi.size()) };
    if request.permission.destroy.is_some()
        && let Err(problem) = device::hold(mpi, &hosts, &mut request)?
    {
        return Ok(Ended::Refused(problem));
    }
    let mut progress = Progress::new(asked.common.verbosity());
    let laid_out = match shared_file::lay_out(mpi, (&mut request, seed), file_guard, &mut progress)? {
        Ok(laid_out) => laid_out,
        Err(problem) => return Ok(Ended::Refused(problem)),
    };
    let shared = share(&mut request, (mpi.rank(), mpi.size()), hosts.place(mpi.rank()), seed);
    // A rank that has no file says why itself.
    let mine = shared.as_ref().ok().map(|&size| (size, size));
    let sizes = broadcast(mpi, from_all(mpi, mine, both)?)?;
    let shared = shared.and_then(|_| sizes.map_or(Ok(()), |(least, most)| check_sizes(least, most)));
    let ready = guard.as_ref().map_err(Clone::clone).and(shared);
    let ready = ready.and_then(|()| directory.as_deref().map(Parts::create).transpose());
    Rank { asked: &asked, request: &request, json: json.as_ref(), mpi, myself }.run(
        ready,
        (guard, laid_out),
        stop,
    )
}

/// The least and the most of two ranges of sizes.
type Sizes = Option<(Option<u64>, Option<u64>)>;

fn both(left: Sizes, right: Sizes) -> Sizes {
    match (left, right) {
        (Some(left), Some(right)) => Some((left.0.min(right.0), left.1.max(right.1))),
        _ => left.or(right),
    }
}

/// What tells this boot of this kernel from others; empty where the kernel does not say.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// One rank.
struct Rank<'a> {
    asked: &'a Measurement,
    request: &'a Request,
    json: Option<&'a JsonPlace>,
    mpi: &'a Mpi,
    myself: Myself,
}

impl Rank<'_> {
    fn run(
        &self,
        ready: Result<Option<Parts>, Problem>,
        (guard, laid_out): (Result<Guard, Problem>, Option<LaidOut>),
        stop: &StopFlag,
    ) -> Result<Ended, RanksError> {
        let parts = ready.as_ref().ok().cloned().flatten();
        let part = OwnPart::new(parts.clone(), self.myself.clone(), stop.clone());
        part.keep_on_signal();
        let keeper = Keeper::new(Progress::new(self.asked.common.verbosity()));
        let mut watch = Stored { keeper, part };
        let mut peers = Lockstep::new(self.mpi, &MonotonicClock, self.myself.clone());
        let mut record = match ready {
            Ok(_) => self.measured(&mut watch, &mut peers),
            Err(problem) => {
                let _ = peers.begin(Err(&problem));
                self.failed(problem)
            }
        };
        watch.keeper.progress.clear();
        record.notes.extend(laid_out.as_ref().map(LaidOut::note));
        record.ranks = vec![self.described(&record)];
        if let Err(error) = watch.part.finish(&record) {
            record.notes.push(format!("the part of this rank could not be kept: {error}"));
        }
        if let Some(problem) = peers.lost().map(RanksError::problem) {
            let shows =
                parts.map(|parts| format!("rdsk show {} shows what was measured", out::word(parts.path())));
            return Ok(Ended::Lost(Problem { hint: shows, ..problem }));
        }
        let merged = self.collected(record, parts.as_ref())?;
        // All have ended, and none needs it any more.
        drop(laid_out);
        let code = match (merged, guard) {
            (Some(merged), Ok(guard)) => self.output(merged, watch.keeper, &guard),
            (Some(merged), Err(problem)) => {
                out::problem(&problem);
                exit::of_record(&merged)
            }
            (None, _) => exit::DONE,
        };
        Ok(Ended::Together(broadcast(self.mpi, code)?))
    }

    fn failed(&self, problem: Problem) -> Record {
        failed_record(self.request.command.clone(), self.request.label.clone(), problem)
    }

    /// Takes the turns of the run. Another thread does, as for a process alone: a signal must not wait for a disk.
    fn measured(&self, watch: &mut Stored, peers: &mut Lockstep<'_>) -> Record {
        let ended = std::thread::scope(|scope| {
            let work = std::thread::Builder::new().name("run".into());
            let run = || panic_hook::catch(|| execute_with(self.request, watch, Some(peers)));
            let work = work
                .spawn_scoped(scope, run)
                .map_err(|error| measure::cannot_start("start a thread for the run", &error))?;
            work.join().expect("a panic is caught inside")
        });
        ended.unwrap_or_else(|problem| {
            rdsk_targets::remove_all_test_files_now();
            self.failed(problem)
        })
    }

    /// What the result says of this rank, now that it has ended.
    fn described(&self, record: &Record) -> RankRun {
        let target = |target: &rdsk_model::Target| match &target.device {
            Some(device) => format!("{} on {}", target.name, device.name),
            None => target.name.clone(),
        };
        let sent = self.mpi.traffic();
        RankRun {
            sent_messages: sent.messages,
            sent_bytes: sent.bytes,
            status: Some(record.status),
            error: record.error.clone(),
            targets: record.targets.iter().map(target).collect(),
            ..self.myself.so_far()
        }
    }

    /// On rank 0 the result of all, whose parts come one after the other and in pieces.
    fn collected(&self, record: Record, parts: Option<&Parts>) -> Result<Option<Record>, RanksError> {
        if self.mpi.rank() > 0 {
            let document = rdsk_report::json(&record, rdsk_report::Compactness::Full);
            send_document(self.mpi, 0, document.as_bytes())?;
            return Ok(None);
        }
        let mut notes = Vec::new();
        // Without a place to keep them, they are kept until they are merged.
        let for_now = parts.is_none().then(tempfile::tempdir).transpose();
        let place =
            match for_now.as_ref().map(|for_now| for_now.as_ref().map(|place| Parts::create(place.path()))) {
                Ok(Some(made)) => made.map_err(|problem| problem.message),
                Ok(None) => parts.cloned().ok_or_else(String::new),
                Err(error) => Err(error.to_string()),
            };
        let mut merge = Merge::new(record).expect("the part of a rank says which one it is");
        for rank in 1..self.mpi.size() {
            let added = match &place {
                Ok(place) => place
                    .receive(self.mpi, rank)?
                    .map_err(|error| error.to_string())
                    .and_then(|path| {
                        record_file::read(&path, "rank", "rank-part").map_err(|problem| problem.message)
                    })
                    .map(|part| merge.add(&part)),
                Err(why) => {
                    let dropped = rdsk_ranks::receive_document(self.mpi, rank, |_| Ok::<(), ()>(()));
                    dropped.map(|_| Err(why.clone()))?
                }
            };
            if let Err(why) = added {
                notes.push(format!("the part of rank {rank} is not in this result: {why}"));
            }
        }
        let mut merged = merge.result();
        merged.notes.extend(notes);
        Ok(Some(merged))
    }

    /// Shows and keeps the result of all.
    fn output(&self, merged: Record, keeper: Keeper, guard: &Guard) -> u8 {
        guard.run_ended();
        let to_stdout = self.json.filter(|place| **place == JsonPlace::Stdout);
        let places = Sink::wanted(JSON, to_stdout, &self.request.targets);
        let places = places.and_then(|sink| {
            Ok((sink, Outputs::prepare(&self.asked.common.forms(), &self.request.targets)?))
        });
        match places {
            Ok((sink, outputs)) => measure::output_record(
                &Arc::new(merged),
                (keeper, guard),
                self.asked,
                (sink.as_ref(), &outputs),
            ),
            Err(problem) => out::failure(&problem),
        }
    }
}

/// Shows progress, and keeps the part of this rank after each of its turns, beside the history.
struct Stored {
    keeper: Keeper,
    part: OwnPart,
}

impl Watch for Stored {
    fn event(&mut self, event: &Event<'_>) {
        self.keeper.event(event);
        self.part.clone().event(event);
    }
}
