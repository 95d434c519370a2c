// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/output.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>

#include "trn3sim/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace trn3sim::app {

void reserve_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free descriptor is this one. The wrong direction makes every use an error.
    (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void print(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw base::UserError("standard output",
                            std::string("writing failed: ") + std::strerror(errno));
    left.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace trn3sim::app
