// SPDX-License-Identifier: MIT
// A job of the graphics interface that waits for a value in memory which no program writes, until
// the driver's timeout is over and the driver resets its GPU.
// usage: stuck_job sdma|compute
// Prints how the job ended; exit status 0 if the driver cancelled it. Packets: POLL_REGMEM of SDMA
// 4 (vega10_sdma_pkt_open.h of Linux), WAIT_REG_MEM of PM4 (soc15d.h).
#include <drm/amdgpu_drm.h>
#include <drm/drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, IB_DWORDS = 16, VALUE_AT = 2048, TIMEOUT_S = 120 };
static const uint64_t VA = 0x100000000;

static int gpu;

static void ask(const char* what, unsigned long request, void* argument) {
    if (ioctl(gpu, request, argument) == 0) return;
    perror(what);
    exit(1);
}

static uint32_t make_context(void) {
    union drm_amdgpu_ctx context = {.in = {.op = AMDGPU_CTX_OP_ALLOC_CTX}};
    ask("context", DRM_IOCTL_AMDGPU_CTX, &context);
    return context.out.alloc.ctx_id;
}

// one page for packets and the value, at VA of this process
static uint32_t* make_page(void) {
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = PAGE,
               .alignment = PAGE,
               .domains = AMDGPU_GEM_DOMAIN_GTT,
               .domain_flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID}};
    ask("memory", DRM_IOCTL_AMDGPU_GEM_CREATE, &create);
    const uint32_t handle = create.out.handle;
    union drm_amdgpu_gem_mmap map = {.in = {.handle = handle}};
    ask("mapping", DRM_IOCTL_AMDGPU_GEM_MMAP, &map);
    struct drm_amdgpu_gem_va va = {
        .handle = handle,
        .operation = AMDGPU_VA_OP_MAP,
        .flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE,
        .va_address = VA,
        .map_size = PAGE};
    ask("address", DRM_IOCTL_AMDGPU_GEM_VA, &va);
    void* page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, (off_t)map.out.addr_ptr);
    if (page != MAP_FAILED) return memset(page, 0, PAGE);
    perror("mmap");
    exit(1);
}

static void write_sdma(uint32_t* ib, uint64_t address) {
    const uint32_t packet[] = {8u | 3u << 28 | 1u << 31,  // POLL_REGMEM, equal, memory
                               (uint32_t)address,        (uint32_t)(address >> 32), 1, UINT32_MAX,
                               10u | 0xfffu << 16};  // every 10 clocks, for ever
    memcpy(ib, packet, sizeof(packet));              // the rest are NOPs: zeroes
}

static void write_compute(uint32_t* ib, uint64_t address) {
    const uint32_t packet[] = {0xc0053c00,    // WAIT_REG_MEM
                               3u | 1u << 4,  // equal, memory
                               (uint32_t)address, (uint32_t)(address >> 32), 1, UINT32_MAX, 10};
    for (int i = 0; i < IB_DWORDS; ++i) ib[i] = 0xffff1000;  // NOP of one dword
    memcpy(ib, packet, sizeof(packet));
}

static uint64_t submit(uint32_t context, uint32_t ip) {
    struct drm_amdgpu_cs_chunk_ib ib = {.va_start = VA, .ib_bytes = IB_DWORDS * 4, .ip_type = ip};
    struct drm_amdgpu_cs_chunk chunk = {
        .chunk_id = AMDGPU_CHUNK_ID_IB, .length_dw = sizeof(ib) / 4, .chunk_data = (uintptr_t)&ib};
    uint64_t chunks = (uintptr_t)&chunk;
    union drm_amdgpu_cs job = {
        .in = {.ctx_id = context, .num_chunks = 1, .chunks = (uintptr_t)&chunks}};
    ask("submission", DRM_IOCTL_AMDGPU_CS, &job);
    return job.out.handle;
}

static uint64_t seconds_from_now(time_t seconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec + seconds) * 1000000000 + (uint64_t)now.tv_nsec;
}

// returns 0 if the driver cancelled the job
static int await_end(uint32_t context, uint32_t ip, uint64_t job) {
    union drm_amdgpu_wait_cs wait = {.in = {.handle = job,
                                            .timeout = seconds_from_now(TIMEOUT_S),
                                            .ip_type = ip,
                                            .ctx_id = context}};
    const int failed = ioctl(gpu, DRM_IOCTL_AMDGPU_WAIT_CS, &wait) != 0;
    if (failed) {
        printf("the job ended: %s\n", strerror(errno));
        if (errno != ECANCELED && errno != ETIME) return 1;
        puts("ok stuck_job");
        return 0;
    }
    puts(wait.out.status ? "the job still waits" : "the job is done: nobody wrote the value");
    return 1;
}

int main(int argc, char** argv) {
    const int is_sdma = argc == 2 && strcmp(argv[1], "sdma") == 0;
    if (!is_sdma && (argc != 2 || strcmp(argv[1], "compute") != 0)) {
        fprintf(stderr, "usage: stuck_job sdma|compute\n");
        return 2;
    }
    gpu = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    if (gpu < 0) {
        perror("/dev/dri/renderD128");
        return 1;
    }
    const uint32_t context = make_context();
    uint32_t* page = make_page();
    const uint32_t ip = is_sdma ? AMDGPU_HW_IP_DMA : AMDGPU_HW_IP_COMPUTE;
    (is_sdma ? write_sdma : write_compute)(page, VA + VALUE_AT);
    const uint64_t job = submit(context, ip);
    puts("submitted");
    fflush(stdout);
    return await_end(context, ip, job);
}
