// The kernel of the byte lane, in AssemblyScript: it reads lines of a container runtime and the JSON objects in them, and writes them
// with other members, without intermediate values. `npm run generate` compiles it to `kernel-code.ts`.
//
// It keeps no state between calls: its memory has one place for each item below. A caller stores lines, names and a plan there, and
// reads the output. All places have a fixed size. The kernel writes nothing beyond them, and leaves lines that do not fit to the
// caller. A byte below 0x20 follows every line and ends every loop over its bytes, and as many bytes as one load reads follow every
// place.
//
// The kernel copies only text in exactly the form that the JSON writer of `formats/json.ts` gives it. Other text is converted to that
// form (escapes of strings here, numbers and nested values by the caller), or the line is left to the caller.

export { group, join } from './groups.as'
export * from './json.as'
export { findKey } from './keys.as'
export * from './layout.as'
export * from './lines.as'
export * from './plan.as'
export { begin, isAscii, keyCount, memberCount, recodedLength, setKeys, setRecodedLength, stamp } from './state.as'
