/** Any number of characters. */
export const STAR = -1;
/** Any one character. */
export const ANY = -2;

/** One of some characters: `ranges` has the first and last of each range, one after the other. */
export interface CharacterSet {
  readonly negated: boolean;
  readonly ranges: readonly number[];
}

/** A code point stands for itself. */
export type Token = number | CharacterSet;

/** How much matching may still be done. A match that runs out of it fails. */
export interface Steps {
  left: number;
}

/**
 * A glob for one name, without slashes. Only the last star is ever tried again, which is enough, so the time is at most the product
 * of the two lengths whatever is in them.
 */
export class SegmentGlob {
  readonly #tokens: readonly Token[];
  readonly #literal: string | undefined;
  /** What follows the one star, at the beginning. */
  readonly #suffix: string | undefined;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens.filter((token, index) => token !== STAR || tokens[index - 1] !== STAR);
    this.#literal = literalOf(this.#tokens);
    this.#suffix = this.#tokens[0] === STAR ? literalOf(this.#tokens.slice(1)) : undefined;
  }

  matches(name: string, steps: Steps): boolean {
    steps.left--;
    if (this.#literal !== undefined) return name === this.#literal;
    if (this.#suffix !== undefined) return name.endsWith(this.#suffix);
    const tokens = this.#tokens;
    let [next, at, star, starAt] = [0, 0, -1, 0];
    while (at < name.length) {
      const token = tokens[next];
      if (token === STAR) {
        star = next++;
        starAt = at;
        continue;
      }
      if (token !== undefined && fits(token, name.codePointAt(at) as number)) {
        next++;
        at += widthAt(name, at);
      } else {
        if (star < 0) return false;
        starAt += widthAt(name, starAt);
        [next, at] = [star + 1, starAt];
      }
      steps.left -= typeof token === "object" ? 1 + token.ranges.length : 1;
      if (steps.left < 0) return false;
    }
    if (tokens[next] === STAR) next++;
    return next === tokens.length;
  }
}

function literalOf(tokens: readonly Token[]): string | undefined {
  if (!tokens.every((token) => typeof token === "number" && token >= 0)) return undefined;
  return tokens.map((token) => String.fromCodePoint(token as number)).join("");
}

function fits(token: Token, code: number): boolean {
  if (typeof token === "number") return token === code || token === ANY;
  const { ranges, negated } = token;
  for (let at = 0; at < ranges.length; at += 2) {
    if (code >= (ranges[at] as number) && code <= (ranges[at + 1] as number)) return !negated;
  }
  return negated;
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}
