// SPDX-License-Identifier: MIT
//
// FakeDevice: plain memory behind the server's seam that remembers what was asked of it, and
// Served: a server on a thread of its own with such devices at its sockets.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/vfio_user/server.h"
#include "tests/unit/vfio_user/test_client.h"

namespace vgpu::softgpu::vfio_user::test {

class FakeDevice final : public Device {
public:
    static constexpr std::uint32_t kMemory = 0;  ///< 2 MiB
    static constexpr std::uint32_t kSmall = 5;   ///< 4 KiB
    static constexpr std::uint32_t kVectors = 4;

    struct Calls {
        int attached = 0;
        int detached = 0;
        int resets = 0;
        int unmapped_all = 0;
        std::vector<DmaRange> mapped;
        std::vector<bool> had_fd;
        std::vector<DmaRange> unmapped;
        std::vector<std::string> irqs;  ///< "trigger 2 1+2 fds 2"
    };

    FakeDevice();

    [[nodiscard]] Calls calls() const;
    [[nodiscard]] std::shared_ptr<Peer> peer() const;
    /// Waits (bounded) until `wanted` holds for the calls so far.
    [[nodiscard]] bool wait_for(const std::function<bool(const Calls&)>& wanted) const;

    // Behaviour, set before the server runs or between synchronised messages.
    Error attach_error{0, ""};
    Error map_error{0, ""};
    std::vector<MmapArea> areas;        ///< of the memory region; empty: not mappable
    std::function<void()> during_call;  ///< of read(), write() and set_irqs(), before their work
    std::atomic<std::uint64_t> reset_count{0};

    std::string name() const override { return "fake"; }
    Result<> attach(std::shared_ptr<Peer> peer) override;
    void detach() override;
    RegionDescription region(std::uint32_t index) override;
    std::uint64_t region_size(std::uint32_t index) const override;
    IrqDescription irq(Irq index) override;
    Result<> set_irqs(const IrqRequest& request) override;
    Result<> dma_map(const DmaRange& range, int fd) override;
    void dma_unmap(const DmaRange& range) override;
    void dma_unmap_all() override;
    std::errc read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) override;
    std::errc write(std::uint32_t region, std::uint64_t offset,
                    std::span<const std::byte> data) override;
    void reset() override;
    std::uint64_t resets() const override { return reset_count; }

private:
    void note(const std::function<void(Calls&)>& change);

    OwnedFd memory_fd_;
    std::vector<std::byte> memory_;
    std::vector<std::byte> small_;
    std::vector<OwnedFd> eventfds_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    Calls calls_;
    std::shared_ptr<Peer> peer_;
};

/// A folder of its own for sockets, removed at the end.
class SocketFolder {
public:
    SocketFolder();
    ~SocketFolder();
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

private:
    std::string folder_;
};

/// A test's client is as slow as the machine; limits are for tests that are about them.
inline constexpr ServerOptions kPatient{
    .dma_limits = {.answer = std::chrono::seconds(10),
                   .stalls = {.capacity = std::chrono::seconds(10)},
                   .blocking = {.capacity = std::chrono::seconds(10)}}};

class Served {
public:
    explicit Served(ServerOptions options = kPatient);
    ~Served();

    [[nodiscard]] TestClient connect();  ///< to device, VERSION agreed
    [[nodiscard]] std::string path() const { return folder_.path("device.sock"); }
    [[nodiscard]] std::string other_path() const { return folder_.path("other.sock"); }
    [[nodiscard]] const Counters& counters() const { return server->counters(); }

    SocketFolder folder_;
    FakeDevice device;
    FakeDevice other;
    std::shared_ptr<BusySince> park = std::make_shared<BusySince>();
    std::unique_ptr<Server> server;
    std::thread thread;
};

}  // namespace vgpu::softgpu::vfio_user::test
