// The verbena program: its subcommands and their options.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "devices.h"
#include "engine/identity.h"
#include "failure.h"
#include "install.h"
#include "journey.h"
#include "launch.h"
#include "variables.h"

namespace vrb::tools {

void print_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  fmt::print(stderr, "verbena: {}\n", text);
}

namespace {

struct Options {
  std::string carrier;
  bool systemd = false;
  bool mpi = false;
  bool system = false;
  bool uninstall = false;
  std::string root;
  bool json = false;
  std::vector<std::string> command;
};

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail(kUnusable, "the output cannot be written");
  }
}

void add_carrier(CLI::App& app, Options& options) {
  app.add_option("--carrier", options.carrier, "auto, local or wire: sets VERBENA_CARRIER")
      ->check(CLI::IsMember({"auto", "local", "wire"}))
      ->type_name("CARRIER");
}

void install(const Options& options) {
  if (options.uninstall) {
    uninstall_system(options.root);
  } else if (options.system) {
    install_system(options.root);
  } else {
    fail(kUsage, "install needs --system or --uninstall");
  }
}

EnvStyle env_style(const Options& options) {
  if (options.systemd) return EnvStyle::Systemd;
  return options.mpi ? EnvStyle::Mpi : EnvStyle::Shell;
}

void define(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("verbena ") + engine::kVersion);

  CLI::App* run = app.add_subcommand("run", "Start a program on Verbena: run [options] -- CMD ...");
  add_carrier(*run, options);
  run->callback([&] { run_command(options.command, options.carrier); });

  CLI::App* env = app.add_subcommand("env", "Print what run sets: eval \"$(verbena env)\"");
  add_carrier(*env, options);
  CLI::Option* systemd =
      env->add_flag("--systemd", options.systemd, "as Environment= lines of a unit");
  env->add_flag("--mpi", options.mpi, "as -x options of mpirun")->excludes(systemd);
  env->callback(
      [&] { print(format_variables(make_variables(options.carrier), env_style(options))); });

  CLI::App* inst = app.add_subcommand("install", "Make Verbena the system's RDMA libraries");
  inst->add_flag("--system", options.system, "for every program of this host (needs root)");
  inst->add_flag("--uninstall", options.uninstall, "undo it");
  inst->add_option("--root", options.root, "stage into DIR instead of /")->type_name("DIR");
  inst->callback([&] { install(options); });

  CLI::App* devices = app.add_subcommand("devices", "Show the device, its GIDs and limits, slots");
  devices->add_flag("--json", options.json, "in the stable format");
  devices->callback([&] {
    check_config();
    print(describe_devices(options.json));
  });

  app.add_subcommand("version", "Print the version")->callback([] {
    print(std::string("verbena ") + engine::kVersion + "\n");
  });
}

// What follows `run` and its own options belongs to the command, whatever it looks like: takes it
// off.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return {};
  auto at = arguments.begin() + 1;
  while (at != arguments.end() && at->starts_with("-") && *at != "--") {
    const bool has_value = *at == "--carrier";
    if (++at != arguments.end() && has_value) ++at;
  }
  const auto first = at != arguments.end() && *at == "--" ? at + 1 : at;
  std::vector<std::string> command(first, arguments.end());
  arguments.erase(at, arguments.end());
  return command;
}

void check_subcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) return;
  const std::string& name = arguments.front();
  const auto named = [&](const CLI::App* sub) { return sub->get_name() == name; };
  if (app.get_subcommands(named).empty()) {
    fail(kUsage, "there is no subcommand {} (see verbena --help)", name);
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run_main(std::vector<std::string> arguments) {
  Options options;
  int status = 0;
  CLI::App app("Verbena: an RDMA NIC in software, for unmodified programs", "verbena");
  define(app, options);
  app.add_subcommand("journey", "Follow an RDMA WRITE step by step, between two real processes")
      ->callback([&] { status = run_journey(); });
  check_subcommand(app, arguments);
  options.command = take_command(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& done) {
    app.exit(done);  // --help, --version
  } catch (const CLI::ParseError& error) {
    fail(kUsage, "{} (see verbena --help)", first_line(error.what()));
  }
  return status;
}

}  // namespace
}  // namespace vrb::tools

int main(int argc, char** argv) {
  try {
    return vrb::tools::run_main({argv + 1, argv + std::max(argc, 1)});
  } catch (const vrb::tools::Failure& failure) {
    vrb::tools::print_line(failure.what());
    return failure.status;
  } catch (const std::exception& error) {
    vrb::tools::print_line(error.what());
    return vrb::tools::kUnusable;
  }
}
