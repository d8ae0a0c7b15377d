/**
 * A map of what comes and goes by the thousand and lives for milliseconds. A Map is made anew whenever as many have gone as it has room for,
 * and what was in it then stays in the table of before, which by that time is too old to be collected often: with it, all that its values
 * lead to. Here what has gone is taken out of its place first.
 */
export class TransientMap<K, V> {
  readonly #places = new Map<K, { value: V | undefined }>();

  get size(): number {
    return this.#places.size;
  }

  has(key: K): boolean {
    return this.#places.has(key);
  }

  get(key: K): V | undefined {
    return this.#places.get(key)?.value;
  }

  set(key: K, value: V): void {
    this.#places.set(key, { value });
  }

  delete(key: K): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    place.value = undefined;
    this.#places.delete(key);
  }

  values(): V[] {
    return [...this.#places.values()].map(({ value }) => value as V);
  }
}
