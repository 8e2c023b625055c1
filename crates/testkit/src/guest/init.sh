#!/bin/sh
# The first process of the guest: mounts what a system has, loads modules, then runs the scripts that come over the port,
# one after the other, and hands back the files that each left in its directory.
export PATH=/usr/sbin:/usr/bin:/guest/busybox HOME=/ LC_ALL=C NO_COLOR=1 RDSK_HISTORY= DM_DISABLE_UDEV=1
/usr/bin/busybox mkdir -p /guest/busybox
/usr/bin/busybox --install -s /guest/busybox
mkdir -p /proc /sys /dev /run /tmp /mnt /var/lock
mount -t proc proc /proc
# What is not asked for is not written either: no scenario waits for it, and each round takes the processor from all others.
echo 0 > /proc/sys/vm/dirty_writeback_centisecs
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
mkdir -p /run/lock /run/lvm /run/cryptsetup /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug
mount -t cgroup2 cgroup /sys/fs/cgroup
ln -sf /proc/self/mounts /etc/mtab
ln -s /proc/self/fd /dev/fd
ip link set lo up
load() { insmod "$@" || echo "guest: module $1 was not loaded"; }
# A part that this processor lacks (crc32c-intel) has a plain one beside it.
part() { insmod "$1" 2>/dev/null; }
. /guest/load
mount -t configfs config /sys/kernel/config 2>/dev/null

# A guest that nobody ends ends by itself.
( sleep "$(cat /guest/limit)"; echo "guest: the time of the boot is over"; poweroff -f ) &
echo $! > /run/keep
cat /proc/mounts > /run/mounts

port=
for attempt in $(seq 100); do
    for node in /sys/class/virtio-ports/*; do
        [ "$(cat "$node/name" 2>/dev/null)" = rdsk ] && port=/dev/${node##*/}
    done
    [ -n "$port" ] && [ -e "$port" ] && break
    sleep 0.05
done
exec 3<>"$port"
echo "UP $(cut -d' ' -f1 /proc/uptime)" >&3

while read -r word name limit bytes <&3; do
    [ "$word" = RUN ] || break
    rm -rf /run/scenario
    mkdir -p /run/scenario/out
    head -c "$bytes" <&3 > /run/scenario/script
    start=$(cut -d' ' -f1 /proc/uptime)
    setsid sh /guest/scenario.sh > /run/scenario/out/stdout 2> /run/scenario/out/log 9>&3 3>&- < /dev/null &
    pid=$!
    # Until it has executed setsid, it has no group.
    ( sleep "$limit"; : > /run/scenario/late; kill -9 -$pid || kill -9 $pid ) 3>&- &
    watch=$!
    wait $pid 2>/dev/null
    code=$?
    kill $watch 2>/dev/null
    kill -9 -$pid 2>/dev/null
    [ -e /run/scenario/late ] && : > /run/scenario/out/late
    end=$(cut -d' ' -f1 /proc/uptime)
    sh /guest/clean.sh > /run/scenario/out/unclean 2> /dev/null 3>&- < /dev/null
    [ $code = 0 ] || dmesg | tail -n 30 > /run/scenario/out/dmesg
    for file in /run/scenario/out/*; do
        [ -f "$file" ] || continue
        size=$(stat -c %s "$file")
        echo "FILE ${file##*/} $size" >&3
        dd if="$file" bs=32k status=none >&3
    done
    echo "END $code $start $end" >&3
done
sync
poweroff -f
