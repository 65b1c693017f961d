// SPDX-License-Identifier: MIT
//
// TestClient: one end of a vfio-user connection that can send anything, right or wrong, and read
// what comes back. Every wait is bounded (10 s, for slow machines); a wait that ends is a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/vfio_user/protocol.h"

namespace vgpu::softgpu::vfio_user::test {

using Bytes = std::vector<std::byte>;

/// What QEMU 11.1 proposes.
inline constexpr std::string_view kQemuCapabilities =
    R"({"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, )"
    R"("max_msg_fds": 16, "write_multiple": true, "max_data_xfer_size": 1048576, )"
    R"("pgsizes": 4096, "max_dma_maps": 65535}})";

template <typename T> Bytes as_bytes(const T& value) {
    const auto bytes = bytes_of(value);
    return {bytes.begin(), bytes.end()};
}
Bytes join(Bytes first, const Bytes& second);
Bytes text_with_nul(std::string_view text);
Bytes version_body(std::string_view capabilities, std::uint16_t major = 0, std::uint16_t minor = 0);

struct Incoming {
    Header header;
    Bytes body;
    std::vector<OwnedFd> fds;

    [[nodiscard]] bool is_error() const { return (header.flags & kError) != 0; }
    template <typename T> [[nodiscard]] T as() const {
        return body.size() < sizeof(T) ? T{} : load<T>(body);
    }
};

class TestClient {
public:
    explicit TestClient(const std::string& path);

    /// The VERSION exchange as QEMU makes it.
    void negotiate(std::string_view capabilities = kQemuCapabilities);

    /// Sends the bytes as they are; false if the server has closed.
    bool send_raw(std::span<const std::byte> bytes, std::span<const int> fds = {});
    /// Returns the message id.
    std::uint16_t send(Command command, const Bytes& body, std::uint32_t flags = 0,
                       std::span<const int> fds = {});
    void reply(const Header& request, const Bytes& body, std::uint32_t error = 0);
    [[nodiscard]] Bytes message(Command command, const Bytes& body, std::uint32_t flags = 0);

    /// The next message; nothing: the server has closed.
    [[nodiscard]] std::optional<Incoming> receive();
    /// Request and reply; checks id, command and type of the reply.
    [[nodiscard]] Incoming call(Command command, const Bytes& body, std::span<const int> fds = {});
    /// errno value of the error reply, 0 if the call succeeded.
    [[nodiscard]] int error_of(Command command, const Bytes& body, std::span<const int> fds = {});
    [[nodiscard]] bool is_closed_by_server();

    [[nodiscard]] Incoming read_region(std::uint32_t region, std::uint64_t offset,
                                       std::uint32_t count);
    [[nodiscard]] int write_region(std::uint32_t region, std::uint64_t offset, const Bytes& data);
    void post_write(std::uint32_t region, std::uint64_t offset, const Bytes& data);
    /// Everything sent before has been handled when this returns.
    void sync();

    void close() { socket_.reset(); }
    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    [[nodiscard]] bool read_exactly(std::span<std::byte> out, std::vector<OwnedFd>& fds);

    OwnedFd socket_;
    std::uint16_t next_id_ = 1;
};

/// Open descriptors of this process.
[[nodiscard]] std::size_t open_fds();
[[nodiscard]] OwnedFd new_eventfd();
/// The count of an eventfd, 0 if it was not signalled.
[[nodiscard]] std::uint64_t signals(int eventfd);

}  // namespace vgpu::softgpu::vfio_user::test
