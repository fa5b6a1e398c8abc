// Kubernetes quantities as numbers: `1Mi`, `120k`, `1e3`, 500.

const factors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

/** A non-negative Kubernetes quantity; the exponent has at most two digits. */
export const quantityPattern =
  '^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?$'
const grammar = new RegExp(quantityPattern)

/** The number of a quantity; undefined if the text is invalid. */
export function quantityOf(quantity: string | number | undefined): number | undefined {
  if (quantity === undefined) return undefined
  const match = grammar.exec(String(quantity))
  if (match === null) return undefined
  const factor = factors[match[3] ?? '']
  return factor === undefined ? Number(`${match[1]}${match[3]}`) : Number(match[1]) * factor
}

/**
 * The number of a limit; undefined if the limit is absent. An invalid text means 0: the schema refuses it, but an object may be older than
 * the schema and must not lose its limit.
 */
export function limitOf(quantity: string | number | undefined): number | undefined {
  return quantity === undefined ? undefined : (quantityOf(quantity) ?? 0)
}

/** A whole number of bytes in readable form: `20Mi`. */
export function bytesText(bytes: number): string {
  for (const unit of ['Ti', 'Gi', 'Mi', 'Ki']) {
    const factor = factors[unit] as number
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`
  }
  return String(bytes)
}
