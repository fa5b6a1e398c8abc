// Encodes text in a named character set. The tables are derived from the platform's decoder when a set is first used.

type Table = ReadonlyMap<string, Buffer>

const tables = new Map<string, Table>()

/**
 * The decoder of a character set; undefined if the name is unknown. @param keepMark whether a byte order mark stays in
 * the text
 */
export function findDecoder(name: string, keepMark = false): TextDecoder | undefined {
  try {
    return new TextDecoder(name.trim(), { ignoreBOM: keepMark })
  } catch {
    return undefined // unknown name; the caller reports it
  }
}

const withheld = /^(?:replacement|csiso2022kr|iso-2022-(?:kr|cn|cn-ext)|hz-gb-2312)$/i

/** Whether a character set is known but not decoded, because attackers hide text in it. */
export function isWithheld(name: string): boolean {
  return withheld.test(name.trim())
}

/** Decodes bytes in a character set; a Unicode byte order mark overrides the name. Undefined if the name is unknown. */
export function charsetText(bytes: Buffer, name: string): string | undefined {
  if (isWithheld(name)) return bytes.length === 0 ? '' : '\ufffd'
  const decoder = findDecoder(name)
  const mark = bytes.toString('latin1', 0, 3)
  if (decoder === undefined || !/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/.test(mark)) return decoder?.decode(bytes)
  const unicode = mark.startsWith('\xef') ? 'utf-8' : mark.startsWith('\xff') ? 'utf-16le' : 'utf-16be'
  return new TextDecoder(unicode).decode(bytes)
}

/** Encodes a text; characters outside the set become numeric references. UTF-16 is encoded as UTF-8. */
export function encodeCharset(text: string, decoder: TextDecoder): Buffer {
  const name = decoder.encoding
  if (name.startsWith('utf-')) return Buffer.from(text, 'utf8')
  if (name === 'iso-2022-jp') return encodeIso2022Jp(text)
  const table = knownTable(name)
  const pieces: Buffer[] = []
  for (const character of text) {
    const code = character.codePointAt(0) as number
    if (code < 0x80) pieces.push(Buffer.of(code))
    else if (code > 0xffff && name === 'gb18030') pieces.push(fourBytes(code - 0x10000 + 189_000))
    else pieces.push(table.get(character) ?? Buffer.from(`&#${code};`))
  }
  return Buffer.concat(pieces)
}

function knownTable(name: string): Table {
  let table = tables.get(name)
  if (table === undefined) {
    table = tableOf(name)
    tables.set(name, table)
  }
  return table
}

const escapes = { ascii: '\x1b(B', roman: '\x1b(J', japanese: '\x1b$B' } as const

/** ISO-2022-JP switches between ASCII, its Japanese variant and two-byte characters, which are those of EUC-JP. */
function encodeIso2022Jp(text: string): Buffer {
  const table = knownTable('euc-jp')
  let written = ''
  let state = 'ascii' as keyof typeof escapes
  const write = (to: keyof typeof escapes, bytes: string): void => {
    if (state !== to) written += escapes[to]
    state = to
    written += bytes
  }
  for (const given of text) {
    const single = given === '¥' ? '\\' : given === '‾' ? '~' : undefined
    const character = /[\uff61-\uff9f]/.test(given) ? fullWidth(given) : given
    const bytes = single === undefined && character > '\x7f' ? table.get(character) : undefined
    if (single !== undefined) write('roman', single)
    else if (bytes !== undefined) write('japanese', String.fromCharCode(...bytes.map((byte) => byte & 0x7f)))
    else if ('\x0e\x0f\x1b'.includes(given)) write(state === 'japanese' ? 'ascii' : state, '&#65533;')
    else if (given > '\x7f') write(state === 'japanese' ? 'ascii' : state, `&#${given.codePointAt(0)};`)
    else write(state === 'roman' && !/[\\~]/.test(given) ? 'roman' : 'ascii', given)
  }
  write('ascii', '')
  return Buffer.from(written, 'latin1')
}

/** The katakana or punctuation of a half-width form. */
function fullWidth(character: string): string {
  return character === 'ﾞ' ? '゛' : character === 'ﾟ' ? '゜' : character.normalize('NFKC')
}

/** Box-drawing characters and two numerals that Big5 contains twice: the second code is the one to write. */
const lastInBig5 = /[═╞╡╪十卅]/

function tableOf(name: string): Table {
  const table = new Map<string, Buffer>()
  const strict = new TextDecoder(name, { fatal: true })
  const learn = (...bytes: number[]): void => {
    const sequence = Buffer.from(bytes)
    try {
      const character = strict.decode(sequence)
      const known = table.has(character) && !(name === 'big5' && lastInBig5.test(character))
      if (Array.from(character).length === 1 && !known) table.set(character, sequence)
    } catch {
      // The bytes encode no character.
    }
  }
  for (let byte = name === 'gb18030' ? 0x81 : 0x80; byte < 0x100; byte++) learn(byte)
  if (/^(windows|iso-8859|koi8|ibm|macintosh|x-mac|x-user)/.test(name)) return table
  for (let lead = name === 'big5' ? 0xa1 : 0x81; lead < 0xff; lead++) {
    // The encoder writes characters of these rows with their later codes.
    if (name === 'shift_jis' && lead >= 0xed && lead <= 0xef) continue
    for (let trail = 0x40; trail < 0xff; trail++) learn(lead, trail)
  }
  if (name === 'shift_jis' || name === 'euc-jp') {
    table.set('¥', Buffer.of(0x5c))
    table.set('‾', Buffer.of(0x7e))
    table.set('−', table.get('－') as Buffer)
  }
  if (name === 'gb18030') {
    const sequences = Array.from({ length: 39_420 }, (_, index) => fourBytes(index))
    let index = 0
    for (const character of strict.decode(Buffer.concat(sequences))) {
      if (!table.has(character)) table.set(character, sequences[index] as Buffer)
      index++
    }
  }
  return table
}

/** The four bytes of a GB 18030 index. */
function fourBytes(place: number): Buffer {
  return Buffer.of(
    0x81 + Math.floor(place / 12_600),
    0x30 + (Math.floor(place / 1260) % 10),
    0x81 + (Math.floor(place / 10) % 126),
    0x30 + (place % 10),
  )
}
