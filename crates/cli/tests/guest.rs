//! rdsk on the devices that people use, in a virtual machine: md, LVM, device mapper, NVMe, SCSI. Each test is a group of
//! scenarios that share one boot: `core_set` what the suite tries, the others what `cargo xtask campaign guest` does. docs/guest.md
//! explains the guest and how to add a scenario.

#[path = "guest/bio_tree.rs"]
mod bio_tree;
#[path = "guest/core_set.rs"]
mod core_set;
#[path = "guest/faults.rs"]
mod faults;
#[path = "guest/field.rs"]
mod field;
#[path = "guest/identity.rs"]
mod identity;
#[path = "guest/refusals/in_use.rs"]
mod in_use;
#[path = "guest/refusals/labels.rs"]
mod labels;
#[path = "guest/refusals/names.rs"]
mod names;
#[path = "guest/refusals/openers.rs"]
mod openers;
#[path = "guest/refusal.rs"]
mod refusal;
#[path = "guest/refusals.rs"]
mod refusals;
#[path = "guest/refusals/sideways.rs"]
mod sideways;
#[path = "guest/stacks.rs"]
mod stacks;
#[path = "guest/stripe.rs"]
mod stripe;
#[path = "guest/thin.rs"]
mod thin;
#[path = "guest/trials.rs"]
mod trials;

use rdsk_testkit::guest::Guest;

/// A guest with the built rdsk in it, or with the program that `RDSK_GUEST_PROGRAM` names, such as the static one.
fn guest() -> Guest {
    let named = std::env::var("RDSK_GUEST_PROGRAM");
    Guest::with_rdsk(named.as_deref().unwrap_or(env!("CARGO_BIN_EXE_rdsk")))
}
