// SPDX-License-Identifier: MIT
//
// Listening sockets of vgpu-exporter, from systemd and for --listen; non-blocking. Used by
// main.cpp.
#pragma once

#include "daemon/adapters/unique_fd.h"

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::exporter {

template <typename T> using OrWhy = tl::expected<T, std::string>;

/// `address`: "127.0.0.1:9482" or "[::1]:9482". Port 0: any free port.
OrWhy<daemon::adapters::UniqueFd> listen_at(const std::string& address);

/// The address of a listening socket, as for listen_at(), with the actual port.
std::string address_of(int socket);

/// Sockets passed by systemd (sd_listen_fds(3)), if any.
OrWhy<std::vector<daemon::adapters::UniqueFd>> passed_sockets();

}  // namespace vgpu::exporter
