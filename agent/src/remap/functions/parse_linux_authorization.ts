// Function `parse_linux_authorization`.

import { parseSyslog } from '../../formats/syslog.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { syslogKind } from '../log-kinds.ts'

export const parseLinuxAuthorization = defineFunction({
  name: 'parse_linux_authorization',
  category: 'Parse',
  summary: 'Parses a line of an authorization log (`/var/log/auth.log`).',
  description:
    'Such lines contain no year: the function adds the current one, or the previous one for a December line read in January.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The line.' }],
  returns: syslogKind,
  fallible: 'always',
  errors: ['The line has another format.'],
  pure: false,
  fresh: true,
  examples: [
    {
      source: 'parse_linux_authorization!("Sep 12 13:14:15 gate sshd[22]: Failed password").message',
      result: '"Failed password"',
    },
    { source: 'parse_linux_authorization!("Sep 12 13:14:15 gate sshd[22]: Failed password").procid', result: '22' },
    { source: 'parse_linux_authorization("") ?? {}', result: '{  }' },
  ],
  compile(call) {
    const zone = zoneOrUtc(call.runtime.timezone)
    return (value: string) => parseSyslog(value, zone) ?? failure('unable to parse input as valid syslog message')
  },
})
