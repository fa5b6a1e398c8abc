// The fault tests preload this library into the agent. It lets system calls on selected files fail like a broken disk, and shifts the
// wall clock. It reads its commands from the file PENSTOCK_SHIM at each call, so a test can change them while the agent runs: lines
// `write`, `read`, `sync` (EIO for files whose path contains PENSTOCK_SHIM_FILES) and `clock SECONDS`.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int orders(char *text, size_t size) {
  const char *path = getenv("PENSTOCK_SHIM");
  if (path == NULL) return 0;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  long length = syscall(SYS_read, file, text, size - 1);
  syscall(SYS_close, file);
  if (length < 0) length = 0;
  text[length] = 0;
  return length > 0;
}

/** Whether this call on this file must fail. */
static int fails(const char *what, int file) {
  char text[256], link[64], name[4096];
  const char *files = getenv("PENSTOCK_SHIM_FILES");
  int before = errno;
  if (files == NULL || !orders(text, sizeof text) || strstr(text, what) == NULL) {
    errno = before;
    return 0;
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, name, sizeof name - 1);
  errno = before;
  if (length < 0) return 0;
  name[length] = 0;
  return strstr(name, files) != NULL;
}

#define NEXT(name) \
  static __typeof__(&name) next = NULL; \
  if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(what, file) \
  if (fails(what, file)) { \
    errno = EIO; \
    return -1; \
  }

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { NEXT(pwrite); FAIL_IF("write", file); return next(file, bytes, size, at); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t at) { NEXT(pwrite64); FAIL_IF("write", file); return next(file, bytes, size, at); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { NEXT(pwritev); FAIL_IF("write", file); return next(file, parts, count, at); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) { NEXT(pwritev64); FAIL_IF("write", file); return next(file, parts, count, at); }
ssize_t pread(int file, void *bytes, size_t size, off_t at) { NEXT(pread); FAIL_IF("read", file); return next(file, bytes, size, at); }
ssize_t pread64(int file, void *bytes, size_t size, off_t at) { NEXT(pread64); FAIL_IF("read", file); return next(file, bytes, size, at); }
ssize_t preadv(int file, const struct iovec *parts, int count, off_t at) { NEXT(preadv); FAIL_IF("read", file); return next(file, parts, count, at); }
ssize_t preadv64(int file, const struct iovec *parts, int count, off_t at) { NEXT(preadv64); FAIL_IF("read", file); return next(file, parts, count, at); }
int fdatasync(int file) { NEXT(fdatasync); FAIL_IF("sync", file); return next(file); }
int fsync(int file) { NEXT(fsync); FAIL_IF("sync", file); return next(file); }

/** Offset of the wall clock in seconds. */
static long shift(void) {
  char text[256];
  int before = errno;
  const char *clock = orders(text, sizeof text) ? strstr(text, "clock ") : NULL;
  errno = before;
  return clock == NULL ? 0 : atol(clock + 6);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  NEXT(clock_gettime);
  int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += shift();
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  NEXT(gettimeofday);
  int result = next(time, zone);
  if (result == 0 && time != NULL) time->tv_sec += shift();
  return result;
}
