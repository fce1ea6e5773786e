/* A disk with faults, for one process and its children (LD_PRELOAD).
 *
 * FAULTY_DISK_FILES is the beginning of the names of the files concerned. FAULTY_DISK_CONTROL is a
 * file of three 32-bit integers that others may change at any time: the fault, the milliseconds
 * that a slow fsync takes, and how many calls had a fault so far. proof/faulty_disk.py has the
 * faults by number.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { NONE, WRITE_EIO, WRITE_ENOSPC, FSYNC_EIO, FSYNC_SLOW, READ_EIO };

struct control {
  volatile int32_t fault, milliseconds, hits;
};

static struct control nothing;
static struct control *control = &nothing;
static const char *files = "";

__attribute__((constructor)) static void load(void) {
  const char *path = getenv("FAULTY_DISK_CONTROL"), *prefix = getenv("FAULTY_DISK_FILES");
  if (path == NULL || prefix == NULL) return;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return;
  control = mapped;
  files = prefix;
}

/* Whether the fault is `fault`, and the descriptor one of the files concerned. */
static int strikes(int fault, int fd) {
  char link[32], name[4096];
  if (control->fault != fault) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, sizeof name - 1);
  if (length < 0) return 0;
  name[length] = 0;
  if (strncmp(name, files, strlen(files)) != 0) return 0;
  __sync_fetch_and_add(&control->hits, 1);
  return 1;
}

static int write_fails(int fd) {
  if (strikes(WRITE_EIO, fd)) return errno = EIO;
  if (strikes(WRITE_ENOSPC, fd)) return errno = ENOSPC;
  return 0;
}

static int sync_fails(int fd) {
  if (strikes(FSYNC_EIO, fd)) return errno = EIO;
  if (strikes(FSYNC_SLOW, fd)) {
    struct timespec pause = {control->milliseconds / 1000,
                             control->milliseconds % 1000 * 1000000L};
    nanosleep(&pause, NULL);
  }
  return 0;
}

#define REAL(type, name, ...)                                       \
  static type (*real)(__VA_ARGS__);                                 \
  if (real == NULL) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WRITE(name, offset)                                                 \
  ssize_t name(int fd, const void *data, size_t size, offset at) {          \
    REAL(ssize_t, #name, int, const void *, size_t, offset);                \
    return write_fails(fd) ? -1 : real(fd, data, size, at);                 \
  }

#define READ(name, offset)                                                  \
  ssize_t name(int fd, void *data, size_t size, offset at) {                \
    REAL(ssize_t, #name, int, void *, size_t, offset);                      \
    if (strikes(READ_EIO, fd)) return errno = EIO, -1;                      \
    return real(fd, data, size, at);                                        \
  }

#define SYNC(name)                                       \
  int name(int fd) {                                     \
    REAL(int, #name, int);                               \
    return sync_fails(fd) ? -1 : real(fd);               \
  }

WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)
READ(pread, off_t)
READ(pread64, off64_t)
SYNC(fsync)
SYNC(fdatasync)

ssize_t write(int fd, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  return write_fails(fd) ? -1 : real(fd, data, size);
}
