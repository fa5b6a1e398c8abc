// Function `to_syslog_facility_code`.

import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { facilityKeywords } from './to_syslog_facility.ts'

export const toSyslogFacilityCode = defineFunction({
  name: 'to_syslog_facility_code',
  category: 'Convert',
  summary: 'Returns the code of a syslog facility keyword.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The keyword.' }],
  returns: kinds.integer,
  fallible: 'always',
  errors: ['The keyword does not exist.'],
  pure: true,
  examples: [
    { source: 'to_syslog_facility_code!("authpriv")', result: '10' },
    { source: 'to_syslog_facility_code!("kern")', result: '0' },
    { source: 'to_syslog_facility_code("gate") ?? -1', result: '-1' },
  ],
  compile: () => (value: string) => {
    const code = facilityKeywords.indexOf(value)
    return code < 0 ? failure(`syslog facility '${value}' not valid`) : code
  },
})
