// The kernel of the byte lane, in AssemblyScript: it reads lines of a container runtime and the JSON objects in them, and writes them
// with other members, without intermediate values. `npm run generate` compiles it to `kernel-code.ts`.
// It keeps no state between calls: its memory has one area for each item below. A caller stores lines, names and a plan there, and
// reads the output. All areas have a fixed size. The kernel never writes beyond them; the caller handles lines that do not fit. A
// byte below 0x20 follows every line and ends every loop over its bytes, and every area is followed by as many bytes as one load
// reads.
// The kernel only copies text that is already in the exact form that the JSON writer of `formats/json.ts` produces. The kernel
// converts other strings to that form, and the caller converts numbers and nested values; a line that neither can convert is left to
// the caller.

export { alike, group, hasMember, listGroups, textEnds, textStarts } from './groups.as'
export * from './json.as'
export { findKey } from './keys.as'
export * from './layout.as'
export * from './lines.as'
export * from './plan.as'
export {
  begin,
  isAscii,
  keyCount,
  lacksNames,
  memberCount,
  recodedLength,
  setKeys,
  setRecodedLength,
  stamp,
} from './state.as'
