// The processor that reads a time from a field.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { goLayout } from '../otel/text.ts'
import { isZone } from '../zone-names.ts'
import { fieldOf } from './conditions.ts'
import { failure, type Processor, quiet, when } from './processor.ts'

export const timestamp: Processor = {
  name: 'timestamp',
  becomes: '`parse_timestamp`',
  options: {
    ...when,
    field: 'the field with the text',
    layouts: 'the layouts',
    target_field: 'the field for the time',
    timezone: 'the default time zone',
  },
  itself: { ...quiet, test: 'use `spec.tests`' },
  build: (part, report, failed) => {
    const from = textIn(part, 'field') ?? ''
    const target = fieldOf(textIn(part, 'target_field') ?? '@timestamp')
    const zone = zoneOf(part, report)
    const lines = textsIn(part, 'layouts').map((layout) => timeOf(fieldOf(from), layout, zone))
    return [
      `time = if is_timestamp(${fieldOf(from)}) { ${fieldOf(from)} } else { null }`,
      ...lines.map((line) => `if time == null { ${line} }`),
      ...(flagIn(part, 'ignore_failure') === true
        ? []
        : failure(
            `time == null${flagIn(part, 'ignore_missing') === true ? ` && exists(${fieldOf(from)})` : ''}`,
            failed,
          )),
      `if time != null { ${target} = time }`,
    ]
  },
}

/** The time zone of times without one: a name, or an offset that becomes a part of the text. */
interface Zone {
  readonly name: string
  readonly offset?: string
}

/** The time zone of a processor. Reports the one of the machine, and a gap for one that does not exist. */
function zoneOf(part: Part, report: Report): Zone {
  const given = textIn(part, 'timezone') ?? 'UTC'
  const [, sign, hours, minutes = '00'] = /^([+-])(\d\d):?(\d\d)?$/.exec(given) ?? []
  if (sign !== undefined) return { name: 'UTC', offset: `${sign}${hours}${minutes}` }
  if (given === 'Local') {
    const reason = 'the old agent reads times in the time zone of its machine; containers run in UTC'
    report.replaced(part, 'timestamp: timezone', reason, 'Write a name such as `Europe/Berlin`.')
  } else if (!isZone(given)) {
    const reason = 'the time zone is not a name of the IANA database'
    report.gap(part, 'timestamp: timezone', reason, 'Write one such as `Europe/Berlin`.')
  } else return { name: given }
  return { name: 'UTC' }
}

/**
 * A statement that sets `time` from a field with a layout of Go. A time without a year is in the current year, and one without hours is
 * midnight. The abbreviation of a time zone is that of the location.
 */
function timeOf(field: string, layout: string, zone: Zone): string {
  const factor = { UNIX: '1000000.0', UNIX_MS: '1000.0' }[layout]
  if (factor !== undefined) {
    const micros = `from_unix_timestamp(to_int(round(number * ${factor})), unit: "microseconds") ?? null`
    return `number, error = to_float(${field}); if error == null && (is_string(${field}) || is_integer(${field}) || is_float(${field})) { time = ${micros} }`
  }
  const given = goLayout(layout)
  const isNamed = given.includes('%Z')
  const format = given.replaceAll('%Z', '')
  const [year, before] = /%[YyG]/.test(format) ? ['', ''] : ['format_timestamp!(now(), "%Y ") + ', '%Y ']
  const [hour, after] = /%-?[HI]/.test(format) ? ['', ''] : [' + " 00:00:00"', ' %H:%M:%S']
  const hasOwn = /%#?:*z/.test(format)
  const [offset, last] = zone.offset === undefined || hasOwn ? ['', ''] : [` + " ${zone.offset}"`, ' %z']
  const read = `(string(${field}) ?? "")`
  const text = isNamed ? `replace(${read}, r'\\b[A-Z]{3,5}\\b', "", count: 1)` : read
  const whole = year + hour + offset === '' && !isNamed ? field : `${year}${text}${hour}${offset}`
  const inZone = `, timezone: ${textLiteral(zone.name)}`
  return `time = parse_timestamp(${whole}, ${textLiteral(`${before}${format}${after}${last}`)}${inZone}) ?? null`
}
