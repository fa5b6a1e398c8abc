// Function `to_syslog_severity`.

import { severities } from '../../formats/syslog.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

const synonyms: Readonly<Record<string, number>> = { panic: 0, error: 3, warn: 4 }

export const toSyslogSeverity = defineFunction({
  name: 'to_syslog_severity',
  category: 'Convert',
  summary: 'Returns the code of a syslog severity keyword.',
  description: 'Also accepts `panic`, `error` and `warn`.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The keyword.' }],
  returns: kinds.integer,
  fallible: 'always',
  errors: ['The keyword does not exist.'],
  pure: true,
  examples: [
    { source: 'to_syslog_severity!("err")', result: '3' },
    { source: 'to_syslog_severity!("debug")', result: '7' },
    { source: 'to_syslog_severity("loud") ?? -1', result: '-1' },
  ],
  compile: () => (value: string) => {
    const code = (severities as readonly string[]).indexOf(value)
    if (code >= 0) return code
    return (Object.hasOwn(synonyms, value) ? synonyms[value] : undefined) ?? failure(`syslog level ${value} not valid`)
  },
})
