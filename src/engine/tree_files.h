// What stands in the generated tree: the files under /sys/class/infiniband*, /dev/infiniband that
// programs read around libibverbs (UCX, NCCL, perftest, pyverbs' tests). Pure: paths and contents.
// Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/discovery.h"

namespace vrb::engine {

struct TreeFile {
  std::string path;     // below the root, without a leading slash
  std::string content;  // of the file, or the target of the link
  bool link = false;
};

// online_cpus is the kernel's list ("0-3,8"), for the device's locality.
std::vector<TreeFile> tree_files(const PortFacts& facts, const std::string& online_cpus);

// "0-3,8" -> "0000010f"; groups of 32 bits with commas between, most significant first.
std::string cpu_mask(const std::string& list);

}  // namespace vrb::engine
