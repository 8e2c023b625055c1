//! dd's loop, with every call timed: the operands that concern I/O, the reads and writes, the counts. It knows nothing of devices and
//! explains nothing; it hands out what it did and how long each part took.

mod copier;
mod open;
mod operands;
mod parse;
mod side;
mod signals;
mod summary;
mod transfer;

pub use copier::{Copier, Finished, Gate, Terminal, Times};
pub use open::Opening;
pub use operands::{Amount, Conversions, Flags, Operands, Status};
pub use parse::{OperandError, parse};
pub use side::{Calls, LongCall, Side};
pub use signals::{Failure, Signals};
pub use summary::{Counts, lines};

use rustix::io::Errno;

/// The kernel's words for an error: `No space left on device`, without the number that Rust adds.
pub fn errno_words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.rfind(" (os error ").map_or(text.clone(), |end| text[..end].to_owned())
}
