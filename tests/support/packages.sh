# SPDX-License-Identifier: MIT
# Sourced by tests/check and tests/demo: need_packages FILE installs what is missing (as root) or
# says what is.

need_packages() {
    local missing=() package
    while read -r package; do
        case "$package" in '' | '#'*) continue ;; esac
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            missing+=("$package")
    done <"$1"
    [ "${#missing[@]}" -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        printf 'These Debian packages are missing: %s\n' "${missing[*]}" >&2
        printf 'Install them (apt-get install --no-install-recommends …) or run this as root.\n' >&2
        return 1
    fi
    printf '== installing %d Debian packages\n' "${#missing[@]}"
    export DEBIAN_FRONTEND=noninteractive
    # a machine that has just started may be busy with its own upgrades
    local wait=(-o DPkg::Lock::Timeout=600)
    timeout 900 apt-get "${wait[@]}" update -q >/dev/null &&
        timeout 1500 apt-get "${wait[@]}" install -qy --no-install-recommends "${missing[@]}" >/dev/null
}
