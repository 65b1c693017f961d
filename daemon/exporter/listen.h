// SPDX-License-Identifier: MIT
//
// The listening sockets of vgpu-exporter: sockets that systemd passes, and new sockets for
// --listen. All sockets are non-blocking. Used by main.cpp.
#pragma once

#include "daemon/adapters/unique_fd.h"

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::exporter {

/// A value, or an error text that says why there is no value.
template <typename T> using OrWhy = tl::expected<T, std::string>;

/// Listens at `address`, a numeric IP address with a port, such as "127.0.0.1:9482" or
/// "[::1]:9482". Port 0: any free port.
OrWhy<daemon::adapters::UniqueFd> listen_at(const std::string& address);

/// The address of a listening socket, in the form of listen_at(), with the actual port.
std::string address_of(int socket);

/// The sockets that systemd has passed (sd_listen_fds(3)); may be empty. Fails if one of them is
/// not a listening stream socket.
OrWhy<std::vector<daemon::adapters::UniqueFd>> passed_sockets();

}  // namespace vgpu::exporter
