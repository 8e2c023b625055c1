//! The parts of a run of several ranks: each rank keeps its own in one directory, `rank-3.json`, after each of its turns, so that a rank
//! that ends without a word leaves what it has measured. They are merged into one result when they are read. It replaces nothing but
//! such parts.

use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_ranks::Merge;
use rdsk_units::printable;
use std::path::{Path, PathBuf};

/// The name of a part.
fn name(rank: u32) -> String {
    format!("rank-{rank}.json")
}

/// The parts of a directory, by their ranks.
fn part_files(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let rank = |path: PathBuf| {
        let rank = path.file_name()?.to_str()?.strip_prefix("rank-")?.strip_suffix(".json")?.parse().ok()?;
        (path.file_name()?.to_str()? == name(rank)).then_some((rank, path))
    };
    let mut files: Vec<(u32, PathBuf)> = entries.filter_map(|entry| rank(entry.path())).collect();
    files.sort();
    files
}

/// Whether a directory holds parts.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir() && !part_files(path).is_empty()
}

/// The result of the parts of a directory; those that are missing are named in it.
///
/// # Errors
/// Those of `read`, and where the parts are of different runs.
pub(crate) fn merged(
    directory: &Path,
    asked: &str,
    code: &'static str,
    read: impl Fn(&Path) -> Result<Record, Problem>,
) -> Result<Record, Problem> {
    let mut merge: Option<Merge> = None;
    for (_, path) in part_files(directory) {
        let part = read(&path)?;
        let is_added = match &mut merge {
            Some(merge) => merge.add(&part),
            None => {
                merge = Merge::new(part);
                merge.is_some()
            }
        };
        if !is_added {
            let shown = printable(&path.to_string_lossy());
            let message = format!("{asked} {shown}: it is no part of the same run as the others there");
            return Err(Problem::new(
                ProblemKind::Usage,
                code,
                message,
                "name a directory with the parts of one run",
            ));
        }
    }
    let none = || {
        let shown = printable(&directory.to_string_lossy());
        Problem::new(
            ProblemKind::Usage,
            code,
            format!("{asked} {shown}: it holds no part of a run"),
            "name its directory",
        )
    };
    merge.map(Merge::result).ok_or_else(none)
}

#[cfg(feature = "mpi")]
pub(crate) use store::Parts;

#[cfg(feature = "mpi")]
mod store {
    use super::{Problem, ProblemKind, Record, name, printable};
    use rdsk_ranks::{Ranks, RanksError, receive_document};
    use std::io::{self, Write as _};
    use std::path::{Path, PathBuf};
    use tempfile::NamedTempFile;

    /// The directory in which a rank keeps parts.
    #[derive(Clone, Debug)]
    pub(crate) struct Parts(PathBuf);

    impl Parts {
        /// Creates the directory, unless it is there.
        ///
        /// # Errors
        /// Where it cannot be created, or holds parts of an earlier run.
        pub(crate) fn create(directory: &Path) -> Result<Self, Problem> {
            let shown = printable(&directory.to_string_lossy());
            let refused = |why: String| {
                let message = format!("cannot keep the parts of the ranks in {shown}: {why}");
                Problem::new(
                    ProblemKind::Refused,
                    "ranks-place",
                    message,
                    "name another directory after --json",
                )
            };
            if super::is_directory(directory) {
                return Err(refused("it holds those of an earlier run".into()));
            }
            std::fs::create_dir_all(directory).map_err(|error| refused(error.to_string()))?;
            Ok(Self(directory.to_owned()))
        }

        /// Its path.
        pub(crate) fn path(&self) -> &Path {
            &self.0
        }

        /// Puts a part there in one step.
        ///
        /// # Errors
        /// Where it cannot be written.
        pub(crate) fn put(&self, rank: u32, part: &Record) -> io::Result<()> {
            let document = rdsk_report::json(part, rdsk_report::Compactness::Full);
            let mut file = NamedTempFile::new_in(&self.0)?;
            file.write_all(document.as_bytes())?;
            file.persist(self.0.join(name(rank)))?;
            Ok(())
        }

        /// Receives the part of another rank, piece by piece, and gives its path.
        ///
        /// # Errors
        /// Where the rank is gone; where the part cannot be written.
        pub(crate) fn receive(
            &self,
            ranks: &dyn Ranks,
            from: u32,
        ) -> Result<io::Result<PathBuf>, RanksError> {
            let mut file = NamedTempFile::new_in(&self.0);
            let kept = receive_document(ranks, from, |piece| match &mut file {
                Ok(file) => file.write_all(piece),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            })?;
            let path = self.0.join(name(from));
            Ok(kept.and_then(|()| {
                file?.persist(&path)?;
                Ok(path)
            }))
        }
    }
}
