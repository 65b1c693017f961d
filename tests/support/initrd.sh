# SPDX-License-Identifier: MIT
# Sourced by tests/guest/image and tests/host/image: kernels and initial ramdisks from unpacked Debian
# packages (foreign_suite.sh).
#
#   kernel_release ROOT                       prints the release of the tree's kernel; indexes its modules
#   unpack_modules MODULES TREE LIST NAME…    unpacks modules and their dependencies into TREE/modules;
#                                             appends them to TREE/modules/LIST in the order for insmod
#   pack_initrd TREE FILE                     packs TREE as a compressed ramdisk
#   copy_kernel ROOT FILE                     copies the tree's vmlinuz to FILE

kernel_release() {
    local root=$1 release
    release=$(basename "$root"/usr/lib/modules/*)
    depmod -b "$root" "$release" 2>/dev/null || depmod -b "$root/usr" "$release"
    echo "$release"
}

unpack_modules() {
    local modules=$1 tree=$2 list=$3 name path file
    shift 3
    for name in "$@"; do
        for path in $(grep -E "/$name\.ko[^:]*:" "$modules/modules.dep" | tr -d : | tr ' ' '\n' | tac); do
            file=${path##*/}
            file=${file%.xz}
            [ -e "$tree/modules/$file" ] && continue
            case $path in
            *.xz) xz -dc "$modules/$path" ;;
            *) cat "$modules/$path" ;;
            esac >"$tree/modules/$file"
            echo "$file" >>"$tree/modules/$list"
        done
    done
}

pack_initrd() {
    (cd "$1" && find . | cpio -o -H newc --quiet | gzip -1) >"$2"
}

copy_kernel() {
    # packages of Linux 7.x have vmlinuz beside the modules
    cp "$(find "$1/boot" "$1"/usr/lib/modules/* -maxdepth 1 -name 'vmlinuz*' 2>/dev/null | head -n 1)" "$2"
}
