// Kubernetes quantities as numbers: `1Mi`, `120k`, 500.

const factors: Readonly<Record<string, number>> = {
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** The number that a quantity means; undefined if it is none. */
export function quantityOf(quantity: string | number | undefined): number | undefined {
  if (quantity === undefined) return undefined
  const match = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(String(quantity))
  return match === null ? undefined : Number(match[1]) * (factors[match[2] ?? ''] as number)
}

/** A whole number of bytes as people write it: `20Mi`. */
export function bytesText(bytes: number): string {
  for (const unit of ['Ti', 'Gi', 'Mi', 'Ki']) {
    const factor = factors[unit] as number
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`
  }
  return String(bytes)
}

/** A quantity rounded to two significant digits, so that much the same figure is the same text: `120k`. */
export function roundedText(value: number): string {
  if (!Number.isFinite(value) || value <= 0) return '0'
  const rounded = Number(value.toPrecision(2))
  for (const unit of ['T', 'G', 'M', 'k']) {
    const factor = factors[unit] as number
    if (rounded >= factor) return `${Number((rounded / factor).toPrecision(2))}${unit}`
  }
  return String(Math.round(rounded))
}
