// SPDX-License-Identifier: MIT
//
// Connection: the client end of one vfio-user socket. transact() sends any message, good or bad,
// and returns the reply unchanged; the named calls build on it and throw VfError on an error reply.
// Memory without a usable fd is served by message DMA: serve_dma() answers the device's DMA_READ
// and DMA_WRITE from a thread of its own, also while a call waits for its reply.
//
// Any thread may call; one lock serialises the messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/deadline.h"
#include "tests/support/unique_fd.h"
#include "tests/support/vf_client/wire.h"

namespace vgpu::test {

struct Reply {
    std::uint32_t error = 0;  ///< errno value, 0: success
    std::vector<std::byte> body;
    std::vector<UniqueFd> fds;
};

struct Region {
    std::uint64_t size = 0;
    std::uint32_t flags = 0;
    std::uint64_t fd_offset = 0;
    std::vector<wire::MmapArea> areas;  ///< what may be mapped; empty: nothing
    UniqueFd fd;
};

/// Answers message DMA: fills or takes `data` at bus address `iova`; false: no such memory.
struct DmaHandler {
    std::function<bool(std::uint64_t iova, std::span<std::byte> data)> read;
    std::function<bool(std::uint64_t iova, std::span<const std::byte> data)> write;
};

class Connection {
public:
    /// Connects and negotiates the version; throws if the socket refuses or hangs up.
    explicit Connection(const std::string& socket_path);
    /// Connects without negotiation, for tests that send a wrong first message.
    struct Unnegotiated {};
    Connection(const std::string& socket_path, Unnegotiated);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] Region region(unsigned index);
    [[nodiscard]] wire::DeviceInfo info();
    [[nodiscard]] unsigned irq_count(unsigned index);
    void set_irq(unsigned index, int event_fd);
    void read(unsigned region, std::uint64_t offset, std::span<std::byte> out);
    void write(unsigned region, std::uint64_t offset, std::span<const std::byte> data);
    /// Does not wait for a reply, like a posted PCIe write; the device keeps the order with later
    /// calls.
    void write_posted(unsigned region, std::uint64_t offset, std::span<const std::byte> data);
    void dma_map(std::uint64_t iova, std::uint64_t size, int fd, std::uint64_t fd_offset);
    /// Maps memory without an fd, which the device reaches by messages only.
    void dma_map_by_message(std::uint64_t iova, std::uint64_t size);
    void dma_unmap(std::uint64_t iova, std::uint64_t size);
    void reset();

    void serve_dma(DmaHandler handler);

    Reply transact(wire::Command command, std::span<const std::byte> body,
                   std::span<const int> fds = {});
    /// Sends `bytes` without adding a message header.
    void send_raw(std::span<const std::byte> bytes, std::span<const int> fds = {});
    /// True once the server has closed the connection (waits up to `limit`).
    [[nodiscard]] bool closed_by_server(milliseconds limit);
    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    struct Message {
        wire::Header header{};
        std::vector<std::byte> body;
        std::vector<UniqueFd> fds;
    };

    void negotiate();
    void send(wire::Header header, std::span<const std::byte> body, std::span<const int> fds);
    Message receive();
    void receive_into(std::span<std::byte> out, std::vector<UniqueFd>& fds);
    void answer(const Message& request);
    bool serve_read(const Message& request, std::vector<std::byte>& out);
    bool serve_write(const Message& request, std::vector<std::byte>& out);
    void serve_loop();
    Reply call(wire::Command command, std::span<const std::byte> body,
               std::span<const int> fds = {});

    UniqueFd socket_;
    std::mutex mutex_;
    std::uint16_t next_id_ = 1;
    DmaHandler dma_;
    std::atomic<bool> stop_{false};
    UniqueFd wake_;
    std::thread server_;
};

}  // namespace vgpu::test
