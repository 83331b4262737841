// A place in a list of segments. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "local/transfer.h"

namespace vrb::local {

class Cursor {
 public:
  Cursor(std::span<const Segment> list, std::uint64_t skip) : list_(list) { advance(skip); }

  // What lies at the place, up to the end of its segment; length 0 at the end of the list.
  Segment run() const {
    if (at_ == list_.size()) return {};
    return {list_[at_].addr + offset_, list_[at_].length - offset_};
  }
  void advance(std::uint64_t bytes) {
    offset_ += bytes;
    while (at_ != list_.size() && offset_ >= list_[at_].length) offset_ -= list_[at_++].length;
  }
  std::uint64_t left() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = at_; i < list_.size(); ++i) bytes += list_[i].length;
    return at_ == list_.size() ? 0 : bytes - offset_;
  }

 private:
  std::span<const Segment> list_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace vrb::local
