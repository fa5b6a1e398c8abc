// Function `parse_apache_log`.

import { isLineProblem, parseCombinedLog, parseCommonLog, parseErrorLog } from '../../formats/common-log.ts'
import { compileStrftime, type Strftime } from '../../formats/datetime.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { commonLogKind } from '../log-kinds.ts'

const parsers = { common: parseCommonLog, combined: parseCombinedLog, error: parseErrorLog }

export const parseApacheLog = defineFunction({
  name: 'parse_apache_log',
  category: 'Parse',
  summary: "Parses a line of the Apache web server's access log or error log.",
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line.' },
    { name: 'format', kind: kinds.string, enum: Object.keys(parsers), description: 'The format of the line.' },
    {
      name: 'timestamp_format',
      kind: kinds.string,
      required: false,
      default: '%d/%b/%Y:%T %z',
      description: 'The format of the date.',
    },
  ],
  returns: (call) => {
    const textOrNull = kinds.string.or(kinds.null)
    switch (call.constant('format')) {
      case 'combined':
        return commonLogKind({ referrer: textOrNull, agent: textOrNull })
      case 'error':
        return kinds.objectOf({
          timestamp: kinds.timestamp.or(kinds.null),
          module: textOrNull,
          severity: textOrNull,
          thread: textOrNull,
          port: textOrNull,
          message: textOrNull,
        })
      default:
        return commonLogKind({})
    }
  },
  // The language does not declare all fields of an error log, and declares the port as a string.
  nominal: (call) => call.constant('format') === 'error',
  fallible: 'always',
  errors: ['The line has another format.', 'The date has another format.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source:
        'parse_apache_log!("1.2.3.4 - bob [03/Apr/2023:08:09:10 +0200] \\"GET / HTTP/1.1\\" 200 12 \\"http://a/\\" \\"curl\\"", format: "combined").agent',
      result: '"curl"',
    },
    {
      source:
        'parse_apache_log!("1.2.3.4 - - [03/Apr/2023:08:09:10 +0200] \\"GET / HTTP/1.1\\" 200 -", format: "common").path',
      result: '"/"',
    },
    {
      source:
        'parse_apache_log!("[01/Mar/2021:12:00:19 +0000] [ab:alert] [pid 4803:tid 3814] [client 147.159.108.175:24259] I\'ll bypass", format: "error").severity',
      result: '"alert"',
    },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    const parse = parsers[call.constant('format') as keyof typeof parsers] ?? parseCommonLog
    let pattern = ''
    let compiled: Strftime | undefined
    return (value: string, _format: string, timestampFormat: string): Result => {
      if (compiled === undefined || pattern !== timestampFormat) {
        const fresh = compileStrftime(timestampFormat)
        if (!fresh.ok) return failure(`invalid timestamp format ${timestampFormat}`)
        pattern = timestampFormat
        compiled = fresh
      }
      const fields = parse(value, compiled, zone)
      return isLineProblem(fields) ? failure(fields.problem) : fields
    }
  },
})
