// What FilesystemService promises, done with plain calls of node:fs: the model of files-property.test.ts. Run by it as a process of its own,
// which becomes the user that it is told and then does one step after the other. A step is an object as the test makes them; paths are below
// `root`. Answers what went wrong, if anything, and what was read.
import fs from "node:fs";
import { basename, dirname, join } from "node:path";

const { O_WRONLY } = fs.constants;
const NEW_FILE_MODE = 0o644;
const MAX_LINKS = 40;
let hidden = 0;

const look = (path) => fs.lstatSync(path, { throwIfNoEntry: false });
const isSame = (one, other) => one !== undefined && other !== undefined && one.ino === other.ino;

function fail(why) {
  throw new Error(why);
}

/** Missing parents are made, and gone again after an error. */
function withParents(path, run) {
  const made = [];
  const make = (directory) => {
    const stats = fs.statSync(directory, { throwIfNoEntry: false });
    if (stats !== undefined) return stats.isDirectory() || fail("not a directory");
    make(dirname(directory));
    fs.mkdirSync(directory);
    return made.push(directory);
  };
  try {
    make(dirname(path));
    return run();
  } catch (error) {
    for (const directory of made.reverse()) fs.rmdirSync(directory);
    throw error;
  }
}

/** Links are followed to a name, which need not exist; missing parents of each are made. */
function withTarget(path, run, links = 0) {
  if (links > MAX_LINKS) fail("too many links");
  return withParents(path, () => {
    if (!look(path)?.isSymbolicLink()) return run(path);
    const target = fs.readlinkSync(path);
    return withTarget(target.startsWith("/") ? target : `${dirname(path)}/${target}`, run, links + 1);
  });
}

/** Whether a name is, or lies in, what a directory's name stands for. */
function isInside(path, directory) {
  const within = `${fs.realpathSync(dirname(path))}/`;
  return look(directory).isDirectory() && within.startsWith(`${ownPath(directory)}/`);
}

/** Without links in it, but for the last name. */
function ownPath(path) {
  return join(fs.realpathSync(dirname(path)), basename(path));
}

/** Makes something under another name and gives it its own, in place of what has it. */
function place(path, make) {
  const temporary = join(dirname(path), `.model-${hidden++}`);
  try {
    make(temporary);
    fs.renameSync(temporary, path);
  } finally {
    fs.rmSync(temporary, { force: true });
  }
}

function keepTimes(path, stats) {
  fs.lutimesSync(path, stats.atimeMs / 1000, stats.mtimeMs / 1000);
}

function copyFile(source, to, stats) {
  const content = fs.readFileSync(source);
  const existing = look(to);
  if (isSame(existing, stats)) return;
  const isWritable = existing?.isFile() && tryWrite(to, existing);
  if (isWritable) {
    fs.writeFileSync(to, content);
    fs.chmodSync(to, stats.mode & 0o7777);
    keepTimes(to, stats);
    return;
  }
  place(to, (temporary) => {
    fs.writeFileSync(temporary, content);
    fs.chmodSync(temporary, stats.mode & 0o7777);
    keepTimes(temporary, stats);
  });
}

/** One's own file that is write-protected can be replaced, unless it has other names. */
function tryWrite(path, { nlink }) {
  try {
    fs.closeSync(fs.openSync(path, O_WRONLY));
    return true;
  } catch (error) {
    if (error.code !== "EACCES" || nlink > 1) throw error;
    return false;
  }
}

/** @param links where copies of what has several names are, by inode. */
function copyEntry(source, to, links) {
  const stats = fs.lstatSync(source);
  const existing = look(to);
  if (stats.isDirectory()) {
    copyDirectory(source, to, stats, existing, links);
    return;
  }
  if (existing?.isDirectory()) fail("a file would replace a directory");
  const copied = stats.nlink > 1 ? links.get(stats.ino) : undefined;
  if (copied !== undefined) place(to, (temporary) => fs.linkSync(copied, temporary));
  else if (stats.isFile()) copyFile(source, to, stats);
  else {
    place(to, (temporary) => {
      fs.symlinkSync(fs.readlinkSync(source), temporary);
      keepTimes(temporary, stats);
    });
  }
  links.set(stats.ino, copied ?? to);
}

/** One that exists is merged into; a new one appears as a whole or not at all. */
function copyDirectory(source, to, stats, existing, links) {
  const names = sortedNames(source);
  const copyAll = () => {
    for (const name of names) copyEntry(join(source, name), join(to, name), links);
  };
  if (existing !== undefined) {
    if (!existing.isDirectory()) fail("a directory would replace a file");
    copyAll();
    return;
  }
  fs.mkdirSync(to, 0o700);
  try {
    copyAll();
    fs.chmodSync(to, stats.mode & 0o7777);
    keepTimes(to, stats);
  } catch (error) {
    removeAll(to);
    throw error;
  }
}

/** Whatever the modes of the directories are, which are the user's own. */
function removeAll(path) {
  if (look(path).isDirectory()) {
    fs.chmodSync(path, 0o700);
    for (const name of fs.readdirSync(path)) removeAll(join(path, name));
    fs.rmdirSync(path);
  } else fs.unlinkSync(path);
}

function sortedNames(directory) {
  return fs.readdirSync(directory).sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

/** Goes on past what cannot be removed. Returns the first error. */
function removeTree(path) {
  try {
    if (!fs.lstatSync(path).isDirectory()) {
      fs.unlinkSync(path);
      return undefined;
    }
    try {
      fs.rmdirSync(path);
      return undefined;
    } catch {
      // There is something in it.
    }
    const errors = sortedNames(path).map((name) => removeTree(join(path, name)));
    const first = errors.find((error) => error !== undefined);
    if (first === undefined) fs.rmdirSync(path);
    return first;
  } catch (error) {
    return error;
  }
}

function listBelow(directory, prefix, depth) {
  let names;
  try {
    names = sortedNames(directory);
  } catch (error) {
    if (prefix === "") throw error;
    return [];
  }
  return names.flatMap((name) => {
    const path = join(directory, name);
    let stats;
    try {
      stats = fs.lstatSync(path);
    } catch {
      return [];
    }
    const line = `${prefix}${name} ${(stats.mode & 0o7777).toString(8)}`;
    return [line, ...(stats.isDirectory() && depth > 1 ? listBelow(path, `${prefix}${name}/`, depth - 1) : [])];
  });
}

const STEPS = {
  makeDirectory({ path, mode, mustNotExist }) {
    withParents(path, () => {
      if (look(path) === undefined) {
        fs.mkdirSync(path);
        if (mode !== undefined) fs.chmodSync(path, mode);
      } else if (mustNotExist || !fs.statSync(path).isDirectory()) fail("it exists");
    });
  },
  write({ path, mode, offset, content }) {
    withTarget(path, (target) => {
      const existing = look(target);
      if (offset > (existing?.size ?? 0)) fail("beyond the end");
      const fd = fs.openSync(target, existing === undefined ? "wx" : O_WRONLY, NEW_FILE_MODE);
      if (offset === undefined) fs.ftruncateSync(fd);
      fs.writeSync(fd, content, offset ?? 0);
      if (mode !== undefined) fs.fchmodSync(fd, mode);
      fs.closeSync(fd);
    });
  },
  upload(step) {
    STEPS.write(step);
  },
  move({ path, to, mode }) {
    const stats = fs.lstatSync(path);
    if (mode === "exchange") return exchange(path, to);
    return withParents(to, () => {
      const existing = look(to);
      if (mode === "free" && existing !== undefined) fail("it exists");
      const isItself = ownPath(path) === ownPath(to);
      fs.renameSync(path, to);
      // Of two names of one file the old one goes, where rename(2) does nothing.
      if (isSame(existing, stats) && !isItself) fs.unlinkSync(path);
    });
  },
  copy({ path, to, mustNotExist }) {
    const stats = fs.lstatSync(path);
    withParents(to, () => {
      const existing = look(to);
      if (isInside(to, path) || isSame(existing, stats)) fail("that is itself");
      if (mustNotExist && existing !== undefined) fail("it exists");
      copyEntry(ownPath(path), ownPath(to), new Map());
    });
  },
  remove({ path, recursive, missingOk }) {
    try {
      const stats = fs.lstatSync(path);
      if (!recursive) return stats.isDirectory() ? fs.rmdirSync(path) : fs.unlinkSync(path);
    } catch (error) {
      if (missingOk && error.code === "ENOENT") return undefined;
      throw error;
    }
    const error = removeTree(path);
    if (error !== undefined) throw error;
    return undefined;
  },
  setAttributes({ path, mode, seconds, noFollow }) {
    const stats = noFollow ? fs.lstatSync(path) : fs.statSync(path);
    if (mode !== undefined && stats.isSymbolicLink()) fail("a link has no mode");
    if (mode !== undefined) fs.chmodSync(path, mode);
    if (seconds !== undefined) (noFollow ? fs.lutimesSync : fs.utimesSync)(path, stats.atime, seconds);
  },
  /** Done in both trees: the service has no call for it. */
  link({ path, to }) {
    fs.linkSync(path, to);
  },
  symlink({ path, target }) {
    fs.symlinkSync(target, path);
  },
  /** Into a directory that is not there, or in the place of the whole one. */
  archive({ path, to, root }) {
    const archived = join(root, `.model-${hidden++}`);
    const source = fs.realpathSync(path);
    if (!fs.lstatSync(source).isDirectory()) fail("not a directory");
    copyEntry(source, archived, new Map());
    try {
      withTarget(to, (target) => {
        // As with mkdir(1), a link that leads nowhere is no name for a new directory.
        if (target !== to && look(target) === undefined) fail("the link leads nowhere");
        unpack(archived, target);
      });
    } finally {
      removeAll(archived);
    }
  },
  read({ path }) {
    return fs.readFileSync(path, "utf8");
  },
  list({ path, depth }) {
    return listBelow(path, "", depth === 0 ? Number.POSITIVE_INFINITY : depth);
  },
};

function unpack(archived, to) {
  const existing = look(to);
  if (existing !== undefined && !existing.isDirectory()) fail("not a directory");
  const temporary = join(dirname(to), `.model-${hidden++}`);
  copyEntry(archived, temporary, new Map());
  if (existing !== undefined) exchange(temporary, to);
  else fs.renameSync(temporary, to);
  if (existing !== undefined) removeAll(temporary);
}

function exchange(source, destination) {
  // One of them may be a link on the way to the other.
  const [path, to] = [ownPath(source), ownPath(destination)];
  const [one, other] = [fs.lstatSync(path), fs.lstatSync(to)];
  if (isInside(to, path) || isInside(path, to)) fail("one is in the other");
  if (isSame(one, other)) return;
  const temporary = join(dirname(to), `.model-${hidden++}`);
  fs.renameSync(to, temporary);
  try {
    fs.renameSync(path, to);
    try {
      fs.renameSync(temporary, path);
    } catch (error) {
      fs.renameSync(to, path);
      throw error;
    }
  } catch (error) {
    fs.renameSync(temporary, to);
    throw error;
  }
}

function run({ kind, ...step }, root) {
  const below = { ...step, root, path: join(root, step.path), ...(step.to === undefined ? {} : { to: join(root, step.to) }) };
  try {
    return { answer: STEPS[kind](below) };
  } catch (error) {
    return { failure: String(error.message) };
  }
}

const [uid, gid] = process.argv.slice(2).map(Number);
process.umask(0o022);
process.setgroups([gid]);
process.setgid(gid);
process.setuid(uid);
process.on("message", ({ root, step }) => process.send(run(step, root)));
