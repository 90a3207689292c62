// Makes folders read-only while a file is there, as a broken disk does: what is open for writing fails, too.
//   READ_ONLY_ROOT: the folder. READ_ONLY_SWITCH: the file.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_below(const char *path) {
  const char *root = getenv("READ_ONLY_ROOT");
  const char *name = getenv("READ_ONLY_SWITCH");
  return root && name && strncmp(path, root, strlen(root)) == 0 && access(name, F_OK) == 0;
}

// Of a path as calls are given it, relative to a folder.
static int is_path(int folder, const char *path) {
  char whole[2 * PATH_MAX] = "", link[64];
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (!getcwd(whole, PATH_MAX)) return 0;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t length = readlink(link, whole, PATH_MAX - 1);
      whole[length < 0 ? 0 : length] = 0;
    }
    strcat(whole, "/");
  }
  strncat(whole, path, PATH_MAX - 1);
  return is_below(whole);
}

static int is_file(int descriptor) {
  struct stat of;
  char link[64], path[PATH_MAX];
  if (fstat(descriptor, &of) != 0 || !S_ISREG(of.st_mode)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path);
}

#define FAIL_IF(condition) \
  if (condition) { \
    errno = EROFS; \
    return -1; \
  }
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    FAIL_IF((flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && is_path(AT_FDCWD, path)) \
    return NEXT(name)(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
  int name(int folder, const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    FAIL_IF((flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && is_path(folder, path)) \
    return NEXT(name)(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void *data, size_t size) {
  FAIL_IF(is_file(file))
  return NEXT(write)(file, data, size);
}
ssize_t writev(int file, const struct iovec *data, int count) {
  FAIL_IF(is_file(file))
  return NEXT(writev)(file, data, count);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  FAIL_IF(is_file(file))
  return NEXT(pwrite)(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  FAIL_IF(is_file(file))
  return NEXT(pwrite64)(file, data, size, at);
}
int ftruncate(int file, off_t size) {
  FAIL_IF(is_file(file))
  return NEXT(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size) {
  FAIL_IF(is_file(file))
  return NEXT(ftruncate64)(file, size);
}
int rename(const char *from, const char *to) {
  FAIL_IF(is_path(AT_FDCWD, from) || is_path(AT_FDCWD, to))
  return NEXT(rename)(from, to);
}
int mkdir(const char *path, mode_t mode) {
  FAIL_IF(is_path(AT_FDCWD, path))
  return NEXT(mkdir)(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
  FAIL_IF(is_path(folder, path))
  return NEXT(mkdirat)(folder, path, mode);
}
int unlink(const char *path) {
  FAIL_IF(is_path(AT_FDCWD, path))
  return NEXT(unlink)(path);
}
int unlinkat(int folder, const char *path, int flags) {
  FAIL_IF(is_path(folder, path))
  return NEXT(unlinkat)(folder, path, flags);
}
int rmdir(const char *path) {
  FAIL_IF(is_path(AT_FDCWD, path))
  return NEXT(rmdir)(path);
}
