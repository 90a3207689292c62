// Has a process listen on the ports of EDT_PORT_RANGE wherever it leaves the choice of a port to the system.
//
// Preloaded (LD_PRELOAD), it counts for every library of the process: Gloo, NCCL, torch's stores. Python's own
// sockets call the same functions.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Range {
  unsigned low = 0;
  unsigned high = 0;
};

bool read_range(Range& range) {
  const char* text = std::getenv("EDT_PORT_RANGE");
  return text != nullptr && std::sscanf(text, "%u:%u", &range.low, &range.high) == 2 && range.low > 0 &&
         range.low <= range.high && range.high <= 65535;
}

template <typename Function>
Function* system_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The port of an internet address, else null.
in_port_t* port_of(sockaddr_storage& address, socklen_t length) {
  if (address.ss_family == AF_INET && length >= sizeof(sockaddr_in))
    return &reinterpret_cast<sockaddr_in&>(address).sin_port;
  if (address.ss_family == AF_INET6 && length >= sizeof(sockaddr_in6))
    return &reinterpret_cast<sockaddr_in6&>(address).sin6_port;
  return nullptr;
}

bool is_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

// A boolean option of a socket that has another value for a while.
class Override {
 public:
  Override(int fd, int option, int value) : fd_(fd), option_(option) {
    socklen_t size = sizeof before_;
    getsockopt(fd_, SOL_SOCKET, option_, &before_, &size);
    set(before_ != 0 && value != 0);
  }
  ~Override() {
    const int error = errno;
    set(before_);
    errno = error;
  }
  Override(const Override&) = delete;
  Override& operator=(const Override&) = delete;

 private:
  void set(int value) { setsockopt(fd_, SOL_SOCKET, option_, &value, sizeof value); }
  int fd_;
  int option_;
  int before_ = 0;
};

// Another first port for each process and each call: many look for one at the same time.
unsigned next_offset() {
  static std::atomic<unsigned> calls{0};
  return static_cast<unsigned>(getpid()) * 7919u + calls++;
}

int bind_in(const Range& range, int fd, sockaddr_storage& address, socklen_t length) {
  static const auto system_bind = system_function<decltype(bind)>("bind");
  const unsigned size = range.high - range.low + 1, first = next_offset();
  in_port_t* port = port_of(address, length);
  const Override no_shared_port(fd, SO_REUSEPORT, 0);
  for (int reuses : {0, 1}) {  // ports whose last connections have just ended come last
    const Override reuse(fd, SO_REUSEADDR, reuses);
    for (unsigned index = 0; index < size; ++index) {
      *port = htons(static_cast<in_port_t>(range.low + (first + index) % size));
      if (system_bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return 0;
      if (errno != EADDRINUSE) return -1;
    }
  }
  static std::atomic<bool> is_told{false};
  if (!is_told.exchange(true))
    std::fprintf(stderr, "edt: no port of --port-range %u:%u is free on this host: give a larger range\n",
                 range.low, range.high);
  errno = EADDRINUSE;
  return -1;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int bind(int fd, const sockaddr* given, socklen_t length) noexcept {
  static const auto system_bind = system_function<decltype(bind)>("bind");
  Range range;
  sockaddr_storage address{};
  if (given == nullptr || length > sizeof address || !read_range(range)) return system_bind(fd, given, length);
  std::memcpy(&address, given, length);
  const in_port_t* port = port_of(address, length);
  if (port == nullptr || *port != 0 || !is_stream(fd)) return system_bind(fd, given, length);
  return bind_in(range, fd, address, length);
}

// One that was not bound gets its port here.
__attribute__((visibility("default"))) int listen(int fd, int backlog) noexcept {
  static const auto system_listen = system_function<decltype(listen)>("listen");
  Range range;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (read_range(range) && getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    const in_port_t* port = port_of(address, length);
    if (port != nullptr && *port == 0 && is_stream(fd) && bind_in(range, fd, address, length) != 0) return -1;
  }
  return system_listen(fd, backlog);
}
}
