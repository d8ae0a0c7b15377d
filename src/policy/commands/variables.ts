/**
 * What changes which programs run, or makes them load code: only a policy that names one of these, or a part of its name, grants
 * it. `*` does not.
 */
const TAKES_OVER =
  /^(PATH|IFS|ENV|PS[0-4]|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NLSPATH|RESOLV_HOST_CONF|RES_OPTIONS|TMPDIR|TZDIR|NODE_OPTIONS|PERL5OPT|PYTHONSTARTUP|RUBYOPT|EXECIGNORE|CDPATH|GLOBIGNORE|FUNCNAME|(LD|BASH|GLIBC|MALLOC|DYLD|PICOD)_.*|BASH|BASH_FUNC_.*)$/;

/** Whether `env` of a capability lets a request set that variable. @param patterns names, or beginnings of names with a `*`. */
export function mayBeSet(name: string, patterns: readonly string[]): boolean {
  const matching = patterns.filter((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
  return takesOver(name) ? matching.some((pattern) => pattern !== "*") : matching.length > 0;
}

/** Whether a shell, or what it starts, does something else with that variable set. */
export function takesOver(name: string): boolean {
  return TAKES_OVER.test(name);
}
