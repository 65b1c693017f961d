# SPDX-License-Identifier: MIT
# Sourced by tests/check, tests/demo and tests/try.
#
#   missing_packages FILE   names the Debian packages of FILE that are not installed
#   say_missing PACKAGE…    reports them, with the one command that installs them
#   need_packages FILE      installs the missing ones as root, or reports them

missing_packages() {
    local wanted
    mapfile -t wanted < <(grep -v '^\(#\|$\)' "$1")
    dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null |
        sed -n 's/^ii *//p' | sort -u | comm -13 - <(printf '%s\n' "${wanted[@]}" | sort -u)
}

say_missing() {
    local as_root=
    [ "$(id -u)" -eq 0 ] || as_root='sudo '
    printf 'These Debian packages are missing; one command installs them:\n' >&2
    printf '  %sapt-get install --no-install-recommends %s\n' "$as_root" "$*" >&2
}

need_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$1")
    [ "${#missing[@]}" -eq 0 ] && return 0
    [ "$(id -u)" -eq 0 ] || { say_missing "${missing[@]}"; return 1; }
    printf '== installing %d Debian packages\n' "${#missing[@]}"
    export DEBIAN_FRONTEND=noninteractive
    # a machine that has just started may be busy with its own upgrades
    local wait=(-o DPkg::Lock::Timeout=600)
    timeout 900 apt-get "${wait[@]}" update -q >/dev/null &&
        timeout 1500 apt-get "${wait[@]}" install -qy --no-install-recommends "${missing[@]}" >/dev/null
}
