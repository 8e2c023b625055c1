# What every scenario has at hand. No udev runs here, so links in /dev/disk are made by `by_id` and its like, and the tools
# of device mapper and LVM make their nodes themselves (DM_DISABLE_UDEV, /etc/lvm/lvm.conf).
. /guest/modules.sh
. /guest/programs.sh

# call NAME COMMAND…: runs a command whose failure is a result; what it said and its code are kept under NAME.
call() {
    local name="$1" code=0 start
    shift
    read -r start _ < /proc/uptime
    "$@" > "$OUT/$name.out" 2> "$OUT/$name.err" 9>&- || code=$?
    local end
    read -r end _ < /proc/uptime
    echo "$name $code $start $end" >> "$OUT/calls"
}

# fact NAME WORD…: hands a value back.
fact() {
    local name="$1"
    shift
    echo "$*" > "$OUT/$name.fact"
}

# disk SERIAL [N]: the node of the Nth disk with this serial number.
disk() {
    local at text left="${2:-1}"
    for at in /sys/block/*; do
        text=
        if [ -e "$at/serial" ]; then
            read -r text < "$at/serial" || :
        elif [ -e "$at/device/serial" ]; then
            read -r text < "$at/device/serial" || :
        elif [ -e "$at/device/vpd_pg80" ]; then
            text=$(tail -c +5 "$at/device/vpd_pg80" | tr -d '\0 ')
        fi
        [ "$text" = "$1" ] || continue
        left=$((left - 1))
        [ "$left" -gt 0 ] || { echo "/dev/${at##*/}"; return 0; }
    done
    echo "guest: there is no disk $1" >&2
    return 1
}

# hash DEVICE…: one hash over what lies on the devices now. The host knows the content of whole disks, and is quicker.
hash() {
    local device name names= here= answer
    sync
    for device; do
        here=1
        for name in $DISKS; do
            eval "[ \"\$$name\" = \"$device\" ]" || continue
            names="$names $name"
            here=
            break
        done
        [ -z "$here" ] || break
    done
    if [ -z "$here" ]; then
        echo "HASH$names" >&9
        read -r answer <&9
        echo "$answer"
        return
    fi
    for device; do
        dd if="$device" bs=1M iflag=direct status=none
    done | md5sum | cut -d' ' -f1
}

# fresh DEVICE…: nothing lies on the devices any more, and they have no partitions.
fresh() {
    local device
    for device; do
        blkdiscard -z -f "$device" 2>/dev/null || dd if=/dev/zero of="$device" bs=1M status=none 2>/dev/null || :
        blockdev --flushbufs "$device"
        [ -z "$(ls -d "/sys/block/${device##*/}/${device##*/}"* 2>/dev/null)" ] || blockdev --rereadpt "$device"
    done
}

# settle MOUNT…: a mounted filesystem writes all that it has to write, so that its device stands still.
settle() {
    local mount
    for mount; do
        sync -f "$mount" 2>/dev/null || sync
        fsfreeze --freeze "$mount"
        fsfreeze --unfreeze "$mount"
    done
}

# by_id NAME DEVICE, by_path …: the links that udev would make.
link_in() {
    mkdir -p "/dev/disk/$1"
    ln -sfn "../../${3#/dev/}" "/dev/disk/$1/$2"
}
by_id() { link_in by-id "$1" "$2"; }
by_partuuid() { link_in by-partuuid "$1" "$2"; }

# ext4 DEVICE [ARGUMENT…]: a filesystem that writes nothing by itself after its making.
ext4() {
    local device="$1"
    shift
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$@" "$device"
}

# mounted DEVICE [TYPE [OPTIONS]]: mounts a device under /mnt by the device's name and says where.
mounted() {
    local at="/mnt/${1##*/}"
    mkdir -p "$at"
    mount -t "${2:-ext4}" -o "${3:-rw}" "$1" "$at"
    echo "$at"
}

# partitions DEVICE: reads lines of sfdisk from standard input and waits for the nodes.
partitions() {
    sfdisk --quiet --no-reread --no-tell-kernel "$1"
    blockdev --rereadpt "$1"
}

# wait_for SECONDS COMMAND…: until the command succeeds. A busy machine gets ten times as long.
wait_for() {
    local left=$(($1 * 100))
    shift
    until "$@" > /dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { echo "guest: waited in vain for: $*" >&2; return 1; }
        sleep 0.1
    done
}

# raid NAME LEVEL DEVICE… [-- MDADM ARGUMENT…]: an md array that needs no first synchronisation.
raid() {
    local name="$1" level="$2" devices= count=0
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        devices="$devices $1"
        count=$((count + 1))
        shift
    done
    [ $# -eq 0 ] || shift
    local clean=--assume-clean
    [ "$level" != 0 ] && [ "$level" != linear ] || clean=
    mdadm --quiet --create "/dev/$name" --run --metadata=1.2 --level="$level" --raid-devices="$count" $clean "$@" $devices
}
