// The form of a row in the table of options of other versions and agents.

export type OptionTable = Readonly<Record<string, unknown>>

export interface OtherOption {
  /** `global` for a setting of the whole agent. */
  readonly kind: 'global' | 'source' | 'transform' | 'sink'
  /** Component types, by their names here; by default all types of the kind. */
  readonly types?: readonly string[]
  /** The path of the option, with names joined by dots; `*` stands for a name that users choose. */
  readonly path: string
  /** A value of the option. */
  readonly example: unknown
  /** Whether the row applies to a value; by default it applies to all values. */
  readonly when?: (value: unknown) => boolean
  /** The replacement, in full sentences. */
  readonly instead: string
  /** Returns the equivalent options: an empty table if the option needs no replacement. */
  readonly rewrite?: (value: unknown) => OptionTable | undefined
  /** The difference in behavior after the rewrite. */
  readonly differs?: string
}
