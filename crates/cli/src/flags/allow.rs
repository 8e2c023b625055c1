//! Flags that allow writing. They allow nothing by themselves: the room `targets` judges.

use super::{Flag, one, switch, value, valued};
use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};
use rdsk_targets::Overwrite;

/// `--destroy`
pub(super) struct Destroy;

impl Flag for Destroy {
    fn name(&self) -> &'static str {
        "destroy"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "IDENTITY",
            "Destroy the data of this block device by writing. IDENTITY is what it is called whatever the \
             order of disks: serial number, WWN, UUID, vg/lv, backing file; rdsk info shows it",
        )
        .value_parser(|text: &str| value::text(text).map(str::to_owned))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.permission.destroy = one(matches, self.name());
    }
}

/// `--overwrite`
pub(super) struct OverwriteFile;

impl Flag for OverwriteFile {
    fn name(&self) -> &'static str {
        "overwrite"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Overwrite the contents of the regular file that is the target")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.permission.overwrite = Overwrite::Allowed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use rdsk_targets::Overwrite;

    #[test]
    fn destroy() {
        let permission = parsed(&["run", "/dev/x", "--destroy", "WD-WCANK5"]).unwrap().permission;
        assert_eq!(permission.destroy.as_deref(), Some("WD-WCANK5"));
        refuses("run", "--destroy", &["", " ", "--json"]);
    }

    #[test]
    fn overwrite() {
        assert_eq!(parsed(&["run", "f"]).unwrap().permission.overwrite, Overwrite::Refused);
        assert_eq!(parsed(&["run", "f", "--overwrite"]).unwrap().permission.overwrite, Overwrite::Allowed);
        assert!(parsed(&["run", "--overwrite=yes"]).unwrap_err().message.contains("--overwrite"));
    }
}
