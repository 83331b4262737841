// SPDX-License-Identifier: Apache-2.0
#include "holdings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace vrb::death {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNicFiles = "/memfd:verbena-";

struct Descriptor {
  std::string path;  // in /proc
  std::string name;  // what it links to
};

std::vector<Descriptor> descriptors(const std::string& pid) {
  std::vector<Descriptor> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + pid + "/fd", error)) {
    const fs::path name = fs::read_symlink(entry.path(), error);
    // The one that reads the directory is gone by now.
    if (!error) all.push_back({entry.path().string(), name.string()});
  }
  return all;
}

std::uint32_t nic_maps() {
  std::ifstream maps("/proc/self/maps");
  std::uint32_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(kNicFiles) != std::string::npos) ++count;
  }
  return count;
}

// The inodes in a column of a table of /proc/net; `named`: only lines with something behind it.
std::set<std::uint64_t> inodes_of(const char* path, int column, bool named) {
  std::set<std::uint64_t> inodes;
  std::ifstream table(path);
  std::string line;
  std::getline(table, line);  // the heading
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i <= column; ++i) words >> word;
    std::string name;
    if (!word.empty() && (!named || words >> name)) inodes.insert(std::stoull(word));
  }
  return inodes;
}

}  // namespace

Held count_held() {
  Held held;
  const std::string own_directory = "/proc/" + std::to_string(getpid()) + "/fd";
  for (const Descriptor& d : descriptors("self")) {
    if (d.name == own_directory) continue;
    ++held.fds;
    struct stat st {};
    if (d.name.rfind(kNicFiles, 0) == 0 && stat(d.path.c_str(), &st) == 0) {
      held.blocks += static_cast<std::uint64_t>(st.st_blocks);
    }
  }
  held.maps = nic_maps();
  return held;
}

std::set<std::uint64_t> socket_inodes(pid_t pid) {
  std::set<std::uint64_t> inodes;
  constexpr const char* kSocket = "socket:[";
  for (const Descriptor& d : descriptors(std::to_string(pid))) {
    if (d.name.rfind(kSocket, 0) == 0) inodes.insert(std::stoull(d.name.substr(8)));
  }
  return inodes;
}

std::set<std::string> descriptor_names(pid_t pid) {
  std::set<std::string> names;
  for (const Descriptor& d : descriptors(std::to_string(pid))) names.insert(d.name);
  return names;
}

std::set<std::uint64_t> bound_inodes(const std::set<std::uint64_t>& inodes) {
  std::set<std::uint64_t> bound;
  constexpr int kUdpInode = 9, kUnixInode = 6;
  for (const auto& known :
       {inodes_of("/proc/net/udp", kUdpInode, false), inodes_of("/proc/net/udp6", kUdpInode, false),
        inodes_of("/proc/net/unix", kUnixInode, true)}) {
    std::set_intersection(known.begin(), known.end(), inodes.begin(), inodes.end(),
                          std::inserter(bound, bound.end()));
  }
  return bound;
}

}  // namespace vrb::death
