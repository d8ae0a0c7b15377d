import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";

/** What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG stand for. A name that is unknown stands for the default. */
export function samplerOf(
  name = "parentbased_always_on",
  argument: string | undefined,
  warn: (message: string) => void,
): Sampler {
  const [, parentBased, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name.trim().toLowerCase()) ?? [];
  if (kind === undefined) warn(`unknown OTEL_TRACES_SAMPLER: ${name}: traces are sampled as by parentbased_always_on`);
  const root = rootSampler(kind, argument, warn);
  return parentBased !== undefined || kind === undefined ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(kind: string | undefined, argument: string | undefined, warn: (message: string) => void): Sampler {
  if (kind === "always_off") return new AlwaysOffSampler();
  if (kind !== "traceidratio") return new AlwaysOnSampler();
  const ratio = argument === undefined || argument.trim() === "" ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return new TraceIdRatioBasedSampler(ratio);
  warn(`invalid OTEL_TRACES_SAMPLER_ARG: ${argument}: it is not a number from 0 to 1; all traces are sampled`);
  return new AlwaysOnSampler();
}
