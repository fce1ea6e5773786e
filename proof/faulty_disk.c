/* A disk with faults, for one process and its children (LD_PRELOAD).
 *
 * FAULTY_DISK_FILES is the beginning of the names of the files concerned. FAULTY_DISK_CONTROL is a
 * file of three 32-bit integers that others may change at any time: the fault, the milliseconds
 * that a slow fsync takes, and how many calls had a fault so far. proof/faulty_disk.py has the
 * faults by number. Beside each file NAME, NAME.synced is what an fsync has last confirmed of it, if
 * FAULTY_DISK_KEEPS_SYNCED is set: all that a power cut is sure to leave. FAULTY_CLOCK is a file of
 * a 64-bit integer: so many seconds the clock of the day is off.
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
#include <sys/sendfile.h>
#include <sys/stat.h>
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
static int keeps_synced;
static volatile int64_t right_time, *seconds_off = &right_time;

static void *mapped(const char *path, size_t size) {
  int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

__attribute__((constructor)) static void load(void) {
  const char *prefix = getenv("FAULTY_DISK_FILES");
  struct control *shared = mapped(getenv("FAULTY_DISK_CONTROL"), sizeof *control);
  int64_t *off = mapped(getenv("FAULTY_CLOCK"), sizeof *off);
  if (off != NULL) seconds_off = off;
  if (shared == NULL || prefix == NULL) return;
  control = shared;
  files = prefix;
  keeps_synced = getenv("FAULTY_DISK_KEEPS_SYNCED") != NULL;
}

/* The name of an open file, if it is one of those concerned. */
static int is_concerned(int fd, char *name, size_t size) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, size - 1);
  if (length < 0) return 0;
  name[length] = 0;
  return strncmp(name, files, strlen(files)) == 0;
}

/* Whether the fault is `fault`, and the descriptor one of the files concerned. */
static int strikes(int fault, int fd) {
  char name[4096];
  if (control->fault != fault || !is_concerned(fd, name, sizeof name)) return 0;
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

/* Keeps a whole copy of what is on the disk for sure; a kill in between leaves the one before. */
static int keep(int fd) {
  char name[4000], part[4096], kept[4096];
  struct stat now;
  if (!keeps_synced || !is_concerned(fd, name, sizeof name) || fstat(fd, &now)) return 0;
  snprintf(part, sizeof part, "%s.part-%d-%d", name, getpid(), gettid());
  snprintf(kept, sizeof kept, "%s.synced", name);
  int from = open(name, O_RDONLY | O_CLOEXEC), to = creat(part, 0600);
  off_t at = 0;
  while (at < now.st_size && sendfile(to, from, &at, now.st_size - at) > 0) continue;
  close(from);
  close(to);
  return rename(part, kept);
}

#define SYNC(name)                                       \
  int name(int fd) {                                     \
    REAL(int, #name, int);                               \
    return sync_fails(fd) || real(fd) ? -1 : keep(fd);   \
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

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(int, "clock_gettime", clockid_t, struct timespec *);
  int failed = real(clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += *seconds_off;
  return failed;
}
