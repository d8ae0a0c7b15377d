// The part of elf(5) that the launcher reads.
#pragma once
#include <stdint.h>

struct elf_header {
  char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segment_offset, section_offset;
  uint32_t flags;
  uint16_t size, segment_size, segment_count, section_size, section_count, section_names;
};

struct elf_segment {
  uint32_t type, flags;
  uint64_t offset, address, physical_address, file_size, memory_size, alignment;
};

/** What the kernel tells a program, getauxval(3). */
struct auxiliary {
  uint64_t type, value;
};

enum { ELF_SHARED_OBJECT = 3, SEGMENT_LOAD = 1, SEGMENT_EXECUTE = 1, SEGMENT_WRITE = 2, SEGMENT_READ = 4 };
enum { AUX_END = 0, AUX_SEGMENTS = 3, AUX_SEGMENT_COUNT = 5, AUX_PAGE_SIZE = 6, AUX_LOADER = 7, AUX_ENTRY = 9 };
