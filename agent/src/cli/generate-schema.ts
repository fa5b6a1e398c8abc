// `generate-schema`: the same as `generate --schema`.

import { run as generate } from './generate.ts'

export function run(argv: readonly string[]): Promise<number> {
  return generate(['--schema', ...argv])
}
