// Maps a program as the kernel would have.
#pragma once
#include "system.h"

enum { PROTECT_NONE = 0, PROTECT_READ = 1, MAP_PRIVATE_FILE = 0x02, MAP_AT_ADDRESS = 0x10, MAP_NO_FILE = 0x20, MAP_WITHOUT_SWAP = 0x4000,
       MAP_UNLESS_TAKEN = 0x100000, MAX_SEGMENTS = 32 };

/** Where in a file a program lies. */
struct part {
  uint64_t offset;
  uint64_t size;
};

struct image {
  uintptr_t base;
  uintptr_t entry;
  uintptr_t headers;
  size_t header_count;
};

static inline uintptr_t map_memory(uintptr_t address, size_t size, int protection, int flags, int fd, uint64_t offset) {
  return (uintptr_t)system_call(SYS_MMAP, (long)address, (long)size, protection, flags | MAP_PRIVATE_FILE, fd, (long)offset);
}

static inline int is_error(uintptr_t address) { return address > (uintptr_t)-4096; }

static inline int protection_of(const struct elf_segment *segment) {
  return ((segment->flags & SEGMENT_READ) ? 1 : 0) | ((segment->flags & SEGMENT_WRITE) ? 2 : 0) | ((segment->flags & SEGMENT_EXECUTE) ? 4 : 0);
}

/** The file's part of a segment, then memory of zeros for what the file does not have of it. */
static inline void map_segment(const struct elf_segment *segment, uintptr_t base, uintptr_t page, int fd, struct part part, const char *name) {
  uintptr_t start = base + segment->address, file_end = start + segment->file_size, end = start + segment->memory_size;
  uintptr_t first = start & ~(page - 1), lead = start - first, zeros = (file_end + page - 1) & ~(page - 1);
  int protection = protection_of(segment);
  if (segment->file_size > 0 &&
      is_error(map_memory(first, segment->file_size + lead, protection, MAP_AT_ADDRESS, fd, part.offset + segment->offset - lead)))
    fail(name, "cannot be mapped: is its file system mounted noexec?");
  if (end <= file_end) return;
  // To the end of the page, as the kernel does: the loader's first memory is what follows its own.
  if (segment->file_size > 0)
    for (volatile char *byte = (volatile char *)file_end; (uintptr_t)byte < zeros; byte++) *byte = 0;
  else
    zeros = first;
  if (end > zeros && is_error(map_memory(zeros, end - zeros, protection, MAP_AT_ADDRESS | MAP_NO_FILE, -1, 0)))
    fail(name, "not enough memory");
}

/** Ends this process with a message when the program cannot be mapped. */
static inline struct image map_image(int fd, struct part part, uintptr_t page, const char *name) {
  struct elf_header header;
  struct elf_segment segments[MAX_SEGMENTS];
  if (system_call(SYS_PREAD, fd, (long)&header, sizeof header, (long)part.offset, 0, 0) != sizeof header ||
      !starts_with(header.ident, "\177ELF") || header.segment_count > MAX_SEGMENTS)
    fail(name, "damaged");
  long size = (long)(header.segment_count * sizeof *segments);
  if (system_call(SYS_PREAD, fd, (long)segments, size, (long)(part.offset + header.segment_offset), 0, 0) != size) fail(name, "damaged");

  uintptr_t lowest = (uintptr_t)-1, highest = 0;
  struct image image = {.header_count = header.segment_count};
  for (size_t i = 0; i < header.segment_count; i++) {
    const struct elf_segment *segment = &segments[i];
    if (segment->type != SEGMENT_LOAD) continue;
    if (segment->address < lowest) lowest = segment->address & ~(page - 1);
    if (segment->address + segment->memory_size > highest) highest = segment->address + segment->memory_size;
    if (segment->offset <= header.segment_offset && header.segment_offset < segment->offset + segment->file_size)
      image.headers = segment->address + header.segment_offset - segment->offset;
  }
  if (highest == 0) fail(name, "damaged");
  // All of its room at once, so that nothing else comes between its segments.
  uintptr_t wanted = header.type == ELF_SHARED_OBJECT ? 0 : lowest;
  uintptr_t room = map_memory(wanted, highest - lowest, PROTECT_NONE, MAP_NO_FILE | MAP_WITHOUT_SWAP | (wanted == 0 ? 0 : MAP_UNLESS_TAKEN), -1, 0);
  if (is_error(room) || (wanted != 0 && room != wanted)) fail(name, "its place in memory is taken, or there is not enough");
  image.base = room - lowest;
  for (size_t i = 0; i < header.segment_count; i++)
    if (segments[i].type == SEGMENT_LOAD) map_segment(&segments[i], image.base, page, fd, part, name);
  image.headers += image.base;
  image.entry = image.base + header.entry;
  return image;
}

/** Of a whole file, which is closed. */
static inline struct image map_file(int fd, uintptr_t page, const char *name) {
  struct image image = map_image(fd, (struct part){0, 0}, page, name);
  system_call(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
  return image;
}
