# Takes down what a scenario left, and prints what it could not take down.
. /guest/programs.sh
keep=$(cat /run/keep)
each() {
    local at
    for at in $2; do
        [ ! -e "$at" ] || $1 "$at"
    done
}
stop_process() {
    local pid="${1#/proc/}" text=
    [ "$pid" != 1 ] && [ "$pid" != $$ ] && [ "$pid" != "$keep" ] || return
    # A thread of the kernel has no words.
    { read -r text < "$1/cmdline"; } 2>/dev/null
    [ -n "$text" ] || return
    # The sleep of the guest's own end.
    ! grep -q "^PPid:[[:space:]]*$keep\$" "$1/status" 2>/dev/null || return
    kill -9 "$pid"
}
stop_array() { mdadm --quiet --stop "/dev/${1##*/}"; }
stop_bcache() { echo 1 > "$1"; }
reset_zram() { echo 1 > "$1/reset"; }
delete_loop() { losetup -d "/dev/${1##*/}"; }
mounts_left() { awk '{print $2}' /proc/mounts | tac | grep -vxFf /run/mount-points; }

awk '{print $2}' /run/mounts > /run/mount-points
cd /
each stop_process "/proc/[0-9]*"
# The kernel removes devices in the background, and a process that was killed has them until it has gone.
for pass in $(seq 50); do
    [ "$(wc -l < /proc/swaps)" = 1 ] || swapoff -a
    for at in $(mounts_left); do
        umount "$at" || umount -l "$at"
    done
    [ ! -e /dev/bcache0 ] || each stop_bcache "/sys/block/bcache*/bcache/stop"
    each stop_bcache "/sys/fs/bcache/*/stop"
    if [ -n "$(ls -d /sys/block/dm-* 2>/dev/null)" ]; then
        [ ! -x /usr/sbin/lvm ] || lvm vgchange -an -q -q
        dmsetup remove_all
    fi
    each stop_array "/sys/block/md[0-9]*"
    each delete_loop "$(ls -d /sys/block/loop*/loop 2>/dev/null | sed 's,/loop$,,')"
    each reset_zram "/sys/block/zram*"
    [ -n "$(ls -d /sys/block/*/holders/* /sys/block/md[0-9]* /sys/block/dm-* /sys/block/loop*/loop 2>/dev/null)$(mounts_left)" ] || break
    sleep 0.2
done
rm -rf /dev/disk /tmp/* /mnt/*
{
    mounts_left | sed 's/^/still mounted: /'
    tail -n +2 /proc/swaps | sed 's/^/still swap: /'
    ls -d /sys/block/*/holders/* /sys/block/md[0-9]* /sys/block/dm-* /sys/block/loop*/loop 2>/dev/null | sed 's/^/still there: /'
} || :
