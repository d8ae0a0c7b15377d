// What a program finds on its stack when it starts: the count of its arguments, the arguments, the environment, and what the kernel
// tells the loader (the "auxiliary vector").
#pragma once
#include "image.h"

struct stack {
  uintptr_t *words;
  uintptr_t *word;
  char *text;
};

/** The texts lie above the words, because the program's own stack grows below them; and in one piece, as libuv takes argv to be. */
static inline struct stack begin_stack(uintptr_t *words, size_t word_count) {
  return (struct stack){words, words + 1, (char *)(words + word_count)};
}

static inline void add_word(struct stack *stack, uintptr_t word) { *stack->word++ = word; }

static inline void add_text(struct stack *stack, const char *text) {
  add_word(stack, (uintptr_t)stack->text);
  stack->text = append(stack->text, text) + 1;
}

static inline void end_arguments(struct stack *stack) {
  stack->words[0] = (uintptr_t)(stack->word - stack->words - 1);
  add_word(stack, 0);
}

static inline void add_auxiliary(struct stack *stack, const struct auxiliary *given, const struct image *program, const struct image *loader) {
  for (;; given++) {
    uintptr_t value = given->value;
    if (given->type == AUX_SEGMENTS) value = program->headers;
    if (given->type == AUX_SEGMENT_COUNT) value = program->header_count;
    if (given->type == AUX_ENTRY) value = program->entry;
    if (given->type == AUX_LOADER) value = loader->base;
    add_word(stack, given->type);
    add_word(stack, value);
    if (given->type == AUX_END) return;
  }
}
