// Starts PicoD in any root: a static program that needs no shell, no C library and no writable directory. It does what the kernel does
// for a program with an interpreter, but takes both, Node and the loader of the C library that Node is linked to, from this package:
// from the files beside itself, or from parts of its own file. The process keeps the launcher's name and arguments.
#include "environment.h"
#include "heap.h"
#include "libraries.h"

enum { GET_FLAGS = 1 };

static const char node_flags[] = NODE_FLAGS;

/** The program without its links, and the folder that it lies in. */
static void find_self(char *self, char *folder) {
  long length = system_call(SYS_READLINKAT, AT_CURRENT_DIRECTORY, (long)"/proc/self/exe", (long)self, MAX_PATH - 1, 0, 0);
  if (length <= 0) fail("/proc", "not mounted, and processes cannot be followed without it; mount -t proc proc /proc");
  self[length] = 0;
  append(folder, self);
  for (char *c = folder + length; c > folder && *c != '/'; c--) *c = 0;
}

_Noreturn __attribute__((used)) void launch(uintptr_t *given) {
  size_t argc = given[0];
  char **argv = (char **)(given + 1), **variables = argv + argc + 1, **end = variables;
  while (*end != 0) end++;
  struct auxiliary *auxiliary = (struct auxiliary *)(end + 1);
  uintptr_t page = 4096;
  for (struct auxiliary *entry = auxiliary; entry->type != AUX_END; entry++)
    if (entry->type == AUX_PAGE_SIZE) page = entry->value;
  // A file that is opened here must not become a standard stream.
  for (int fd = 0; fd <= 2; fd++)
    if (system_call(SYS_FCNTL, fd, GET_FLAGS, 0, 0, 0, 0) < 0) open_file("/dev/null");

  static char self_path[MAX_PATH], folder[MAX_PATH], path[MAX_PATH + 16];
  find_self(self_path, folder);
  const char *script = path;
  int self = -1;
  struct image node, loader;
  if (is_single_file()) {
    self = open_or_fail("/proc/self/exe");
    // The script is the last part. What is mapped and not there would be a crash.
    char last;
    if (system_call(SYS_PREAD, self, (long)&last, 1, (long)(parts.script.offset + parts.script.size - 1), 0, 0) != 1)
      fail(self_path, "damaged: it is not complete");
    node = map_image(self, part_of(&parts.node), page, self_path);
    loader = map_image(self, part_of(&parts.loader), page, self_path);
    // Ends with a NUL.
    script = (const char *)map_memory(0, parts.script.size, PROTECT_READ, 0, self, parts.script.offset);
    if (is_error((uintptr_t)script)) fail(self_path, "cannot be mapped");
  } else {
    append(append(path, folder), "node");
    node = map_file(open_or_fail(path), page, path);
    append(append(path, folder), "lib/loader");
    loader = map_file(open_or_fail(path), page, path);
    append(append(path, folder), "picod.cjs");
  }

  size_t text_size = length_of(script) + sizeof node_flags + LIBRARIES * 48 + 512;
  for (size_t i = 0; i < argc; i++) text_size += length_of(argv[i]) + 1;
  // Room for the words of the given stack, and for what is added to them.
  size_t word_count = (size_t)((uintptr_t *)auxiliary - given) + 128;
  uintptr_t room[word_count + text_size / sizeof(uintptr_t) + 1] __attribute__((aligned(16)));
  struct stack stack = begin_stack(room, word_count);

  add_text(&stack, argc > 0 ? argv[0] : "picod");
  for (const char *flag = node_flags; *flag != 0; flag += length_of(flag) + 1) add_text(&stack, flag);
  char heap[64];
  append_number(append(heap, "--max-old-space-size="), heap_limit_mib(MAX_HEAP_MIB, MIN_HEAP_MIB));
  add_text(&stack, heap);
  if (is_single_file()) add_text(&stack, "--eval");
  add_text(&stack, script);
  if (is_single_file()) add_text(&stack, "--");
  for (size_t i = 1; i < argc; i++) add_text(&stack, argv[i]);
  end_arguments(&stack);
  add_environment(&stack, variables, argc > 1 && equals(argv[1], "healthcheck"));
  add_libraries(&stack, self, folder);
  if (self >= 0) system_call(SYS_CLOSE, self, 0, 0, 0, 0, 0);
  add_word(&stack, 0);
  add_auxiliary(&stack, auxiliary, &node, &loader);
  enter(loader.entry, room);
}
