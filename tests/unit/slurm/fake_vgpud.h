// SPDX-License-Identifier: MIT
//
// FakeVgpud: the VFs of one host in memory, at the VgpudPort seam; and FakePublished.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace vgpu::slurm::testing {

struct FakeVf {
    std::string target;
    std::string profile;
    std::string owner{};
    bool is_open = false;
    bool is_lease_over = false;
};

class FakeVgpud final : public VgpudPort {
public:
    static constexpr std::size_t kMaxVfs = 256;  ///< limit of one request, as in vgpud

    FakeVgpud() {
        for (int n = 1; n <= 12; ++n)
            vfs.push_back(
                {.target = "gpu0/vf" + std::to_string(n), .profile = n <= 8 ? "small" : "large"});
    }

    Result<std::vector<AssignedVf>> assign(const std::string& owner,
                                           const std::vector<std::string>& profiles,
                                           const User& user) override {
        if (is_away) return away();
        if (profiles.size() > kMaxVfs) return fail(ErrorId::OutOfRange, "too many VFs requested");
        const auto before = vfs;
        std::vector<AssignedVf> given;
        for (const std::string& profile : profiles) {
            FakeVf* vf = pick(owner, profile, given);
            if (vf == nullptr) {
                vfs = before;
                return fail(ErrorId::NoMatchingVf, "no VF of profile '" + profile + "' is free");
            }
            vf->owner = owner;
            given.push_back({.target = vf->target, .socket = ""});
        }
        users[owner] = user;
        return given;
    }
    Result<std::uint32_t> unassign(const std::string& owner) override {
        if (is_away) return away();
        std::uint32_t count = 0;
        for (FakeVf& vf : vfs)
            if (vf.owner == owner) {
                vf.owner.clear();
                ++count;
                if (vf.is_open) taken_while_open.push_back(vf.target);
            }
        return count;
    }
    Result<std::vector<Claim>> claims() override {
        if (is_away) return away();
        std::vector<Claim> all;
        for (const FakeVf& vf : vfs)
            if (!vf.owner.empty())
                all.push_back({.owner = vf.owner,
                               .profile = vf.profile,
                               .is_open = vf.is_open,
                               .is_lease_over = vf.is_lease_over});
        return all;
    }
    Result<std::vector<Capacity>> capacity() override {
        if (is_away) return away();
        std::map<std::string, Capacity> rows;
        for (const FakeVf& vf : vfs) {
            Capacity& row = rows[vf.profile];
            row.gpu = "gpu0";
            row.gpu_state = gpu_state;
            row.profile = vf.profile;
            ++row.total;
            const bool is_claimed = !vf.owner.empty() && (!vf.is_lease_over || vf.is_open);
            row.free += !is_claimed && gpu_state == "ok" ? 1u : 0u;
        }
        std::vector<Capacity> all;
        for (const auto& [profile, row] : rows) all.push_back(row);
        return all;
    }

    [[nodiscard]] int owned_by(const std::string& owner) const {
        return static_cast<int>(std::ranges::count(vfs, owner, &FakeVf::owner));
    }

    std::vector<FakeVf> vfs;
    std::map<std::string, User> users;
    std::vector<std::string> taken_while_open;
    std::string gpu_state = "ok";
    bool is_away = false;

private:
    static tl::unexpected<Error> away() { return fail(ErrorId::System, "vgpud does not answer"); }
    FakeVf* pick(const std::string& owner, const std::string& profile,
                 const std::vector<AssignedVf>& given) {
        for (const bool is_own : {true, false})
            for (FakeVf& vf : vfs)
                if (vf.profile == profile && vf.owner == (is_own ? owner : "") &&
                    std::ranges::find(given, vf.target, &AssignedVf::target) == given.end())
                    return &vf;
        return nullptr;
    }
};

class FakePublished final : public PublishedPort {
public:
    [[nodiscard]] std::optional<std::string> load(std::chrono::minutes) const override {
        return is_old ? std::nullopt : content;
    }
    void save(const std::string& text) override { content = text; }
    void forget() override { content.reset(); }

    std::optional<std::string> content;
    bool is_old = false;
};

}  // namespace vgpu::slurm::testing
