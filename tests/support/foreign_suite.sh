# SPDX-License-Identifier: MIT
# Sourced by the guest and host levels: packages of a newer Debian suite in a private directory, without
# touching this machine's own. The mirror is the one that this machine's apt uses.
#
#   foreign_suite_fetch DIR SUITE[,SUITE…] PACKAGE…   downloads and unpacks the packages with all their
#                                                     dependencies into DIR/root (once per recipe)
#   foreign_run ROOT PROGRAM ARG…                     runs a program of DIR/root by that tree's loader

# base address of the Debian mirror in this machine's apt configuration
apt_mirror() {
    apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)' 'Created-By: Packages' |
        awk -F'|' '$1 ~ /debian\/?$/ { print $1; exit }'
}

foreign_apt() {
    local dir=$1
    shift
    apt-get -qq -o "Dir=$dir/apt" -o "Dir::State::status=$dir/apt/status" \
        -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o APT::Install-Recommends=false \
        -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

foreign_suite_fetch() {
    local dir suites=$2 mirror recipe suite link archive
    dir=$(realpath -m "$1")
    shift 2
    recipe="$suites $*"
    [ "$(cat "$dir/recipe" 2>/dev/null)" = "$recipe" ] && return 0
    mirror=$(apt_mirror)
    [ -n "$mirror" ] || { echo 'no Debian mirror in the apt configuration' >&2; return 1; }
    rm -rf "$dir" && mkdir -p "$dir/apt/var/lib/apt/lists/partial" \
        "$dir/apt/var/cache/apt/archives/partial" "$dir/apt/etc/apt/preferences.d" "$dir/root"
    : >"$dir/apt/status"
    for link in bin sbin lib lib64; do
        mkdir -p "$dir/root/usr/$link" && ln -s "usr/$link" "$dir/root/$link"
    done
    for suite in ${suites//,/ }; do
        printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main non-free-firmware\n' "$mirror" "$suite"
    done >"$dir/apt/sources.list"
    foreign_apt "$dir" -o Acquire::Check-Valid-Until=false update || return 1
    foreign_apt "$dir" -t "${suites##*,}" -y --download-only install "$@" || return 1
    for archive in "$dir"/apt/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$archive" | tar -C "$dir/root" -x --keep-directory-symlink || return 1
        rm -f "$archive"
    done
    printf '%s' "$recipe" >"$dir/recipe"
}

foreign_run() {
    local root=$1 program=$2
    shift 2
    local libraries="$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu"
    "$root/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" --argv0 "$program" \
        "$root/usr/bin/$program" "$@"
}
