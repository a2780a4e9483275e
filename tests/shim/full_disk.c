/* A disk that is full, for one process, for as long as its tester wants.
 *
 * Loaded in front of the C library by LD_PRELOAD. While the file that FULL_DISK names begins with a byte other than
 * zero, whatever would make a regular file grow or change fails as the kernel fails it on a full disk: with ENOSPC.
 * Pipes and sockets are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const volatile unsigned char *full;

__attribute__((constructor)) static void find_switch(void) {
  const char *path = getenv("FULL_DISK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) full = mapped;
  close(file);
}

static int is_full(int file) {
  struct stat found;
  return full && *full && fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE_IF_FULL(file) \
  if (is_full(file)) {       \
    errno = ENOSPC;          \
    return -1;               \
  }

ssize_t write(int file, const void *bytes, size_t count) {
  REFUSE_IF_FULL(file)
  return NEXT(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
  REFUSE_IF_FULL(file)
  return NEXT(pwrite)(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
  REFUSE_IF_FULL(file)
  return NEXT(pwrite64)(file, bytes, count, at);
}

int ftruncate(int file, off_t length) {
  REFUSE_IF_FULL(file)
  return NEXT(ftruncate)(file, length);
}

int ftruncate64(int file, off64_t length) {
  REFUSE_IF_FULL(file)
  return NEXT(ftruncate64)(file, length);
}

int fallocate(int file, int mode, off_t at, off_t length) {
  REFUSE_IF_FULL(file)
  return NEXT(fallocate)(file, mode, at, length);
}

int posix_fallocate(int file, off_t at, off_t length) {
  if (is_full(file)) return ENOSPC;
  return NEXT(posix_fallocate)(file, at, length);
}
