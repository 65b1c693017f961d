// SPDX-License-Identifier: MIT
// A PM4 compute queue of KFD, which ROCr never makes. KFD takes the queue off the hardware and maps
// it again while a kernel from an IB is in flight: by evictions (a page of user memory changes
// under the GPU) and by run lists (another queue is created and destroyed). The kernel adds to its
// cell once, at its end.
//
//   pm4_queue [ROUNDS]     steps of the kernel, each of four instructions
//
// Ioctls: linux/kfd_ioctl.h. Packets: soc15d.h of Linux; registers: gc_9_0_offset.h. Machine code:
// Vega ISA manual.
#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    RING_BYTES = 16 << 10,
    RING_DWORDS = RING_BYTES / 4,
    IB_AT = 1024,  // bytes in the page of code
    DOORBELL_BYTES = 8192,
    TIMEOUT_S = 200
};

static int kfd, gpu;
static int gpu_node;
static uint32_t gpu_id;

static void abandon(const char* what) {
    perror(what);
    exit(1);
}

static void ask(const char* what, unsigned long request, void* argument) {
    while (ioctl(kfd, request, argument) != 0)
        if (errno != EINTR && errno != EAGAIN) abandon(what);
}

static FILE* open_node(int node, const char* file) {
    char path[128];
    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/%s", node, file);
    return fopen(path, "r");
}

// a property of a node; 0 if the node has none of that name
static uint64_t property(int node, const char* name) {
    char key[64];
    uint64_t value, found = 0;
    FILE* file = open_node(node, "properties");
    while (file && fscanf(file, "%63s %lu", key, &value) == 2)
        if (strcmp(key, name) == 0) found = value;
    if (file) fclose(file);
    return found;
}

static void find_gpu(void) {
    while (gpu_node < 8 && property(gpu_node, "simd_count") == 0) ++gpu_node;
    FILE* file = open_node(gpu_node, "gpu_id");
    if (!file || fscanf(file, "%u", &gpu_id) != 1) abandon("no node is a GPU");
    fclose(file);
}

// memory with the same address for CPU and GPU
static void* make_memory(size_t bytes, uint32_t kind) {
    const int is_user = kind == KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
    void* address = mmap(NULL, bytes, is_user ? PROT_READ | PROT_WRITE : PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) abandon("mmap");
    if (is_user) memset(address, 0, bytes);
    struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
        .va_addr = (uintptr_t)address,
        .size = bytes,
        .mmap_offset = is_user ? (uintptr_t)address : 0,
        .gpu_id = gpu_id,
        .flags = kind | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE |
                 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT};
    ask("memory", AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &memory);
    if (!is_user && mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, gpu,
                         (off_t)memory.mmap_offset) == MAP_FAILED)
        abandon("mmap of memory");
    struct kfd_ioctl_map_memory_to_gpu_args map = {
        .handle = memory.handle, .device_ids_array_ptr = (uintptr_t)&gpu_id, .n_devices = 1};
    ask("mapping", AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);
    if (!is_user) memset(address, 0, bytes);
    return address;
}

static void* make_gtt(size_t bytes) {
    return make_memory(bytes, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

struct queue {
    uint32_t* ring;
    volatile uint64_t* wptr;
    volatile uint32_t* rptr;
    volatile uint64_t* doorbell;
    uint64_t written;
    struct kfd_ioctl_create_queue_args args;
};

// bytes that KFD requires behind the save area: 32 for each possible wave (kfd_queue.c)
static uint64_t debugger_bytes(void) {
    const uint64_t cus = property(gpu_node, "simd_count") / property(gpu_node, "simd_per_cu");
    const uint64_t engines =
        property(gpu_node, "array_count") / property(gpu_node, "simd_arrays_per_engine");
    const uint64_t waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
    return (waves * 32 + 63) / 64 * 64;
}

static void make_buffers(struct queue* q) {
    const uint64_t save = property(gpu_node, "cwsr_size");
    const uint64_t stack = property(gpu_node, "ctl_stack_size");
    q->ring = make_gtt(RING_BYTES);
    q->wptr = make_gtt(PAGE);
    q->rptr = make_gtt(PAGE);
    q->args = (struct kfd_ioctl_create_queue_args){.ring_base_address = (uintptr_t)q->ring,
                                                   .ring_size = RING_BYTES,
                                                   .write_pointer_address = (uintptr_t)q->wptr,
                                                   .read_pointer_address = (uintptr_t)q->rptr,
                                                   .gpu_id = gpu_id,
                                                   .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE,
                                                   .queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
                                                   .queue_priority = 7,
                                                   .eop_buffer_address = (uintptr_t)make_gtt(PAGE),
                                                   .eop_buffer_size = PAGE,
                                                   .ctx_save_restore_size = (uint32_t)save,
                                                   .ctl_stack_size = (uint32_t)stack};
    const uint64_t all = (save + debugger_bytes() + PAGE - 1) / PAGE * PAGE;
    if (save != 0) q->args.ctx_save_restore_address = (uintptr_t)make_gtt(all);
}

static void create(struct queue* q) {
    ask("queue", AMDKFD_IOC_CREATE_QUEUE, &q->args);
}

static void destroy(const struct queue* q) {
    struct kfd_ioctl_destroy_queue_args args = {.queue_id = q->args.queue_id};
    ask("end of a queue", AMDKFD_IOC_DESTROY_QUEUE, &args);
}

static void map_doorbell(struct queue* q) {
    const uint64_t offset = q->args.doorbell_offset;
    char* page = mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
                      (off_t)(offset & ~(uint64_t)(DOORBELL_BYTES - 1)));
    if (page == MAP_FAILED) abandon("doorbells");
    q->doorbell = (volatile uint64_t*)(page + (offset & (DOORBELL_BYTES - 1)));
}

static uint32_t header(uint32_t opcode, uint32_t body) {
    return 3u << 30 | (body - 1) << 16 | opcode << 8;
}

static void submit(struct queue* q, const uint32_t* words, unsigned count) {
    for (unsigned i = 0; i < count; ++i) q->ring[q->written++ % RING_DWORDS] = words[i];
    *q->wptr = q->written;
    __sync_synchronize();
    *q->doorbell = q->written;
}

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void await_ring(const struct queue* q) {
    const time_t end = seconds() + TIMEOUT_S;
    while (*q->rptr != q->written % RING_DWORDS) {
        if (seconds() > end) {
            printf("the ring stands at %u, not at %lu\n", *q->rptr, q->written % RING_DWORDS);
            exit(1);
        }
        usleep(1000);
    }
}

static unsigned put(uint32_t* at, uint32_t opcode, const uint32_t* body, unsigned count) {
    at[0] = header(opcode, count);
    memcpy(at + 1, body, count * 4);
    return count + 1;
}

// s5 = 3 added `rounds` times; one lane adds it to the cell
static void write_kernel(uint32_t* code, uint32_t rounds) {
    const uint32_t words[] = {0xc0060180, 0,           // s_load_dwordx2 s[6:7], s[0:1], 0
                              0xbf8cc07f,              // s_waitcnt lgkmcnt(0)
                              0xbe8400ff, rounds,      // s_mov_b32 s4, rounds
                              0xbe850080,              // s_mov_b32 s5, 0
                              0x80058305,              // s_add_u32 s5, s5, 3
                              0x80848104,              // s_sub_u32 s4, s4, 1
                              0xbf078004,              // s_cmp_lg_u32 s4, 0
                              0xbf85fffc,              // s_cbranch_scc1 -4
                              0xbefe0181,              // s_mov_b64 exec, 1
                              0x7e020205,              // v_mov_b32 v1, s5
                              0x7e040206, 0x7e060207,  // v_mov_b32 v2, s6; v3, s7
                              0xdd088000, 0x007f0102,  // global_atomic_add v[2:3], v1, off
                              0xbf810000};             // s_endpgm
    memcpy(code, words, sizeof(words));
}

// writes the packets of the dispatch; returns their number of dwords
static unsigned write_ib(uint32_t* ib, const uint32_t* code, const uint64_t* argument) {
    enum { SET_SH_REG = 0x76, DISPATCH_DIRECT = 0x15 };
    const uint64_t entry = (uintptr_t)code >> 8, user = (uintptr_t)argument;
    const uint32_t program[] = {0x20c, (uint32_t)entry, (uint32_t)(entry >> 32)};
    const uint32_t resources[] = {0x212, 3 | 0xf0 << 12, 2 << 1};  // 16 VGPRs; 2 user SGPRs
    const uint32_t start[] = {0x204, 0, 0, 0, 64, 1, 1};           // origin, threads of a group
    const uint32_t data[] = {0x240, (uint32_t)user, (uint32_t)(user >> 32)};
    const uint32_t grid[] = {1, 1, 1, 1 | 1 << 2};  // enabled, from 0, 0, 0
    unsigned n = put(ib, SET_SH_REG, program, 3);
    n += put(ib + n, SET_SH_REG, resources, 3);
    n += put(ib + n, SET_SH_REG, start, 7);
    n += put(ib + n, SET_SH_REG, data, 3);
    return n + put(ib + n, DISPATCH_DIRECT, grid, 4);
}

static void launch(struct queue* q, const uint32_t* ib, unsigned dwords, const uint32_t* fence) {
    enum { INDIRECT_BUFFER = 0x3f, RELEASE_MEM = 0x49, NOP = 0x10 };
    uint32_t filler[64] = {0};
    filler[0] = header(NOP, 63);
    // once around the ring and a little more, so that its pointers differ from those at the mapping
    for (unsigned i = 0; i < RING_DWORDS / 64 + 3; ++i) {
        submit(q, filler, 64);
        if (i % 16 == 15) await_ring(q);
    }
    await_ring(q);
    const uint32_t call[] = {(uint32_t)(uintptr_t)ib, (uint32_t)((uintptr_t)ib >> 32),
                             dwords | 1u << 23};
    const uint32_t release[] = {0x14 | 5 << 8,
                                1u << 29,
                                (uint32_t)(uintptr_t)fence,
                                (uint32_t)((uintptr_t)fence >> 32),
                                1,
                                0,
                                0};
    uint32_t words[16];
    unsigned n = put(words, INDIRECT_BUFFER, call, 3);
    n += put(words + n, RELEASE_MEM, release, 7);
    submit(q, words, n);
}

static void open_gpu(void) {
    kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    gpu = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    if (kfd < 0 || gpu < 0) abandon("/dev/kfd, /dev/dri/renderD128");
    find_gpu();
    struct kfd_ioctl_acquire_vm_args vm = {.drm_fd = (uint32_t)gpu, .gpu_id = gpu_id};
    ask("address space", AMDKFD_IOC_ACQUIRE_VM, &vm);
}

int main(int argc, char** argv) {
    const uint32_t rounds = argc > 1 ? (uint32_t)atol(argv[1]) : 20000000;
    open_gpu();
    uint32_t* code = make_gtt(PAGE);
    volatile uint32_t* cells = make_gtt(PAGE);  // result, fence; argument of the kernel
    char* user = make_memory(PAGE, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
    uint64_t* argument = (uint64_t*)(uintptr_t)(cells + 16);
    *argument = (uintptr_t)cells;
    write_kernel(code, rounds);
    const unsigned dwords = write_ib(code + IB_AT / 4, code, argument);
    struct queue queue = {0}, other = {0};
    make_buffers(&queue);
    make_buffers(&other);
    create(&queue);
    map_doorbell(&queue);
    launch(&queue, code + IB_AT / 4, dwords, (const uint32_t*)(cells + 1));

    unsigned remaps = 0;
    for (const time_t end = seconds() + TIMEOUT_S; cells[1] == 0 && seconds() < end; ++remaps) {
        if (remaps % 2 == 0) {
            if (madvise(user, PAGE, MADV_DONTNEED) != 0) abandon("madvise");
            user[0] = 1;  // makes a new page for the GPU
        } else {
            create(&other);
            destroy(&other);
        }
        usleep(20000);
    }
    printf("%u times off the hardware\n", remaps);
    if (cells[1] != 1) printf("the fence has not come\n");
    if (cells[0] != 3 * rounds) printf("the cell holds %u, not %u\n", cells[0], 3 * rounds);
    if (remaps < 4) printf("the kernel was too short\n");
    if (cells[1] != 1 || cells[0] != 3 * rounds || remaps < 4) return 1;
    destroy(&queue);
    printf("ok pm4_queue\n");
    return 0;
}
