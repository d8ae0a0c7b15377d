// What the single file holds, and where in it.
#pragma once
#include "image.h"

enum { LIBRARIES = 7, MAX_PATH = 4096 };

/** Filled in by packaging/single-file.mjs; all zeros where the package is a folder. */
struct index {
  char magic[16];
  struct part node, loader, script;
  struct part libraries[LIBRARIES];
};
__attribute__((used, section(".picod"))) volatile struct index parts = {
    .magic = {'P', 'I', 'C', 'O', 'D', '-', 'P', 'A', 'R', 'T', 'S', '-', '0', '0', '0', '1'}};

static int is_single_file(void) { return parts.node.size != 0; }
static struct part part_of(volatile struct part *part) { return (struct part){part->offset, part->size}; }

/** What Node is linked to, in that order, and the daemon's native library: NUL-separated, below lib/ of the folder. */
static const char library_names[] = LIBRARY_NAMES;
