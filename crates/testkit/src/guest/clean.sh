# Takes down what a scenario left, and prints what it could not take down. Mostly nothing is left, and then this starts no program:
# each takes long in a guest.
. /guest/programs.sh
read -r keep < /run/keep
each() {
    local at
    for at in $2; do
        [ ! -e "$at" ] || $1 "$at"
    done
}
# there PATH…: whether one of them exists. A pattern that nothing matches stands for itself.
there() {
    local at
    for at; do
        [ ! -e "$at" ] && [ ! -L "$at" ] || return 0
    done
    return 1
}
stop_process() {
    local pid="${1#/proc/}" text= parent=
    [ "$pid" != 1 ] && [ "$pid" != $$ ] && [ "$pid" != "$keep" ] || return
    # A thread of the kernel has no words.
    { read -r text < "$1/cmdline"; } 2>/dev/null
    [ -n "$text" ] || return
    # The sleep of the guest's own end. The parent is the second word after the name, which may hold anything.
    { read -r parent < "$1/stat"; } 2>/dev/null
    parent=${parent##*) }
    parent=${parent#* }
    [ "${parent%% *}" != "$keep" ] || return
    kill -9 "$pid"
}
stop_array() { mdadm --quiet --stop "/dev/${1##*/}"; }
stop_bcache() { echo 1 > "$1"; }
reset_zram() { echo 1 > "$1/reset"; }
delete_loop() {
    local at="${1%/loop}"
    losetup -d "/dev/${at##*/}"
}
write_one() { echo 1 > "$1"; }
write_zero() { echo 0 > "$1"; }
# Connections to an NVMe target of the guest itself, and what that exports, which keeps devices from going.
end_exports() {
    local target=/sys/kernel/config/nvmet
    each write_one "/sys/class/nvme/*/delete_controller"
    there $target/subsystems/* || return 0
    each rm "$target/ports/*/subsystems/*"
    each write_zero "$target/subsystems/*/namespaces/*/enable"
    each rmdir "$target/subsystems/*/namespaces/* $target/subsystems/* $target/ports/*"
}
# Leaves in `mounts` what is mounted besides the guest's own, the last first.
look_for_mounts() {
    local place
    mounts=
    while read -r _ place _; do
        case "$own" in
            *" $place "*) ;;
            *) mounts="$place $mounts" ;;
        esac
    done < /proc/mounts
}
# The list of swap begins with a line of titles.
has_swap() {
    local line
    { read -r line && read -r line; } < /proc/swaps
}
has_devices() { there /sys/block/*/holders/* /sys/block/md[0-9]* /sys/block/dm-* /sys/block/loop*/loop; }

own=" "
while read -r _ place _; do
    own="$own$place "
done < /run/mounts
cd /
each stop_process "/proc/[0-9]*"
end_exports
# The kernel removes devices in the background, and a process that was killed has them until it has gone.
pass=0
while [ $pass -lt 50 ]; do
    ! has_swap || swapoff -a
    look_for_mounts
    for at in $mounts; do
        umount "$at" || umount -l "$at"
    done
    each stop_bcache "/sys/block/bcache*/bcache/stop"
    each stop_bcache "/sys/fs/bcache/*/stop"
    if there /sys/block/dm-*; then
        [ ! -x /usr/sbin/lvm ] || lvm vgchange -an -q -q
        dmsetup remove_all
    fi
    each stop_array "/sys/block/md[0-9]*"
    each delete_loop "/sys/block/loop*/loop"
    each reset_zram "/sys/block/zram*"
    look_for_mounts
    has_devices || [ -n "$mounts" ] || break
    sleep 0.2
    pass=$((pass + 1))
done
! there /dev/disk /tmp/* /mnt/* || rm -rf /dev/disk /tmp/* /mnt/*
look_for_mounts
for at in $mounts; do
    echo "still mounted: $at"
done
! has_swap || tail -n +2 /proc/swaps | sed 's/^/still swap: /'
for at in /sys/block/*/holders/* /sys/block/md[0-9]* /sys/block/dm-* /sys/block/loop*/loop; do
    ! there "$at" || echo "still there: $at"
done
