// The contract of converters, and their arguments as values.

import type { Lines, Value } from './code.ts'
import type { Program } from './compile.ts'
import { required, type Values } from './editors.ts'

export interface Converter {
  /** For the guide. */
  readonly becomes: string
  readonly parameters: readonly string[]
  readonly run: (program: Program, lines: Lines, values: Values) => Value
}

export const valueAt = (program: Program, lines: Lines, values: Values, name = 'target') =>
  program.value(required(values, name), lines)

export const textAt = (program: Program, lines: Lines, values: Values, name = 'target') =>
  lines.as(program.value(required(values, name), lines, 'or absent'), 'text').code
