// The system calls and the few words of C that the launcher needs: it is linked to no C library, since a root may have none.
#pragma once
#include "elf.h"
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
enum { SYS_OPENAT = 257, SYS_CLOSE = 3, SYS_WRITE = 1, SYS_PREAD = 17, SYS_MMAP = 9, SYS_EXIT = 231, SYS_READLINKAT = 267,
       SYS_PRLIMIT = 302, SYS_MEMFD_CREATE = 319, SYS_SENDFILE = 40, SYS_FCNTL = 72 };
static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
__asm__(".globl _start\n_start: xor %ebp, %ebp\nmov %rsp, %rdi\nand $-16, %rsp\ncall launch\n");
_Noreturn static inline void enter(uintptr_t entry, const void *stack) {
  __asm__ volatile("mov %0, %%rsp\nxor %%edx, %%edx\njmp *%1" : : "r"(stack), "r"(entry) : "rdx", "memory");
  __builtin_unreachable();
}
#elif defined(__aarch64__)
enum { SYS_OPENAT = 56, SYS_CLOSE = 57, SYS_WRITE = 64, SYS_PREAD = 67, SYS_MMAP = 222, SYS_EXIT = 94, SYS_READLINKAT = 78,
       SYS_PRLIMIT = 261, SYS_MEMFD_CREATE = 279, SYS_SENDFILE = 71, SYS_FCNTL = 25 };
static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
__asm__(".globl _start\n_start: mov x29, #0\nmov x30, #0\nmov x0, sp\nb launch\n");
_Noreturn static inline void enter(uintptr_t entry, const void *stack) {
  register uintptr_t x9 __asm__("x9") = entry;
  __asm__ volatile("mov sp, %0\nmov x0, #0\nbr %1" : : "r"(stack), "r"(x9) : "x0", "memory");
  __builtin_unreachable();
}
#else
#error "PicoD is built for x86-64 and arm64"
#endif

enum { AT_CURRENT_DIRECTORY = -100, OPEN_READ_ONLY_CLOSE_ON_EXEC = 02000000, ERROR_NOT_FOUND = 2 };

static inline int open_file(const char *path) {
  return (int)system_call(SYS_OPENAT, AT_CURRENT_DIRECTORY, (long)path, OPEN_READ_ONLY_CLOSE_ON_EXEC, 0, 0, 0);
}

static inline size_t length_of(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length++;
  return length;
}

static inline int starts_with(const char *text, const char *start) {
  while (*start != 0)
    if (*text++ != *start++) return 0;
  return 1;
}

static inline int equals(const char *text, const char *other) { return starts_with(text, other) && text[length_of(other)] == 0; }

/** Copies text with its NUL. Returns where the NUL went. */
static inline char *append(char *end, const char *text) {
  while ((*end = *text++) != 0) end++;
  return end;
}

static inline char *append_number(char *end, uint64_t number) {
  char digits[21];
  size_t count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *end++ = digits[--count];
  *end = 0;
  return end;
}

/** The wrong configuration's exit code, as the daemon's own. */
_Noreturn static inline void fail(const char *subject, const char *why) {
  const char *texts[] = {"picod: cannot start: ", subject, ": ", why, "\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    system_call(SYS_WRITE, 2, (long)texts[i], (long)length_of(texts[i]), 0, 0, 0);
  system_call(SYS_EXIT, 2, 0, 0, 0, 0, 0);
  __builtin_unreachable();
}
