# SPDX-License-Identifier: MIT
# Sourced by tests/guest/image and tests/host/image: kernels and initial ramdisks from unpacked Debian
# packages (foreign_suite.sh).
#
#   kernel_release ROOT                       the kernel's release in the tree; its module index is made
#   unpack_modules MODULES TREE LIST NAME…    modules with what they depend on into TREE/modules; the
#                                             file LIST there gets their order for insmod
#   pack_initrd TREE FILE                     TREE as compressed ramdisk
#   copy_kernel ROOT FILE                     the tree's vmlinuz

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
    # beside the modules in 7.x
    cp "$(find "$1/boot" "$1"/usr/lib/modules/* -maxdepth 1 -name 'vmlinuz*' 2>/dev/null | head -n 1)" "$2"
}
