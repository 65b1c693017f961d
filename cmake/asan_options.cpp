// SPDX-License-Identifier: MIT
//
// Defaults of AddressSanitizer in every program of this tree. Freed memory is overwritten:
// libraries that are built without ASan (libsystemd, libvirt) would read it unseen.
extern "C" const char* __asan_default_options();

const char* __asan_default_options() {
    return "max_free_fill_size=4096:free_fill_byte=90";
}
