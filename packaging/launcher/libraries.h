// Gives the loader and the daemon their libraries as open descriptors.
#pragma once
#include "parts.h"
#include "stack.h"

enum { CLOSE_ON_EXEC = 1 };

static int open_or_fail(const char *path) {
  int fd = open_file(path);
  if (fd == -ERROR_NOT_FOUND) fail(path, "no such file: the package is not complete");
  if (fd < 0) fail(path, "cannot be opened");
  return fd;
}

/** A library as a file in memory: the loader takes nothing that does not begin a file. */
static int copy_to_memory(int fd, struct part part) {
  long memory = system_call(SYS_MEMFD_CREATE, (long)"picod", CLOSE_ON_EXEC, 0, 0, 0, 0);
  if (memory < 0) fail("memfd_create", "refused by the kernel; the folder does without it");
  int64_t offset = (int64_t)part.offset;
  for (uint64_t left = part.size; left > 0;) {
    long copied = system_call(SYS_SENDFILE, memory, fd, (long)&offset, (long)left, 0, 0);
    if (copied <= 0) fail("libraries", "not enough memory");
    left -= (uint64_t)copied;
  }
  return (int)memory;
}

/** Opens all libraries: the loader is told of all but the last, which the daemon loads; the daemon closes them. */
static void add_libraries(struct stack *stack, int self, const char *folder) {
  char path[2 * MAX_PATH], preload[LIBRARIES * 32], descriptors[LIBRARIES * 16];
  char *preload_end = append(preload, "LD_PRELOAD="), *descriptors_end = append(descriptors, "PICOD_LIBRARIES=");
  const char *name = library_names;
  for (size_t i = 0; i < LIBRARIES; i++, name += length_of(name) + 1) {
    append(append(append(path, folder), "lib/"), name);
    int fd = is_single_file() ? copy_to_memory(self, part_of(&parts.libraries[i])) : open_or_fail(path);
    if (i < LIBRARIES - 1) preload_end = append(append_number(append(preload_end, "/proc/self/fd/"), (uint64_t)fd), ":");
    descriptors_end = append(append_number(descriptors_end, (uint64_t)fd), ",");
  }
  *(preload_end - 1) = *(descriptors_end - 1) = 0;
  add_text(stack, preload);
  add_text(stack, descriptors);
}
