// The templates of objects.h: the event queue behind a pollable descriptor. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "engine/objects.h"

namespace vrb::engine {

int make_event_fd();         // semaphore, close-on-exec; -1 with errno
void post_event_fd(int fd);  // adds one
bool wait_event_fd(int fd);  // takes one; false with errno
void close_descriptor(int fd);

template <class T>
EventQueue<T>::EventQueue() : fd_(make_event_fd()) {}

template <class T>
EventQueue<T>::~EventQueue() {
  close_fd();
}

template <class T>
void EventQueue<T>::close_fd() {
  if (fd_ >= 0) close_descriptor(fd_);
  fd_ = -1;
}

template <class T>
void EventQueue<T>::push(const T& event) {
  {
    const std::lock_guard guard(mutex_);
    events_.push_back(event);
  }
  post_event_fd(fd_);
}

template <class T>
template <class F>
bool EventQueue<T>::pop(T& event, F taken) {
  while (wait_event_fd(fd_)) {
    const std::lock_guard guard(mutex_);
    if (events_.empty()) continue;  // purged meanwhile
    event = events_.front();
    events_.pop_front();
    taken(event);
    return true;
  }
  return false;
}

template <class T>
template <class P>
void EventQueue<T>::purge(P matches) {
  const std::lock_guard guard(mutex_);
  std::erase_if(events_, matches);
}

}  // namespace vrb::engine
