// SPDX-License-Identifier: MIT
//
// VfViews: a map from VF numbers to immutable views. Copies share the views, so a snapshot in which
// only one VF changed needs memory for only one new view.
#pragma once

#include "daemon/service/views/views.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace vgpu::daemon {

class VfViews {
    using Shared = std::map<std::uint32_t, std::shared_ptr<const VfView>>;

public:
    /// VF number and view, in the form of a map's entry.
    struct Entry {
        std::uint32_t first;
        const VfView& second;
        /// For Iterator::operator->(), which returns an Entry by value.
        const Entry* operator->() const { return this; }
    };
    class Iterator {
    public:
        explicit Iterator(Shared::const_iterator at) : at_(at) {}
        Entry operator*() const { return {.first = at_->first, .second = *at_->second}; }
        Entry operator->() const { return **this; }
        Iterator& operator++() {
            ++at_;
            return *this;
        }
        bool operator==(const Iterator&) const = default;

    private:
        Shared::const_iterator at_;
    };

    void set(std::uint32_t vf, VfView view) {
        views_[vf] = std::make_shared<const VfView>(std::move(view));
    }
    /// As above, but shares the VF's view in `before` if that view equals `view`.
    void set(std::uint32_t vf, VfView view, const VfViews& before) {
        const auto known = before.views_.find(vf);
        if (known != before.views_.end() && *known->second == view)
            views_[vf] = known->second;
        else
            set(vf, std::move(view));
    }
    /// True if this and `other` consist of the same shared views.
    [[nodiscard]] bool is_shared_with(const VfViews& other) const { return views_ == other.views_; }
    [[nodiscard]] Iterator begin() const { return Iterator(views_.begin()); }
    [[nodiscard]] Iterator end() const { return Iterator(views_.end()); }
    [[nodiscard]] Iterator find(std::uint32_t vf) const { return Iterator(views_.find(vf)); }
    [[nodiscard]] const VfView& at(std::uint32_t vf) const { return *views_.at(vf); }
    [[nodiscard]] bool contains(std::uint32_t vf) const { return views_.contains(vf); }
    [[nodiscard]] std::size_t size() const { return views_.size(); }
    [[nodiscard]] bool empty() const { return views_.empty(); }

private:
    Shared views_;
};

}  // namespace vgpu::daemon
