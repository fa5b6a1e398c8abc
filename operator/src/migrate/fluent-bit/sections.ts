// Fluent Bit's configuration as sections with the place of every line: both syntaxes, classic and YAML, become the same sections.
// Keys are in small letters, as Fluent Bit compares them. A key may occur several times, and the order of entries counts.

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
  /** Of a filter or an output that takes the logs of one namespace alone. */
  readonly namespace?: string
  /** Of an input or an output: what works on its records alone, as sections of the kind `processor`. */
  readonly processors?: readonly Section[]
}

/** Text that is in the file but has no meaning for the reader. */
export interface Unread extends Place {
  readonly reason: string
}

export interface SectionFile {
  readonly sections: readonly Section[]
  /** Values that the file itself gives to variables. */
  readonly variables: ReadonlyMap<string, string>
  readonly includes: readonly Entry[]
  readonly unread: readonly Unread[]
}

/** The last value of a key, which is the one that counts where a key has one value. */
export function lastValue(section: Section, key: string): string | undefined {
  return section.entries.findLast((entry) => entry.key === key)?.value
}

/** The values of a key that may occur several times, in their order. */
export function entriesOf(section: Section, key: string): readonly Entry[] {
  return section.entries.filter((entry) => entry.key === key)
}

/** The words of a key whose values are lists with commas. */
export function listOf(section: Section, key: string): string[] {
  return entriesOf(section, key)
    .flatMap((entry) => entry.value.split(',').map((part) => part.trim()))
    .filter((part) => part !== '')
}

/** Fluent Bit's words for true; all others are false. */
export function isOn(value: string | undefined, byDefault: boolean): boolean {
  return value === undefined ? byDefault : /^(on|true|yes|1)$/i.test(value)
}
