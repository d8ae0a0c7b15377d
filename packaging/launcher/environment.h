// The environment of the daemon: what it was given, without what would change Node itself.
#pragma once
#include "stack.h"

enum { SOFT_LIMIT_OF_OPEN_FILES = 7 };

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
