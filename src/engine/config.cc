// SPDX-License-Identifier: Apache-2.0
#include "engine/config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "engine/text.h"

namespace vrb::engine {
namespace {

void complain(Config& config, const char* name, std::string_view value, const char* rule) {
  std::string line = name;
  line.append("=").append(value).append(": ").append(rule);
  config.errors.push_back(std::move(line));
}

void parse_carrier(Config& config, std::string_view value) {
  for (const Carrier carrier : {Carrier::Auto, Carrier::Local, Carrier::Wire}) {
    if (value == carrier_name(carrier)) {
      config.carrier = carrier;
      return;
    }
  }
  complain(config, "VERBENA_CARRIER", value, "must be auto, local or wire");
}

void parse_mtu(Config& config, std::string_view value) {
  unsigned mtu = 0;
  if (parse_number(value, mtu) && mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0) {
    config.mtu = mtu;
  } else {
    complain(config, "VERBENA_MTU", value, "must be 256, 512, 1024, 2048 or 4096");
  }
}

void parse_flag(Config& config, const char* name, std::string_view value, bool& flag) {
  if (value == "0" || value == "1") {
    flag = value == "1";
  } else {
    complain(config, name, value, "must be 0 or 1");
  }
}

void parse_kernel(Config& config, std::string_view value) {
  std::string_view rest = value;
  const std::string_view major = take(rest, '.');
  unsigned a = 0;
  unsigned b = 0;
  if (parse_number(major, a) && parse_number(rest, b) && a > 0) {
    config.kernel_major = a;
    config.kernel_minor = b;
  } else {
    complain(config, "VERBENA_KERNEL", value, "must be a kernel version such as 6.1");
  }
}

void parse_trust(Config& config, std::string_view value, const UserLookup& user) {
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view name = take(rest, ',');
    unsigned number = 0;
    uid_t uid = 0;
    if (parse_number(name, number) && number != ~0U) {
      config.trusted_uids.push_back(number);
    } else if (!name.empty() && user(name, uid)) {
      config.trusted_uids.push_back(uid);
    } else {
      std::string rule = "there is no user '";
      rule.append(name).append("' in /etc/passwd (other users are named by their uid)");
      complain(config, "VERBENA_LOCAL_TRUST", value, rule.c_str());
    }
  }
  auto& uids = config.trusted_uids;
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
}

void parse_tree(Config& config, std::string_view value) {
  if (value.front() == '/') {
    config.tree = value;
  } else {
    complain(config, "VERBENA_TREE", value, "must be an absolute path");
  }
}

Config explain_errors(Config config) {
  if (!config.explain) return config;
  for (const std::string& error : config.errors) {
    const std::string line = "verbena: ignored " + error + "\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) break;
  }
  return config;
}

}  // namespace

bool Config::trusts(uid_t uid) const {
  return std::binary_search(trusted_uids.begin(), trusted_uids.end(), uid);
}

bool Config::kernel_allows(unsigned major, unsigned minor) const {
  if (kernel_major == 0) return true;
  return major != kernel_major ? major < kernel_major : minor <= kernel_minor;
}

const char* carrier_name(Carrier carrier) {
  switch (carrier) {
    case Carrier::Local:
      return "local";
    case Carrier::Wire:
      return "wire";
    case Carrier::Auto:
      break;
  }
  return "auto";
}

Config parse_config(const Environment& environment, const UserLookup& user) {
  Config config;
  // An empty variable counts as unset.
  const auto get = [&](const char* name) {
    const char* value = environment(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  if (auto v = get("VERBENA_CARRIER"); !v.empty()) parse_carrier(config, v);
  if (auto v = get("VERBENA_MTU"); !v.empty()) parse_mtu(config, v);
  if (auto v = get("VERBENA_KERNEL"); !v.empty()) parse_kernel(config, v);
  if (auto v = get("VERBENA_LOCAL_TRUST"); !v.empty()) parse_trust(config, v, user);
  if (auto v = get("VERBENA_TREE"); !v.empty()) parse_tree(config, v);
  for (const auto& [name, flag] :
       {std::pair{"VERBENA_EXPLAIN", &config.explain}, std::pair{"VERBENA_MOVE", &config.move},
        std::pair{"VERBENA_CMA", &config.cma}}) {
    if (auto v = get(name); !v.empty()) parse_flag(config, name, v, *flag);
  }
  return config;
}

const Config& config() {
  // Never destroyed: other threads may still ask while the process exits.
  static const Config& parsed = *new Config(explain_errors(parse_config(
      [](const char* name) -> const char* { return secure_getenv(name); },
      [](std::string_view name, uid_t& uid) { return find_user("/etc/passwd", name, uid); })));
  return parsed;
}

bool find_user(const char* passwd_path, std::string_view name, uid_t& uid) {
  const std::string text = read_file(passwd_path);
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = take(rest, '\n');
    if (take(line, ':') != name) continue;
    take(line, ':');  // the password
    unsigned number = 0;
    if (!parse_number(take(line, ':'), number)) continue;
    uid = number;
    return true;
  }
  return false;
}

}  // namespace vrb::engine
