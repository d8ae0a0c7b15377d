/** A table of the file, whose keys are taken one by one. What is wrong is named by its table and key. */
export class PolicyTable {
  readonly #name: string;
  readonly #values: Readonly<Record<string, unknown>>;

  /** @param name as the file writes it; empty for the file itself. @throws Error when it is no table, or has a key that is none of `keys`. */
  constructor(name: string, value: unknown, keys?: readonly string[]) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Date)
      throw new Error(`${name}: expected a table`);
    this.#name = name;
    this.#values = value as Readonly<Record<string, unknown>>;
    const unknown = keys && Object.keys(value).find((key) => !keys.includes(key));
    if (unknown !== undefined) throw this.wrong(unknown, `there is no such key; there are ${keys?.join(", ")}`);
  }

  get keys(): string[] {
    return Object.keys(this.#values);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  /** The table of that key; an empty one when it is left out. */
  table(key: string, keys?: readonly string[]): PolicyTable {
    const name = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
    return new PolicyTable(this.#name === "" ? name : `${this.#name}.${name}`, this.has(key) ? this.#values[key] : {}, keys);
  }

  text(key: string, parse: (text: string) => string): string | undefined {
    if (!this.has(key)) return undefined;
    const value = this.#values[key];
    if (typeof value !== "string") throw this.wrong(key, "expected a string");
    return this.#parsed(key, value, parse);
  }

  texts(key: string, parse: (text: string) => string): readonly string[] | undefined {
    if (!this.has(key)) return undefined;
    const value = this.#values[key];
    if (!Array.isArray(value)) throw this.wrong(key, "expected a list of strings");
    return value.map((each: unknown, index) => {
      if (typeof each !== "string") throw this.wrong(`${key}[${index}]`, "expected a string");
      return this.#parsed(`${key}[${index}]`, each, parse);
    });
  }

  number(key: string, { integer, min }: { readonly integer: boolean; readonly min: number }): number | undefined {
    if (!this.has(key)) return undefined;
    const value = this.#values[key];
    if (typeof value === "number" && value >= min && (integer ? Number.isSafeInteger(value) : Number.isFinite(value)))
      return value;
    throw this.wrong(key, `expected ${integer ? "a whole number" : "a number"} of ${min} or more`);
  }

  wrong(key: string, why: string): Error {
    return new Error(`${this.#name === "" ? "" : `[${this.#name}] `}${key}: ${why}`);
  }

  #parsed(key: string, value: string, parse: (text: string) => string): string {
    try {
      return parse(value);
    } catch (error) {
      throw this.wrong(key, `${JSON.stringify(value)}: ${(error as Error).message}`);
    }
  }
}
