# Runs one scenario. A command that fails ends it, and so does a variable that nobody set; the log shows each command.
OUT=/run/scenario/out
cd /tmp
. /guest/prelude.sh
set -euo pipefail
. /guest/disks.sh
PS4='+ '
set -x
. /run/scenario/script
