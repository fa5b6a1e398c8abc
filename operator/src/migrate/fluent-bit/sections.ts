// A Fluent Bit configuration as sections with line numbers. The classic and the YAML syntax become the same sections. Keys are in lower
// case, because Fluent Bit ignores case. A key may occur several times, and the order of entries matters.

export interface Place {
  readonly file: string
  /** From 1. */
  readonly line: number
}

export interface Entry extends Place {
  readonly key: string
  readonly value: string
}

export interface Section extends Place {
  /** `input`, `filter`, `output`, `parser`, `multiline_parser`, `service`, or another word of the file. */
  readonly kind: string
  readonly entries: readonly Entry[]
  /** The namespace of a filter or an output that processes the logs of one namespace only. */
  readonly namespace?: string
  /** Processors of an input or an output, as sections of the kind `processor`. */
  readonly processors?: readonly Section[]
  /** Routes of an input, as sections of the kind `route`. */
  readonly routes?: readonly Section[]
}

/** Text in the file that the reader does not understand. */
export interface Unread extends Place {
  readonly reason: string
  /** Whether the text cannot be parsed. */
  readonly isUnreadable?: true
}

export interface SectionFile {
  readonly sections: readonly Section[]
  /** Values that the file itself assigns to variables. */
  readonly variables: ReadonlyMap<string, string>
  readonly includes: readonly Entry[]
  readonly unread: readonly Unread[]
}

/** The key of the condition of a processor, whose value is JSON. */
export const conditionKey = 'condition (rules)'

/** The key of a node to which an output sends, whose value is JSON. */
export const upstreamNode = 'upstream (node)'

/** The key of an output of a route, and that of the output that replaces it. */
export const routeOutput = 'to'
export const routeFallback = 'to (fallback)'

/** The last value of a key. It wins if a key can have only one value. */
export function lastValue(section: Section, key: string): string | undefined {
  return section.entries.findLast((entry) => entry.key === key)?.value
}

/** All values of a repeated key, in order. */
export function entriesOf(section: Section, key: string): readonly Entry[] {
  return section.entries.filter((entry) => entry.key === key)
}

/** The items of a key whose values are comma-separated lists. */
export function listOf(section: Section, key: string): string[] {
  return entriesOf(section, key)
    .flatMap((entry) => entry.value.split(',').map((part) => part.trim()))
    .filter((part) => part !== '')
}

/** A size such as `512k` or `1MB`, in which a thousand bytes are a kilobyte; undefined if it is not valid. */
export function bytesOf(text: string | undefined): number | undefined {
  const found = /^(\d+(?:\.\d+)?)\s*([kmg])?b?$/i.exec(text ?? '')
  if (found === null) return undefined
  const unit = { k: 1000, m: 1_000_000, g: 1_000_000_000 }[(found[2] ?? '').toLowerCase() as 'k'] ?? 1
  return Math.round(Number(found[1]) * unit)
}

/** Fluent Bit's words for true; all other words mean false. */
export function isOn(value: string | undefined, byDefault: boolean): boolean {
  return value === undefined ? byDefault : /^(on|true|yes|1)$/i.test(value)
}
