// SPDX-License-Identifier: MIT
//
// A library that tests/chaos preloads into vgpud: it steps vgpud's wall clock and slows its disk.
// The file that VGPU_CHAOS_FAULTS names has two 64-bit words, which the test changes at any time:
// nanoseconds (whole seconds only) that are added to CLOCK_REALTIME, and nanoseconds that each sync
// takes longer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t none[2];
static const volatile int64_t* faults = none;

__attribute__((constructor)) static void map_faults(void) {
    const char* const name = getenv("VGPU_CHAOS_FAULTS");
    const int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void* const words = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);

    if (words != MAP_FAILED) faults = words;
    if (fd >= 0) close(fd);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
    int (*const next)(clockid_t, struct timespec*) =
        (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    const int status = next(clock, time);

    if (status == 0 && clock == CLOCK_REALTIME) time->tv_sec += faults[0] / 1000000000;
    return status;
}

static int sync_slowly(const char* name, int fd) {
    int (*const next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const struct timespec delay = {faults[1] / 1000000000, faults[1] % 1000000000};

    nanosleep(&delay, NULL);
    return next(fd);
}

int fsync(int fd) {
    return sync_slowly("fsync", fd);
}

int fdatasync(int fd) {
    return sync_slowly("fdatasync", fd);
}
