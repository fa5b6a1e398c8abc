// Text from events, conditions or names may contain control codes of terminals. Those characters are replaced by their JSON escapes, so
// a line of JSON keeps its meaning, and other text shows what it contains.

/** Control characters except tab and line feed (C0, DEL, C1), and characters that change the direction of text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Control codes that our own commands write: colours, and clearing the screen. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape begins them
const own = /(\u001b\[(?:0|1|2|3[1-6])m|\u001b\[H\u001b\[2J)/

export function printable(text: string): string {
  return text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The same, but keeps the colours that commands write. */
export function printableWithColours(text: string): string {
  if (!text.includes('\u001b')) return printable(text)
  return text
    .split(own)
    .map((piece, index) => (index % 2 === 1 ? piece : printable(piece)))
    .join('')
}

/** From this call on, makes all text printable that the process writes to the streams. Bytes stay unchanged. */
export function printOnlyPrintable(streams: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr]): void {
  for (const stream of streams) {
    const write = stream.write.bind(stream) as (...given: unknown[]) => boolean
    stream.write = ((chunk: unknown, ...rest: unknown[]) =>
      write(typeof chunk === 'string' ? printableWithColours(chunk) : chunk, ...rest)) as typeof stream.write
  }
}
