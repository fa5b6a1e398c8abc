// Decimal numbers in text, as the coercing functions read them.

/** A decimal float: `1e3`, `.5`, `5.`, `inf`, `infinity`, with a sign; undefined if it is none, or not a number. */
export function parseDecimal(text: string): number | undefined {
  if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text)
  const word = /^([+-]?)inf(?:inity)?$/i.exec(text)
  if (word === null) return undefined
  return word[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
