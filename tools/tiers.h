// Which tiers of reach the local carrier may use on this host, found by trying. Single-threaded: it
// forks for the trial.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vrb::tools {

struct Tier {
  std::string name;
  bool allowed = false;
  std::string reason;  // why not, or ""
};

std::vector<Tier> probe_tiers();

}  // namespace vrb::tools
