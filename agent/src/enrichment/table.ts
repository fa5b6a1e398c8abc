// The interface through which programs use an enrichment table.

import type { Value } from '../event/value.ts'

export interface LoadedTable {
  /**
   * The records that meet a condition; a message if the table does not support the condition.
   * @param condition fields and the values that they must have
   * @param select fields of the result; all by default
   * @param wildcard a value in the table that matches any value
   */
  find(
    condition: Readonly<Record<string, Value>>,
    select: readonly string[] | undefined,
    caseSensitive: boolean,
    wildcard: Value | undefined,
  ): readonly Value[] | string
}
