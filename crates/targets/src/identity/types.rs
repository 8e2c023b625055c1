//! The names of a device, those that distinguish it from every other and those that do not, and how a word matches them.

use serde::Serialize;

/// Where an identity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityKind {
    /// The serial number.
    Serial,
    /// The World Wide Name.
    Wwn,
    /// The UUID of an NVMe namespace.
    #[serde(rename = "nvme-uuid")]
    NamespaceUuid,
    /// The NGUID of an NVMe namespace.
    #[serde(rename = "nvme-nguid")]
    NamespaceNguid,
    /// The EUI-64 of an NVMe namespace.
    #[serde(rename = "nvme-eui")]
    NamespaceEui,
    /// Volume group and logical volume, as in `vg/lv`.
    Volume,
    /// The name in `/dev/mapper`.
    #[serde(rename = "dm-name")]
    MapperName,
    /// `dm/uuid`.
    #[serde(rename = "dm-uuid")]
    MapperUuid,
    /// The name of a software RAID, as in `host:name` or `/dev/md/name`.
    #[serde(rename = "md-name")]
    ArrayName,
    /// The UUID of a software RAID.
    #[serde(rename = "md-uuid")]
    ArrayUuid,
    /// The UUID of a partition.
    #[serde(rename = "partuuid")]
    PartitionUuid,
    /// The UUID of the device behind a bcache.
    BcacheUuid,
    /// Pool and image of an rbd, as in `pool/image`.
    RbdImage,
    /// Resource and volume of DRBD, as in `r0/0`: the name in `/dev/drbd/by-res`.
    DrbdVolume,
    /// The dataset of a zvol, as in `tank/vm`: the name in `/dev/zvol`.
    Zvol,
    /// A name in `/dev/disk/by-id`, without the directory.
    ById,
    /// The backing file of a loop device, as the kernel has it.
    BackingFile,
}

impl IdentityKind {
    /// Whether the hardware itself has it.
    pub(crate) const fn is_of_hardware(self) -> bool {
        matches!(
            self,
            Self::Serial | Self::Wwn | Self::NamespaceUuid | Self::NamespaceNguid | Self::NamespaceEui
        )
    }

    /// Whether it belongs to the device, so that another host that has the same device sees the same; a host may give the others to any
    /// device: `mpatha`, `vg0/data`.
    pub const fn is_of_device(self) -> bool {
        self.is_of_hardware()
            || matches!(
                self,
                Self::MapperUuid
                    | Self::ArrayUuid
                    | Self::PartitionUuid
                    | Self::BcacheUuid
                    | Self::RbdImage
                    | Self::BackingFile
            )
    }

    /// The kind as a noun, for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Serial => "serial number",
            Self::Wwn => "WWN",
            Self::NamespaceUuid => "namespace UUID",
            Self::NamespaceNguid => "namespace NGUID",
            Self::NamespaceEui => "namespace EUI-64",
            Self::Volume => "logical volume",
            Self::MapperName => "device mapper name",
            Self::MapperUuid => "device mapper UUID",
            Self::ArrayName => "array name",
            Self::ArrayUuid => "array UUID",
            Self::PartitionUuid => "partition UUID",
            Self::BcacheUuid => "bcache UUID",
            Self::RbdImage => "rbd image",
            Self::DrbdVolume => "DRBD volume",
            Self::Zvol => "zvol",
            Self::ById => "by-id name",
            Self::BackingFile => "backing file",
        }
    }
}

/// One identity. A partition also has the identities of its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Where it comes from.
    pub kind: IdentityKind,
    /// The word that must follow `--destroy`; untrusted text.
    pub text: String,
}

/// A name of a device that is not an identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoIdentity {
    /// The name.
    #[serde(flatten)]
    pub identity: Identity,
    /// Why it identifies nothing: `sdc has it too`; safe to print.
    pub why: String,
}

/// The names of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Those that distinguish it from every other, the easiest to type first.
    pub(crate) identities: Vec<Identity>,
    pub(crate) no_identities: Vec<NoIdentity>,
}

/// What is compared: letters and digits without the prefix of the kind; sysfs and udev write the same name differently.
pub(super) fn key(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    let bare = ["naa.", "eui.", "uuid.", "t10.", "0x"].iter().find_map(|prefix| text.strip_prefix(prefix));
    bare.unwrap_or(&text).chars().filter(char::is_ascii_alphanumeric).collect()
}

impl Identity {
    /// What of it is compared.
    pub fn key(&self) -> String {
        key(&self.text)
    }

    /// Whether the user's word is this identity: exactly, except that UUIDs of arrays, partitions and bcache may be in
    /// capitals, and those of arrays in the formats of sysfs and of mdadm. It may be preceded by the directory under
    /// `/dev`.
    pub fn is_named_by(&self, word: &str) -> bool {
        let below = |prefix: &str| word.strip_prefix(prefix).unwrap_or(word);
        match self.kind {
            IdentityKind::ById => below("/dev/disk/by-id/") == self.text,
            IdentityKind::Volume => below("/dev/") == self.text,
            IdentityKind::MapperName => below("/dev/mapper/") == self.text,
            IdentityKind::ArrayName => below("/dev/md/") == self.text,
            IdentityKind::RbdImage => below("/dev/rbd/") == self.text,
            IdentityKind::DrbdVolume => below("/dev/drbd/by-res/") == self.text,
            IdentityKind::Zvol => below("/dev/zvol/") == self.text,
            IdentityKind::BcacheUuid => word.eq_ignore_ascii_case(&self.text),
            IdentityKind::PartitionUuid => {
                let word = below("PARTUUID=");
                let word = word.strip_prefix("/dev/disk/by-partuuid/").unwrap_or(word);
                word.eq_ignore_ascii_case(&self.text)
            }
            IdentityKind::ArrayUuid => {
                let digits = |text: &str| text.to_ascii_lowercase().replace([':', '-'], "");
                digits(word) == digits(&self.text)
            }
            _ => word == self.text,
        }
    }
}
