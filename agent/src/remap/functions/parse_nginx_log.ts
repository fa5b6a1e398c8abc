// Function `parse_nginx_log`.

import { isLineProblem, parseNginxLog } from '../../formats/common-log.ts'
import { compileStrftime, strftime } from '../../formats/datetime.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { nginxLogKind } from '../log-kinds.ts'

const forms = ['combined', 'error', 'ingress_upstreaminfo', 'main'] as const

export const parseNginxLogFunction = defineFunction({
  name: 'parse_nginx_log',
  category: 'Parse',
  summary: 'Parses a line of the access log or error log of nginx, or of its ingress controller.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line.' },
    { name: 'format', kind: kinds.string, enum: forms, description: 'The format of the line.' },
    {
      name: 'timestamp_format',
      kind: kinds.string,
      required: false,
      description: 'The format of the date; by default that of nginx.',
    },
  ],
  returns: (call) => nginxLogKind(call.constant('format')),
  // Fields that are `-` are missing, and the language does not declare the referer of an error log.
  nominal: true,
  fallible: 'always',
  errors: ['The line has another format.', 'The date has another format.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_nginx_log!("2023/06/10 01:02:03 [info] 5#6: worker exits", format: "error").message',
      result: '"worker exits"',
    },
    {
      source:
        'parse_nginx_log!("172.17.0.1 - alice [01/Apr/2021:12:02:31 +0000] \\"GET / HTTP/1.1\\" 304 0 \\"-\\" \\"curl\\"", format: "combined").status',
      result: '304',
    },
    { source: 'parse_nginx_log("no such line", format: "combined") ?? {}', result: '{  }' },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    const form = (call.constant('format') ?? 'combined') as (typeof forms)[number]
    const standard = strftime(form === 'error' ? '%Y/%m/%d %H:%M:%S' : '%d/%b/%Y:%T %z')
    return (value: string, _format: string, timestampFormat: string | undefined): Result => {
      const compiled = timestampFormat === undefined ? standard : compileStrftime(timestampFormat)
      if (!compiled.ok) return failure(`invalid timestamp format ${timestampFormat}`)
      const fields = parseNginxLog(value, form, compiled, zone)
      return isLineProblem(fields) ? failure(fields.problem) : fields
    }
  },
})
