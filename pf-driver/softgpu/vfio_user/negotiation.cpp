// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/negotiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::vfio_user {
namespace {

using Json = nlohmann::json;

constexpr const char* kMaxTransferKey = "max_data_xfer_size";

/// A capability that is a limit; the reply has the smaller of the client's and the server's limit.
struct NumberLimit {
    const char* key;
    std::uint64_t max;  ///< the server's limit
};
constexpr std::array kNumbers{
    NumberLimit{"max_msg_fds", kMaxFds},
    NumberLimit{kMaxTransferKey, kMaxTransfer},
    NumberLimit{"max_dma_maps", kMaxDmaMaps},
};
constexpr std::size_t kMaxJsonDepth = 8;

/// The version data up to its first NUL. EINVAL if the data is too long or its last byte is not a
/// NUL.
Result<std::string> text_of(std::span<const std::byte> data) {
    if (data.size() > kMaxVersionData)
        return fail(EINVAL, fmt::format("{} bytes of version data", data.size()));
    if (data.back() != std::byte{0}) return fail(EINVAL, "version data does not end with a NUL");
    std::string text(data.size(), '\0');
    std::transform(data.begin(), data.end(), text.begin(),
                   [](std::byte b) { return static_cast<char>(b); });
    text.resize(text.find('\0'));
    return text;
}

/// Parses a JSON object. EINVAL if the text is not an object or is nested deeper than
/// kMaxJsonDepth. The limit applies during parsing, so that no deeper value is built.
Result<Json> object_of(const std::string& text) {
    bool is_too_deep = false;
    const auto limit = [&](int depth, Json::parse_event_t, Json&) {
        is_too_deep |= static_cast<std::size_t>(depth) > kMaxJsonDepth;
        return !is_too_deep;
    };
    Json parsed = Json::parse(text, limit, false);
    if (parsed.is_discarded() || is_too_deep || !parsed.is_object())
        return fail(EINVAL, "version data is not a JSON object");
    return parsed;
}

Result<> limit_numbers(const Json& offered, Json& agreed) {
    for (const NumberLimit& limit : kNumbers) {
        if (!offered.contains(limit.key)) continue;
        const Json& value = offered.at(limit.key);
        if (!value.is_number_unsigned())
            return fail(EINVAL, fmt::format("capability {} is not a number", limit.key));
        agreed[limit.key] = std::min(value.get<std::uint64_t>(), limit.max);
    }
    return {};
}

Result<Json> capabilities_of(const Json& offered) {
    Json agreed = Json::object();
    if (!offered.is_object()) return fail(EINVAL, "capabilities are not a JSON object");
    TRY_VOID(limit_numbers(offered, agreed));
    if (offered.contains("pgsizes")) {
        const Json& value = offered.at("pgsizes");
        if (!value.is_number_unsigned() || (value.get<std::uint64_t>() & kPageBytes) == 0)
            return fail(EINVAL, "the client does not support 4 KiB pages");
        agreed["pgsizes"] = kPageBytes;
    }
    if (offered.contains("write_multiple")) {
        const Json& value = offered.at("write_multiple");
        if (!value.is_boolean()) return fail(EINVAL, "capability write_multiple is not a boolean");
        agreed["write_multiple"] = value.get<bool>();
    }
    return agreed;
}

}  // namespace

Result<Agreement> agree(std::span<const std::byte> body) {
    const auto proposed = load<Version>(body);
    if (proposed.major != kMajor)
        return fail(EPROTONOSUPPORT, fmt::format("protocol {}.{}, this server speaks {}.{}",
                                                 proposed.major, proposed.minor, kMajor, kMinor));
    Agreement agreement{.version = {.major = kMajor, .minor = std::min(proposed.minor, kMinor)}};
    body = body.subspan(sizeof(Version));
    if (body.empty()) return agreement;
    TRY(const std::string text, text_of(body));
    TRY(const Json offered, object_of(text));
    Json reply = Json::object();
    if (offered.contains("capabilities")) {
        TRY(Json agreed, capabilities_of(offered.at("capabilities")));
        agreement.max_transfer = agreed.value(kMaxTransferKey, kMaxTransfer);
        // Smaller transfers would need thousands of messages instead of a few.
        if (agreement.max_transfer < kMinTransfer)
            return fail(EINVAL, fmt::format("{} {}: it must be at least {}", kMaxTransferKey,
                                            agreement.max_transfer, kMinTransfer));
        reply["capabilities"] = std::move(agreed);
    }
    agreement.json = reply.dump();
    return agreement;
}

}  // namespace vgpu::softgpu::vfio_user
