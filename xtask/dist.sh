#!/bin/sh
# What people install, under target/dist: a static program, one for mpirun, a .deb and an .rpm of each, and a container's recipe. `cargo xtask dist` calls it; with
# --check everything is made in another directory, too, which must give the same bytes. What packages hold is listed in
# crates/cli/Cargo.toml. It needs glibc's static library (Debian: libc6-dev), Open MPI and libclang (libopenmpi-dev, libclang1).
set -eu
root=$PWD
place=target/dist
target=x86_64-unknown-linux-gnu
# The moment that everything which is made says it was made at: the last commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
unset CARGO_TARGET_DIR
cargo=${CARGO:-cargo}

# Builds the program $1 with flags $2 of rustc and the words behind them for cargo, the same from any directory: no path of this machine
# stays in it, neither of the sources nor of the crates.
build() {
    name=$1
    flags=$2
    shift 2
    home=${CARGO_HOME:-$HOME/.cargo}
    RUSTFLAGS="$flags --remap-path-prefix=$PWD=/rdsk --remap-path-prefix=$home=/cargo" \
    TARGET_CFLAGS="-ffile-prefix-map=$PWD=/rdsk -ffile-prefix-map=$home=/cargo" \
        "$cargo" build --locked --profile dist --package rdsk --bin rdsk --target $target --config profile.dist.strip=false \
        --target-dir "$PWD/$place/build" "$@"
    strip --strip-all -o "$place/$name" $place/build/$target/dist/rdsk
}

# The C library that the program for mpirun needs is no newer than its package says (crates/cli/Cargo.toml).
check_libc() {
    newest=$(objdump --dynamic-syms $place/rdsk-mpi | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    [ "$(printf '%s\nGLIBC_2.36\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.36 ] || {
        echo "error: rdsk-mpi needs $newest, and its package says 2.36" >&2
        exit 1
    }
}

# What the program prints of itself: manual pages, without name and time of the file, and scripts for shells.
assets() {
    rm -rf $place/man $place/completions
    mkdir -p $place/man $place/completions
    RDSK_HISTORY=
    export RDSK_HISTORY
    $place/rdsk man >$place/man/rdsk.1
    # What a summary goes on with stands further in.
    for name in $($place/rdsk --help | sed -n '/^Commands:$/,/^$/s/^  \([^ ]*\).*/\1/p'); do
        $place/rdsk man "$name" >"$place/man/rdsk-$name.1"
    done
    gzip -9 -n $place/man/*
    $place/rdsk completions bash >$place/completions/rdsk
    $place/rdsk completions zsh >$place/completions/_rdsk
    $place/rdsk completions fish >$place/completions/rdsk.fish
}

# The path of a packager of this version, which is installed below target/tools where it is not there yet. It runs once for a release, so
# that it is built quickly.
packager() {
    tool=$root/target/tools/$1-$2
    [ -x "$tool/bin/$1" ] || "$cargo" install --quiet --locked --version "$2" "$1" --root "$tool" --config profile.release.opt-level=1 \
        --config profile.release.lto=false --config profile.release.codegen-units=16 >&2
    echo "$tool/bin/$1"
}

# Makes everything from the sources in this directory.
make_all() {
    mkdir -p $place/container
    build rdsk-mpi "" --features mpi
    check_libc
    build rdsk "-C target-feature=+crt-static"
    assets
    rm -f $place/*.deb $place/*.rpm
    deb=$(packager cargo-deb 3.8.0)
    rpm=$(packager cargo-generate-rpm 0.21.1)
    for variant in "" "--variant=mpi"; do
        # shellcheck disable=SC2086 # no word, or one
        "$deb" --no-build --no-strip $variant --target $target --manifest-path crates/cli/Cargo.toml --output "$PWD/$place"
        # shellcheck disable=SC2086
        "$rpm" --package crates/cli $variant --target $target --source-date "$SOURCE_DATE_EPOCH" --output "$PWD/$place"
    done
    cp contrib/container/Containerfile $place/rdsk $place/container/
    for file in $place/rdsk $place/rdsk-mpi $place/*.deb $place/*.rpm; do
        echo "$(wc -c <"$file") bytes  $(sha256sum "$file" | cut -c 1-16)  $PWD/$file"
    done
}

make_all
if [ "${1:-}" = --check ]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    elsewhere=$scratch/a-directory-elsewhere/with-a-longer-name
    mkdir -p "$elsewhere"
    # The files that git has, as they are now.
    git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$elsewhere"
    cd "$elsewhere"
    make_all
    for file in $place/rdsk $place/rdsk-mpi $place/*.deb $place/*.rpm; do
        cmp "$file" "$root/$file"
        echo "$file: the same from both directories"
    done
fi
