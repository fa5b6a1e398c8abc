// Removes secret values from error texts. An error may contain a value in full, escaped, encoded, in different case, or truncated
// anywhere: so every substring that is also a substring of some encoding of a value is removed, before the text itself is truncated.

const mark = '***'
/** Shorter substrings reveal nothing about a value, and occur in any text. A shorter value is matched as a whole. */
const pieceLength = 6
const minValueLength = 3
/**
 * Longer values, such as certificates, are matched in fewer encodings, because each encoding needs an entry per
 * character.
 */
const manyFormsBytes = 8192

/** Returns a function that removes these values from a text. */
export function redactorOf(values: Iterable<Buffer>): (text: string) => string {
  const pieces = new Set<string>()
  const whole = new Set<string>()
  for (const value of values) {
    for (const form of formsOf(value)) {
      const plain = lowered(form)
      if (plain.length < pieceLength) {
        if (plain.length >= minValueLength) whole.add(plain)
        continue
      }
      for (let at = 0; at + pieceLength <= plain.length; at++) pieces.add(plain.slice(at, at + pieceLength))
    }
  }
  return (text) => {
    const plain = lowered(text)
    const hidden = new Uint8Array(text.length)
    for (let at = 0; at + pieceLength <= plain.length; at++) {
      if (pieces.has(plain.slice(at, at + pieceLength))) hidden.fill(1, at, at + pieceLength)
    }
    for (const value of whole) {
      for (let at = plain.indexOf(value); at !== -1; at = plain.indexOf(value, at + 1)) {
        hidden.fill(1, at, at + value.length)
      }
    }
    let clean = ''
    for (let at = 0; at < text.length; at++) {
      if (hidden[at] === 0) clean += text[at]
      else if (at === 0 || hidden[at - 1] === 0) clean += mark
    }
    return clean
  }
}

/** The encodings in which errors may contain a value. */
function formsOf(value: Buffer): string[] {
  const text = value.toString('utf8')
  const forms = [text, text.trim(), JSON.stringify(text).slice(1, -1)]
  // The base64 encoding of a value depends on the number of preceding bytes.
  for (const before of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(before), value])
      .toString('base64')
      .replace(/=+$/, '')
    const own = encoded.slice(before === 0 ? 0 : before + 1, value.length % 3 === 0 && before === 0 ? undefined : -1)
    forms.push(own, own.replaceAll('+', '-').replaceAll('/', '_'))
  }
  if (value.length > manyFormsBytes) return forms
  const percent = encodeURIComponent(text.toWellFormed())
  return [...forms, percent, percent.replaceAll('%20', '+'), value.toString('hex')]
}

/** Keeps the length, so that offsets in the result match the text. */
function lowered(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
