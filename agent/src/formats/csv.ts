// CSV records by RFC 4180, with a tolerant reader and a writer without line ends.
// Hand-written, because it is a short synchronous call for each record.

export interface CsvForm {
  readonly delimiter: string
  readonly quote: string
  /** How a quote inside quotes is written: doubled, or preceded by `escape`. */
  readonly doubleQuote: boolean
  readonly escape: string
  readonly quoteStyle: 'necessary' | 'always' | 'non_numeric' | 'never'
}

export const standardCsv: CsvForm = {
  delimiter: ',',
  quote: '"',
  doubleQuote: true,
  escape: '"',
  quoteStyle: 'necessary',
}

/** Compiles the writer of a record's columns. */
export function compileCsvWriter(form: CsvForm): (columns: readonly string[]) => string {
  const { delimiter, quote, quoteStyle } = form
  const replacement = form.doubleQuote ? quote + quote : form.escape + quote
  const quoted = (text: string): string => {
    const escaped =
      form.doubleQuote || form.escape === quote ? text : text.replaceAll(form.escape, form.escape + form.escape)
    return quote + escaped.replaceAll(quote, replacement) + quote
  }
  const needsQuotes = (text: string): boolean =>
    text.includes(delimiter) || text.includes(quote) || text.includes('\n') || text.includes('\r')
  const column = (text: string): string => {
    switch (quoteStyle) {
      case 'always':
        return quoted(text)
      case 'never':
        return text
      case 'non_numeric':
        return isNumber(text) ? text : quoted(text)
      case 'necessary':
        return needsQuotes(text) ? quoted(text) : text
    }
  }
  return (columns) => {
    let record = ''
    for (let index = 0; index < columns.length; index++) {
      if (index > 0) record += delimiter
      record += column(columns[index] as string)
    }
    return record
  }
}

function isNumber(text: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)
}

/** The columns of the first record; none if the text is empty. Skips empty lines before it. */
export function parseCsvRecord(text: string, delimiter = ',', quote = '"'): string[] {
  // A byte order mark does not belong to the first column.
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0
  while (text[at] === '\n' || text[at] === '\r') at++
  if (at === text.length) return []
  const columns: string[] = []
  let column = ''
  for (;;) {
    if (text[at] === quote) {
      at++
      for (;;) {
        const end = text.indexOf(quote, at)
        if (end < 0) {
          column += text.slice(at)
          at = text.length
          break
        }
        column += text.slice(at, end)
        at = end + 1
        if (text[at] !== quote) break
        column += quote
        at++
      }
    }
    const start = at
    while (at < text.length && text[at] !== delimiter && text[at] !== '\n' && text[at] !== '\r') at++
    column += text.slice(start, at)
    columns.push(column)
    column = ''
    if (text[at] !== delimiter) return columns
    at++
  }
}

/** All records of a text, with the rules of `parseCsvRecord`. */
export function parseCsv(text: string, delimiter = ',', quote = '"'): string[][] {
  const records: string[][] = []
  let at = 0
  while (at < text.length) {
    const end = recordEnd(text, at, delimiter, quote)
    const record = parseCsvRecord(text.slice(at, end), delimiter, quote)
    if (record.length > 0) records.push(record)
    at = end + 1
  }
  return records
}

function recordEnd(text: string, from: number, delimiter: string, quote: string): number {
  let atStart = true
  let at = from
  for (; at < text.length; at++) {
    const character = text[at]
    if (atStart && character === quote) {
      // Up to the closing quote.
      for (at++; at < text.length; at++) {
        if (text[at] !== quote) continue
        if (text[at + 1] !== quote) break
        at++
      }
    } else if (character === '\n' || character === '\r') {
      return at
    }
    atStart = character === delimiter
  }
  return at
}
