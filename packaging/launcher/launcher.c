// Starts PicoD in any root: a static program that needs no shell, no C library and no writable directory. It does what the kernel does
// for a program with an interpreter, but takes both, Node and the loader of the C library that Node is linked to, from this package:
// from the files beside itself, or from parts of its own file. The process keeps the launcher's name and arguments.
#include "heap.h"
#include "image.h"
#include "stack.h"

enum { LIBRARIES = 7, MAX_PATH = 4096, SOFT_LIMIT_OF_OPEN_FILES = 7, CLOSE_ON_EXEC = 1, GET_FLAGS = 1 };

/** Filled in by packaging/single-file.mjs; all zeros where the package is a folder. */
struct index {
  char magic[16];
  struct part node, loader, script;
  struct part libraries[LIBRARIES];
};
__attribute__((used, section(".picod"))) volatile struct index parts = {
    .magic = {'P', 'I', 'C', 'O', 'D', '-', 'P', 'A', 'R', 'T', 'S', '-', '0', '0', '0', '1'}};

/** What Node is linked to, in that order, and the daemon's native library: NUL-separated, below lib/ of the folder. */
static const char library_names[] = LIBRARY_NAMES;
static const char node_flags[] = NODE_FLAGS;

static int is_single_file(void) { return parts.node.size != 0; }
static struct part part_of(volatile struct part *part) { return (struct part){part->offset, part->size}; }

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

/** The program without its links, and the folder that it lies in. */
static void find_self(char *self, char *folder) {
  long length = system_call(SYS_READLINKAT, AT_CURRENT_DIRECTORY, (long)"/proc/self/exe", (long)self, MAX_PATH - 1, 0, 0);
  if (length <= 0) fail("/proc", "not mounted, and processes cannot be followed without it; mount -t proc proc /proc");
  self[length] = 0;
  append(folder, self);
  for (char *c = folder + length; c > folder && *c != '/'; c--) *c = 0;
}

/** What an image sets for its own programs must not load code into the daemon, change what it trusts or make it write files. */
static int is_meant_for_others(const char *variable) {
  return starts_with(variable, "NODE_") || starts_with(variable, "LD_") || starts_with(variable, "OPENSSL_") ||
         starts_with(variable, "SSL_CERT_") || starts_with(variable, "GLIBC_TUNABLES=") || starts_with(variable, "PICOD_SOFT_OPEN_FILES=") ||
         starts_with(variable, "PICOD_LIBRARIES=");
}

static void add_environment(struct stack *stack, char **variables, int is_health_check) {
  static const char token[] = "PICOD_ACCESS_TOKEN=";
  for (; *variables != 0; variables++) {
    if (is_meant_for_others(*variables)) continue;
    if (is_health_check && starts_with(*variables, token)) {
      // It has no use for the token that its container gave it, and would show it to every process of its user.
      for (char *c = *variables + sizeof token - 1; *c != 0; c++) *c = '*';
      continue;
    }
    add_word(stack, (uintptr_t)*variables);
  }
  uint64_t limits[2] = {0, 0};
  system_call(SYS_PRLIMIT, 0, SOFT_LIMIT_OF_OPEN_FILES, 0, (long)limits, 0, 0);
  char text[64];
  // Node raises the soft limit of open files for itself; commands get this one back.
  append_number(append(text, "PICOD_SOFT_OPEN_FILES="), limits[0]);
  add_text(stack, text);
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
