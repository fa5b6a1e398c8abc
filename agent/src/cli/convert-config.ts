// `convert-config FILE [OUTPUT]`: the same as `generate --from FILE --file OUTPUT`.

import { PenstockError } from '../errors.ts'
import { run as generate } from './generate.ts'

export function run(argv: readonly string[]): Promise<number> {
  const [from, ...rest] = argv
  if (from === undefined || from.startsWith('-')) {
    throw new PenstockError('PEN_USAGE', 'Name the file first: penstock-agent convert-config FILE [OUTPUT].')
  }
  const [file, ...others] = rest
  const output = file === undefined || file.startsWith('-') ? rest : ['--file', file, ...others]
  return generate(['--from', from, ...output])
}
