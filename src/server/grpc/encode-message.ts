import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { encodedTextOf } from "../../encoded-text.js";
import { PREFIX_BYTES } from "./deframer.js";

/** From here on it costs less to send bytes from where they are, and to encode text once, than to copy them. */
const LARGE_BYTES = 8 * 1024;

/** A message with its prefix, in pieces to be sent one after the other. The second, if any, may be the caller's own memory. */
export type EncodedMessage = readonly [Uint8Array] | readonly [head: Uint8Array, tail: Uint8Array];

/** @param message complete or not, as handlers return it. */
export function encodeMessage(descriptor: DescMessage, message: object): EncodedMessage {
  const [head, tail] = encodeText(descriptor, message) ?? encode(descriptor, complete(descriptor, message));
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + head.length);
  framed.writeUInt8(0, 0);
  framed.writeUInt32BE(head.length + (tail?.length ?? 0), 1);
  framed.set(head, PREFIX_BYTES);
  return tail === undefined ? [framed] : [framed, tail];
}

type Encoded = readonly [head: Uint8Array, tail?: Uint8Array];

function complete(descriptor: DescMessage, message: object): Message {
  return create(descriptor, message as MessageInitShape<DescMessage>);
}

/** For a message with a large text that is encoded already. */
function encodeText(descriptor: DescMessage, message: object): Encoded | undefined {
  const [name = "", utf8] = encodedTextOf(message) ?? [];
  const field = descriptor.field[name];
  if (field === undefined || utf8 === undefined) return undefined;
  const others = Object.create(message, { [field.localName]: { value: "" } });
  return [append(descriptor, complete(descriptor, others), field, utf8.length), utf8];
}

/**
 * The order of fields is free, so the large bytes or text of a message, or of a message in it, come last: what precedes them is all that has to
 * be written. See https://protobuf.dev/programming-guides/encoding/#order
 */
function encode(descriptor: DescMessage, message: Message): Encoded {
  for (const field of descriptor.fields) {
    const value = fieldValue(message, field);
    if ((value instanceof Uint8Array || typeof value === "string") && value.length >= LARGE_BYTES) {
      const bytes = typeof value === "string" ? Buffer.from(value) : value;
      return [append(descriptor, message, field, bytes.length), bytes];
    }
    if (value !== undefined && field.fieldKind === "message") {
      const [head, tail] = encode(field.message, value as Message);
      if (tail !== undefined) return [append(descriptor, message, field, head.length + tail.length, head), tail];
    }
  }
  return [toBinary(descriptor, message)];
}

function fieldValue(message: Message, field: DescField): unknown {
  const fields = message as unknown as Record<string, { case?: string; value?: unknown } | undefined>;
  if (field.oneof === undefined) return fields[field.localName];
  const chosen = fields[field.oneof.localName];
  return chosen?.case === field.localName ? chosen.value : undefined;
}

/** All of a message but one field, and then what precedes the value of that field. */
function append(descriptor: DescMessage, message: Message, field: DescField, length: number, head?: Uint8Array): Uint8Array {
  const without = field.fieldKind === "message" ? undefined : field.scalar === ScalarType.STRING ? "" : new Uint8Array(0);
  const name = field.oneof?.localName ?? field.localName;
  // A copy: of what a message merely inherits, the library says that it is not set.
  const rest = Object.assign(Object.create(Object.getPrototypeOf(message)), message);
  rest[name] = field.oneof === undefined ? without : { case: undefined };
  const writer = new BinaryWriter().raw(toBinary(descriptor, rest));
  writer.tag(field.number, WireType.LengthDelimited).uint32(length);
  if (head !== undefined) writer.raw(head);
  return writer.finish();
}
