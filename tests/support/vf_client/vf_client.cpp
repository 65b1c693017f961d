// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/vf_client.h"

#include <algorithm>

#include "pf-driver/hw/pm4.h"
#include "tests/support/vf_client/process.h"

namespace vgpu::test {
namespace {

// the fence words KFD uses around UNMAP_QUEUES
constexpr std::uint64_t kFenceInit = 10;
constexpr std::uint64_t kFenceDone = 100;
constexpr milliseconds kPreemptLimit{9000};

}  // namespace

VfClient::VfClient(const std::string& socket_path, VfClientOptions options)
    : ram_(options.ram_bytes, options.sealing),
      device_(socket_path, ram_, options.sealing),
      mailbox_(device_) {}

VfClient::~VfClient() = default;

std::uint32_t VfClient::kiq_read(std::uint32_t reg) {
    const auto word = kiq_->scratch();
    kiq_->sync(pm4::register_to_memory(reg, word.address));
    return word.load<std::uint32_t>();
}

void VfClient::kiq_write(std::uint32_t reg, std::uint32_t value) {
    kiq_->sync(pm4::write_register(reg, value));
}

Process& VfClient::create_process() {
    const auto page = static_cast<unsigned>(processes_.size());
    processes_.push_back(std::make_unique<Process>(*this, next_pasid_++, page));
    return *processes_.back();
}

void VfClient::destroy_process(Process& process) {
    const auto found = std::ranges::find_if(
        processes_, [&](const auto& candidate) { return candidate.get() == &process; });
    if (found == processes_.end()) throw VfError("destroy_process: not a process of this client");
    process.drop_queues();
    update_run_list();
    processes_.erase(found);
}

void VfClient::forget() {
    processes_.clear();
    compute_.clear();
    sdma_.clear();
    ih_.reset();
    psp_.reset();
}

bool VfClient::preempt_queues(milliseconds limit) {
    fence_.store<std::uint64_t>(0, kFenceInit);
    auto packets = pm4::unmap_queues(PM4_UNMAP_ALL_NON_STATIC, PM4_UNMAP_PREEMPT);
    packets += pm4::query_status(fence_.address, kFenceDone);
    hiq_->push(packets);
    const Deadline deadline(limit);
    while (fence_.load<std::uint64_t>() != kFenceDone) {
        if (deadline.passed()) return false;
        polling_pause();
    }
    return true;
}

void VfClient::update_run_list() {
    if (!preempt_queues(kPreemptLimit))
        throw VfError("HIQ: the queues could not be preempted within KFD's limit");
    write_run_list();
}

void VfClient::write_run_list() {
    Dwords list;
    for (const auto& process : processes_) list += process->run_list_part();
    if (list.empty()) return;
    run_list_.fill_from(std::span<const std::uint32_t>(list));
    hiq_->sync(pm4::run_list(run_list_.address, static_cast<std::uint32_t>(list.size())));
}

}  // namespace vgpu::test
