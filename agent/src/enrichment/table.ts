// The view that a program has of an enrichment table.

import type { Value } from '../event/value.ts'

export interface LoadedTable {
  /**
   * The records that meet a condition; a sentence if the table does not support the condition.
   * @param condition fields and the values that they must have
   * @param select fields of the result; all if undefined
   * @param wildcard a value in the table that stands for any
   */
  find(
    condition: Readonly<Record<string, Value>>,
    select: readonly string[] | undefined,
    caseSensitive: boolean,
    wildcard: Value | undefined,
  ): readonly Value[] | string
}
