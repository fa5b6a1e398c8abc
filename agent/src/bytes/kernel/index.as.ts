// The kernel of the lane for bytes, in AssemblyScript: reads lines of a container runtime and the JSON objects in them, and writes them
// again with other members, without a value in between. `npm run generate` compiles it to `kernel-code.ts`.
//
// It keeps nothing between calls: its memory has one place for each thing below, and a caller brings lines, names and a plan, and
// takes away what was written. All places have a fixed size. It writes nothing beyond them, and a line that does not fit is left to others.
// Every line is followed by a byte below 0x20, which ends every loop over its bytes, and all places by as many bytes as one load reads.
//
// It takes over only what is exactly as the writer of JSON of `formats/json.ts` would write it. All else is put into that form (escapes of
// strings here, numbers and nested values by the caller), or the line is left to others.

export { group, join } from './groups.as'
export * from './json.as'
export { findKey } from './keys.as'
export * from './layout.as'
export * from './lines.as'
export * from './plan.as'
export { begin, isAscii, keyCount, recodedLength, setKeys, setRecodedLength, stamp } from './state.as'
