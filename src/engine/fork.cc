// SPDX-License-Identifier: Apache-2.0
#include "engine/fork.h"

#include <pthread.h>

#include <atomic>
#include <new>

#include "base/lock.h"
#include "engine/engine.h"

namespace vrb::engine {
namespace {

std::atomic<Engine*> g_engine{nullptr};
base::SpinLock g_making;

// The lock is held from one handler to the next.
void prepare() VRB_NO_THREAD_SAFETY {
  g_making.lock();
  if (Engine* engine = g_engine.load()) engine->hold();
}
void in_parent() VRB_NO_THREAD_SAFETY {
  if (Engine* engine = g_engine.load()) engine->let_go();
  g_making.unlock();
}
void in_child() VRB_NO_THREAD_SAFETY {
  Engine* engine = g_engine.exchange(nullptr);
  if (engine != nullptr) engine->abandon();
  g_making.unlock();
}

__attribute__((constructor)) void register_fork_handlers() {
  install_hooks();  // while there is one thread
  pthread_atfork(prepare, in_parent, in_child);
}

}  // namespace

Engine& current_engine() {
  Engine* engine = g_engine.load(std::memory_order_acquire);
  if (engine != nullptr) return *engine;
  const base::SpinGuard guard(g_making);
  engine = g_engine.load(std::memory_order_acquire);
  if (engine == nullptr) {
    engine = new Engine;  // never destroyed: the program's threads may use it to the end
    g_engine.store(engine, std::memory_order_release);
  }
  return *engine;
}

}  // namespace vrb::engine
