// SPDX-License-Identifier: MIT
//
// Defaults of AddressSanitizer in every program of this tree. ASan overwrites freed memory, because
// it does not see reads by libraries that are built without it (libsystemd, libvirt).
extern "C" const char* __asan_default_options();

const char* __asan_default_options() {
    return "max_free_fill_size=4096:free_fill_byte=90";
}
