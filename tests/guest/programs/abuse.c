// SPDX-License-Identifier: MIT
// A guest that misbehaves with its VF by hand, without any driver. usage: abuse BDF
// hold|flood|storm SECONDS
//   hold    requests full access and never gives it back
//   flood   sends mailbox messages as fast as it can
//   storm   rings doorbells all over its page
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// dword offsets in BAR5: the mailbox that VF drivers of this GPU use
enum {
    TRN_DW0 = 0xe56,
    RCV_DW0 = 0xe5a,
    CONTROL = 0xe5e,
    BAR5_BYTES = 0x80000,
    BAR2_BYTES = 0x200000
};
enum { REQ_GPU_INIT_ACCESS = 1, READY_TO_ACCESS_GPU = 1 };

static volatile uint32_t* map_bar(const char* bdf, int bar, size_t bytes) {
    char path[128];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource%d", bdf, bar);
    const int file = open(path, O_RDWR | O_SYNC);
    void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || memory == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    return memory;
}

static void enable(const char* bdf) {
    char path[128];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/enable", bdf);
    const int file = open(path, O_WRONLY);
    if (file < 0 || write(file, "1", 1) != 1) perror(path);
    close(file);
}

// sends without waiting for the acknowledgement
static void send(volatile uint32_t* bar5, uint32_t message) {
    volatile uint8_t* control = (volatile uint8_t*)(bar5 + CONTROL);
    control[0] = 0;
    bar5[TRN_DW0] = message;
    control[0] = 1;
}

int main(int argc, char** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: abuse BDF hold|flood|storm SECONDS\n");
        return 2;
    }
    enable(argv[1]);
    volatile uint32_t* bar5 = map_bar(argv[1], 5, BAR5_BYTES);
    volatile uint32_t* bar2 = map_bar(argv[1], 2, BAR2_BYTES);
    const time_t end = time(NULL) + atoi(argv[3]);
    unsigned long sent = 0;
    uint32_t random = 1;
    if (strcmp(argv[2], "hold") == 0) {
        send(bar5, REQ_GPU_INIT_ACCESS);
        sent = 1;
        while (time(NULL) < end && bar5[RCV_DW0] != READY_TO_ACCESS_GPU) usleep(1000);
        printf("%s exclusive access\n", bar5[RCV_DW0] == READY_TO_ACCESS_GPU ? "got" : "never got");
        sleep(end > time(NULL) ? (unsigned)(end - time(NULL)) : 0);
    }
    while (time(NULL) < end) {
        random = random * 1664525 + 1013904223;
        if (strcmp(argv[2], "flood") == 0)
            send(bar5, random % 256);
        else
            bar2[random % (BAR2_BYTES / 4)] = random;
        sent++;
    }
    printf("ok abuse %lu\n", sent);
    return 0;
}
