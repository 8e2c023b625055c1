//! Flags that allow writing. They allow nothing by themselves: the crate `targets` judges.

use super::{Flag, One, SWITCH, Switch, on, value};
use crate::subcommand::MEASURING;
use rdsk_targets::Overwrite;

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "destroy",
        value: One("IDENTITY", |args, text| {
            value::text(text).map(|identity| args.permission.destroy = Some(identity.to_owned()))
        }),
        uses: &[on(
            MEASURING,
            "Allow writing to the block device with this identity, which destroys its data",
            "",
        )],
        details: "IDENTITY is a name that stays with the device whatever the order of disks: serial number, WWN, UUID, \
                  vg/lv or backing file; rdsk info shows it. A kernel name such as /dev/sdb is not accepted.",
        example: "/dev/sdb --destroy WD-WCANK5",
        ..SWITCH
    },
    Flag {
        name: "overwrite",
        value: Switch(|args| args.permission.overwrite = Overwrite::Allowed),
        uses: &[on(MEASURING, "Allow overwriting the regular file that is the target", "")],
        example: "disk.img --overwrite",
        ..SWITCH
    },
];

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
