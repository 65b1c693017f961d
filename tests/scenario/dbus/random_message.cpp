// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/random_message.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <array>
#include <limits>

namespace vgpu::daemon::testing {

namespace {

constexpr int kDepth = 4;

constexpr std::array<std::string_view, 8> kPaths{"/org/vgpu1",
                                                 "/org/vgpu1/gpu/gpu0",
                                                 "/org/vgpu1/gpu/gpu0/vf/1",
                                                 "/org/vgpu1/gpu/gpu0/vf/2",
                                                 "/org/vgpu1/job/1",
                                                 "/org/vgpu1/gpu/none",
                                                 "/org/freedesktop/LogControl1",
                                                 "/"};

constexpr std::array<std::string_view, 18> kTexts{
    "",
    "gpu0",
    "gpu0/vf1",
    "train",
    "job:1",
    "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10",
    "none",
    "small",
    "equal",
    "State",
    "*",
    "\xc3\xa9\xe2\x80\x9c",
    "{}",
    "[[[[[[[[",
    "%s%n",
    "../../etc/passwd",
    R"({"profiles": {"p": {"resources": {"vram": "64MiB"}}}, "configs": {}})",
    "org.vgpu1.Vf"};

constexpr std::array<std::string_view, 22> kOptions{
    "name",       "vram_bytes", "weight", "quantum_us", "wait_ms", "owner",
    "owner_name", "force",      "uid",    "gid",        "profile", "min_pct",
    "max_pct",    "dry_run",    "label",  "generation", "lease_s", "cu_mask",
    "priority",   "properties", "gpu",    "limit"};

constexpr std::string_view kBasicTypes = "ybnqiuxtdsogh";

/// The end of the complete type that begins at `at`.
std::size_t end_of_type(std::string_view signature, std::size_t at) {
    while (signature[at] == 'a') ++at;
    const char open = signature[at];
    if (open != '(' && open != '{') return at + 1;
    int depth = 0;
    do {
        if (signature[at] == '(' || signature[at] == '{') ++depth;
        if (signature[at] == ')' || signature[at] == '}') --depth;
        ++at;
    } while (depth > 0);
    return at;
}

/// Appends `number` if the type is an integer; otherwise returns false.
bool append_integer(sdbus::Message& message, char type, std::uint64_t number) {
    switch (type) {
        case 'y':
            message << static_cast<std::uint8_t>(number);
            return true;
        case 'n':
            message << static_cast<std::int16_t>(number);
            return true;
        case 'q':
            message << static_cast<std::uint16_t>(number);
            return true;
        case 'i':
            message << static_cast<std::int32_t>(number);
            return true;
        case 'u':
            message << static_cast<std::uint32_t>(number);
            return true;
        case 'x':
            message << static_cast<std::int64_t>(number);
            return true;
        case 't':
            message << number;
            return true;
        default:
            return false;
    }
}

}  // namespace

RandomMessages::RandomMessages(std::uint64_t seed)
    : random_(seed), methods_(methods_of_the_xml()) {}

std::size_t RandomMessages::below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
}

std::string RandomMessages::Call::text() const {
    return fmt::format("{} {}.{}({})", path, interface, method, signature);
}

std::string RandomMessages::text() {
    constexpr std::size_t kLong = 3000;
    const std::size_t kind = below(10);
    if (kind == 0) return std::string(below(kLong), 'x');
    return std::string(kind < 4 ? one_of(kOptions) : one_of(kTexts));
}

std::string RandomMessages::type(int depth) {
    const std::size_t kind = depth > 0 ? below(10) : 0;
    if (kind == 6) return "a{sv}";
    if (kind == 7) return "a" + type(depth - 1);
    if (kind == 8) return "(" + type(depth - 1) + type(depth - 1) + ")";
    if (kind == 9) return "v";
    return std::string(1, one_of(kBasicTypes));
}

std::string RandomMessages::signature_for(const Method& method) {
    std::string right;
    for (const Argument& argument : method.arguments) right += argument.type;
    if (below(3) != 0) return right;
    std::string other;
    for (std::size_t i = below(4); i > 0; --i) other += type(kDepth);
    return below(2) == 0 ? right + other : other;
}

RandomMessages::Call RandomMessages::next_call() {
    constexpr std::string_view kProperties = "org.freedesktop.DBus.Properties";
    const Method& method = one_of(methods_);
    Call call{.path = std::string(one_of(kPaths)),
              .interface = method.interface,
              .method = method.name,
              .signature = signature_for(method)};
    if (below(2) == 0) call.path = object_of(method.interface);
    const std::size_t kind = below(12);
    if (kind == 0) call.interface = one_of(methods_).interface;
    if (kind == 1) call.method = "NoSuchMethod";
    if (kind == 2) call = {call.path, std::string(kProperties), "Set", "ssv"};
    if (kind == 3) call = {call.path, std::string(kProperties), "Get", "ss"};
    if (kind == 4) call = {call.path, std::string(kProperties), "GetAll", "s"};
    return call;
}

Outcome RandomMessages::send(sdbus::IConnection& bus, const Call& call) {
    const auto object = sdbus::createProxy(bus, "org.vgpu1", call.path);
    object->finishRegistration();
    auto message = object->createMethodCall(call.interface, call.method);
    append(message, call.signature, kDepth);
    try {
        static_cast<void>(object->callMethod(message));
        return {};
    } catch (const sdbus::Error& error) {
        return {.error = error.getName(), .text = error.getMessage()};
    }
}

void RandomMessages::append(sdbus::Message& message, std::string_view signature, int depth) {
    while (!signature.empty()) {
        const std::size_t end = end_of_type(signature, 0);
        append_one(message, signature.substr(0, end), depth);
        signature.remove_prefix(end);
    }
}

void RandomMessages::append_one(sdbus::Message& message, std::string_view type, int depth) {
    if (type.front() == 'a') return append_array(message, type.substr(1), depth);
    const std::string inside(type.substr(1, type.size() > 2 ? type.size() - 2 : 0));
    if (type.front() == '(') {
        message.openStruct(inside);
        append(message, inside, depth);
        message.closeStruct();
    } else if (type.front() == '{') {
        message.openDictEntry(inside);
        append(message, inside, depth);
        message.closeDictEntry();
    } else if (type.front() == 'v') {
        const std::string held = this->type(depth - 1);
        message.openVariant(held);
        append(message, held, depth - 1);
        message.closeVariant();
    } else {
        append_basic(message, type.front());
    }
}

void RandomMessages::append_array(sdbus::Message& message, std::string_view element, int depth) {
    message.openContainer(std::string(element));
    for (std::size_t i = below(4); i > 0; --i) append_one(message, element, depth);
    message.closeContainer();
}

void RandomMessages::append_basic(sdbus::Message& message, char type) {
    constexpr std::array<std::uint64_t, 10> kNumbers{
        0, 1, 2, 16, 100, 1000, 64u << 20, 0x7fffffff, 0xffffffff, ~std::uint64_t{0}};
    const std::uint64_t number = below(3) == 0 ? random_() : one_of(kNumbers);
    if (append_integer(message, type, number)) return;
    if (type == 'b')
        message << (number % 2 != 0);
    else if (type == 'd')
        message << (number % 5 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                    : static_cast<double>(number) / 3);
    else if (type == 'o')
        message << sdbus::ObjectPath(std::string(one_of(kPaths)));
    else if (type == 'g')
        message << sdbus::Signature("a{sv}");
    else if (type == 'h')
        message << sdbus::UnixFd(::open("/dev/null", O_RDWR | O_CLOEXEC), sdbus::adopt_fd);
    else
        message << text();
}

}  // namespace vgpu::daemon::testing
