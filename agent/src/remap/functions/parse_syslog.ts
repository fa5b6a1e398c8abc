// Function `parse_syslog`.

import { parseSyslog } from '../../formats/syslog.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { syslogKind } from '../log-kinds.ts'

export const parseSyslogFunction = defineFunction({
  name: 'parse_syslog',
  category: 'Parse',
  summary: 'Parses a syslog line: RFC 5424, RFC 3164 and common variants.',
  description: 'Missing parts give no field. Structured data becomes objects under their ids.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The line.' }],
  returns: syslogKind,
  fallible: 'always',
  errors: ['The line is not syslog.'],
  pure: false,
  fresh: true,
  examples: [
    {
      source: 'parse_syslog!("<13>1 2024-01-01T00:00:00Z web app 7 - - hello")',
      result:
        '{ "appname": "app", "facility": "user", "hostname": "web", "message": "hello", "procid": 7, "severity": "notice", "timestamp": t\'2024-01-01T00:00:00Z\', "version": 1 }',
    },
    { source: 'parse_syslog!("<34>Oct 11 22:14:15 gate su: failed").appname', result: '"su"' },
    { source: 'parse_syslog!(s\'<13>1 2024-01-01T00:00:00Z web app 7 ID [a@1 b="c"] hello\').msgid', result: '"ID"' },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    return (value: string) => parseSyslog(value, zone) ?? failure('unable to parse input as valid syslog message')
  },
})
