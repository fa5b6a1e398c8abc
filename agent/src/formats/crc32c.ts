// CRC-32C (Castagnoli) over large buffers, in WebAssembly. Eight bytes a step by tables, three stretches of the input at a
// time: the steps of one wait for each other, those of three do not. The module is assembled here, instruction by instruction,
// so that nothing opaque is shipped.

/** The polynomial, reflected. */
const polynomial = 0x82f63b78
/** Bytes that one call into WebAssembly looks at; they lie behind the tables. */
const windowBytes = 1 << 18
/** Stretches that are worked on side by side, and the bytes of each. */
const lanes = 3
const laneBytes = 1024
const tableCount = 8 + 4
const tableBytes = tableCount * 256 * 4

/**
 * Tables 0 to 7: table `k` gives the checksum of a byte that is followed by `k` zero bytes. Tables 8 to 11: what becomes of byte
 * `k` of a register after the zero bytes of one lane.
 */
function tables(): Uint32Array {
  const all = new Uint32Array(tableCount * 256)
  for (let byte = 0; byte < 256; byte++) {
    let value = byte
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1
    all[byte] = value
  }
  for (let index = 256; index < 8 * 256; index++) {
    const before = all[index - 256] as number
    all[index] = (before >>> 8) ^ (all[before & 255] as number)
  }
  for (let bit = 0; bit < 32; bit++) {
    let register = (1 << bit) >>> 0
    for (let zero = 0; zero < laneBytes; zero++) register = (register >>> 8) ^ (all[register & 255] as number)
    const table = (8 + (bit >> 3)) * 256
    for (let byte = 0; byte < 256; byte++) {
      if ((byte >> (bit & 7)) & 1) all[table + byte] = ((all[table + byte] as number) ^ register) >>> 0
    }
  }
  return all
}

// Instructions by the names of the text format. Locals: 0 register, 1 position, 2 end, 3 low half, 4 high half, 5 and 6 the
// registers of the second and third lane, 7 the end of the first.
const i32 = 0x7f
const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const i32Const = (value: number) => [0x41, ...signed(value)]
const add = 0x6a
const and = 0x71
const xor = 0x73
const shiftLeft = 0x74
const shiftRight = 0x76
const [below, atMost] = [0x49, 0x4d]
const [loop, when, again, end] = [
  [0x03, 0x40],
  [0x04, 0x40],
  [0x0c, 1],
  [0x0b, 0x0b],
]

function signed(value: number): number[] {
  const bytes: number[] = []
  let rest = value | 0
  for (;;) {
    const byte = rest & 0x7f
    rest >>= 7
    if ((rest === 0 && (byte & 0x40) === 0) || (rest === -1 && (byte & 0x40) !== 0)) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}

function unsigned(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest)
    rest >>>= 7
  } while (rest > 0)
  return bytes
}

/** The entry of table `k` for byte `index` of a local: the byte is cut out where it is four times as large, as an address is. */
function entry(k: number, local: number, index: number): number[] {
  const shift = index === 0 ? [...i32Const(2), shiftLeft] : [...i32Const(index * 8 - 2), shiftRight]
  return [...get(local), ...shift, ...i32Const(255 * 4), and, 0x28, 2, ...unsigned(k * 1024)] // i32.load
}

/** Eight bytes at the position and an offset into the register of a lane. */
function step(register: number, offset: number): number[] {
  const load = (at: number) => [...get(1), 0x28, 0, ...unsigned(offset + at)]
  const tables = [7, 6, 5, 4].flatMap((k, byte) => [...entry(k, 3, byte), ...(byte === 0 ? [] : [xor])])
  const more = [3, 2, 1, 0].flatMap((k, byte) => [...entry(k, 4, byte), xor])
  return [...get(register), ...load(0), xor, ...set(3), ...load(4), ...set(4), ...tables, ...more, ...set(register)]
}

const advance = (bytes: number) => [...get(1), ...i32Const(bytes), add, ...set(1)]
/** The register of the first lane as it is after the zero bytes of one lane. */
const afterLane = [0, 1, 2, 3].flatMap((byte) => [...entry(8 + byte, 0, byte), ...(byte === 0 ? [] : [xor])])

function assemble(): Uint8Array<ArrayBuffer> {
  const threeLanes = [
    ...[...loop, ...get(1), ...i32Const(lanes * laneBytes), add, ...get(2), atMost, ...when],
    ...[...i32Const(0), ...set(5), ...i32Const(0), ...set(6), ...get(1), ...i32Const(laneBytes), add, ...set(7)],
    ...[...loop, ...step(0, 0), ...step(5, laneBytes), ...step(6, 2 * laneBytes), ...advance(8)],
    ...[...get(1), ...get(7), below, 0x0d, 0, 0x0b], // br_if to the loop, end
    ...[...afterLane, ...get(5), xor, ...set(0), ...afterLane, ...get(6), xor, ...set(0)],
    ...[...advance(2 * laneBytes), ...again, ...end],
  ]
  const eightBytes = [
    ...[...loop, ...get(1), ...i32Const(8), add, ...get(2), atMost, ...when],
    ...[...step(0, 0), ...advance(8), ...again, ...end],
  ]
  const oneByte = [
    ...[...loop, ...get(1), ...get(2), below, ...when],
    ...[...get(0), ...get(1), 0x2d, 0, 0, xor, ...set(3)], // i32.load8_u
    ...[...entry(0, 3, 0), ...get(0), ...i32Const(8), shiftRight, xor, ...set(0), ...advance(1), ...again, ...end],
  ]
  const code = [1, 5, i32, ...threeLanes, ...eightBytes, ...oneByte, ...get(0), 0x0b] // five more locals
  const section = (id: number, content: readonly number[]) => [id, ...unsigned(content.length), ...content]
  const name = (text: string) => [text.length, ...Buffer.from(text)]
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 3, i32, i32, i32, 1, i32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, ...unsigned(Math.ceil((tableBytes + windowBytes) / 65_536))]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('update'), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ])
}

/** The part of the global `WebAssembly` used here; its types come with those of browsers, which do not belong in an agent. */
interface AssemblyGlobal {
  readonly WebAssembly: {
    Module: new (code: Uint8Array) => object
    Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; update: Checksum['update'] } }
  }
}

interface Checksum {
  readonly window: Uint8Array
  update(register: number, from: number, to: number): number
}

let made: Checksum | undefined

function checksum(): Checksum {
  if (made !== undefined) return made
  const { WebAssembly } = globalThis as unknown as AssemblyGlobal
  const { memory, update } = new WebAssembly.Instance(new WebAssembly.Module(assemble())).exports
  new Uint32Array(memory.buffer).set(tables())
  made = { window: new Uint8Array(memory.buffer, tableBytes, windowBytes), update }
  return made
}

/** The checksum of the bytes; with `before`, of those before it and these. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const { window, update } = checksum()
  let register = ~before
  for (let from = 0; from < bytes.length; from += windowBytes) {
    const part = bytes.length <= windowBytes ? bytes : bytes.subarray(from, from + windowBytes)
    window.set(part)
    register = update(register, tableBytes, tableBytes + part.length)
  }
  return ~register >>> 0
}
