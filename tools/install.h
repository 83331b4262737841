// `verbena install --system`: makes Verbena's libraries the ones that every program of the host
// finds, and undoes it. The libraries are copied to where only root writes, since root's programs
// will load them too; /etc/ld.so.conf.d names that place before the distribution's.
// Single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vrb::tools {

// root is where the host's / is, "" for the real one (which needs root). Says on stdout what it
// does.
void install_system(const std::string& root);
void uninstall_system(const std::string& root);

}  // namespace vrb::tools
