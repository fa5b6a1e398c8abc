// Function `to_syslog_level`.

import { severities } from '../../formats/syslog.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const toSyslogLevel = defineFunction({
  name: 'to_syslog_level',
  category: 'Convert',
  summary: 'Returns the keyword of a syslog severity.',
  parameters: [{ name: 'value', kind: kinds.integer, description: 'The severity, 0 to 7.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The severity does not exist.'],
  pure: true,
  examples: [
    { source: 'to_syslog_level!(4)', result: '"warning"' },
    { source: 'to_syslog_level!(0)', result: '"emerg"' },
    { source: 'to_syslog_level(9) ?? "none"', result: '"none"' },
  ],
  compile: () => (value: number | bigint) => severities[Number(value)] ?? failure(`severity level ${value} not valid`),
})
