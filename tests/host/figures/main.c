// SPDX-License-Identifier: MIT
//
// vgpu-pf-figures: measures the time that vgpu_pf.ko takes, in the machine that has it loaded.
// tests/host/bench.py starts it and compares its figures with the aims.
//
//   functions PF COUNT       writes COUNT and 0 to sriov_numvfs; PF: its directory in sysfs
//                            -> functions NS
//   rounds REGISTERS COUNT   COUNT times, while guests are at work on VF1 and VF2; REGISTERS: the
//                            resource file of a register BAR that no driver has
//                            -> round NAME NS NAME NS ...
//
// One program measures all figures in turns, so that a figure and its floor see the same load. They
// are medians:
//
//   timer     how late an absolute sleep of 2 ms ends, in the executor's scheduling class
//   access    a read of a register
//   empty     GET_ERROR, which copies a struct
//   info      GET_INFO, which also asks the device for its time
//   table     SET_RUN_TABLE
//   quantum   how far a run of the event ring is from its quantum
//   switch    from the planned end of a VF's slice until the next VF runs: how far
//             the run was from its quantum, plus the time in which no VF ran
//   runs      the number of runs
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pf-driver/uapi/vgpu_pf.h"

enum {
    SAMPLES = 200,
    SLEEP_NS = 2000000,
    QUANTUM_US = 4000,
    WINDOW_S = 2,
    MAX_RUNS = 4096,
    REGISTERS_BYTES = 4096,
    POLL_NS = 10000000,
    SCRUB_S = 120,
    NS_PER_US = 1000,
    NS_PER_S = 1000000000
};

struct ring {
    const struct vgpu_pf_event_ring_head* head;
    const struct vgpu_pf_event* events;
};

static void die(const char* what) {
    fprintf(stderr, "vgpu-pf-figures: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int compare(const void* left, const void* right) {
    const int64_t a = *(const int64_t*)left, b = *(const int64_t*)right;

    return (a > b) - (a < b);
}

static int64_t median(int64_t* values, size_t count) {
    if (count == 0) {
        errno = ENODATA;
        die("nothing was measured");
    }
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

// ---- functions

static void write_number(const char* path, unsigned long number) {
    char text[32];
    const int length = snprintf(text, sizeof(text), "%lu", number);
    const int fd = open(path, O_WRONLY);

    if (fd < 0 || write(fd, text, (size_t)length) != length) die(path);
    close(fd);
}

// Waits until the VRAM of earlier VFs is scrubbed, which is not part of the figure.
static void await_free_vram(int pf) {
    struct vgpu_pf_info info = {.size = sizeof(info)};
    const struct timespec pause = {0, POLL_NS};

    for (int64_t left_ns = SCRUB_S * (int64_t)NS_PER_S; left_ns > 0; left_ns -= POLL_NS) {
        if (ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_GET_INFO, struct vgpu_pf_info), &info))
            die("GET_INFO");
        if (info.vram_free_bytes == info.vram_bytes - info.vram_pf_bytes) return;
        nanosleep(&pause, NULL);
    }
    errno = ETIMEDOUT;
    die("VRAM is not free");
}

static void measure_functions(const char* pf, unsigned long count) {
    const int node = open("/dev/vgpu-pf0", O_RDONLY);
    char path[512];
    int64_t start;

    // the stub driver has no node
    if (node >= 0) {
        await_free_vram(node);
        close(node);
    }
    snprintf(path, sizeof(path), "%s/sriov_numvfs", pf);
    start = now_ns();
    write_number(path, count);
    printf("functions %lld\n", (long long)(now_ns() - start));
    write_number(path, 0);
}

// ---- rounds

static int64_t measure_timer(void) {
    int64_t late[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        const int64_t deadline = now_ns() + SLEEP_NS;
        const struct timespec until = {deadline / NS_PER_S, deadline % NS_PER_S};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        late[i] = now_ns() - deadline;
    }
    return median(late, SAMPLES);
}

static int64_t measure_access(const volatile uint32_t* registers) {
    int64_t took[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        const int64_t start = now_ns();

        (void)registers[0];
        took[i] = now_ns() - start;
    }
    return median(took, SAMPLES);
}

static int64_t measure_ioctl(int pf, unsigned long request, void* argument) {
    int64_t took[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        const int64_t start = now_ns();

        if (ioctl(pf, request, argument)) die("an ioctl that only reads");
        took[i] = now_ns() - start;
    }
    return median(took, SAMPLES);
}

static int64_t measure_empty(int pf) {
    struct vgpu_pf_error error = {.size = sizeof(error)};

    return measure_ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_GET_ERROR, struct vgpu_pf_error), &error);
}

static int64_t measure_info(int pf) {
    struct vgpu_pf_info info = {.size = sizeof(info)};

    return measure_ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_GET_INFO, struct vgpu_pf_info), &info);
}

static void set_table(int pf, struct vgpu_pf_run_table* table) {
    table->generation++;
    if (ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_SET_RUN_TABLE, struct vgpu_pf_run_table), table))
        die("SET_RUN_TABLE");
}

static int64_t measure_table(int pf, struct vgpu_pf_run_table* table) {
    int64_t took[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        const int64_t start = now_ns();

        set_table(pf, table);
        took[i] = now_ns() - start;
    }
    return median(took, SAMPLES);
}

// Runs since event `from`, in their order.
static size_t take_runs(const struct ring* ring, uint64_t from, struct vgpu_pf_event* runs) {
    const uint64_t end = __atomic_load_n(&ring->head->next_seq, __ATOMIC_ACQUIRE);
    size_t count = 0;

    for (uint64_t seq = from; seq < end && count < MAX_RUNS; seq++) {
        const struct vgpu_pf_event event = ring->events[(seq - 1) % ring->head->entries];

        if (event.seq == seq && event.type == VGPU_PF_EVENT_RUN) runs[count++] = event;
    }
    return count;
}

static void measure_runs(const struct ring* ring) {
    static struct vgpu_pf_event runs[MAX_RUNS];
    static int64_t quantum[MAX_RUNS], switched[MAX_RUNS];
    const uint64_t from = ring->head->next_seq;
    size_t count, switches = 0;

    sleep(WINDOW_S);
    count = take_runs(ring, from, runs);
    for (size_t i = 0; i < count; i++)
        quantum[i] = magnitude((int64_t)runs[i].duration_ns - QUANTUM_US * NS_PER_US);
    for (size_t i = 0; i + 1 < count; i++) {
        const int64_t starts = (int64_t)(runs[i + 1].time_ns - runs[i + 1].duration_ns);

        if (runs[i].vf != runs[i + 1].vf)
            switched[switches++] = quantum[i] + starts - (int64_t)runs[i].time_ns;
    }
    printf(" switch %lld", (long long)median(switched, switches));
    printf(" quantum %lld runs %zu\n", (long long)median(quantum, count), count);
}

static struct ring map_ring(int pf) {
    struct vgpu_pf_event_ring_info info = {.size = sizeof(info)};
    const char* memory;

    if (ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_GET_EVENT_RING, struct vgpu_pf_event_ring_info), &info))
        die("GET_EVENT_RING");
    memory = mmap(NULL, info.bytes, PROT_READ, MAP_SHARED, pf, 0);
    if (memory == MAP_FAILED) die("the event ring");
    return (struct ring){(const void*)memory, (const void*)(memory + info.events_offset)};
}

static const volatile uint32_t* map_registers(const char* path) {
    const int fd = open(path, O_RDONLY);
    void* memory = fd < 0 ? MAP_FAILED : mmap(NULL, REGISTERS_BYTES, PROT_READ, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) die(path);
    close(fd);
    return memory;
}

// A run table with equal slices for VF1 and VF2.
static struct vgpu_pf_run_table two_slices(int pf) {
    struct vgpu_pf_run_table table = {.size = sizeof(table)};

    if (ioctl(pf, VGPU_PF_IOC(VGPU_PF_OP_GET_RUN_TABLE, struct vgpu_pf_run_table), &table))
        die("GET_RUN_TABLE");
    table.count = 2;
    for (uint32_t i = 0; i < table.count; i++)
        table.entries[i] = (struct vgpu_pf_run_entry){.vf = i + 1, .quantum_us = QUANTUM_US};
    return table;
}

static void measure_rounds(const char* registers_path, unsigned long count) {
    const int pf = open("/dev/vgpu-pf0", O_RDWR);
    const struct sched_param lowest = {.sched_priority = 1};  // priority of sched_set_fifo_low()
    const volatile uint32_t* registers = map_registers(registers_path);
    struct vgpu_pf_run_table table;
    struct ring ring;

    if (pf < 0) die("/dev/vgpu-pf0");
    ring = map_ring(pf);
    table = two_slices(pf);
    if (sched_setscheduler(0, SCHED_FIFO, &lowest)) die("SCHED_FIFO");
    for (unsigned long round = 0; round < count; round++) {
        printf("round timer %lld access %lld", (long long)measure_timer(),
               (long long)measure_access(registers));
        printf(" empty %lld info %lld table %lld", (long long)measure_empty(pf),
               (long long)measure_info(pf), (long long)measure_table(pf, &table));
        measure_runs(&ring);
        fflush(stdout);
    }
}

int main(int argc, char** argv) {
    if (argc == 4 && strcmp(argv[1], "functions") == 0)
        measure_functions(argv[2], strtoul(argv[3], NULL, 10));
    else if (argc == 4 && strcmp(argv[1], "rounds") == 0)
        measure_rounds(argv[2], strtoul(argv[3], NULL, 10));
    else {
        fprintf(stderr, "usage: vgpu-pf-figures functions PF COUNT | rounds REGISTERS COUNT\n");
        return 2;
    }
    return 0;
}
