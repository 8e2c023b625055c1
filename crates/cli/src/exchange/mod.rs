//! Records in other forms and from other programs: `rdsk export`, `rdsk import`, and the flags of other commands that write such
//! forms. It looks at no target.

mod export;
mod import;
mod outputs;

pub(crate) use export::{Export, export};
pub(crate) use import::{Import, import};
pub(crate) use outputs::Outputs;
