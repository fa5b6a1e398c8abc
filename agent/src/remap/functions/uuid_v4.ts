// Function `uuid_v4`.

import { randomUUID } from 'node:crypto'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const uuidV4 = defineFunction({
  name: 'uuid_v4',
  category: 'Random',
  summary: 'Returns a random UUID (version 4).',
  parameters: [],
  returns: kinds.string,
  fallible: 'never',
  pure: false,
  examples: [
    { source: "match(uuid_v4(), r'^[0-9a-f-]{36}$')", result: 'true' },
    { source: 'length(uuid_v4())', result: '36' },
    { source: 'uuid_v4() != uuid_v4()', result: 'true' },
  ],
  compile: () => () => randomUUID(),
})
