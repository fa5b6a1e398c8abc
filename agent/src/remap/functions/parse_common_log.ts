// Function `parse_common_log`.

import { isLineProblem, parseCommonLog } from '../../formats/common-log.ts'
import { compileStrftime, type Strftime } from '../../formats/datetime.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { commonLogKind } from '../log-kinds.ts'

export const parseCommonLogFunction = defineFunction({
  name: 'parse_common_log',
  category: 'Parse',
  summary: 'Parses a line of the common log format of web servers.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line.' },
    {
      name: 'timestamp_format',
      kind: kinds.string,
      required: false,
      default: '%d/%b/%Y:%T %z',
      description: 'The format of the date.',
    },
  ],
  returns: commonLogKind({}),
  fallible: 'always',
  errors: ['The line has another format.', 'The date has another format.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_common_log!("1.2.3.4 - bob [03/Apr/2023:08:09:10 +0200] \\"GET / HTTP/1.1\\" 200 12").status',
      result: '200',
    },
    {
      source:
        'parse_common_log!("- bob frank [10/Oct/2000:13:55:36 -0700] \\"GET /gate.gif HTTP/1.0\\" 200 2326").path',
      result: '"/gate.gif"',
    },
    { source: 'parse_common_log("no such line") ?? {}', result: '{  }' },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    let pattern = ''
    let compiled: Strftime | undefined
    return (value: string, format: string): Result => {
      if (compiled === undefined || pattern !== format) {
        const fresh = compileStrftime(format)
        if (!fresh.ok) return failure(`invalid timestamp format ${format}`)
        pattern = format
        compiled = fresh
      }
      const fields = parseCommonLog(value, compiled, zone)
      return isLineProblem(fields) ? failure(fields.problem) : fields
    }
  },
})
