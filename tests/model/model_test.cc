// Random verbs between ranks, against the model of their memory and completions: between four
// processes, within one, and mixed. VERBENA_MODEL_OPS says how many operations a test runs,
// VERBENA_MODEL_SEED which seed alone, VERBENA_MODEL_PATIENCE after how many seconds a completion
// counts as lost (docs/testing.md; none: never). The same program is the ranks' (--role).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "coordinator.h"
#include "rank.h"

namespace vrb::model {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kOperations = 10'000;
#else
constexpr std::uint64_t kOperations = 100'000;
#endif

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

// A seed that each build makes for itself, the same whenever that build runs.
std::uint64_t seed_of_build() {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::istreambuf_iterator<char> at(program), end; at != end; ++at) {
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
  }
  return hash;
}

std::vector<std::uint64_t> seeds() {
  if (std::getenv("VERBENA_MODEL_SEED") != nullptr) return {number_of("VERBENA_MODEL_SEED", 0)};
  return {1, 2, 3, seed_of_build()};
}

void run(const Layout& layout, std::uint64_t share) {
  const auto all = seeds();
  const std::uint64_t operations = number_of("VERBENA_MODEL_OPS", kOperations) / share;
  const std::uint64_t each = std::max<std::uint64_t>(operations / all.size(), 1);
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::uint64_t asked = each * share;
  for (const std::uint64_t seed : all) {
    std::printf(
        "replay: VERBENA_MODEL_SEED=%llu VERBENA_MODEL_OPS=%llu test_model --gtest_filter=%s.%s\n",
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(asked),
        test->test_suite_name(), test->name());
    std::fflush(stdout);
    try {
      std::printf("%s\n", Coordinator(layout).run(seed, each).c_str());
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }
}

TEST(Model, FourProcesses) { run({{0, 1, 2, 3}}, 1); }
TEST(Model, OneProcess) { run({{0, 0, 0, 0}}, 1); }
TEST(Model, TwoProcessesOfTwo) { run({{0, 0, 1, 1}}, 5); }
TEST(Model, WhereTheKernelRefusesToCopy) { run({{0, 1, 2, 2}, false}, 5); }

}  // namespace
}  // namespace vrb::model

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--role=rank") {
    return vrb::model::serve_ranks({argv + 2, static_cast<std::size_t>(argc - 2)});
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
