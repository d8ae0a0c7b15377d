/** Replaced by the build with the version of package.json. */
declare const PICOD_VERSION: string | undefined;

export const version = typeof PICOD_VERSION === "string" ? PICOD_VERSION : "0.0.0-development";
