// Takes secret values out of text about an error. An error may show a value whole, escaped, encoded, in other case, or cut anywhere:
// so every piece of the text that is also a piece of a form of a value is taken out, before the text itself is cut.

const mark = '***'
/** Shorter pieces say nothing about a value, and would be found in any text. A value that is shorter itself is found whole. */
const pieceLength = 6
const minValueLength = 3
/** Longer values, such as certificates, are looked for in fewer forms: each costs a piece for each of its characters. */
const manyFormsBytes = 8192

/** Returns a function that takes these values out of a text. */
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

/** A value as errors may show it. */
function formsOf(value: Buffer): string[] {
  const text = value.toString('utf8')
  const forms = [text, text.trim(), JSON.stringify(text).slice(1, -1)]
  // In base64 the form of a value depends on how many bytes are before it.
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

/** Keeps the length, so that a position in the result is one in the text. */
function lowered(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
