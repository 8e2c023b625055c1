#!/bin/sh
# What `cargo xtask dist` made, installed in root trees of distributions and in an empty one, run there, and removed again.
# `cargo xtask dist --try [SYSTEM...]` calls it, as root on a Debian with mmdebstrap and rpm; systems: debian12 debian13
# rpm mpi12 mpi13 empty.
# Mounts are in a namespace of each command and trees go at the end, so that this machine's own system stays as it is.
set -eu
place=${PLACE:-target/dist}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdsk-try-XXXXXX")
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "error: $system: $*" >&2
    exit 1
}

# Runs a command in the tree.
enter() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root unshare --mount --propagation private sh -ec \
        'for d in proc sys dev; do mount --rbind "/$d" "$0/$d"; done; exec chroot "$0" "$@"' "$tree" "$@"
}

# Every file of the tree but those that a package manager, man and shells leave for themselves, and the directory that zsh of an rpm
# system has.
files() {
    own='^(var/lib/(dpkg|rpm)/|var/cache/man/|var/log/|usr/lib/sysimage/|tmp/shells|usr/share/zsh/site-functions)'
    find "$tree" ! -type d -printf '%P\n' | grep -vE "$own" | sort
}

# Installs the package by the tree's own dpkg, or by this machine's rpm. The tree has no rpm database that could know what is there:
# what the package asks for is looked at instead.
install_package() {
    case $package in
    *.rpm)
        for name in $(rpm --query --requires --package "$package" | sed '/^rpmlib(/d; s/ .*//'); do
            [ -e "$tree$name" ] || fail "it requires $name"
        done
        rpm --root "$tree" --install --nodeps "$package"
        ;;
    *)
        cp "$package" "$tree/rdsk.deb"
        enter dpkg --install /rdsk.deb >/dev/null
        rm "$tree/rdsk.deb"
        ;;
    esac
}

remove_package() {
    case $package in
    *.rpm) rpm --root "$tree" --erase rdsk ;;
    *) enter dpkg --purge rdsk >/dev/null ;;
    esac
}

# One value that only the program knows, in each shell. The tree is Debian's, whose zsh has its functions elsewhere than an rpm system's.
completions() {
    bash="source /usr/share/bash-completion/completions/rdsk; COMP_LINE='rdsk run sim:wd2500-'; COMP_POINT=\${#COMP_LINE};
        compopt() { :; }; _rdsk rdsk; echo \${COMPREPLY[@]}"
    fish="complete --do-complete 'rdsk run sim:wd2500-'"
    zsh="autoload -Uz compinit; compinit -u -D; compadd() { print -r -- \$closed }; words=(rdsk run sim:wd2500-) CURRENT=3 \
        PREFIX=sim:wd2500-; print \$_comps[rdsk]; autoload +X _rdsk; _rdsk"
    case $package in *.rpm) zsh="fpath+=/usr/share/zsh/site-functions; $zsh" ;; esac
    for shell in bash fish zsh; do
        eval "script=\$$shell"
        enter env HOME=/tmp/shells "$shell" -c "$script" | grep -q wd2500-4kn || fail "$shell does not complete"
    done
    echo "completes: bash, fish, zsh"
}

# The files of contrib/systemd as the package holds them: their user is made, and the command of the service runs once as that user
# with the two capabilities. systemd itself does not run in a tree, and the line that gives the user the right to write asks this machine
# for the user, who is in the tree only.
service() {
    units=$tree/usr/share/doc/rdsk/contrib/systemd
    metrics=/var/lib/prometheus/node-exporter
    systemd-sysusers --root="$tree" "$units/rdsk.sysusers.conf"
    systemd-tmpfiles --root="$tree" --create "$units/rdsk.tmpfiles.conf"
    enter chown rdsk "$metrics"
    # What StateDirectory= makes.
    enter install --directory --owner=rdsk /var/lib/rdsk
    # CAP_PERFMON and CAP_BPF, which older versions of setpriv know by number only.
    caps=-all,+cap_38,+cap_39
    # shellcheck disable=SC2046 # a command line is its words
    enter setpriv --reuid=rdsk --regid=rdsk --clear-groups --no-new-privs --bounding-set=$caps --inh-caps=$caps --ambient-caps=$caps \
        $(sed -n 's/^ExecStart=//p' "$units/rdsk.service") >/dev/null
    # Debian's python, which has Debian's python3-prometheus-client, whatever python3 comes first.
    /usr/bin/python3 -c 'import sys, prometheus_client.parser as p
print("metrics of the service:", len(list(p.text_string_to_metric_families(sys.stdin.read()))), "families")' <"$tree$metrics/rdsk.prom"
    grep '^rdsk_cell_info' "$tree$metrics/rdsk.prom"
}

# Where this machine gets Debian's packages.
mirror() {
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian Debian //p' | head -n 1
}

# A tree of Debian's $1 with a package whose name ends with $2.
packaged() {
    tree=$scratch/$system
    package=$(ls "$place"/rdsk[-_][0-9]*."$2")
    mmdebstrap --quiet --variant=minbase --include=bash,fish,man-db,zsh "$1" "$tree" "$(mirror)"
    # rpm makes its database when it is first used.
    [ "$2" = deb ] || rpm --root "$tree" --initdb
    files >"$scratch/before"
    install_package
    echo "installs: $(files | comm -13 "$scratch/before" - | wc -l) files"
    echo "runs: $(enter rdsk --version)"
    enter rdsk run /var/tmp --size 64M --budget 10s --no-history --quiet >"$scratch/page"
    grep -q read "$scratch/page" || fail "no page: $(cat "$scratch/page")"
    enter sh -c 'MANPAGER=cat MANWIDTH=80 man rdsk-run' >"$scratch/man"
    grep -q -e --budget "$scratch/man" && grep -q EXAMPLES "$scratch/man" || fail "man rdsk-run shows $(cat "$scratch/man")"
    completions
    remove_package
    left=$(files | comm -13 "$scratch/before" -)
    [ -z "$left" ] || fail "a removal leaves $left"
    install_package
    service
}

# A tree of Debian's $1 with its Open MPI and the program for it: dpkg finds what the package depends on, and four ranks give one result.
ranks() {
    tree=$scratch/$system
    mmdebstrap --quiet --variant=minbase --include=openmpi-bin,util-linux "$1" "$tree" "$(mirror)"
    files >"$scratch/before"
    cp "$place"/rdsk-mpi_*.deb "$tree/rdsk-mpi.deb"
    enter dpkg --install /rdsk-mpi.deb >/dev/null
    rm "$tree/rdsk-mpi.deb"
    echo "runs: $(enter rdsk-mpi --version)"
    enter mpirun --allow-run-as-root --oversubscribe -n 4 rdsk-mpi run /var/tmp --only headline --size 16M --budget 10s --no-history >"$scratch/page"
    grep -q '4 RANKS ON 1 HOST' "$scratch/page" || fail "no page of ranks: $(cat "$scratch/page")"
    echo "measures: $(grep RANKS "$scratch/page")"
    enter dpkg --purge rdsk-mpi >/dev/null
    left=$(files | comm -13 "$scratch/before" - | grep -v ^tmp/ || :)
    [ -z "$left" ] || fail "a removal leaves $left"
}

# Runs the words behind the exit code, the program behind them: without a panic, and with an error and a hint where it fails.
ends_with() {
    code=$1
    shift
    status=0
    "$@" >"$scratch/page" 2>"$scratch/said" || status=$?
    echo "$*: $status"
    [ "$status" = "$code" ] || fail "it ends with $status, not $code: $(cat "$scratch/said")"
    ! grep -q panicked "$scratch/said" || fail "it panics"
    [ "$code" = 0 ] || { grep -q '^error: ' "$scratch/said" && grep -q '^hint: ' "$scratch/said"; } || fail "it fails without a word"
}

# The program in a root that holds nothing else, as in an image FROM scratch: first without /proc and /sys, then with them, as the user of
# a pod without any capability, on a root that can only be read.
empty() {
    root=$scratch/root
    mkdir -p "$root/data" "$root/proc" "$root/sys" "$scratch/data"
    chown 65532:65532 "$scratch/data"
    chmod 755 "$scratch"
    cp "$place/rdsk" "$root/rdsk"
    bare() {
        code=$1
        shift
        ends_with "$code" env -i PATH="$PATH" chroot "$root" /rdsk "$@"
    }
    bare 0 --version
    # What was checked is opened again through /proc, so that it is the same.
    bare 3 run /data --size 64M --budget 5s
    bare 0 run sim:linux-disk --only headline
    bare 0 sim list
    bare 3 list
    bare 0 info
    bare 0 info /data
    bare 3 run /dev/sdz --budget 5s
    bare 0 man run
    bare 0 completions bash
    pod() {
        code=$1
        shift
        ends_with "$code" env -i PATH="$PATH" unshare --mount --propagation private sh -ec \
            'mount --bind "$0" "$0"; mount --rbind /proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --bind "$0/../data" "$0/data"
            mount -o remount,bind,ro "$0"; exec chroot --userspec=65532:65532 --groups= "$0" /rdsk "$@"' "$root" "$@"
    }
    pod 0 run /data --size 64M --budget 10s --no-history --quiet
    pod 0 run /data --size 64M --budget 5s --no-history --openmetrics /data/rdsk.prom
    pod 3 run / --budget 5s --no-history
}

for system in ${*:-debian12 debian13 rpm mpi12 mpi13 empty}; do
    echo "── $system"
    case $system in
    debian12) packaged bookworm deb ;;
    debian13) packaged trixie deb ;;
    rpm) packaged bookworm rpm ;;
    mpi12) ranks bookworm ;;
    mpi13) ranks trixie ;;
    empty) empty ;;
    *) fail "there is no such system" ;;
    esac
done
