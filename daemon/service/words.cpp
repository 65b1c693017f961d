// SPDX-License-Identifier: MIT
#include "daemon/service/words.h"

#include <algorithm>
#include <cctype>

namespace vgpu::daemon {

bool is_valid_name(std::string_view name) {
    constexpr std::size_t kMaxName = 63;
    if (name.empty() || name.size() > kMaxName || parse_uuid(name)) return false;
    if (std::isalpha(static_cast<unsigned char>(name.front())) == 0) return false;
    return std::all_of(name.begin(), name.end(), [](char letter) {
        return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
               letter == '_' || letter == '.';
    });
}

}  // namespace vgpu::daemon
