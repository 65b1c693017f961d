// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/session.h"

#include <cstring>
#include <limits>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/vfio_user/negotiation.h"

namespace vgpu::softgpu::vfio_user {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMaxSingleWrite = sizeof(SingleWrite::data);

bool is_page_aligned(std::uint64_t value) {
    return value % kPageBytes == 0;
}

// True if exactly one bit of `mask` is set in `flags`.
bool has_one_of(std::uint32_t flags, std::uint32_t mask) {
    return std::has_single_bit(flags & mask);
}

IrqAction action_of(std::uint32_t flags) {
    if ((flags & kIrqActionMask) != 0) return IrqAction::Mask;
    return (flags & kIrqActionUnmask) != 0 ? IrqAction::Unmask : IrqAction::Trigger;
}

// True if the range's end does not fit into 64 bits.
bool wraps(std::uint64_t address, std::uint64_t size) {
    return size > std::numeric_limits<std::uint64_t>::max() - address;
}

}  // namespace

const std::array<Session::Row, Session::kRows> Session::kTable = [] {
    std::array<Row, kRows> table{};
#define COMMAND(name, number, handler, body_bytes, max_fds, doc) \
    table.at(number) = {&Session::handler, (body_bytes), (max_fds)};
#include "pf-driver/softgpu/vfio_user/protocol.def"
#undef COMMAND
    return table;
}();

Session::Session(OwnedFd socket, ServedDevice& served, SessionContext& context)
    : served_(served),
      context_(context),
      channel_(std::make_shared<Channel>(std::move(socket))),
      memory_(std::make_shared<ClientMemory>(channel_, context.counters, context.work, context.park,
                                             context.dma_limits)) {}

Session::~Session() {
    close();
}

/// Detaches the channel from the server's loop first, because threads of the device may use the
/// channel for longer than the server exists. Removes the DMA maps before Device::detach(), so that
/// the device does not access the client's memory any more when detach() is called.
void Session::close() {
    if (state_ == State::Closed) return;
    state_ = State::Closed;
    channel_->set_loop({});
    memory_->close();
    channel_->shut_down();
    if (served_.attached != this) return;
    served_.attached = nullptr;
    served_.device.dma_unmap_all();
    served_.device.detach();
    record_.reset();
    served_.limiter.count(1, Clock::now());  // a detach counts as a reset
    log::info("{}: client detached", served_.device.name());
}

void Session::close_broken(const char* what) {
    context_.counters->malformed++;
    log::warn("{}: client closed: {}", served_.device.name(), what);
    close();
}

/// A client may send messages and then close the socket. So the session serves all messages that
/// have arrived, in several slices if necessary, before it handles the end of the stream. It drops
/// the remaining messages if the limiter blocks the device or if replies cannot be sent.
void Session::on_readable() {
    if (state_ == State::Closed) return;
    const auto got = channel_->fill();
    serve_received();
    if (got == Channel::Input::Closed && !has_unserved_) close();
}

void Session::on_writable() {
    if (state_ == State::Closed) return;
    if (channel_->flush() != std::errc{}) return close();
    serve_received();
}

bool Session::may_serve(Time now) const {
    return state_ != State::Closed && !channel_->has_backlog() && served_.limiter.free_at() <= now;
}

void Session::serve_received() {
    Time now = Clock::now();
    const Time end = now + context_.serve_time;
    bool has_more = true;
    while (has_more && now < end && may_serve(now)) {
        context_.work->begin(now);
        const std::uint64_t resets = served_.device.resets();
        has_more = serve_piece();
        now = Clock::now();
        served_.limiter.count(served_.device.resets() - resets, now);
    }
    has_unserved_ = has_more && may_serve(now);
    update_blocked(now);
    if (state_ == State::Closed || writes_ || !channel_->is_broken()) return;
    answer(channel_->broken_header(), {.error = std::errc::message_size});
    close_broken("a message of impossible size");
}

bool Session::serve_piece() {
    if (writes_) {
        write_next();
        return true;
    }
    const auto message = channel_->next(*memory_);
    if (message) serve(*message);
    return message.has_value();
}

void Session::update_blocked(Time now) {
    const Time until = served_.limiter.free_at();
    const bool is_paused = state_ != State::Closed && until > now;
    if (is_paused != blocked_until_.has_value()) channel_->pause_input(is_paused);
    blocked_until_ = is_paused ? std::optional(until) : std::nullopt;
}

void Session::serve(const Message& message) {
    context_.counters->messages++;
    if ((message.header.flags & kTypeMask) != kTypeRequest)
        return close_broken("a message that is neither request nor reply");
    Reply reply = handle(message);
    if (reply.comes_later) return;
    answer(message.header, std::move(reply));
    if (closes_after_reply_) close();
}

/// Checks the minimum size and the maximum number of descriptors of the request. The handlers check
/// exact sizes and values.
Session::Reply Session::handle(const Message& request) {
    const std::uint16_t command = request.header.command;
    if (state_ == State::Negotiating) {
        closes_after_reply_ = true;  // attach_device() clears it if it attaches the client
        if (command != static_cast<std::uint16_t>(Command::Version))
            return {.error = std::errc::protocol_error};
    }
    if (command >= kTable.size() || kTable[command].handler == nullptr)
        return not_supported(request);
    const Row& row = kTable[command];
    if (request.body.size() < row.body_bytes) return {.error = std::errc::invalid_argument};
    if (request.fds->count() > row.max_fds || request.fds->is_truncated())
        return {.error = std::errc::invalid_argument};
    return (this->*row.handler)(request);
}

/// Sends one reply, unless the request has kNoReply. An error reply has no payload.
void Session::answer(const Header& request, Reply reply) {
    const bool is_error = reply.error != std::errc{};
    if (is_error) {
        context_.counters->error_replies++;
        log::debug("{}: command {} refused: {}", served_.device.name(), request.command,
                   std::make_error_code(reply.error).message());
    }
    if ((request.flags & kNoReply) != 0) {
        if (is_error) context_.counters->suppressed_errors++;
        return;
    }
    const std::size_t size = sizeof(Header) + (is_error ? 0 : reply.body);
    const std::span message{context_.reply.get(), size};
    store(message, 0,
          Header{.id = request.id,
                 .command = request.command,
                 .size = static_cast<std::uint32_t>(size),
                 .flags = kTypeReply | (is_error ? kError : 0),
                 .error = static_cast<std::uint32_t>(reply.error)});
    if (channel_->send(message, reply.fd.get()) != std::errc{}) close();
}

std::span<std::byte> Session::reply_body() {
    return {context_.reply.get() + sizeof(Header), kMaxMessage - sizeof(Header)};
}

template <typename T> Session::Reply Session::reply_with(const T& payload) {
    store(reply_body(), 0, payload);
    return {.body = sizeof(T)};
}

Session::Reply Session::refuse(const Error& error) {
    log::debug("{}: {}", served_.device.name(), error.message);
    return {.error = static_cast<std::errc>(error.code == 0 ? EINVAL : error.code)};
}

Session::Reply Session::not_supported(const Message&) {
    return {.error = std::errc::not_supported};
}

std::errc Session::attach_device() {
    if (served_.attached != nullptr) {
        context_.counters->refused_clients++;
        log::warn("{}: a second client was refused", served_.device.name());
        return std::errc::device_or_resource_busy;
    }
    if (!served_.path.empty()) record_.emplace(served_.path, channel_->fd());
    if (auto attached = served_.device.attach(memory_); !attached) {
        record_.reset();
        context_.counters->refused_clients++;
        log::warn("{}: client refused: {}", served_.device.name(), attached.error().message);
        return refuse(attached.error()).error;
    }
    served_.attached = this;
    state_ = State::Attached;
    closes_after_reply_ = false;
    log::info("{}: client attached", served_.device.name());
    return {};
}

/// Sets the transfer limit before it attaches the client, because the device may start DMA at once.
Session::Reply Session::negotiate(const Message& request) {
    if (state_ != State::Negotiating) return {.error = std::errc::invalid_argument};
    const auto agreement = agree(request.body);
    if (!agreement) {
        log::warn("{}: client refused: {}", served_.device.name(), agreement.error().message);
        return refuse(agreement.error());
    }
    memory_->set_max_transfer(agreement->max_transfer);
    if (const std::errc error = attach_device(); error != std::errc{}) return {.error = error};
    Reply reply = reply_with(agreement->version);
    const std::string& text = agreement->json;
    if (text.empty()) return reply;
    std::memcpy(reply_body().data() + reply.body, text.c_str(), text.size() + 1);
    reply.body += text.size() + 1;
    return reply;
}

/// Makes the checks of VFIO_IOMMU_MAP_DMA, for example: the range is aligned and not empty, and
/// neither wraps nor overlaps a mapped range.
std::errc Session::check_map(const DmaMap& map) const {
    constexpr std::uint32_t kKnown = kDmaMapRead | kDmaMapWrite;
    if (map.argsz < sizeof(DmaMap)) return std::errc::invalid_argument;
    if ((map.flags & ~kKnown) != 0 || (map.flags & kKnown) == 0) return std::errc::invalid_argument;
    if (map.size == 0 || wraps(map.address, map.size)) return std::errc::invalid_argument;
    if (!is_page_aligned(map.address | map.size | map.offset)) return std::errc::invalid_argument;
    if (wraps(map.offset, map.size)) return std::errc::invalid_argument;
    const auto after = maps_.lower_bound(map.address);
    if (after != maps_.end() && after->first - map.address < map.size)
        return std::errc::file_exists;
    if (after != maps_.begin()) {
        const auto& [address, before] = *std::prev(after);
        if (map.address - address < before.size) return std::errc::file_exists;
    }
    return maps_.size() < kMaxDmaMaps ? std::errc{} : std::errc::no_space_on_device;
}

/// Records the map only after the device has accepted it.
Session::Reply Session::dma_map(const Message& request) {
    const auto map = load<DmaMap>(request.body);
    if (const std::errc error = check_map(map); error != std::errc{}) return {.error = error};
    const DmaRange range{.address = Iova{map.address},
                         .size = map.size,
                         .fd_offset = map.offset,
                         .is_readable = (map.flags & kDmaMapRead) != 0,
                         .is_writeable = (map.flags & kDmaMapWrite) != 0};
    const int fd = request.fds->count() == 0 ? -1 : request.fds->all().front().get();
    if (auto mapped = served_.device.dma_map(range, fd); !mapped) return refuse(mapped.error());
    maps_.emplace(map.address, range);
    return {};
}

Session::Reply Session::dma_unmap_all(const Message& request) {
    const auto unmap = load<DmaUnmap>(request.body);
    if (unmap.address != 0 || unmap.size != 0) return {.error = std::errc::invalid_argument};
    maps_.clear();
    served_.device.dma_unmap_all();
    return reply_with(unmap);
}

Session::Reply Session::dma_unmap(const Message& request) {
    const auto unmap = load<DmaUnmap>(request.body);
    if ((unmap.flags & kDmaUnmapDirtyBitmap) != 0) return not_supported(request);
    if (unmap.argsz < sizeof(DmaUnmap)) return {.error = std::errc::invalid_argument};
    if (unmap.flags == kDmaUnmapAll) return dma_unmap_all(request);
    if (unmap.flags != 0 || unmap.size == 0 || wraps(unmap.address, unmap.size) ||
        !is_page_aligned(unmap.address | unmap.size))
        return {.error = std::errc::invalid_argument};
    // As in VFIO: removes all maps inside the range; EINVAL if the range cuts a map in two.
    const std::uint64_t end = unmap.address + unmap.size;
    const auto first = maps_.lower_bound(unmap.address);
    const auto last = maps_.lower_bound(end);
    if (first != maps_.begin()) {
        const auto& [address, before] = *std::prev(first);
        if (unmap.address - address < before.size) return {.error = std::errc::invalid_argument};
    }
    if (first == last) return {.error = std::errc::no_such_file_or_directory};
    const auto& [address, inside] = *std::prev(last);
    if (address + inside.size > end) return {.error = std::errc::invalid_argument};
    served_.device.dma_unmap({.address = Iova{unmap.address}, .size = unmap.size});
    maps_.erase(first, last);
    return reply_with(unmap);
}

Session::Reply Session::device_info(const Message& request) {
    if (load<DeviceInfo>(request.body).argsz < sizeof(DeviceInfo))
        return {.error = std::errc::invalid_argument};
    return reply_with(DeviceInfo{
        .flags = kDeviceReset | kDevicePci, .num_regions = kRegionCount, .num_irqs = kIrqCount});
}

Session::Reply Session::region_info(const Message& request) {
    const auto asked = load<RegionInfo>(request.body);
    if (asked.index >= kRegionCount || asked.argsz < sizeof(RegionInfo))
        return {.error = std::errc::invalid_argument};
    RegionDescription region = served_.device.region(asked.index);
    RegionInfo info{.flags = region.flags, .index = asked.index, .size = region.size};
    if (!region.fd) return reply_with(info);
    const bool is_fully_mappable = region.areas.size() == 1 && region.areas.front().offset == 0 &&
                                   region.areas.front().size == region.size;
    info.flags |= kRegionMmap;
    if (!is_fully_mappable) {
        info.flags |= kRegionCaps;
        info.cap_offset = sizeof(RegionInfo);
        info.argsz +=
            static_cast<std::uint32_t>(sizeof(SparseMmap) + region.areas.size() * sizeof(MmapArea));
    }
    Reply reply = reply_with(info);
    // If the client's buffer is too small, the client repeats the request with the argsz of this
    // reply.
    if (asked.argsz < info.argsz) return reply;
    reply.fd = std::move(region.fd);
    if (is_fully_mappable) return reply;
    const SparseMmap sparse{.area_count = static_cast<std::uint32_t>(region.areas.size())};
    store(reply_body(), reply.body, sparse);
    reply.body += sizeof(sparse);
    for (const MmapArea& area : region.areas) {
        store(reply_body(), reply.body, area);
        reply.body += sizeof(area);
    }
    return reply;
}

Session::Reply Session::irq_info(const Message& request) {
    const auto asked = load<IrqInfo>(request.body);
    if (asked.index >= kIrqCount || asked.argsz < sizeof(IrqInfo))
        return {.error = std::errc::invalid_argument};
    const IrqDescription irq = served_.device.irq(Irq{asked.index});
    return reply_with(IrqInfo{.flags = irq.flags, .index = asked.index, .count = irq.count});
}

/// Refuses combinations that VFIO_DEVICE_SET_IRQS does not allow (<linux/vfio.h>).
std::errc Session::check_irqs(const IrqSet& set, const Message& request) const {
    constexpr auto kInvalid = std::errc::invalid_argument;
    if (set.argsz < sizeof(IrqSet) || set.index >= kIrqCount) return kInvalid;
    if ((set.flags & ~(kIrqDataTypes | kIrqActions)) != 0) return kInvalid;
    if (!has_one_of(set.flags, kIrqDataTypes) || !has_one_of(set.flags, kIrqActions))
        return kInvalid;
    const std::uint32_t vectors = served_.device.irq(Irq{set.index}).count;
    if (set.start > vectors || set.count > vectors - set.start) return kInvalid;
    const std::size_t fds = request.fds->count();
    if ((set.flags & kIrqDataEventfd) != 0) {
        if (set.count == 0 || (fds != 0 && fds != set.count)) return kInvalid;
        return (set.flags & kIrqActionTrigger) != 0 ? std::errc{} : std::errc::not_supported;
    }
    if (fds != 0) return kInvalid;
    if ((set.flags & kIrqDataBool) != 0) {
        const bool fits = request.body.size() - sizeof(IrqSet) >= set.count;
        return set.count != 0 && fits ? std::errc{} : kInvalid;
    }
    const bool disables = set.start == 0 && (set.flags & kIrqActionTrigger) != 0;
    return set.count != 0 || disables ? std::errc{} : kInvalid;
}

Session::Reply Session::set_irqs(const Message& request) {
    const auto set = load<IrqSet>(request.body);
    if (const std::errc error = check_irqs(set, request); error != std::errc{})
        return {.error = error};
    std::array<OwnedFd, kMaxFds> none;
    std::array<std::uint8_t, kMaxFds> selected{};
    IrqRequest irqs{.index = Irq{set.index},
                    .action = action_of(set.flags),
                    .start = set.start,
                    .count = set.count,
                    .is_assignment = (set.flags & kIrqDataEventfd) != 0,
                    .fds = {},
                    .is_selected = {}};
    if (set.count > kMaxFds) return {.error = std::errc::invalid_argument};
    if (irqs.is_assignment)
        irqs.fds =
            request.fds->count() == 0 ? std::span(none).first(set.count) : request.fds->all();
    if ((set.flags & kIrqDataBool) != 0) {
        std::memcpy(selected.data(), request.body.data() + sizeof(IrqSet), set.count);
        irqs.is_selected = std::span(selected).first(set.count);
    }
    if (auto done = served_.device.set_irqs(irqs); !done) return refuse(done.error());
    return {};
}

bool Session::is_inside(const RegionAccess& access) const {
    if (access.region >= kRegionCount || access.count == 0 || access.count > kMaxTransfer)
        return false;
    const std::uint64_t size = served_.device.region_size(access.region);
    return access.offset <= size && access.count <= size - access.offset;
}

/// Reads directly into the reply buffer. Refuses a read with kNoReply, because the data could not
/// be returned.
Session::Reply Session::region_read(const Message& request) {
    const auto access = load<RegionAccess>(request.body);
    const bool is_posted = (request.header.flags & kNoReply) != 0;
    if (request.body.size() != sizeof(RegionAccess) || is_posted || !is_inside(access))
        return {.error = std::errc::invalid_argument};
    Reply reply = reply_with(access);
    const auto data = reply_body().subspan(sizeof(RegionAccess), access.count);
    reply.error = served_.device.read(access.region, access.offset, data);
    reply.body += access.count;
    return reply;
}

std::errc Session::write_one(const RegionAccess& access, std::span<const std::byte> data) {
    if (!is_inside(access)) return std::errc::invalid_argument;
    return served_.device.write(access.region, access.offset, data);
}

Session::Reply Session::region_write(const Message& request) {
    const auto access = load<RegionAccess>(request.body);
    const auto data = request.body.subspan(sizeof(RegionAccess));
    if (data.size() != access.count) return {.error = std::errc::invalid_argument};
    const std::errc error = write_one(access, data);
    Reply reply = reply_with(access);
    reply.error = error;
    return reply;
}

Session::Reply Session::region_write_multi(const Message& request) {
    const auto multi = load<WriteMulti>(request.body);
    const auto writes = request.body.subspan(sizeof(WriteMulti));
    if (writes.size() % sizeof(SingleWrite) != 0 ||
        multi.count != writes.size() / sizeof(SingleWrite) || multi.count > kMaxWrites)
        return {.error = std::errc::invalid_argument};
    if (multi.count == 0) return reply_with(multi);
    writes_ = Writes{.request = request.header, .multi = multi, .rest = writes};
    return {.comes_later = true};
}

/// Continues after a write that fails. The reply has the error of the first such write.
void Session::write_next() {
    const auto one = load<SingleWrite>(writes_->rest);
    const auto data = writes_->rest.subspan(offsetof(SingleWrite, data), kMaxSingleWrite);
    const RegionAccess access{.offset = one.offset, .region = one.region, .count = one.count};
    const std::errc error = one.count <= kMaxSingleWrite ? write_one(access, data.first(one.count))
                                                         : std::errc::invalid_argument;
    if (writes_->error == std::errc{}) writes_->error = error;
    writes_->rest = writes_->rest.subspan(sizeof(SingleWrite));
    if (!writes_->rest.empty()) return;
    const Writes done = *writes_;
    writes_.reset();
    Reply reply = reply_with(done.multi);
    reply.error = done.error;
    answer(done.request, std::move(reply));
}

Session::Reply Session::device_reset(const Message&) {
    served_.device.reset();
    return {};
}

}  // namespace vgpu::softgpu::vfio_user
