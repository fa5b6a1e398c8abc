// Text to bytes of a named character set. The tables are made from the decoder of the platform when a set is first used.

type Table = ReadonlyMap<string, Buffer>

const tables = new Map<string, Table>()

/** The decoder of a character set; undefined if the name is not known. */
export function findDecoder(name: string): TextDecoder | undefined {
  try {
    return new TextDecoder(name.trim(), { ignoreBOM: false })
  } catch {
    return undefined // The name is not known: the caller says so.
  }
}

/** The bytes of a text; characters outside of the set are numeric references. UTF-16 is written as UTF-8. */
export function encodeCharset(text: string, decoder: TextDecoder): Buffer {
  const name = decoder.encoding
  if (name.startsWith('utf-')) return Buffer.from(text, 'utf8')
  let table = tables.get(name)
  if (table === undefined) {
    table = tableOf(name)
    tables.set(name, table)
  }
  const pieces: Buffer[] = []
  for (const character of text) {
    const code = character.codePointAt(0) as number
    pieces.push(code < 0x80 ? Buffer.of(code) : (table.get(character) ?? Buffer.from(`&#${code};`)))
  }
  return Buffer.concat(pieces)
}

function tableOf(name: string): Table {
  const table = new Map<string, Buffer>()
  const strict = new TextDecoder(name, { fatal: true })
  const learn = (...bytes: number[]): void => {
    const sequence = Buffer.from(bytes)
    try {
      const character = strict.decode(sequence)
      if (Array.from(character).length === 1 && !table.has(character)) table.set(character, sequence)
    } catch {
      // The bytes stand for nothing.
    }
  }
  for (let byte = 0x80; byte < 0x100; byte++) learn(byte)
  if (/^(windows|iso-8859|koi8|ibm|macintosh|x-mac|x-user)/.test(name)) return table
  for (let lead = 0x81; lead < 0xff; lead++) for (let trail = 0x40; trail < 0xff; trail++) learn(lead, trail)
  return table
}
