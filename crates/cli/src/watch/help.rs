//! The help of `rdsk watch`, but for its flags. Text only.

/// What the help says below the summary.
pub(super) const DETAILS: &str = "On a terminal it is a screen: q ends it, the arrow keys choose a device, p pauses, ? explains. Elsewhere, \
                       and with --plain or --json, it is lines. The first report is of the first interval, not of the time since \
                       boot. With a COMMAND it runs that, ends with its exit code, and prints to standard error which requests \
                       its calls became.";

/// The end of the help.
pub(super) const EXAMPLES: &str = "Examples:
  rdsk watch
      every disk, and every loop device that does something
  rdsk watch sda /srv/data --plain --interval 5s --count 12
      two devices as lines, for a minute
  rdsk watch --json | jq .columns
      each device and interval as JSON
  rdsk watch -- dd if=/dev/zero of=file bs=16k count=1000
      what the command's writes became
  rdsk watch --from before --to after
      one report from two copies of /proc/diskstats and /proc/uptime";
