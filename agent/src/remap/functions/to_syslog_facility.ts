// Function `to_syslog_facility`.

import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const facilityKeywords = [
  ...['kern', 'user', 'mail', 'daemon', 'auth', 'syslog', 'lpr', 'news', 'uucp', 'cron', 'authpriv', 'ftp'],
  ...['ntp', 'security', 'console', 'solaris-cron'],
  ...['local0', 'local1', 'local2', 'local3', 'local4', 'local5', 'local6', 'local7'],
]

export const toSyslogFacility = defineFunction({
  name: 'to_syslog_facility',
  category: 'Convert',
  summary: 'Returns the keyword of a syslog facility.',
  parameters: [{ name: 'value', kind: kinds.integer, description: 'The facility, 0 to 23.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The facility does not exist.'],
  pure: true,
  examples: [
    { source: 'to_syslog_facility!(4)', result: '"auth"' },
    { source: 'to_syslog_facility!(0)', result: '"kern"' },
    { source: 'to_syslog_facility(99) ?? "none"', result: '"none"' },
  ],
  compile: () => (value: number | bigint) =>
    facilityKeywords[Number(value)] ?? failure(`facility code ${value} not valid`),
})
