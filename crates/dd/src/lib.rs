//! What dd does: its operands, its loop of reads and writes, and the lines that it prints, as GNU dd 9 does them. It knows
//! nothing of devices and explains nothing; it hands out what it did and how long each part took.

mod buffer;
mod copier;
mod copy;
mod drop_cache;
mod error;
mod finish;
mod no_cache;
mod number;
mod open;
mod operands;
mod parse;
mod quote;
mod read;
mod side;
mod stamps;
mod start;
mod summary;
mod symbols;
mod wait;
mod write;

pub use buffer::Block;
pub use copier::{BrokenPipe, Copier, Failure, Signals, Terminal};
pub use error::words as errno_words;
pub use finish::{Finished, Times};
pub use open::{DiskNode, NotOpened, Opening, is_block_device};
pub use operands::{Amount, Conversions, Flags, Operands, Status};
pub use parse::{OperandError, parse};
pub use quote::{Charset, file as quoted_file};
pub use side::{CallTimes, Calls, OpenFile, Side};
pub use stamps::{TickRate, TickStart};
pub use summary::Counts;
