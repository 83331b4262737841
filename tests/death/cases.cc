// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>

namespace vrb::death {
namespace {

constexpr int kEnumerations = 2;  // some points depend on who comes first
constexpr std::size_t kUsualDivisor = 10;

std::map<std::string, std::uint32_t> passed_by(const TriangleSize& size, Part part) {
  std::map<std::string, std::uint32_t> passed;
  for (int i = 0; i < kEnumerations; ++i) {
    const PassCounts counts = Triangle(size, std::nullopt).count();
    for (const auto& [name, count] : counts[static_cast<std::size_t>(part)]) {
      passed[name] = std::max(passed[name], count);
    }
  }
  return passed;
}

// part/point:kill|stop:pass[:forget]
std::optional<Fault> parse_case(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string part, point, signal, pass, forget;
  std::istringstream words(text);
  std::getline(words, part, '/');
  std::getline(words, point, ':');
  std::getline(words, signal, ':');
  std::getline(words, pass, ':');
  std::getline(words, forget);
  Fault fault;
  const auto found = std::find(kPartNames.begin(), kPartNames.end(), part);
  if (found == kPartNames.end()) return std::nullopt;
  fault.part = static_cast<Part>(found - kPartNames.begin());
  fault.point = point;
  fault.signal = signal == "stop" ? SIGSTOP : SIGKILL;
  fault.pass = static_cast<std::uint32_t>(std::max(1L, std::atol(pass.c_str())));
  fault.forget = forget == "forget";
  return fault;
}

}  // namespace

std::uint64_t points_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("VERBENA_POINTS_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }();
  return seed;
}

std::size_t sample_divisor() {
  const char* given = std::getenv("VERBENA_POINTS_SAMPLE");
  if (given == nullptr) return kUsualDivisor;
  if (std::string(given) == "all") return 1;
  return std::max<std::size_t>(1, std::strtoull(given, nullptr, 10));
}

CaseList choose_cases(const TriangleSize& size, Part part, int signal) {
  CaseList list;
  if (const char* text = std::getenv("VERBENA_POINTS_CASE")) {
    const auto fault = parse_case(text);
    if (fault && fault->part == part && fault->signal == signal) list.chosen = {*fault};
    return list;
  }
  std::mt19937_64 random(points_seed() * 6 + static_cast<std::size_t>(part) * 2 +
                         (signal == SIGSTOP ? 1 : 0));
  std::cout << "VERBENA_POINTS_SEED=" << points_seed() << std::endl;
  const auto passed = passed_by(size, part);
  list.points = passed.size();
  for (const auto& [name, count] : passed) {
    list.chosen.push_back({part, name, signal, 1, false});
    if (count < 2) continue;
    // A run with a fault may pass it less often than one without.
    const auto most = std::max<std::uint32_t>(2, count / 2);
    const auto later = std::uniform_int_distribution<std::uint32_t>(2, most)(random);
    list.chosen.push_back({part, name, signal, later, signal == SIGSTOP && random() % 2 == 0});
  }
  list.all = list.chosen.size();
  std::shuffle(list.chosen.begin(), list.chosen.end(), random);
  const std::size_t divisor = sample_divisor();
  list.chosen.resize((list.all + divisor - 1) / divisor);
  return list;
}

}  // namespace vrb::death
