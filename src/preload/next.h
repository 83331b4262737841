// Next: the function of the same name that would have been called without us (of the C library or
// of another preload), looked up at the first call. While a lookup runs, calls that come back to us
// from inside it (a malloc that opens files) get nothing and make the system call themselves. Any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::preload {

// nullptr if there is none or if this thread is looking up already. Keeps errno.
void* find_next(const char* name);

template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  Function* get() {
    void* found = __atomic_load_n(&found_, __ATOMIC_RELAXED);
    if (found == nullptr) {
      found = find_next(name_);
      if (found != nullptr) __atomic_store_n(&found_, found, __ATOMIC_RELAXED);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  void* found_ = nullptr;
};

}  // namespace vrb::preload
