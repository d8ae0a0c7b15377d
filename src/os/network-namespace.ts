import { constants } from "node:fs";
import { libc, SYSCALL } from "./libc.js";
import { check } from "./system-error.js";

const CLONE_NEWNET = 0x40000000;
const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const O_CLOEXEC = 0o2000000;
const SIOCGIFFLAGS = 0x8913;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP = 1;
/** struct ifreq: the name, then flags. */
const IFREQ_BYTES = 40;
const IFREQ_FLAGS = 16;
const BACKLOG = 128;
const AT_FDCWD = -100;

/**
 * Gives the calling thread, and what it starts, a network of its own in which there is nothing but loopback. Returns a descriptor
 * of it. @throws EPERM without CAP_SYS_ADMIN, ENOSPC at the limit of namespaces.
 */
export function enterNewNetwork(): number {
  check(libc.syscall3(SYSCALL.unshare, CLONE_NEWNET, 0, 0), "unshare(CLONE_NEWNET)");
  const socket = check(libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  try {
    const request = new Uint8Array(IFREQ_BYTES);
    request.set(Buffer.from("lo"));
    const flags = new DataView(request.buffer);
    check(libc.ioctl(socket, SIOCGIFFLAGS, request), "ioctl(SIOCGIFFLAGS)");
    flags.setUint16(IFREQ_FLAGS, flags.getUint16(IFREQ_FLAGS, true) | IFF_UP, true);
    check(libc.ioctl(socket, SIOCSIFFLAGS, request), "ioctl(SIOCSIFFLAGS)");
  } finally {
    libc.close(socket);
  }
  return check(libc.openat(AT_FDCWD, "/proc/thread-self/ns/net", constants.O_RDONLY | O_CLOEXEC, 0), "open(ns/net)");
}

/** Moves the calling thread to a network that another one has made. @throws EPERM. */
export function enterNetwork(fd: number): void {
  check(libc.syscall3(SYSCALL.setns, fd, CLONE_NEWNET, 0), "setns(CLONE_NEWNET)");
}

/** A socket that listens at that port of loopback, in the network of the calling thread. */
export function listenOnLoopback(port: number): number {
  const fd = check(libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  // struct sockaddr_in: family of this machine's order, port and address of the network's.
  const address = new Uint8Array(16);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_INET, true);
  view.setUint16(2, port);
  view.setUint32(4, 0x7f000001);
  if (libc.bind(fd, address, address.length) < 0 || libc.listen(fd, BACKLOG) < 0) check(-1, "listen");
  return fd;
}
