// Codec `csv`: writes the selected fields of a log event as one record, without a header and without a line break.

import { getValue, type PathSegment, parsePath } from '../../event/path.ts'
import { isObject, Regex, type Value, type ValueObject } from '../../event/value.ts'
import { compileCsvWriter } from '../../formats/csv.ts'
import type { EncodingOptions } from '../../schema/groups.ts'
import { valueText } from '../value-text.ts'

export type CsvOptions = NonNullable<EncodingOptions['csv']>

/** Compiles the columns into a function that returns the record of an event. */
export function compileCsv(options: CsvOptions): (fields: ValueObject) => string {
  const paths: readonly (readonly PathSegment[])[] = options.fields.map((field) => parsePath(field)?.segments ?? [])
  const write = compileCsvWriter({
    delimiter: options.delimiter,
    quote: options.quote,
    doubleQuote: options.double_quote,
    escape: options.escape,
    quoteStyle: options.quote_style,
  })
  const columns: string[] = paths.map(() => '')
  return (fields) => {
    for (let index = 0; index < paths.length; index++) {
      columns[index] = cellText(getValue(fields, paths[index] as readonly PathSegment[]))
    }
    return write(columns)
  }
}

function cellText(value: Value | undefined): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return Array.isArray(value) || value instanceof Regex || isObject(value) ? '' : valueText(value)
}
