// SPDX-License-Identifier: MIT
#include "tests/unit/vfio_user/fake_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace vgpu::softgpu::vfio_user::test {
namespace {

constexpr std::size_t kMemoryBytes = 2u << 20;
constexpr std::size_t kSmallBytes = 4096;
constexpr std::array kActionNames{"mask", "unmask", "trigger"};

Result<> result_of(const Error& error) {
    if (error.code == 0) return {};
    return tl::make_unexpected(error);
}

}  // namespace

FakeDevice::FakeDevice()
    : memory_fd_(::memfd_create("fake", MFD_CLOEXEC)),
      memory_(kMemoryBytes),
      small_(kSmallBytes),
      eventfds_(kVectors) {
    EXPECT_EQ(::ftruncate(memory_fd_.get(), kMemoryBytes), 0);
}

FakeDevice::Calls FakeDevice::calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
}

std::shared_ptr<Peer> FakeDevice::peer() const {
    const std::lock_guard lock(mutex_);
    return peer_;
}

bool FakeDevice::wait_for(const std::function<bool(const Calls&)>& wanted) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return wanted(calls_); });
}

void FakeDevice::note(const std::function<void(Calls&)>& change) {
    const std::lock_guard lock(mutex_);
    change(calls_);
    changed_.notify_all();
}

Result<> FakeDevice::attach(std::shared_ptr<Peer> peer) {
    TRY_VOID(result_of(attach_error));
    note([&](Calls& calls) {
        calls.attached++;
        peer_ = std::move(peer);
    });
    return {};
}

void FakeDevice::detach() {
    note([&](Calls& calls) {
        calls.detached++;
        peer_.reset();
    });
}

RegionDescription FakeDevice::region(std::uint32_t index) {
    RegionDescription region{
        .size = region_size(index), .flags = kRegionRead | kRegionWrite, .fd = {}, .areas = {}};
    if (region.size == 0) region.flags = 0;
    if (index != kMemory || areas.empty()) return region;
    region.fd.reset(::fcntl(memory_fd_.get(), F_DUPFD_CLOEXEC, 0));
    region.areas = areas;
    return region;
}

std::uint64_t FakeDevice::region_size(std::uint32_t index) const {
    if (index == kMemory) return memory_.size();
    return index == kSmall ? small_.size() : 0;
}

IrqDescription FakeDevice::irq(Irq index) {
    return {.flags = kIrqEventfd, .count = index == Irq::Msix ? kVectors : 0};
}

Result<> FakeDevice::set_irqs(const IrqRequest& request) {
    if (during_call) during_call();
    std::string line = fmt::format("{} {} {}+{}", kActionNames.at(std::size_t(request.action)),
                                   std::uint32_t(request.index), request.start, request.count);
    if (request.is_assignment) line += " fds";
    for (std::uint32_t i = 0; i < request.fds.size(); i++) {
        line += request.fds[i] ? " 1" : " 0";
        eventfds_[request.start + i] = std::move(request.fds[i]);
    }
    if (!request.is_selected.empty()) line += " bools";
    for (const std::uint8_t one : request.is_selected) line += fmt::format(" {}", one);
    note([&](Calls& calls) { calls.irqs.push_back(line); });
    return {};
}

Result<> FakeDevice::dma_map(const DmaRange& range, int fd) {
    TRY_VOID(result_of(map_error));
    note([&](Calls& calls) {
        calls.mapped.push_back(range);
        calls.had_fd.push_back(fd >= 0);
    });
    return {};
}

void FakeDevice::dma_unmap(const DmaRange& range) {
    note([&](Calls& calls) { calls.unmapped.push_back(range); });
}

void FakeDevice::dma_unmap_all() {
    note([&](Calls& calls) { calls.unmapped_all++; });
}

std::errc FakeDevice::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) {
    if (during_call) during_call();
    const auto& memory = region == kMemory ? memory_ : small_;
    EXPECT_LE(offset + out.size(), memory.size());
    std::memcpy(out.data(), memory.data() + offset, out.size());
    return {};
}

std::errc FakeDevice::write(std::uint32_t region, std::uint64_t offset,
                            std::span<const std::byte> data) {
    if (during_call) during_call();
    auto& memory = region == kMemory ? memory_ : small_;
    EXPECT_LE(offset + data.size(), memory.size());
    std::memcpy(memory.data() + offset, data.data(), data.size());
    return {};
}

void FakeDevice::reset() {
    reset_count++;
    note([](Calls& calls) { calls.resets++; });
}

SocketFolder::SocketFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vgpu-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
}

SocketFolder::~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

Served::Served(ServerOptions options) {
    auto made = Server::create(options, park);
    EXPECT_TRUE(made.has_value());
    server = std::move(*made);
    EXPECT_TRUE(server->listen(path(), device).has_value());
    EXPECT_TRUE(server->listen(other_path(), other).has_value());
    thread = std::thread([this] { server->run(); });
}

Served::~Served() {
    server->stop();
    thread.join();
}

TestClient Served::connect() {
    TestClient client(path());
    client.negotiate();
    return client;
}

}  // namespace vgpu::softgpu::vfio_user::test
