// SpinLock: a short lock for data paths, with the annotations that clang's -Wthread-safety checks.
// It spins a little and then lets others run; it makes no system call in the uncontended case.
// Any thread. Not recursive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#if defined(__clang__)
#define VRB_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define VRB_THREAD_ANNOTATION(x)
#endif
#define VRB_CAPABILITY(x) VRB_THREAD_ANNOTATION(capability(x))
#define VRB_SCOPED_CAPABILITY VRB_THREAD_ANNOTATION(scoped_lockable)
#define VRB_GUARDED_BY(x) VRB_THREAD_ANNOTATION(guarded_by(x))
#define VRB_REQUIRES(...) VRB_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define VRB_ACQUIRE(...) VRB_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define VRB_RELEASE(...) VRB_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define VRB_TRY_ACQUIRE(...) VRB_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define VRB_NO_THREAD_SAFETY VRB_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace vrb::base {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Called after each 64 turns of a spinning lock; the engine sets it to sched_yield().
using YieldHook = void (*)();
void set_yield_hook(YieldHook hook);
void yield();

class VRB_CAPABILITY("mutex") SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() VRB_ACQUIRE() {
    for (unsigned turns = 0; held_.exchange(true, std::memory_order_acquire);) {
      while (held_.load(std::memory_order_relaxed)) {
        cpu_relax();
        if (++turns % 64 == 0) yield();
      }
    }
  }
  bool try_lock() VRB_TRY_ACQUIRE(true) {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() VRB_RELEASE() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

class VRB_SCOPED_CAPABILITY SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) VRB_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() VRB_RELEASE() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace vrb::base
