//! A file that no rank has yet: rank 0 lays it out, the others wait for it and see that it is the same, and it is gone at the end. A file
//! that is there is never touched. mpirun may kill rank 0 without a warning, so that a process of its own waits for the end of rank 0.

use super::share::refused;
use crate::measure::cannot_start;
use crate::measuring::Measurement;
use crate::progress::Progress;
use rdsk_experiment::Request;
use rdsk_model::{Event, Experiment, Op, Problem, Watch as _};
use rdsk_ranks::{Ranks, RanksError, agree, all_gather_is_true};
use rdsk_targets::{
    Overwrite, Roots, SharedFile, Sharing, TargetError, TestFileOptions, TestFileProgress, TestFileSize,
    await_laid_out, examine, may_be_laid_out,
};
use rdsk_units::{Bytes, printable};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first word of the process that removes the file of a rank 0 that was killed. No help shows it.
pub(crate) const GUARD: &str = "remove-after";

/// Waits for the end of the process at the other end of standard input, and removes the file that it has laid out.
pub(crate) fn guard() {
    // Where that fails, the file stays: no output is left to say so.
    let _ = rdsk_targets::remove_after(std::io::stdin().lock());
}

/// A process that waits for the end of this one. Dropped, it ends: the file is gone by then.
pub(super) struct Guard(Child);

impl Guard {
    /// Started where the one target is not there and may be laid out. Before MPI is, whose connections it would keep open.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn for_missing(asked: &Measurement) -> Result<Option<Self>, Problem> {
        let common = &asked.common;
        if common.size.is_none() || missing(&common.targets, &Roots::default()).is_none() {
            return Ok(None);
        }
        let started = std::env::current_exe().and_then(|program| {
            // Of a group of its own, which no signal of a terminal or of mpirun reaches, and without an output that they wait for.
            let mut guard = Command::new(program);
            guard.arg(GUARD).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            guard.process_group(0).spawn()
        });
        started
            .map(|guard| Some(Self(guard)))
            .map_err(|error| cannot_start("start a process that removes the file", &error))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It ends with what it reads.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// No file is laid out without its guard.
fn no_guard() -> Problem {
    cannot_start("reach the process that removes the file", &ErrorKind::BrokenPipe.into())
}

/// A file that rank 0 has laid out, removed when dropped.
pub(super) struct LaidOut {
    // Removed before its guard learns of the end.
    file: SharedFile,
    _guard: Guard,
}

impl LaidOut {
    fn new(
        path: &Path,
        options: &TestFileOptions,
        (roots, mut guard): (&Roots, Guard),
        watch: &mut dyn FnMut(TestFileProgress),
    ) -> Result<Self, Problem> {
        let stdin = guard.0.stdin.as_mut().ok_or_else(no_guard)?;
        let file =
            SharedFile::lay_out(path, options, roots, stdin, watch).map_err(|error| error.problem())?;
        Ok(Self { file, _guard: guard })
    }

    /// What the result says of it.
    pub(super) fn note(&self) -> String {
        let (path, bytes) = (printable(&self.file.path().to_string_lossy()), Bytes(self.file.bytes()));
        format!("{path} was not there: rank 0 laid it out ({bytes}) and removed it at the end")
    }
}

/// Lays out the file of a request where all ranks lack it; on rank 0 the file, which is removed with what is returned. The problem is the
/// same on all.
///
/// # Errors
/// When a rank is gone.
pub(super) fn lay_out(
    ranks: &dyn Ranks,
    (request, seed): (&mut Request, u64),
    guard: Option<Guard>,
    progress: &mut Progress,
) -> Result<Result<Option<LaidOut>, Problem>, RanksError> {
    let mine = missing(&request.targets, &request.roots);
    // Where some rank has it, those that lack it say so themselves.
    let (true, Some(name)) = (all_gather_is_true(ranks, mine.is_some())?, mine) else { return Ok(Ok(None)) };
    let path = Path::new(&name);
    let Some(bytes) = request.size_bytes else {
        let what = format!("{}, which is not there, without its size", printable(&name));
        return Ok(Err(refused(&what, "add --size: rank 0 lays it out, and removes it at the end")));
    };
    let options = TestFileOptions {
        size: TestFileSize::Fixed(bytes),
        seed,
        is_rewritten: writes(request),
        stop: request.stop.clone(),
    };
    let laid_out = (ranks.rank() == 0).then(|| {
        let guard = guard.ok_or_else(no_guard)?;
        let laid_out = LaidOut::new(path, &options, (&request.roots, guard), &mut |made| {
            let (done_bytes, total_bytes, bytes_per_s) =
                (made.done_bytes, made.total_bytes, made.bytes_per_s);
            progress.event(&Event::Creating { done_bytes, total_bytes, bytes_per_s });
        });
        progress.clear();
        laid_out
    });
    let laid_out = match agree(ranks, laid_out.transpose())? {
        Ok(laid_out) => laid_out,
        Err(problem) => return Ok(Err(problem)),
    };
    let shows = await_laid_out(path, bytes, &options).map_err(|error| error.problem());
    Ok(agree(ranks, shows)?.map(|()| {
        request.permission.sharing = Sharing::Ranks;
        if writes(request) {
            request.permission.overwrite = Overwrite::Allowed;
        }
        laid_out
    }))
}

/// The one target, where it is the name of a file that is not there.
fn missing(targets: &[String], roots: &Roots) -> Option<String> {
    let [name] = targets else { return None };
    let is_missing = matches!(examine(name, roots), Err(TargetError::NotFound { .. }));
    (is_missing && !name.ends_with('/') && may_be_laid_out(Path::new(name))).then(|| name.clone())
}

/// Whether the run writes to it.
fn writes(request: &Request) -> bool {
    let options = &request.options;
    let may_write = options.ops.as_ref().is_none_or(|ops| ops.contains(&Op::Write));
    may_write && request.experiments.iter().all(|asked| matches!(asked, Experiment::Load | Experiment::Scale))
}
