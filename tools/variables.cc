// SPDX-License-Identifier: Apache-2.0
#include "variables.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "engine/config.h"
#include "engine/discovery.h"
#include "engine/sysfs_tree.h"
#include "failure.h"
#include "libraries.h"

namespace vrb::tools {
namespace {

constexpr const char* kTree = "VERBENA_TREE";

// Puts ours in front of what the variable holds, once.
Variable prepend(const char* name, const std::string& ours) {
  const char* held = std::getenv(name);
  const std::string_view rest = held == nullptr ? "" : held;
  if (rest.empty()) return {name, ours};
  if (rest == ours || rest.starts_with(ours + ":")) return {name, std::string(rest)};
  return {name, ours + ":" + std::string(rest)};
}

// The loader splits its lists at these and replaces $ORIGIN.
void check_path(const std::string& path, const char* what) {
  if (path.find_first_of(":; \t\n$") != std::string::npos) {
    fail(kUnusable,
         "{} {} has a character in its name that the loader cannot take (: ; $ or blank)", what,
         path);
  }
}

bool is_plain(const std::string& word) {
  for (const char c : word) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::strchr("_-./:=,+@%", c) != nullptr;
    if (!plain) return false;
  }
  return !word.empty();
}

std::string shell_quote(const std::string& word) {
  if (is_plain(word)) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// systemd.exec(5), Environment=: double quotes, backslash escapes, and % is a specifier.
std::string systemd_quote(const std::string& word) {
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '%') quoted += '%';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

void check_config() {
  const auto& errors = engine::config().errors;
  if (!errors.empty()) fail(kUsage, "{}", errors.front());
}

std::vector<Variable> make_variables(const std::string& carrier) {
  check_config();
  const std::string dir = library_dir();
  check_path(dir, "the library directory");
  const std::string tree = engine::make_tree(engine::discover());
  if (tree.empty()) {
    fail(
        kUnusable,
        "the tree that stands in for /sys/class/infiniband cannot be made below XDG_RUNTIME_DIR or "
        "/tmp: {}",
        std::strerror(errno));
  }
  std::vector<Variable> variables = {prepend("LD_LIBRARY_PATH", dir),
                                     prepend("LD_PRELOAD", dir + "/" + kPreloadLibrary),
                                     {kTree, tree}};
  if (!carrier.empty()) variables.push_back({"VERBENA_CARRIER", carrier});
  return variables;
}

std::string format_variables(const std::vector<Variable>& variables, EnvStyle style) {
  std::string text;
  for (const Variable& v : variables) {
    switch (style) {
      case EnvStyle::Shell:
        text += fmt::format("export {}={}\n", v.name, shell_quote(v.value));
        break;
      case EnvStyle::Systemd:
        // A unit runs as another user and after the next boot: neither may use this tree.
        if (v.name == kTree) break;
        text += fmt::format("Environment={}\n", systemd_quote(v.name + "=" + v.value));
        break;
      case EnvStyle::Mpi:
        text +=
            fmt::format("{}-x {}", text.empty() ? "" : " ", shell_quote(v.name + "=" + v.value));
        break;
    }
  }
  return style == EnvStyle::Mpi ? text + "\n" : text;
}

}  // namespace vrb::tools
