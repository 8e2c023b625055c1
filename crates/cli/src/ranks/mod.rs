//! Several processes that measure as one, which mpirun starts. The program that is built without MPI refuses there: each process would
//! measure for itself, and their figures would be no figure of all.

#[cfg(feature = "mpi")]
mod device;
#[cfg(feature = "mpi")]
mod hosts;
#[cfg(feature = "mpi")]
mod job;
#[cfg(feature = "mpi")]
mod own_part;
pub(crate) mod parts;
#[cfg(feature = "mpi")]
mod share;
#[cfg(feature = "mpi")]
mod shared_file;

#[cfg(feature = "mpi")]
pub(crate) use shared_file::{GUARD, guard};

use crate::measuring::Measurement;
use rdsk_model::Problem;
#[cfg(not(feature = "mpi"))]
use rdsk_model::ProblemKind;

/// What a launcher of MPI says: how many processes there are, by the variable of Open MPI, of PMI (MPICH, Intel MPI) and of a step of Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Whether a launcher started more processes than this one; `variable` reads the environment.
fn is_one_of_several(variable: impl Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    SIZES.iter().any(|name| number(name).is_some_and(|size| size > 1))
        || number("PMIX_RANK").is_some_and(|rank| rank > 0)
}

fn was_launched() -> bool {
    is_one_of_several(|name| std::env::var(name).ok())
}

/// Measures as one of several ranks and gives the exit code; `None` for a process alone.
///
/// # Errors
/// This program is built without MPI, and there are several.
#[cfg(not(feature = "mpi"))]
pub(crate) fn measure(_asked: &Measurement, _command: &[String]) -> Result<Option<u8>, Problem> {
    if was_launched() {
        return Err(Problem::new(
            ProblemKind::Refused,
            "no-mpi",
            "mpirun started several processes, and this rdsk is built without MPI: each would measure for itself",
            "start rdsk-mpi instead (docs/mpi.md), or rdsk without mpirun",
        ));
    }
    Ok(None)
}

/// Measures as one of several ranks and gives the exit code; `None` for a process alone.
///
/// # Errors
/// MPI cannot be started.
#[cfg(feature = "mpi")]
pub(crate) fn measure(asked: &Measurement, command: &[String]) -> Result<Option<u8>, Problem> {
    if was_launched() { job::measure(asked, command) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_known_by_its_variables() {
        let launched = |set: &[(&str, &str)]| {
            is_one_of_several(|name| Some(set.iter().find(|(known, _)| *known == name)?.1.to_owned()))
        };
        for alone in [&[][..], &[("OMPI_COMM_WORLD_SIZE", "1")], &[("PMIX_RANK", "0")], &[("PMI_SIZE", "x")]]
        {
            assert!(!launched(alone), "{alone:?}");
        }
        // A batch script of Slurm has tasks, and is none of them.
        assert!(!launched(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]));
        for name in SIZES {
            assert!(launched(&[(name, "4")]), "{name}");
        }
        assert!(launched(&[("PMIX_RANK", "3")]));
    }
}
