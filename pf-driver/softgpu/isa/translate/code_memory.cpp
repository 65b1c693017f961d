// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/translate/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "pf-driver/softgpu/isa/translate/translator.h"

namespace vgpu::softgpu::isa {

Result<std::unique_ptr<CodeMemory>> CodeMemory::create(std::size_t chunks) {
    if (!can_translate()) return fail(ENOSYS, "this processor lacks the AVX-512 of Ice Lake");
    const std::size_t size = chunks * kChunk.count;
    const int fd = ::memfd_create("vgpu-code", MFD_CLOEXEC);
    if (fd < 0) return fail_errno(errno, "cannot create a memfd for translated code");
    void* write = MAP_FAILED;
    void* run = MAP_FAILED;
    int error = ::ftruncate(fd, static_cast<off_t>(size)) != 0 ? errno : 0;
    if (error == 0) {
        write = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        run = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
        if (write == MAP_FAILED || run == MAP_FAILED) error = errno;
    }
    ::close(fd);
    if (error == 0)
        return std::unique_ptr<CodeMemory>(new CodeMemory(
            static_cast<std::byte*>(write), static_cast<const std::byte*>(run), chunks));
    if (write != MAP_FAILED) ::munmap(write, size);
    if (run != MAP_FAILED) ::munmap(run, size);
    return fail_errno(error, "cannot map memory for translated code");
}

CodeMemory::CodeMemory(std::byte* write, const std::byte* run, std::size_t chunks)
    : write_(write), run_(run), chunks_(chunks) {
    for (std::size_t i = chunks; i-- > 0;) free_.push_back(i);
}

CodeMemory::~CodeMemory() {
    ::munmap(write_, chunks_ * kChunk.count);
    ::munmap(const_cast<std::byte*>(run_), chunks_ * kChunk.count);
}

CodeChunk CodeMemory::take() {
    const std::scoped_lock hold(lock_);
    if (free_.empty()) return {};
    const std::size_t at = free_.back() * kChunk.count;
    free_.pop_back();
    return {write_ + at, run_ + at};
}

void CodeMemory::release(const CodeChunk& chunk) {
    const std::scoped_lock hold(lock_);
    free_.push_back(static_cast<std::size_t>(chunk.write - write_) / kChunk.count);
}

CodeChunk CodeShare::take() {
    if (allocated_.fetch_add(1) >= limit_) {
        allocated_.fetch_sub(1);
        return {};
    }
    const CodeChunk chunk = memory_.take();
    if (chunk.write == nullptr) allocated_.fetch_sub(1);
    return chunk;
}

void CodeShare::release(const CodeChunk& chunk) {
    memory_.release(chunk);
    allocated_.fetch_sub(1);
}

}  // namespace vgpu::softgpu::isa
