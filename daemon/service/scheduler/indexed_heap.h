// SPDX-License-Identifier: MIT
//
// IndexedHeap: a binary min-heap of small numbers (VFs) by key, which also finds, moves and removes
// any of them in O(log n). Equal keys are ordered by number, so that schedules are reproducible.
// Only make_room() allocates. One thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vgpu::daemon::scheduler {

/// `Key` needs `<` and `==`. least() and least_key() require a heap that is not empty.
template <typename Key> class IndexedHeap {
public:
    void make_room(std::size_t count) {
        if (count <= places_.size()) return;
        places_.resize(count, kNowhere);
        nodes_.reserve(count);
    }

    [[nodiscard]] bool empty() const { return nodes_.empty(); }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    [[nodiscard]] bool has(std::uint32_t id) const {
        return id < places_.size() && places_[id] != kNowhere;
    }
    [[nodiscard]] std::uint32_t least() const { return nodes_.front().id; }
    [[nodiscard]] const Key& least_key() const { return nodes_.front().key; }

    /// Inserts `id`, or moves it to where `key` belongs.
    void set(std::uint32_t id, Key key) {
        assert(id < places_.size());
        if (!has(id)) {
            places_[id] = nodes_.size();
            nodes_.push_back({key, id});
        } else {
            nodes_[places_[id]].key = key;
        }
        /// Only one of the two moves the node.
        sink(rise(places_[id]));
    }

    void remove(std::uint32_t id) {
        if (!has(id)) return;
        const std::size_t hole = places_[id];
        places_[id] = kNowhere;
        const Node last = nodes_.back();
        nodes_.pop_back();
        if (hole == nodes_.size()) return;
        nodes_[hole] = last;
        places_[last.id] = hole;
        sink(rise(hole));
    }

private:
    static constexpr std::size_t kNowhere = SIZE_MAX;

    struct Node {
        Key key;
        std::uint32_t id;

        bool operator<(const Node& other) const {
            return key < other.key || (key == other.key && id < other.id);
        }
    };

    std::size_t rise(std::size_t at) {
        while (at > 0 && nodes_[at] < nodes_[(at - 1) / 2]) at = exchange(at, (at - 1) / 2);
        return at;
    }

    void sink(std::size_t at) {
        for (;;) {
            std::size_t child = 2 * at + 1;
            if (child >= nodes_.size()) return;
            if (child + 1 < nodes_.size() && nodes_[child + 1] < nodes_[child]) ++child;
            if (!(nodes_[child] < nodes_[at])) return;
            at = exchange(at, child);
        }
    }

    std::size_t exchange(std::size_t from, std::size_t to) {
        std::swap(nodes_[from], nodes_[to]);
        places_[nodes_[from].id] = from;
        places_[nodes_[to].id] = to;
        return to;
    }

    std::vector<Node> nodes_;
    std::vector<std::size_t> places_;  ///< by number
};

}  // namespace vgpu::daemon::scheduler
