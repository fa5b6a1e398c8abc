// Function `get_timezone_name`.

import { findZone } from '../../formats/timezone.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const getTimezoneName = defineFunction({
  name: 'get_timezone_name',
  category: 'System',
  summary: 'Returns the name of the time zone used for dates without a zone.',
  parameters: [],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The local time zone cannot be determined.'],
  pure: false,
  examples: [
    { source: 'get_timezone_name!()', result: '"UTC"' },
    { source: 'is_string(get_timezone_name!())', result: 'true' },
    { source: 'length(get_timezone_name!())', result: '3' },
  ],
  compile(call) {
    const name = call.runtime.timezone
    const zone = name === 'local' ? findZone(name)?.name : name
    return () => zone ?? failure('failed to get the name of the local time zone')
  },
})
