// Function `get_env_var`.

import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const getEnvVar = defineFunction({
  name: 'get_env_var',
  category: 'System',
  summary: 'Returns the value of an environment variable of the agent.',
  parameters: [{ name: 'name', kind: kinds.string, description: 'The name of the variable.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The variable is not set.', 'The text is not a valid variable name.'],
  pure: false,
  reaches: 'environment',
  examples: [
    { source: 'get_env_var("NO_SUCH_VARIABLE") ?? "unset"', result: '"unset"' },
    { source: 'value, err = get_env_var("NO_SUCH_VARIABLE")\n[value, is_string(err)]', result: '["", true]' },
    { source: 'is_string(get_env_var("PATH") ?? "")', result: 'true' },
  ],
  compile: () => (name: string) => process.env[name] ?? failure('environment variable not found'),
})
