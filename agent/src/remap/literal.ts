// Writes texts and fields in the syntax of the language, for code that generates programs: conditions, conversions and
// fuzzing.

/** A text as a string literal. Braces are escaped, so that `{{` is not a template. */
export function textLiteral(text: string): string {
  let out = ''
  for (const char of text) {
    const code = char.codePointAt(0) as number
    if (char === '"' || char === '\\' || char === '{' || char === '}') out += `\\${char}`
    else if (char === '\n') out += '\\n'
    else if (code < 0x20) out += `\\u{${code.toString(16)}}`
    else out += char
  }
  return `"${out}"`
}

/** A path of field names below the event, such as `.a."b.c"`. */
export function fieldLiteral(path: readonly string[]): string {
  return path.map((name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `.${name}` : `.${textLiteral(name)}`)).join('')
}
