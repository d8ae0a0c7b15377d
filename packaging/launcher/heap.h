// How large the daemon's heap may become: a quarter of what the cgroup allows (version 2 or 1, those above it included), as
// scripts/launcher.sh has it too.
#pragma once
#include "system.h"

enum { CGROUPS_SIZE = 4096, CGROUP_PATH = 2 * CGROUPS_SIZE, LIMIT_DIGITS = 15 };

/** The beginning of a file as text; empty when it cannot be read. */
static inline void read_text(const char *path, char *text, size_t size) {
  int fd = open_file(path);
  long length = fd < 0 ? 0 : system_call(SYS_PREAD, fd, (long)text, (long)size - 1, 0, 0, 0);
  if (fd >= 0) system_call(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
  text[length < 0 ? 0 : length] = 0;
}

/** What a limit's file leaves of a heap. "max" is none, and none is a number of 19 digits where the kernel has no word for it. */
static inline uint64_t lowered_by(const char *path, uint64_t heap_mib) {
  char text[32];
  read_text(path, text, sizeof text);
  uint64_t limit = 0;
  size_t digits = 0;
  for (; text[digits] >= '0' && text[digits] <= '9'; digits++) limit = limit * 10 + (uint64_t)(text[digits] - '0');
  if (digits == 0 || digits > LIMIT_DIGITS || (text[digits] != '\n' && text[digits] != 0)) return heap_mib;
  uint64_t quarter = limit / 1048576 / 4;
  return quarter < heap_mib ? quarter : heap_mib;
}

/** Of a cgroup and of all that it is in. Shortens `path`. */
static inline uint64_t lowered_along(const char *mount, char *path, const char *file, uint64_t heap_mib) {
  char name[CGROUP_PATH];
  for (char *end = path + length_of(path);;) {
    append(append(append(append(name, mount), path), "/"), file);
    heap_mib = lowered_by(name, heap_mib);
    while (end > path && *--end != '/') {}
    if (*end != '/') return heap_mib;
    *end = 0;
  }
}

/** Whether a list of controllers, "cpu,memory", has this one. */
static inline int has_controller(const char *list, const char *end, const char *name) {
  for (const char *word = list; word < end; word++)
    if ((word == list || word[-1] == ',') && starts_with(word, name) && (word[length_of(name)] == ',' || word + length_of(name) == end)) return 1;
  return 0;
}

static inline uint64_t heap_limit_mib(uint64_t max, uint64_t min) {
  static char cgroups[CGROUPS_SIZE];
  read_text("/proc/self/cgroup", cgroups, sizeof cgroups);
  uint64_t heap = max;
  for (char *line = cgroups; *line != 0;) {
    char *next = line;
    while (*next != 0 && *next != '\n') next++;
    if (*next == '\n') *next++ = 0;
    // hierarchy:controllers:path
    char *controllers = line;
    while (*controllers != 0 && *controllers++ != ':') {}
    char *path = controllers;
    while (*path != 0 && *path != ':') path++;
    char *controllers_end = path;
    if (*path == ':') path++;
    if (controllers == controllers_end) heap = lowered_along("/sys/fs/cgroup", path, "memory.max", heap);
    else if (has_controller(controllers, controllers_end, "memory"))
      heap = lowered_along("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", heap);
    line = next;
  }
  return heap < min ? min : heap;
}
