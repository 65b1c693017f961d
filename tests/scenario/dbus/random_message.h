// SPDX-License-Identifier: MIT
//
// RandomMessages: calls of vgpud with random contents, from a seed. A call may have any object,
// interface, method and signature that a bus carries; most are from the XML. Texts and names of
// options are known to vgpud, or long, empty or unknown.
#pragma once

#include "tests/scenario/dbus/method_table.h"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::testing {

class RandomMessages {
public:
    explicit RandomMessages(std::uint64_t seed);

    struct Call {
        std::string path, interface, method, signature;

        [[nodiscard]] std::string text() const;
    };
    [[nodiscard]] Call next_call();
    /// Sends the call with random values and waits for the answer.
    Outcome send(sdbus::IConnection& bus, const Call& call);

private:
    [[nodiscard]] std::size_t below(std::size_t limit);
    template <typename List> [[nodiscard]] const auto& one_of(const List& list) {
        return list[below(list.size())];
    }
    [[nodiscard]] std::string text();
    /// A complete type, nested at most `depth` times.
    [[nodiscard]] std::string type(int depth);
    [[nodiscard]] std::string signature_for(const Method& method);
    /// Appends a value for each complete type of the signature.
    void append(sdbus::Message& message, std::string_view signature, int depth);
    void append_one(sdbus::Message& message, std::string_view type, int depth);
    void append_basic(sdbus::Message& message, char type);
    void append_array(sdbus::Message& message, std::string_view element, int depth);

    std::mt19937_64 random_;
    std::vector<Method> methods_;
};

}  // namespace vgpu::daemon::testing
