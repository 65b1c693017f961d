// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/gpu_control.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/softgpu/vfio_user/socket.h"

namespace vgpu::softgpu {

namespace {

using Json = nlohmann::json;

Json ok() {
    return {{"ok", true}};
}

/// The number `key` of `object`; `fallback` if the key is missing. EINVAL if the value is not an
/// integer in [low, high]; the message names key and range.
Result<std::uint64_t> number(const Json& object, const char* key, std::uint64_t low,
                             std::uint64_t high, std::uint64_t fallback) {
    const auto found = object.find(key);
    if (found == object.end()) return fallback;
    const bool is_in_range = found->is_number_unsigned() && found->get<std::uint64_t>() >= low &&
                             found->get<std::uint64_t>() <= high;
    if (!is_in_range)
        return fail(EINVAL, fmt::format("\"{}\" must be a number from {} to {}", key, low, high));
    return found->get<std::uint64_t>();
}

Result<std::string> text(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string())
        return fail(EINVAL, fmt::format("\"{}\" must be a string", key));
    return found->get<std::string>();
}

/// Without "vf" the fault applies to the PF, which reaches only the points "device" (its link) and
/// "irq" (its interrupts).
Result<Json> inject(Gpu& gpu, const Json& argument) {
    constexpr std::uint64_t kMaxCount = 1'000'000;
    constexpr std::uint64_t kMaxDelayMs = 600'000;
    TRY(const auto vf, number(argument, "vf", 0, gpu.spec().vfs, 0));
    TRY(const auto point_name, text(argument, "point"));
    TRY(const auto point, iov::FaultPlan::parse_point(point_name));
    TRY(const auto effect_name, text(argument, "effect"));
    TRY(const auto effect, iov::FaultPlan::parse_effect(effect_name));
    TRY(const auto count, number(argument, "count", 1, kMaxCount, 1));
    TRY(const auto delay_ms, number(argument, "delay_ms", 0, kMaxDelayMs, 0));
    TRY_VOID(gpu.inject({VfId{static_cast<std::uint8_t>(vf)}, point, effect,
                         static_cast<std::uint32_t>(count), std::chrono::milliseconds(delay_ms)}));
    return ok();
}

Result<Json> clear(Gpu& gpu, const Json&) {
    gpu.faults().clear();
    return ok();
}

/// Do not rename keys: tests read them by name.
Json statistics_of(Gpu& gpu, VfId id) {
    GpuVf& vf = gpu.vf(id);
    const iov::VfStatistics s = vf.statistics();
    const iov::Doorbells::Counters d = vf.doorbell_counters();
    return {{"vf", raw(id)},
            {"attached", vf.is_attached()},
            {"vram_bytes", vf.vram_size().count},
            {"run_ns", s.run_ns},
            {"switches", s.switches},
            {"wave_instructions", s.wave_instructions},
            {"illegal_instructions", s.illegal_instructions},
            {"faults", s.faults},
            {"bad_packets", s.bad_packets},
            {"bad_accesses", s.bad_accesses},
            {"doorbells", d.rung},
            {"doorbells_latched", d.latched},
            {"doorbells_dropped", d.dropped}};
}

Result<Json> stats(Gpu& gpu, const Json&) {
    const vfio_user::Counters& c = gpu.server().counters();
    Json answer{{"device",
                 {{"name", gpu.spec().name},
                  {"injected", gpu.faults().injected()},
                  {"world_switch", iov::WorldSwitch::name(gpu.world_switch().state())},
                  {"run_log_lost", gpu.lost_log_entries()},
                  {"messages", c.messages.load()},
                  {"error_replies", c.error_replies.load()},
                  {"malformed", c.malformed.load()},
                  {"refused_clients", c.refused_clients.load()},
                  {"dma_messages", c.dma_messages.load()}}},
                {"vfs", Json::array()}};
    for (std::uint32_t n = 1; n <= gpu.spec().vfs; ++n)
        answer["vfs"].push_back(statistics_of(gpu, VfId{static_cast<std::uint8_t>(n)}));
    return answer;
}

struct Verb {
    const char* name;
    Result<Json> (*run)(Gpu& gpu, const Json& argument);
};
constexpr std::array<Verb, 3> kVerbs{{{"inject", inject}, {"clear", clear}, {"stats", stats}}};

/// A request has exactly one verb, so that there is one answer per line.
Result<Json> execute(Gpu& gpu, const Json& request) {
    if (request.is_object() && request.size() == 1)
        for (const Verb& verb : kVerbs)
            if (request.contains(verb.name)) return verb.run(gpu, request[verb.name]);
    return fail(EINVAL, "send one of {\"inject\":{...}}, {\"clear\":{}}, {\"stats\":{}}");
}

}  // namespace

Result<std::unique_ptr<GpuControl>> GpuControl::create(Gpu& gpu, const std::string& path) {
    TRY(const sockaddr_un address, vfio_user::address_of(path));
    OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::unlink(path.c_str());  // stale: the directory's lock excludes another softgpu
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    if (!fd || ::bind(fd.get(), generic, sizeof(address)) != 0 ||
        ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(fd.get(), kMaxClients) != 0)
        return fail_errno(errno, "cannot listen at " + path);
    std::unique_ptr<GpuControl> control(new GpuControl(gpu, std::move(fd), path));
    TRY_VOID(
        gpu.server().watch(control->socket_.get(), [c = control.get()] { c->accept_client(); }));
    return control;
}

GpuControl::GpuControl(Gpu& gpu, OwnedFd socket, std::string path)
    : gpu_(gpu), socket_(std::move(socket)), path_(std::move(path)) {}

GpuControl::~GpuControl() {
    gpu_.server().unwatch(socket_.get());
    for (const auto& [fd, client] : clients_) gpu_.server().unwatch(fd);
    ::unlink(vgpu_sealed(path_.c_str()));
}

/// A line that is not JSON parses to a discarded value. That value is not an object, so execute()
/// answers with its usual error.
std::string GpuControl::answer(std::string_view line) {
    const Json request = Json::parse(line, nullptr, false);
    const Result<Json> answer = execute(gpu_, request);
    return answer ? answer->dump() : Json{{"error", answer.error().message}}.dump();
}

void GpuControl::accept_client() {
    OwnedFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd || clients_.size() >= kMaxClients) return;
    const int number = fd.get();
    if (!gpu_.server().watch(number, [this, number] { read_client(number); })) return;
    clients_[number].fd = std::move(fd);
}

void GpuControl::read_client(int fd) {
    const auto found = clients_.find(fd);
    if (found == clients_.end()) return;
    Client& client = found->second;
    std::array<char, kMaxLineBytes> buffer;
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return drop_client(fd);
    client.pending.append(buffer.data(), static_cast<std::size_t>(count));
    if (!serve_lines(client)) drop_client(fd);
}

bool GpuControl::serve_lines(Client& client) {
    for (auto end = client.pending.find('\n'); end != std::string::npos;
         end = client.pending.find('\n')) {
        const std::string reply = answer(std::string_view(client.pending).substr(0, end)) + "\n";
        client.pending.erase(0, end + 1);
        const ssize_t sent = ::send(client.fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
        if (sent != static_cast<ssize_t>(reply.size())) return false;
    }
    return client.pending.size() <= kMaxLineBytes;
}

void GpuControl::drop_client(int fd) {
    gpu_.server().unwatch(fd);
    clients_.erase(fd);
}

}  // namespace vgpu::softgpu
