// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/attachments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "pf-driver/softgpu/base/file_status.h"
#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::host_view {

// ---- functions

/// Detaches the functions before it drops the memory that they may access.
void Attachments::close() {
    while (!attached_.empty()) detach(*attached_.back().function);
    unmap_all();
    iommu_.reset();
    peer_.reset();
}

Result<> Attachments::attach(pci::Function& function, std::uint32_t routing_id) {
    if (!peer_) return fail(ENODEV, "no VM is attached");
    TRY_VOID(function.attach(peer_, pci::Reach::Bus));
    attached_.push_back({&function, routing_id});
    log::info("{}: attached by the host view", function.name());
    Result<> filled = fill(attached_.back());
    if (!filled) detach(function);
    return filled;
}

void Attachments::detach(pci::Function& function) {
    if (std::erase_if(attached_, [&function](const Attached& each) {
            return each.function == &function;
        }) == 0)
        return;
    function.dma_unmap_all();
    function.detach();
    log::info("{}: detached from the host view", function.name());
}

// ---- memory of the VM

Result<> Attachments::map_in(pci::Function& function, const Range& range) {
    return function.dma_map(range.range, range.fd ? range.fd->get() : -1);
}

Result<std::shared_ptr<const OwnedFd>> Attachments::duplicate_of(int fd) {
    if (fd < 0) return std::shared_ptr<const OwnedFd>();
    struct stat status {};
    if (!file_status(fd, status)) return fail_errno(errno, "host view: DMA map");
    std::erase_if(files_, [](const auto& file) { return file.second.expired(); });
    const File file{status.st_dev, status.st_ino};
    if (const auto known = files_.find(file); known != files_.end()) return known->second.lock();
    if (files_.size() >= kMaxFiles)
        return fail(ENOSPC,
                    fmt::format("host view: DMA map: memory of more than {} files", kMaxFiles));
    auto duplicate = std::make_shared<const OwnedFd>(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!*duplicate) return fail_errno(errno, "host view: DMA map");
    files_.emplace(file, duplicate);
    return duplicate;
}

/// Also refills the translated functions, because their mappings may cover a part of the new range.
Result<> Attachments::map(const vfio_user::DmaRange& range, int fd) {
    TRY(auto duplicate, duplicate_of(fd));
    const Range entry{range, std::move(duplicate)};
    for (auto each = attached_.begin(); each != attached_.end(); ++each) {
        if (is_translated(*each)) continue;
        Result<> mapped = map_in(*each->function, entry);
        if (mapped) continue;
        std::for_each(attached_.begin(), each, [&](const Attached& before) {
            if (!is_translated(before)) before.function->dma_unmap(range);
        });
        return mapped;
    }
    ranges_.insert_or_assign(raw(range.address), entry);
    for (const Attached& each : attached_)
        if (is_translated(each)) refill(each);
    return {};
}

void Attachments::unmap(const vfio_user::DmaRange& range) {
    const std::uint64_t first = raw(range.address);
    ranges_.erase(ranges_.lower_bound(first), ranges_.lower_bound(first + range.size));
    for (const Attached& each : attached_) {
        if (is_translated(each))
            refill(each);
        else
            each.function->dma_unmap(range);
    }
}

void Attachments::unmap_all() {
    for (const Attached& each : attached_) each.function->dma_unmap_all();
    ranges_.clear();
}

// ---- translation

bool Attachments::is_translated(const Attached& each) const {
    return iommu_.domain_of(each.routing_id) != Iommu::Domain::Identity;
}

std::vector<Attachments::Range> Attachments::parts_of(const Iommu::Mapping& mapping) const {
    std::vector<Range> parts;
    const std::uint64_t end = mapping.target + mapping.size;
    for (const auto& [address, entry] : ranges_) {
        const std::uint64_t first = std::max(address, mapping.target);
        const std::uint64_t last = std::min(address + entry.range.size, end);
        if (first >= last) continue;
        Range part = entry;
        part.range.address = Iova{mapping.address + (first - mapping.target)};
        part.range.size = last - first;
        part.range.fd_offset += first - address;
        parts.push_back(std::move(part));
    }
    return parts;
}

Result<> Attachments::fill(const Attached& each) const {
    const Iommu::Domain domain = iommu_.domain_of(each.routing_id);
    if (domain != Iommu::Domain::Identity) {
        for (const auto& [address, mapping] : iommu_.mappings_of(domain))
            map_parts(*each.function, mapping);
        return {};
    }
    for (const auto& [address, range] : ranges_) TRY_VOID(map_in(*each.function, range));
    return {};
}

void Attachments::map_parts(pci::Function& function, const Iommu::Mapping& mapping) const {
    for (const Range& part : parts_of(mapping)) {
        const Result<> done = map_in(function, part);
        if (!done) log::warn("{}: IOMMU: {}", function.name(), done.error().message);
    }
}

/// Unmaps and maps everything, because translations change rarely and code for the differences
/// would be more error-prone.
void Attachments::refill(const Attached& each) const {
    each.function->dma_unmap_all();
    const Result<> filled = fill(each);
    if (!filled) log::warn("{}: IOMMU: {}", each.function->name(), filled.error().message);
}

void Attachments::mapped(Iommu::Domain domain, const Iommu::Mapping& mapping) {
    for (const Attached& each : attached_)
        if (iommu_.domain_of(each.routing_id) == domain) map_parts(*each.function, mapping);
}

void Attachments::unmapped(Iommu::Domain domain, const Iommu::Mapping& mapping) {
    for (const Attached& each : attached_) {
        if (iommu_.domain_of(each.routing_id) != domain) continue;
        for (const Range& part : parts_of(mapping)) each.function->dma_unmap(part.range);
    }
}

void Attachments::routed(std::uint32_t routing_id) {
    for (const Attached& each : attached_)
        if (each.routing_id == routing_id) refill(each);
}

}  // namespace vgpu::softgpu::host_view
